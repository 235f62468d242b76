/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Command table and common start; see command.h.
 */
#include "cmd/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/config.h"
#include "cmd/help.h"
#include "cmd/message.h"
#include "cmd/nearest.h"

const struct command *const commands[] = {&command_sample, &command_instrument, &command_causal,
					  &command_attach, &command_run,        &command_counters,
					  &command_report, &command_merge,      &command_ctl,
					  &command_avail,  &command_help,       NULL};

const struct command *command_find(const char *name)
{
	for (const struct command *const *command = commands; *command; command++) {
		if (!strcmp((*command)->name, name))
			return *command;
	}
	return NULL;
}

void command_unknown(const char *name)
{
	struct nearest nearest;
	char hint[64];

	nearest_init(&nearest, name, strlen(name));
	for (const struct command *const *command = commands; *command; command++)
		nearest_offer(&nearest, (*command)->name, strlen((*command)->name));
	message_error("unknown command '%.100s'%s (kymo --help lists them; to profile a program: "
		      "kymo sample -- PROGRAM)",
		      name, nearest_hint(&nearest, "", hint, sizeof(hint)));
}

static int command_settle(const struct command *command, char **arguments, size_t count,
			  struct resolved *settings, struct options_result *result,
			  struct problem *problem)
{
	int error = resolved_init(settings, problem);

	if (!error)
		error = options_parse(command->grammar, arguments, count, result, problem);
	if (error || result->help_topic)
		return error;
	error = resolved_read_environment(settings, environ, problem);
	return error ? error : config_read_all(settings, problem);
}

int command_begin(const struct command *command, char **arguments, size_t count,
		  struct resolved *settings, struct options_result *result)
{
	struct problem problem;
	int error;

	result->settings = settings;
	error = command_settle(command, arguments, count, settings, result, &problem);
	if (error) {
		message_error("%s", problem.text);
		resolved_deinit(settings);
		return EXIT_OWN_FAILURE;
	}
	message_set_verbosity((int)resolved_integer(settings, SETTING_VERBOSE));
	message_set_color(resolved_text(settings, SETTING_COLOR));
	if (!result->help_topic)
		return COMMAND_GO_ON;
	resolved_deinit(settings);
	return help_show(command, result->help_topic);
}
