/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Help; see help.h.
 */
#include "cmd/help.h"

#include <stdio.h>

#include "cmd/message.h"

int help_show(const struct command *command, const char *topic)
{
	(void)topic;
	printf("usage: kymo %s\n", command ? command->synopsis : "COMMAND");
	return 0;
}

static int help_run(char **arguments, size_t count)
{
	(void)arguments;
	(void)count;
	return help_show(NULL, "");
}

static bool help_accepts(enum setting_id id)
{
	(void)id;
	return false;
}
static const struct options_grammar help_grammar = {.command = "help", .accepts = help_accepts};
const struct command command_help = {.name = "help",
				     .summary = "manual pages",
				     .synopsis = "help [COMMAND|TOPIC]",
				     .text = "",
				     .examples = "",
				     .grammar = &help_grammar,
				     .run = help_run};
const struct command command_avail = {.name = "avail",
				      .summary = "what kymo can do here",
				      .synopsis = "avail",
				      .text = "",
				      .examples = "",
				      .grammar = &help_grammar,
				      .run = help_run};
