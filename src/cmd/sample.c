/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo sample`: runs a program with libkymo preloaded, then turns what was recorded into results.
 *
 * How a program is run is in runs/run_program.c.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/commands.h"
#include "common/array.h"
#include "console/message.h"
#include "launch/result_path.h"
#include "runs/run_program.h"
#include "runs/whole_machine.h"
#include "settings/sampler_options.h"

static bool sample_accepts_setting(enum setting_id id)
{
	return settings_table[id].visibility != SETTING_INTERNAL &&
	       strcmp(settings_table[id].category, "instrument") &&
	       strcmp(settings_table[id].category, "causal");
}

static const struct extra_option sample_extra_options[] = {
	OPTION_CPUTIME_INITIALIZER,
	OPTION_REALTIME_INITIALIZER,
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
	{.name = "all-cpus",
	 .letter = 'a',
	 .apply = option_set_flag,
	 .offset = offsetof(struct whole_machine_request, all_cpus),
	 .help = "Sample all that runs on the machine, until PROGRAM ends, --duration is over, or "
		 "you press Ctrl-C.",
	 .advanced = true},
	{.name = "cgroup",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .metavar = "PATH",
	 .apply = option_set_text,
	 .offset = offsetof(struct whole_machine_request, cgroup),
	 .help = "Of the machine, sample this control group and those below it.",
	 .advanced = true},
	{.name = "container",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .metavar = "ID",
	 .apply = option_set_text,
	 .offset = offsetof(struct whole_machine_request, container),
	 .help = "Of the machine, sample the container with this ID, or with one that begins so.",
	 .advanced = true},
	{.name = "user",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .metavar = "USER",
	 .apply = option_set_text,
	 .offset = offsetof(struct whole_machine_request, user),
	 .help = "Of the machine, sample the processes of this user (the effective one).",
	 .advanced = true},
};

static const struct options_grammar sample_grammar = {
	.command = "sample",
	.extra_options = sample_extra_options,
	.extra_option_count = ARRAY_SIZE(sample_extra_options),
	.accepts_setting = sample_accepts_setting,
	.runs_program = true,
};

static const struct profiling_run_callbacks sample_run_callbacks = {.only_samples = true};

static int sample_run_command(char **arguments, size_t count)
{
	struct effective_settings settings;
	struct whole_machine_request request = {0};
	struct parsed_command_line result = {.context = &request};
	struct launch launch = {.settings = &settings};
	int status = command_parse_and_read_settings(&sample_command_description, arguments, count,
						     &settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	if (whole_machine_is_requested(&request)) {
		status = whole_machine_sample(&request, &settings, result.operands,
					      result.operand_count);
		effective_deinit(&settings);
		return status;
	}
	launch.arguments = result.operands; /* argv ends with NULL */
	launch.argument_count = result.operand_count;
	clock_gettime(CLOCK_REALTIME, &launch.start);
	if (launch.argument_count) {
		status = run_program(&launch, &sample_run_callbacks);
	} else {
		message_error("which program? kymo sample [options] -- PROGRAM [arguments] (see "
			      "kymo sample --help)");
		status = EXIT_KYMO_FAILED;
	}
	result_place_deinit(&launch.place);
	free(launch.session);
	effective_deinit(&settings);
	return status;
}

/* The settings on the one-screen help page. */
static const enum setting_id sample_help_page_settings[] = {
	SETTING_OUTPUT_PATH,    SETTING_OUTPUT_FORMATS,  SETTING_CONFIG_FILE,
	SETTING_PRESET,         SETTING_SAMPLING_FREQ,   SETTING_TRACE_DELAY,
	SETTING_TRACE_DURATION, SETTING_FOLLOW_CHILDREN,
};

const struct command sample_command_description = {
	.name = "sample",
	.summary = "run a program, show where its time goes",
	.synopsis = "sample [options] [--] PROGRAM [arguments]",
	.text = "Runs PROGRAM and samples the call stacks of its threads many times a second. The "
		"program's output, exit status and signals stay the same. kymo writes the results "
		"to a separate directory and a summary to standard error.\n"
		"\n"
		"Processes that the program starts are profiled as well. Programs that no library "
		"can be loaded into (statically linked, musl, Go) are sampled from outside, by "
		"perf events; if these are not permitted, the program still runs, and a message "
		"gives the reason.\n"
		"\n"
		"With --all-cpus, kymo samples all processes of the machine, kernel threads "
		"included, by perf events of each CPU; nothing is loaded into them. PROGRAM is "
		"then optional. --cgroup, --container and --user select a part of the machine. "
		"This needs root, CAP_PERFMON or kernel.perf_event_paranoid of 0 or less.",
	.examples = "kymo sample -- xz -k file          profile one run\n"
		    "kymo sample --realtime -- ./server shows where threads wait\n"
		    "kymo sample -a -f 100 -d 30        the whole machine, 100 samples a second, "
		    "30 s\n",
	.grammar = &sample_grammar,
	.run = sample_run_command,
	.operands = COMMAND_OPERANDS_PROGRAM,
	.page = sample_help_page_settings,
	.page_count = ARRAY_SIZE(sample_help_page_settings),
	.more = "More: --help=all; --help=TOPIC with TOPIC one of settings, sampling, windows, "
		"process, output,\nmemory, config, keys, exit; kymo help sample is the manual "
		"page.\n",
};
