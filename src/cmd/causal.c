/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo causal`: what would be faster if this were faster. The options; the session is in
 * experiments/session.c.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/commands.h"
#include "common/array.h"
#include "console/message.h"
#include "experiments/session.h"
#include "launch/result_path.h"

static bool causal_accepts_setting(enum setting_id id)
{
	static const char *const categories[] = {"general", "output", "causal", "process",
						 "memory"};

	/* Presets are about sampling and calls, which experiments have ways of their own for. */
	if (settings_table[id].visibility == SETTING_INTERNAL || id == SETTING_PRESET)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(categories); i++) {
		if (!strcmp(settings_table[id].category, categories[i]))
			return true;
	}
	return false;
}

static const struct short_option_entry causal_short_option_table[] = {
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

static const struct extra_option causal_extra_option_table[] = {
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static const struct options_grammar causal_grammar = {
	.command = "causal",
	.short_options = causal_short_option_table,
	.short_option_count = ARRAY_SIZE(causal_short_option_table),
	.extra_options = causal_extra_option_table,
	.extra_option_count = ARRAY_SIZE(causal_extra_option_table),
	.accepts_setting = causal_accepts_setting,
	.runs_program = true,
};

static int causal_run_command(char **arguments, size_t count)
{
	struct effective_settings settings;
	struct parsed_command_line result = {0};
	struct launch launch = {.settings = &settings};
	int status = command_parse_and_read_settings(&causal_command_description, arguments, count,
						     &settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	launch.arguments = result.operands; /* argv ends with NULL */
	launch.argument_count = result.operand_count;
	clock_gettime(CLOCK_REALTIME, &launch.start);
	if (launch.argument_count) {
		status = causal_session_run(&launch, &settings);
	} else {
		message_error("which program? kymo causal [options] -- PROGRAM [arguments] (see "
			      "kymo causal --help)");
		status = EXIT_KYMO_FAILED;
	}
	result_place_deinit(&launch.place);
	free(launch.session);
	effective_deinit(&settings);
	return status;
}

/* The settings on the one-screen help page. */
static const enum setting_id causal_help_page_settings[] = {
	SETTING_OUTPUT_PATH,         SETTING_CAUSAL_MODE,           SETTING_CAUSAL_PROGRESS,
	SETTING_CAUSAL_BINARY_SCOPE, SETTING_CAUSAL_FUNCTION_SCOPE, SETTING_CAUSAL_FIXED_SPEEDUP,
	SETTING_CAUSAL_DURATION,     SETTING_CAUSAL_UNTIL_CI,       SETTING_CAUSAL_END_TO_END,
	SETTING_CAUSAL_ITERATIONS,
};

const struct command causal_command_description = {
	.name = "causal",
	.summary = "find out which function is worth optimising",
	.synopsis = "causal [options] [--] PROGRAM [arguments]",
	.text = "Runs PROGRAM with experiments. During an experiment, a fraction of a second, kymo "
		"delays all other threads so that one function or line is virtually faster by some "
		"percent. The rate at which the program reaches its progress points meanwhile "
		"shows what the whole program would gain. The result is a ranking of functions "
		"with the predicted gain and its interval.\n"
		"\n"
		"A progress point is a call of kymo_progress(), kymo_begin() or kymo_end() of "
		"kymo/user.h, or of the macros of coz.h; a function or line named with --progress; "
		"or, without any of these, a request answered on a socket, an OpenMP region or an "
		"MPI call. If the program reaches no progress point, kymo runs it several times "
		"and compares whole runs.\n"
		"\n"
		"The program's output, exit status and signals stay the same; of several runs kymo "
		"returns the first status that is not 0.",
	.examples =
		"kymo causal -- ./server            functions, by the program's progress points\n"
		"kymo causal -p handle -- ./app     a call of handle() is progress\n"
		"kymo causal -m line -d 30 -- ./app lines, for 30 seconds\n"
		"kymo causal -e -n 5 -s 0,25,50 -- ./app   15 runs, each measured as a whole\n",
	.grammar = &causal_grammar,
	.run = causal_run_command,
	.page = causal_help_page_settings,
	.page_count = ARRAY_SIZE(causal_help_page_settings),
	.more = "More: --help=all; kymo help causal is the manual page.\n",
};
