/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo run`: runs a program with the tool library and tools of the user's loaded into it. Unless
 * counters are asked for (run_counters.h), kymo itself records nothing: the program takes kymo's
 * place, and what comes out is the tools' own.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/counters_request.h"
#include "cmd/file_limit.h"
#include "cmd/launch.h"
#include "cmd/message.h"
#include "cmd/run_counters.h"
#include "cmd/target.h"

#define RUN_TOOLS_MAX 64 /* as many as the tool library takes */

struct run_options {
	const char *tools[RUN_TOOLS_MAX];
	size_t count;
	const char *input; /* -i FILE */
};

/* A path becomes absolute, as the program may change its directory; a bare name is the loader's to
 * find, unless it is a file here. */
static int run_add_tool(struct options_result *result, const struct option_extra *option,
			const char *value, struct problem *problem)
{
	struct run_options *options = result->context;
	const char *path = realpath(value, NULL);

	(void)option;
	if (!path && strchr(value, '/'))
		return problem_set(problem, -EINVAL, "--tool: cannot find '%s': %s", value,
				   strerror(errno));
	if (options->count == RUN_TOOLS_MAX)
		return problem_set(problem, -EINVAL, "--tool: %d tools at most", RUN_TOOLS_MAX);
	if (!*value || strchr(path ? path : value, ':'))
		return problem_set(problem, -EINVAL,
				   "--tool: '%s' cannot be passed on: names of tools are separated "
				   "by colons",
				   value);
	options->tools[options->count++] = path ? path : value;
	return 0;
}

/* name=before:added, or the other way round. */
static bool run_put(const char *name, const char *added, bool in_front)
{
	const char *before = getenv(name);
	char *value;
	bool done;

	if (!before || !*before)
		return !setenv(name, added, 1);
	if (asprintf(&value, "%s:%s", in_front ? added : before, in_front ? before : added) < 0)
		return false;
	done = !setenv(name, value, 1);
	free(value);
	return done;
}

static bool run_put_tools(const struct run_options *options)
{
	for (size_t i = 0; i < options->count; i++) {
		if (!run_put("ROCP_TOOL_LIBRARIES", options->tools[i], false))
			return false;
	}
	return true;
}

/* Settings that the tool library reads by itself. */
static bool run_put_settings(const struct resolved *settings)
{
	static const enum setting_id ids[] = {SETTING_KERNEL_INCLUDE,   SETTING_KERNEL_EXCLUDE,
					      SETTING_KERNEL_RANGE,     SETTING_COUNT_REGIONS,
					      SETTING_COUNTER_DEFS,     SETTING_COUNTER_WATCHDOG,
					      SETTING_OPENCL_CPU_AS_GPU};
	char name[64];

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		snprintf(name, sizeof(name), "KYMO_%s", settings_table[ids[i]].name);
		if (!resolved_is_default(settings, ids[i]) &&
		    setenv(name, resolved_text(settings, ids[i]), 1))
			return false;
	}
	return true;
}

/* The library is there from the start, and finds the tools at once: a program without any runtime
 * that announces itself has them as well. */
static bool run_set_environment(const struct run_options *options, const char *sdk)
{
	return run_put_tools(options) && run_put("LD_PRELOAD", sdk, true) &&
	       run_put("OPENCL_LAYERS", sdk, false) &&
	       !setenv("ROCPROFILER_LIBRARY_CTOR", "1", 0) &&
	       !setenv("CUDA_INJECTION64_PATH", sdk, 0) &&
	       !setenv("NVTX_INJECTION64_PATH", sdk, 0) && !setenv("HSA_TOOLS_LIB", sdk, 0);
}

static int run_execute(const struct run_options *options, const struct resolved *settings,
		       char **arguments)
{
	struct problem problem;
	struct target target = {.obstacle = ""};
	char sdk[PATH_MAX];
	int status = target_resolve(arguments[0], &target, &problem);

	if (!status)
		status = target_inspect(&target, &problem);
	if (status) {
		message_error("%s", problem.text);
		return status;
	}
	if (launch_find_sdk(sdk, &problem)) {
		message_error("%s", problem.text);
		return EXIT_OWN_FAILURE;
	}
	if (target.obstacle[0])
		message_error("%s; the program runs without tools", target.obstacle);
	else if (!run_put_settings(settings) || !run_set_environment(options, sdk)) {
		message_error("out of memory");
		return EXIT_OWN_FAILURE;
	}
	file_limit_give_back();
	execv(target.path, arguments);
	message_error("cannot run '%s': %s", target.path, strerror(errno));
	return EXIT_OWN_FAILURE;
}

static bool run_accepts(enum setting_id id)
{
	static const char *const categories[] = {"general", "output", "counters"};

	if (settings_table[id].visibility == SETTING_INTERNAL)
		return false;
	for (size_t i = 0; i < sizeof(categories) / sizeof(*categories); i++) {
		if (!strcmp(settings_table[id].category, categories[i]))
			return true;
	}
	return id == SETTING_USE_SAMPLING || id == SETTING_GPU_CALLS ||
	       id == SETTING_GPU_METRICS_FREQ || id == SETTING_OPENCL_PRELOAD ||
	       id == SETTING_OPENCL_CPU_AS_GPU || id == SETTING_USE_TEMPORARY_FILES;
}

static const struct option_extra run_extras[] = {
	{.name = "tool",
	 .metavar = "LIBRARY",
	 .help = "Load this tool: a shared library with rocprofiler_configure(). Several are asked "
		 "in the order given.",
	 .apply = run_add_tool,
	 .argument = OPTION_REQUIRED,
	 .letter = 't'},
	{.name = "input",
	 .metavar = "FILE",
	 .help = "Count what the file says, in as many runs as it says: lines 'pmc: A B', or YAML "
		 "or JSON with jobs, as rocprofv3 has them.",
	 .apply = option_set_text,
	 .offset = offsetof(struct run_options, input),
	 .argument = OPTION_REQUIRED,
	 .letter = 'i'},
	OPTION_QUIET,
	OPTION_VERBOSE,
	OPTION_HELP,
};

static const struct options_grammar run_grammar = {
	.command = "run",
	.extras = run_extras,
	.extra_count = sizeof(run_extras) / sizeof(run_extras[0]),
	.accepts = run_accepts,
	.runs_program = true,
};

static int run_run(char **arguments, size_t count)
{
	struct run_options options = {.count = 0};
	struct resolved settings;
	struct options_result result = {.context = &options};
	int status = command_begin(&command_run, arguments, count, &settings, &result);

	if (status != COMMAND_GO_ON)
		return status;
	if (result.operand_count && (options.input || counters_are_requested(&settings))) {
		status = run_put_tools(&options)
				 ? run_counters(&settings, options.input, result.operands,
						result.operand_count)
				 : EXIT_OWN_FAILURE;
	} else if (result.operand_count) {
		status = run_execute(&options, &settings, result.operands);
	} else {
		message_error("which program? kymo run --tool LIBRARY -- PROGRAM [arguments] (see "
			      "kymo run --help)");
		status = EXIT_OWN_FAILURE;
	}
	resolved_deinit(&settings);
	return status;
}

const struct command command_run = {
	.name = "run",
	.summary = "count what devices do, or run a program with tools of your own",
	.synopsis = "run [options] [--tool LIBRARY]... [--] PROGRAM [arguments]",
	.text = "With --counters, --device-counters or -i: counts in each kernel that PROGRAM runs "
		"on a device, or in devices as a whole, and leaves a result directory with "
		"counter_collection.csv, device_counters.csv, counters.json, results.db and the "
		"timeline; a summary goes to standard error. Kernels that are counted run one at a "
		"time; where kernels wait for each other, leave them out (--kernel-exclude), or "
		"count the device.\n\n"
		"Otherwise: runs PROGRAM with tools that are written for ROCprofiler-SDK's "
		"interface, on whatever devices the machine has. kymo records nothing itself.\n\n"
		"A tool is a shared library that exports rocprofiler_configure(); programs that "
		"export it are tools, too. Tools named in ROCP_TOOL_LIBRARIES come first. A "
		"library that cannot be loaded is one line on standard error.",
	.examples =
		"kymo run --counters task_clock -- ./program    each kernel\n"
		"kymo run --counters A,B --kernel-include gemm --kernel-range 1-3 -- ./program\n"
		"kymo run --device-counters A --interval 10 -- ./program   every 10 ms\n"
		"kymo run -i counters.txt -- ./program         a run for each line 'pmc: A B'\n"
		"kymo run --tool ./libmytool.so -- ./program   one tool\n"
		"kymo run -t ./one.so -t ./two.so -- ./program several\n",
	.grammar = &run_grammar,
	.run = run_run,
};
