/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Messages; see message.h.
 */
#include "console/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/utf8.h"

static int verbosity_level;
static char current_color_choice = 'a';
static const char *path_replaced_in_messages, *path_shown_instead_in_messages;

void message_set_verbosity(int level)
{
	verbosity_level = level;
}

int message_get_verbosity(void)
{
	return verbosity_level;
}

void message_set_path_alias(const char *path, const char *shown)
{
	path_replaced_in_messages = path && shown && strcmp(path, shown) ? path : NULL;
	path_shown_instead_in_messages = shown;
}

const char *message_get_shown_path(const char *path)
{
	return path_replaced_in_messages && !strcmp(path, path_replaced_in_messages)
		       ? path_shown_instead_in_messages
		       : path;
}

/* The alias's place in the text is taken by what is shown for it. */
static void replace_path_by_alias(char *text, size_t size)
{
	size_t length = path_replaced_in_messages ? strlen(path_replaced_in_messages) : 0,
	       shown = path_replaced_in_messages ? strlen(path_shown_instead_in_messages) : 0;

	for (char *at = text;
	     path_replaced_in_messages && (at = strstr(at, path_replaced_in_messages));
	     at += shown) {
		size_t rest = strlen(at + length) + 1;

		if ((size_t)(at - text) + shown + rest > size)
			return;
		memmove(at + shown, at + length, rest);
		memcpy(at, path_shown_instead_in_messages, shown);
	}
}

void message_set_color(const char *when)
{
	current_color_choice = !strcmp(when, "always") ? 'A' : when[0];
}

bool message_uses_color(int descriptor)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (current_color_choice != 'a')
		return current_color_choice == 'A';
	if ((no_color && *no_color) || (term && !strcmp(term, "dumb")))
		return false;
	return isatty(descriptor);
}

unsigned message_get_columns(int descriptor)
{
	const char *text = getenv("COLUMNS");
	unsigned long columns = text ? strtoul(text, NULL, 10) : 0;
	struct winsize size;

	if (columns > 0 && columns < 10000)
		return (unsigned)columns;
	return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* One write a line, so that lines of several kymos on one terminal do not mix. Names of files and
 * their contents are quoted in many; a terminal is not to obey them. */
__attribute__((format(printf, 2, 0))) static void
write_message_line(const char *kind, const char *format, va_list arguments)
{
	char text[2048], line[sizeof(text) * UTF8_REPLACEMENT_SIZE];
	int used = snprintf(text, sizeof(text), "kymo: %s", kind);
	int added = vsnprintf(text + used, sizeof(text) - (size_t)used, format, arguments);
	size_t length;

	if (added < 0)
		return;
	replace_path_by_alias(text, sizeof(text));
	length = utf8_copy_printable(text, strlen(text), line, sizeof(line) - 1);
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
	write_message_line("error: ", format, arguments);
	va_end(arguments);
}

void message_warning(const char *format, ...)
{
	va_list arguments;

	if (verbosity_level < 0)
		return;
	va_start(arguments, format);
	write_message_line("warning: ", format, arguments);
	va_end(arguments);
}

void message_note(const char *format, ...)
{
	va_list arguments;

	if (verbosity_level < 0)
		return;
	va_start(arguments, format);
	write_message_line("", format, arguments);
	va_end(arguments);
}

void message_detail(const char *format, ...)
{
	va_list arguments;

	if (verbosity_level < 1)
		return;
	va_start(arguments, format);
	write_message_line("", format, arguments);
	va_end(arguments);
}

int message_flush_stdout_or_report_error(int status)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	/* Nothing is left to be flushed where an earlier write has failed; its errno is gone. */
	message_error("cannot write to standard output%s%s", errno ? ": " : "",
		      errno ? strerror(errno) : "");
	return EXIT_KYMO_FAILED;
}
