/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The kymo binary: which command?
 *
 * `kymo COMMAND …`, `kymo-COMMAND …` (a link to kymo), or `kymo -- PROGRAM`, which means sample.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/file_limit.h"
#include "cmd/help.h"
#include "cmd/message.h"

/* The command that a link's name stands for, or NULL. */
static const struct command *main_by_own_name(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return strncmp(name, "kymo-", 5) ? NULL : command_find(name + 5);
}

static int main_version(void)
{
	puts("kymo " KYMO_VERSION);
	return message_end_answer(EXIT_SUCCESS);
}

static int main_dispatch(char **arguments, size_t count)
{
	const struct command *command;

	if (!count)
		return help_show(NULL, "");
	if (!strcmp(arguments[0], "--"))
		return command_sample.run(arguments, count);
	if (!strcmp(arguments[0], "--version") || !strcmp(arguments[0], "version"))
		return main_version();
	if (!strcmp(arguments[0], "--help") || !strcmp(arguments[0], "-h"))
		return help_show(NULL, "");
	if (!strncmp(arguments[0], "--help=", 7))
		return help_show(NULL, arguments[0] + 7);
	command = command_find(arguments[0]);
	if (command)
		return command->run(arguments + 1, count - 1);
	if (arguments[0][0] == '-')
		message_error("options go behind a command: kymo sample %s … (see kymo --help)",
			      arguments[0]);
	else
		command_unknown(arguments[0]);
	return EXIT_OWN_FAILURE;
}

/* Where the caller closed standard descriptors, files that kymo opens would take their numbers, and
 * messages would go into results. Close-on-exec: the program finds them closed, as it would alone.
 * Standard output is for reading only: an answer that nobody gets is an error. */
static void main_fill_descriptors(void)
{
	for (int descriptor = 0; descriptor < 3; descriptor++) {
		int access = descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR;

		if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", access | O_CLOEXEC) < 0)
			return;
	}
}

int main(int argc, char **argv)
{
	const struct command *command = argc > 0 ? main_by_own_name(argv[0]) : NULL;

	file_limit_survive();
	main_fill_descriptors();
	if (command)
		return command->run(argv + 1, (size_t)argc - 1);
	return main_dispatch(argv + 1, argc > 0 ? (size_t)argc - 1 : 0);
}
