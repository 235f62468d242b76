/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Messages; see message.h.
 */
#include "cmd/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/utf8.h"

static int verbosity;
static char color_choice = 'a';

void message_set_verbosity(int level)
{
	verbosity = level;
}

int message_verbosity(void)
{
	return verbosity;
}

void message_set_color(const char *when)
{
	color_choice = !strcmp(when, "always") ? 'A' : when[0];
}

bool message_color(int descriptor)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (color_choice != 'a')
		return color_choice == 'A';
	if ((no_color && *no_color) || (term && !strcmp(term, "dumb")))
		return false;
	return isatty(descriptor);
}

/* One write a line, so that lines of several kymos on one terminal do not mix. Names of files and
 * their contents are quoted in many; a terminal is not to obey them. */
__attribute__((format(printf, 2, 0))) static void message_line(const char *kind, const char *format,
							       va_list arguments)
{
	char text[2048], line[sizeof(text) * UTF8_REPLACEMENT_SIZE];
	int used = snprintf(text, sizeof(text), "kymo: %s", kind);
	int added = vsnprintf(text + used, sizeof(text) - (size_t)used, format, arguments);
	size_t length;

	if (added < 0)
		return;
	length = utf8_printable(text, strlen(text), line, sizeof(line) - 1);
	line[length++] = '\n';
	while (write(STDERR_FILENO, line, length) < 0) {
		if (errno != EINTR)
			return;
	}
}

void message_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	message_line("error: ", format, arguments);
	va_end(arguments);
}

void message_warning(const char *format, ...)
{
	va_list arguments;

	if (verbosity < 0)
		return;
	va_start(arguments, format);
	message_line("warning: ", format, arguments);
	va_end(arguments);
}

void message_note(const char *format, ...)
{
	va_list arguments;

	if (verbosity < 0)
		return;
	va_start(arguments, format);
	message_line("", format, arguments);
	va_end(arguments);
}

void message_detail(const char *format, ...)
{
	va_list arguments;

	if (verbosity < 1)
		return;
	va_start(arguments, format);
	message_line("", format, arguments);
	va_end(arguments);
}

int message_end_answer(int status)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	/* Nothing is left to be flushed where an earlier write has failed; its errno is gone. */
	message_error("cannot write to standard output%s%s", errno ? ": " : "",
		      errno ? strerror(errno) : "");
	return EXIT_OWN_FAILURE;
}
