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

#include "cmd/commands.h"
#include "cmd/help/help.h"
#include "console/message.h"
#include "launch/file_limit.h"
#include "runs/own_cost_rates.h"

/* The command that a link's name stands for, or NULL. */
static const struct command *main_find_command_by_link_name(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return strncmp(name, "kymo-", 5) ? NULL : command_find_by_name(name + 5);
}

static int main_print_version(void)
{
	puts("kymo " KYMO_VERSION);
	return message_flush_stdout_or_report_error(EXIT_SUCCESS);
}

static int main_dispatch_command(char **arguments, size_t count)
{
	const struct command *command;

	if (!count)
		return help_show_page(NULL, "");
	if (!strcmp(arguments[0], "--"))
		return sample_command_description.run(arguments, count);
	if (!strcmp(arguments[0], "--version") || !strcmp(arguments[0], "version"))
		return main_print_version();
	if (!strcmp(arguments[0], "--help") || !strcmp(arguments[0], "-h"))
		return help_show_page(NULL, "");
	if (!strncmp(arguments[0], "--help=", 7))
		return help_show_page(NULL, arguments[0] + 7);
	command = command_find_by_name(arguments[0]);
	if (command)
		return command->run(arguments + 1, count - 1);
	if (arguments[0][0] == '-')
		message_error("options follow a command: kymo sample %s … (see kymo --help)",
			      arguments[0]);
	else
		command_report_unknown(arguments[0]);
	return EXIT_KYMO_FAILED;
}

/* Where the caller closed standard descriptors, files that kymo opens would take their numbers, and
 * messages would go into results. Close-on-exec: the program finds them closed, as it would alone.
 * Standard output is for reading only: an answer that nobody gets is an error. */
static void main_open_missing_stdio(void)
{
	for (int descriptor = 0; descriptor < 3; descriptor++) {
		int access = descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR;

		if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", access | O_CLOEXEC) < 0)
			return;
	}
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc == 2 && !strcmp(argv[1], OWN_COST_RETURN_AT_ONCE_ARGUMENT))
		return 0;
	commands_register(command_table, help_show_page);
	command = argc > 0 ? main_find_command_by_link_name(argv[0]) : NULL;
	file_limit_ignore_sigxfsz();
	main_open_missing_stdio();
	if (command)
		return command->run(argv + 1, (size_t)argc - 1);
	return main_dispatch_command(argv + 1, argc > 0 ? (size_t)argc - 1 : 0);
}
