/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo run`: runs a program with the tool library and tools of the user's loaded into it. kymo
 * itself records nothing: the program takes kymo's place, and what comes out is the tools' own.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/launch.h"
#include "cmd/message.h"
#include "cmd/target.h"

#define RUN_TOOLS_MAX 64 /* as many as the tool library takes */

struct run_options {
	const char *tools[RUN_TOOLS_MAX];
	size_t count;
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

/* The library is there from the start, and finds the tools at once: a program without any runtime
 * that announces itself has them as well. */
static bool run_set_environment(const struct run_options *options, const char *sdk)
{
	return run_put_tools(options) && run_put("LD_PRELOAD", sdk, true) &&
	       run_put("OPENCL_LAYERS", sdk, false) &&
	       !setenv("ROCPROFILER_LIBRARY_CTOR", "1", 0) &&
	       !setenv("CUDA_INJECTION64_PATH", sdk, 0) && !setenv("NVTX_INJECTION64_PATH", sdk, 0);
}

static int run_find_sdk(char sdk[PATH_MAX], struct problem *problem)
{
	char *library;
	int error = launch_find_library(&library, problem);

	if (error)
		return error;
	if (!launch_find_beside(library, "kymo-sdk", sdk))
		error = problem_set(problem, -ENOENT,
				    "cannot find libkymo-sdk.so (looked beside '%s')", library);
	free(library);
	return error;
}

static int run_execute(const struct run_options *options, char **arguments)
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
	if (run_find_sdk(sdk, &problem)) {
		message_error("%s", problem.text);
		return EXIT_OWN_FAILURE;
	}
	if (target.obstacle[0])
		message_error("%s; the program runs without tools", target.obstacle);
	else if (!run_set_environment(options, sdk)) {
		message_error("out of memory");
		return EXIT_OWN_FAILURE;
	}
	execv(target.path, arguments);
	message_error("cannot run '%s': %s", target.path, strerror(errno));
	return EXIT_OWN_FAILURE;
}

static bool run_accepts(enum setting_id id)
{
	return id == SETTING_COLOR;
}

static const struct option_extra run_extras[] = {
	{.name = "tool",
	 .metavar = "LIBRARY",
	 .help = "Load this tool: a shared library with rocprofiler_configure(). Several are asked "
		 "in the order given.",
	 .apply = run_add_tool,
	 .argument = OPTION_REQUIRED,
	 .letter = 't'},
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
	if (result.operand_count) {
		status = run_execute(&options, result.operands);
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
	.summary = "run a program with tools of your own in it",
	.synopsis = "run [--tool LIBRARY]... [--] PROGRAM [arguments]",
	.text = "Runs PROGRAM with tools that are written for ROCprofiler-SDK's interface, on "
		"whatever devices the machine has. kymo records nothing itself.\n\n"
		"A tool is a shared library that exports rocprofiler_configure(); programs that "
		"export it are tools, too. Tools named in ROCP_TOOL_LIBRARIES come first. A "
		"library that cannot be loaded is one line on standard error.",
	.examples = "kymo run --tool ./libmytool.so -- ./program   one tool\n"
		    "kymo run -t ./one.so -t ./two.so -- ./program several\n",
	.grammar = &run_grammar,
	.run = run_run,
};
