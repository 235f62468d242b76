/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo run`: runs a program with the tool library and tools of the user's loaded into it. Unless
 * counters are asked for (runs/counters.h), kymo itself records nothing: the program takes kymo's
 * place, and what comes out is the tools' own.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "common/array.h"
#include "console/message.h"
#include "counting/request.h"
#include "launch/file_limit.h"
#include "launch/launch.h"
#include "launch/parts.h"
#include "launch/target.h"
#include "runs/counters.h"

#define RUN_TOOL_LIBRARIES_MAX 64 /* as many as the tool library takes */

struct run_command_options {
	const char *tool_libraries[RUN_TOOL_LIBRARIES_MAX];
	size_t tool_count;
	const char *counter_file; /* -i FILE */
};

/* A path becomes absolute, as the program may change its directory; a bare name is the loader's to
 * find, unless it is a file here. */
static int run_apply_tool_library_option(struct parsed_command_line *result,
					 const struct extra_option *option, const char *value,
					 struct problem *problem)
{
	struct run_command_options *options = result->context;
	const char *path = realpath(value, NULL);

	(void)option;
	if (!path && strchr(value, '/'))
		return problem_set(problem, -EINVAL, "--tool: cannot find '%s': %s", value,
				   strerror(errno));
	if (options->tool_count == RUN_TOOL_LIBRARIES_MAX)
		return problem_set(problem, -EINVAL, "--tool: %d tools at most",
				   RUN_TOOL_LIBRARIES_MAX);
	if (!*value || strchr(path ? path : value, ':'))
		return problem_set(problem, -EINVAL,
				   "--tool: '%s' cannot be passed on: names of tools are separated "
				   "by colons",
				   value);
	options->tool_libraries[options->tool_count++] = path ? path : value;
	return 0;
}

/* name=before:added, or the other way round. */
static bool run_extend_environment_path_list(const char *name, const char *added, bool in_front)
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

static bool run_export_tool_library_list(const struct run_command_options *options)
{
	for (size_t i = 0; i < options->tool_count; i++) {
		if (!run_extend_environment_path_list("ROCP_TOOL_LIBRARIES",
						      options->tool_libraries[i], false))
			return false;
	}
	return true;
}

/* Settings that the tool library reads by itself. */
static bool run_export_tool_settings(const struct effective_settings *settings)
{
	static const enum setting_id tool_library_setting_ids[] = {
		SETTING_KERNEL_INCLUDE,   SETTING_KERNEL_EXCLUDE, SETTING_KERNEL_RANGE,
		SETTING_COUNT_REGIONS,    SETTING_COUNTER_DEFS,   SETTING_COUNTER_WATCHDOG,
		SETTING_OPENCL_CPU_AS_GPU};
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(tool_library_setting_ids); i++) {
		snprintf(name, sizeof(name), "KYMO_%s",
			 settings_table[tool_library_setting_ids[i]].name);
		if (!effective_setting_is_default(settings, tool_library_setting_ids[i]) &&
		    setenv(name, effective_setting_text(settings, tool_library_setting_ids[i]), 1))
			return false;
	}
	return true;
}

/* The library is there from the start, and finds the tools at once: a program without any runtime
 * that announces itself has them as well. */
static bool run_set_environment_for_tools(const struct run_command_options *options,
					  const char *sdk)
{
	return run_export_tool_library_list(options) &&
	       run_extend_environment_path_list("LD_PRELOAD", sdk, true) &&
	       run_extend_environment_path_list("OPENCL_LAYERS", sdk, false) &&
	       !setenv("ROCPROFILER_LIBRARY_CTOR", "1", 0) &&
	       !setenv("CUDA_INJECTION64_PATH", sdk, 0) &&
	       !setenv("NVTX_INJECTION64_PATH", sdk, 0) && !setenv("HSA_TOOLS_LIB", sdk, 0);
}

static int run_exec_program_with_tools(const struct run_command_options *options,
				       const struct effective_settings *settings, char **arguments)
{
	struct problem problem;
	struct target target = {.obstacle = ""};
	char sdk[PATH_MAX];
	int status = target_find_program(arguments[0], &target, &problem);

	if (!status)
		status = target_find_obstacle(&target, &problem);
	if (status) {
		message_error("%s", problem.text);
		return status;
	}
	if (part_find_path_or_set_problem(PART_LIBKYMO_SDK, sdk, &problem)) {
		message_error("%s", problem.text);
		return EXIT_KYMO_FAILED;
	}
	if (!part_find_or_link_preload_path(PART_LIBKYMO_SDK, PATH_MAX, sdk)) {
		message_error(
			"libkymo-sdk.so lies in a path with blanks or colons, and no link can "
			"be made in /var/tmp, /tmp or /dev/shm");
		return EXIT_KYMO_FAILED;
	}
	if (target.obstacle[0])
		message_error("%s; the program runs without tools", target.obstacle);
	else if (!run_export_tool_settings(settings) ||
		 !run_set_environment_for_tools(options, sdk)) {
		message_error("out of memory");
		return EXIT_KYMO_FAILED;
	}
	file_limit_restore_sigxfsz();
	execv(target.path, arguments);
	message_error("cannot run '%s': %s", target.path, strerror(errno));
	return EXIT_KYMO_FAILED;
}

static bool run_accepts_setting(enum setting_id id)
{
	static const char *const categories[] = {"general", "output", "counters"};

	if (settings_table[id].visibility == SETTING_INTERNAL)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(categories); i++) {
		if (!strcmp(settings_table[id].category, categories[i]))
			return true;
	}
	return id == SETTING_USE_SAMPLING || id == SETTING_GPU_CALLS || id == SETTING_GPU_STACKS ||
	       id == SETTING_GPU_METRICS_FREQ || id == SETTING_OPENCL_PRELOAD ||
	       id == SETTING_OPENCL_CPU_AS_GPU || id == SETTING_USE_TEMPORARY_FILES;
}

static const struct extra_option run_extra_options[] = {
	{.name = "tool",
	 .metavar = "LIBRARY",
	 .help = "Load this tool: a shared library with rocprofiler_configure(). Several tools are "
		 "loaded in the order given.",
	 .apply = run_apply_tool_library_option,
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .letter = 't'},
	{.name = "input",
	 .metavar = "FILE",
	 .help = "Read the counters of each run from a file: lines 'pmc: A B', or YAML or JSON "
		 "with jobs, as for rocprofv3.",
	 .apply = option_set_text,
	 .offset = offsetof(struct run_command_options, counter_file),
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .letter = 'i'},
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static const struct options_grammar run_grammar = {
	.command = "run",
	.extra_options = run_extra_options,
	.extra_option_count = ARRAY_SIZE(run_extra_options),
	.accepts_setting = run_accepts_setting,
	.runs_program = true,
};

static int run_run_command(char **arguments, size_t count)
{
	struct run_command_options options = {.tool_count = 0};
	struct effective_settings settings;
	struct parsed_command_line result = {.context = &options};
	int status = command_parse_and_read_settings(&run_command_description, arguments, count,
						     &settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	if (result.operand_count && (options.counter_file || counters_are_requested(&settings))) {
		status = run_export_tool_library_list(&options)
				 ? run_program_with_counters(&settings, options.counter_file,
							     result.operands, result.operand_count)
				 : EXIT_KYMO_FAILED;
	} else if (result.operand_count) {
		status = run_exec_program_with_tools(&options, &settings, result.operands);
	} else {
		message_error("which program? kymo run --tool LIBRARY -- PROGRAM [arguments] (see "
			      "kymo run --help)");
		status = EXIT_KYMO_FAILED;
	}
	effective_deinit(&settings);
	return status;
}

const struct command run_command_description = {
	.name = "run",
	.summary = "count events on devices, or run a program with your own tools",
	.synopsis = "run [options] [--tool LIBRARY]... [--] PROGRAM [arguments]",
	.text = "With --counters, --device-counters or -i: counts events in each kernel that "
		"PROGRAM runs on a device, or in whole devices. The result directory has "
		"counter_collection.csv, device_counters.csv, counters.json, results.db and the "
		"timeline; a summary goes to standard error. Counted kernels run one at a time. If "
		"kernels wait for each other, exclude them (--kernel-exclude) or count the "
		"device.\n"
		"\n"
		"Otherwise: runs PROGRAM with tools written for ROCprofiler-SDK's interface, on "
		"the devices of this machine. kymo records nothing itself.\n"
		"\n"
		"A tool is a shared library that exports rocprofiler_configure(); a program that "
		"exports it is a tool as well. Tools named in ROCP_TOOL_LIBRARIES come first. kymo "
		"prints a line to standard error for each library that cannot be loaded.",
	.examples =
		"kymo run --counters task_clock -- ./program    each kernel\n"
		"kymo run --counters A,B --kernel-include gemm --kernel-range 1-3 -- ./program\n"
		"kymo run --device-counters A --interval 10 -- ./program   every 10 ms\n"
		"kymo run -i counters.txt -- ./program         a run for each line 'pmc: A B'\n"
		"kymo run --tool ./libmytool.so -- ./program   one tool\n"
		"kymo run -t ./one.so -t ./two.so -- ./program several\n",
	.grammar = &run_grammar,
	.run = run_run_command,
};
