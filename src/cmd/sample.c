/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo sample`: runs a program with libkymo preloaded, then turns what was recorded into results.
 *
 * How a program is run is in run_program.c.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/message.h"
#include "cmd/run_program.h"
#include "cmd/sampler_options.h"

static bool sample_accepts(enum setting_id id)
{
	return settings_table[id].visibility != SETTING_INTERNAL &&
	       strcmp(settings_table[id].category, "instrument") &&
	       strcmp(settings_table[id].category, "causal");
}

static const struct option_extra sample_extras[] = {
	OPTION_CPUTIME, OPTION_REALTIME, OPTION_QUIET, OPTION_VERBOSE, OPTION_HELP,
};

static const struct options_grammar sample_grammar = {
	.command = "sample",
	.extras = sample_extras,
	.extra_count = sizeof(sample_extras) / sizeof(sample_extras[0]),
	.accepts = sample_accepts,
	.runs_program = true,
};

static const struct run_beside sample_beside;

static int sample_run(char **arguments, size_t count)
{
	struct resolved settings;
	struct options_result result = {0};
	struct launch launch = {.settings = &settings};
	int status = command_begin(&command_sample, arguments, count, &settings, &result);

	if (status != COMMAND_GO_ON)
		return status;
	launch.arguments = result.operands; /* argv ends with NULL */
	launch.argument_count = result.operand_count;
	clock_gettime(CLOCK_REALTIME, &launch.start);
	if (launch.argument_count) {
		status = run_program(&launch, &sample_beside);
	} else {
		message_error("which program? kymo sample [options] -- PROGRAM [arguments] (see "
			      "kymo sample --help)");
		status = EXIT_OWN_FAILURE;
	}
	free(launch.result);
	free(launch.session);
	resolved_deinit(&settings);
	return status;
}

const struct command command_sample = {
	.name = "sample",
	.summary = "run a program, show where its time goes",
	.synopsis = "sample [options] [--] PROGRAM [arguments]",
	.text = "Runs PROGRAM and interrupts its threads many times a second to see what they "
		"are doing. Output, exit status and signals of the program stay as they are; the "
		"results go into a directory of their own, a summary to standard error.\n\n"
		"Processes that the program starts are profiled as well. A program that cannot be "
		"profiled (statically linked, set-user-id) is run all the same, with a message.",
	.examples = "kymo sample -- xz -k file          profile one run\n"
		    "kymo sample --realtime -- ./server shows where threads wait\n"
		    "kymo sample -f 100 -d 30 -- make   100 samples a second, for 30 seconds\n",
	.grammar = &sample_grammar,
	.run = sample_run,
};
