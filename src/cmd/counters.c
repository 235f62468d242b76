/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo counters check`: whether files of counter definitions are right, with the place of each
 * mistake. Nothing of devices is needed for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/commands.h"
#include "common/array.h"
#include "console/message.h"
#include "counters/definitions.h"
#include "counting/files.h"
#include "settings/listing.h"

#define EXIT_STATUS_DEFINITION_MISTAKES_FOUND 1

static bool counters_accepts_setting(enum setting_id id)
{
	return id == SETTING_COLOR;
}

static const struct extra_option counters_extra_options[] = {
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static const struct options_grammar counters_grammar = {
	.command = "counters",
	.extra_options = counters_extra_options,
	.extra_option_count = ARRAY_SIZE(counters_extra_options),
	.accepts_setting = counters_accepts_setting,
};

static void counters_print_definition_problem(void *context, const char *path, unsigned line,
					      unsigned column, const char *text)
{
	(void)context;
	listing_print_sanitized_text(stdout, path);
	printf(":%u:%u: ", line, column);
	listing_print_sanitized_text(stdout, text);
	putchar('\n');
}

/* The number of mistakes, or a negative errno. */
static int counters_count_definition_file_mistakes(const char *path, const char *base,
						   size_t base_size, struct problem *problem)
{
	size_t size;
	char *text;
	int error = counter_definitions_read_file(path, &text, &size, problem);
	int mistakes;

	if (error)
		return error;
	mistakes = counter_file_report_mistakes_with_base_file(
		base, base_size, text, size, path, counters_print_definition_problem, NULL);
	free(text);
	if (mistakes < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	if (!mistakes)
		message_note("%s: no errors", path);
	return mistakes;
}

static int counters_check_definition_files(char **paths, size_t count)
{
	struct problem problem;
	char *base = NULL;
	size_t base_size = 0;
	int status = EXIT_SUCCESS;

	if (counter_definitions_read_shipped(&base, &base_size))
		message_detail("kymo's own definitions are not installed");
	for (size_t i = 0; i < count; i++) {
		int mistakes = counters_count_definition_file_mistakes(paths[i], base, base_size,
								       &problem);

		if (mistakes < 0) {
			message_error("%s", problem.text);
			status = EXIT_KYMO_FAILED;
		} else if (mistakes && !status) {
			status = EXIT_STATUS_DEFINITION_MISTAKES_FOUND;
		}
	}
	free(base);
	return message_flush_stdout_or_report_error(status);
}

static int counters_run_command(char **arguments, size_t count)
{
	struct effective_settings settings;
	struct parsed_command_line result = {0};
	int status = command_parse_and_read_settings(&counters_command_description, arguments,
						     count, &settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	if (result.operand_count < 2 || strcmp(result.operands[0], "check")) {
		message_error("no command: use kymo counters check FILE... (kymo avail --counters "
			      "lists counters)");
		status = EXIT_KYMO_FAILED;
	} else {
		status = counters_check_definition_files(result.operands + 1,
							 result.operand_count - 1);
	}
	effective_deinit(&settings);
	return status;
}

const struct command counters_command_description = {
	.name = "counters",
	.summary = "check files that define counters",
	.synopsis = "counters check FILE...",
	.text = "Reads files of counter definitions (KYMO_COUNTER_DEFS) as the tool library does, "
		"together with kymo's own, and prints each error as FILE:LINE:COLUMN: reason. It "
		"finds unknown keys, an event together with an expression, missing counters, "
		"cycles, and dimensions that do not match. The exit status is 1 if there is an "
		"error.\n"
		"\n"
		"An error disables only the counter it is in; all others stay usable.",
	.examples = "kymo counters check my.yaml       check a file\n"
		    "KYMO_COUNTER_DEFS=my.yaml kymo avail --counters   list the counters that it "
		    "defines\n",
	.words = "check",
	.grammar = &counters_grammar,
	.run = counters_run_command,
};
