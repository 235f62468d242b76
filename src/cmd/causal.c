/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo causal`: what would be faster if this were faster. The options; the session is in
 * causal_session.c.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/causal_session.h"
#include "cmd/command.h"
#include "cmd/message.h"

static bool causal_accepts(enum setting_id id)
{
	static const char *const categories[] = {"general", "output", "causal", "process",
						 "memory"};

	if (settings_table[id].visibility == SETTING_INTERNAL)
		return false;
	for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++) {
		if (!strcmp(settings_table[id].category, categories[i]))
			return true;
	}
	return false;
}

static const struct option_short causal_shorts[] = {
	{"m", SETTING_CAUSAL_MODE},
	{"b", SETTING_CAUSAL_BACKEND},
	{"s", SETTING_CAUSAL_FIXED_SPEEDUP},
	{"n", SETTING_CAUSAL_ITERATIONS},
	{"e", SETTING_CAUSAL_END_TO_END},
	{"w", SETTING_CAUSAL_DELAY},
	{"d", SETTING_CAUSAL_DURATION},
	{"p", SETTING_CAUSAL_PROGRESS},
	{"B", SETTING_CAUSAL_BINARY_SCOPE},
	{"S", SETTING_CAUSAL_SOURCE_SCOPE},
	{"F", SETTING_CAUSAL_FUNCTION_SCOPE},
	{"BE", SETTING_CAUSAL_BINARY_EXCLUDE},
	{"SE", SETTING_CAUSAL_SOURCE_EXCLUDE},
	{"FE", SETTING_CAUSAL_FUNCTION_EXCLUDE},
	{"r", SETTING_CAUSAL_FILE_RESET},
};

static const struct option_extra causal_extras[] = {
	OPTION_QUIET,
	OPTION_VERBOSE,
	OPTION_HELP,
};

static const struct options_grammar causal_grammar = {
	.command = "causal",
	.shorts = causal_shorts,
	.short_count = sizeof(causal_shorts) / sizeof(causal_shorts[0]),
	.extras = causal_extras,
	.extra_count = sizeof(causal_extras) / sizeof(causal_extras[0]),
	.accepts = causal_accepts,
	.runs_program = true,
};

static int causal_run(char **arguments, size_t count)
{
	struct resolved settings;
	struct options_result result = {0};
	struct launch launch = {.settings = &settings};
	int status = command_begin(&command_causal, arguments, count, &settings, &result);

	if (status != COMMAND_GO_ON)
		return status;
	launch.arguments = result.operands; /* argv ends with NULL */
	launch.argument_count = result.operand_count;
	clock_gettime(CLOCK_REALTIME, &launch.start);
	if (launch.argument_count) {
		status = causal_session(&launch, &settings);
	} else {
		message_error("which program? kymo causal [options] -- PROGRAM [arguments] (see "
			      "kymo causal --help)");
		status = EXIT_OWN_FAILURE;
	}
	free(launch.result);
	free(launch.session);
	resolved_deinit(&settings);
	return status;
}

const struct command command_causal = {
	.name = "causal",
	.summary = "find out what would be gained if parts of a program were faster",
	.synopsis = "causal [options] [--] PROGRAM [arguments]",
	.text = "Runs PROGRAM and experiments: for a fraction of a second it behaves as if one "
		"function or line were faster by so many percent, because everything else is "
		"delayed; how often progress points are visited meanwhile tells what the whole "
		"program would gain. The result is a ranking of functions with the gain to "
		"expect and how sure that is.\n\n"
		"Progress points are what the program marks with kymo_progress(), kymo_begin() "
		"and kymo_end() of kymo/user.h, or with the macros of coz.h; functions or lines "
		"named with --progress, in programs that mark nothing; or what kymo finds by "
		"itself: requests answered, OpenMP regions, MPI calls. Where there is none, whole "
		"runs are measured, and PROGRAM is run several times.\n\n"
		"Output, exit status and signals of the program stay as they are; of several runs "
		"the first status counts that is not 0.",
	.examples = "kymo causal -- ./server            functions, by the program's own points\n"
		    "kymo causal -p handle -- ./app     a visit is a call of handle()\n"
		    "kymo causal -m line -d 30 -- ./app lines, for 30 seconds\n"
		    "kymo causal -e -n 5 -s 0,25,50 -- ./app   15 runs, each measured as a whole\n",
	.grammar = &causal_grammar,
	.run = causal_run,
};
