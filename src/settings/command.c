/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See command.h.
 */
#include "settings/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "console/message.h"
#include "settings/config.h"
#include "settings/presets.h"
#include "settings/suggest.h"

const struct command *const *commands;
static command_show_help *show_help_callback;

void commands_register(const struct command *const *all, command_show_help *show_help)
{
	commands = all;
	show_help_callback = show_help;
}

const struct command *command_find_by_name(const char *name)
{
	for (const struct command *const *command = commands; *command; command++) {
		if (!strcmp((*command)->name, name))
			return *command;
	}
	return NULL;
}

void command_report_unknown(const char *name)
{
	struct suggestion suggestion;
	char hint[64];

	suggestion_init(&suggestion, name, strlen(name));
	for (const struct command *const *command = commands; *command; command++)
		suggestion_offer(&suggestion, (*command)->name, strlen((*command)->name));
	message_error("unknown command '%.100s'%s (kymo --help lists them; to profile a program: "
		      "kymo sample -- PROGRAM)",
		      name, suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
}

static int command_read_all_setting_sources(const struct command *command, char **arguments,
					    size_t count, struct effective_settings *settings,
					    struct parsed_command_line *result,
					    struct problem *problem)
{
	int error = effective_init(settings, problem);

	if (!error)
		error = options_parse_arguments(command->grammar, arguments, count, result,
						problem);
	if (error || result->help_topic)
		return error;
	error = effective_read_environment(settings, environ, problem);
	if (!error)
		error = config_read_all_files(settings, problem);
	if (error || !command->grammar->accepts_setting(SETTING_PRESET))
		return error;
	return presets_apply(settings,
			     command->grammar->lists_settings ? NULL
							      : command->grammar->accepts_setting,
			     problem);
}

/* Variables that look like settings and are none: a stray variable of a job must not end the job,
 * a misspelt one must not go unseen. False: --strict does not have it. */
static bool command_warn_of_unknown_variables(const struct effective_settings *settings)
{
	bool strict = effective_setting_bool(settings, SETTING_STRICT), good = true;
	struct problem problem;

	for (char **variable = environ;
	     effective_find_next_unknown_variable(&variable, &problem);) {
		if (strict)
			message_error("%s", problem.text);
		else
			message_warning("%s", problem.text);
		good = false;
	}
	return good || !strict;
}

int command_parse_and_read_settings(const struct command *command, char **arguments, size_t count,
				    struct effective_settings *settings,
				    struct parsed_command_line *result)
{
	struct problem problem;
	int error;

	result->settings = settings;
	error = command_read_all_setting_sources(command, arguments, count, settings, result,
						 &problem);
	if (error) {
		message_error("%s", problem.text);
		effective_deinit(settings);
		return EXIT_KYMO_FAILED;
	}
	message_set_verbosity((int)effective_setting_integer(settings, SETTING_VERBOSE));
	message_set_color(effective_setting_text(settings, SETTING_COLOR));
	if (result->help_topic) {
		effective_deinit(settings);
		return show_help_callback(command, result->help_topic);
	}
	if (command_warn_of_unknown_variables(settings))
		return COMMAND_CONTINUE;
	effective_deinit(settings);
	return EXIT_KYMO_FAILED;
}
