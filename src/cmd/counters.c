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

#include "cmd/command.h"
#include "cmd/counters_files.h"
#include "cmd/listing.h"
#include "cmd/message.h"
#include "counters/definitions.h"

#define EXIT_MISTAKES 1

static bool counters_accepts(enum setting_id id)
{
	return id == SETTING_COLOR;
}

static const struct option_extra counters_extras[] = {
	OPTION_QUIET,
	OPTION_VERBOSE,
	OPTION_HELP,
};

static const struct options_grammar counters_grammar = {
	.command = "counters",
	.extras = counters_extras,
	.extra_count = sizeof(counters_extras) / sizeof(counters_extras[0]),
	.accepts = counters_accepts,
};

static void counters_tell(void *context, const char *path, unsigned line, unsigned column,
			  const char *text)
{
	(void)context;
	listing_text(stdout, path);
	printf(":%u:%u: ", line, column);
	listing_text(stdout, text);
	putchar('\n');
}

/* The number of mistakes, or a negative errno. */
static int counters_check_file(const char *path, const char *base, size_t base_size,
			       struct problem *problem)
{
	size_t size;
	char *text;
	int error = counters_file_read(path, &text, &size, problem);
	int mistakes;

	if (error)
		return error;
	mistakes = counter_file_check_on(base, base_size, text, size, path, counters_tell, NULL);
	free(text);
	if (mistakes < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	if (!mistakes)
		message_note("%s: no mistake", path);
	return mistakes;
}

static int counters_check(char **paths, size_t count)
{
	struct problem problem;
	char *base = NULL;
	size_t base_size = 0;
	int status = EXIT_SUCCESS;

	if (counters_file_read_own(&base, &base_size))
		message_detail("kymo's own definitions are not installed");
	for (size_t i = 0; i < count; i++) {
		int mistakes = counters_check_file(paths[i], base, base_size, &problem);

		if (mistakes < 0) {
			message_error("%s", problem.text);
			status = EXIT_OWN_FAILURE;
		} else if (mistakes && !status) {
			status = EXIT_MISTAKES;
		}
	}
	free(base);
	return message_end_answer(status);
}

static int counters_run(char **arguments, size_t count)
{
	struct resolved settings;
	struct options_result result = {0};
	int status = command_begin(&command_counters, arguments, count, &settings, &result);

	if (status != COMMAND_GO_ON)
		return status;
	if (result.operand_count < 2 || strcmp(result.operands[0], "check")) {
		message_error(
			"what to do? kymo counters check FILE... (kymo avail --counters lists "
			"counters)");
		status = EXIT_OWN_FAILURE;
	} else {
		status = counters_check(result.operands + 1, result.operand_count - 1);
	}
	resolved_deinit(&settings);
	return status;
}

const struct command command_counters = {
	.name = "counters",
	.summary = "check files that define counters",
	.synopsis = "counters check FILE...",
	.text = "Reads files of counter definitions (KYMO_COUNTER_DEFS) as the tool library does, "
		"together with those that kymo comes with, and prints each mistake as "
		"FILE:LINE:COLUMN: what is wrong: unknown keys, an event together with an "
		"expression, counters that there are not, cycles, dimensions. The exit status is 1 "
		"where there is any.\n\n"
		"A mistake takes away the counter that it is in; all others stay usable.",
	.examples = "kymo counters check my.yaml       is it right?\n"
		    "KYMO_COUNTER_DEFS=my.yaml kymo avail --counters   what comes of it\n",
	.words = "check",
	.grammar = &counters_grammar,
	.run = counters_run,
};
