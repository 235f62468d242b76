/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo python`: records calls of the functions of a script or module of Python. It is what `kymo
 * instrument --python` does, with the options that rocprof-sys-python has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "common/array.h"
#include "console/message.h"
#include "launch/result_path.h"
#include "launch/target.h"
#include "runs/run_program.h"
#include "settings/sampler_options.h"

#define PYTHON_DEFAULT_INTERPRETER "python3"

struct python_command_options {
	const char *module, *interpreter;
	bool sample;
};

/* Options of this command with other names than those of the settings that they set. */
static const struct python_setting_option {
	const char *name;
	enum setting_id id;
} python_setting_options[] = {
	{"builtin", SETTING_PYTHON_DECORATORS},
	{"full-filepath", SETTING_PYTHON_FULL_PATH},
	{"trace-c", SETTING_PYTHON_BUILTINS},
	{"setup", SETTING_PYTHON_SETUP},
};

static bool python_accepts_setting(enum setting_id id)
{
	static const enum setting_id functions[] = {SETTING_COVERAGE,
						    SETTING_PYTHON_BUILTINS,
						    SETTING_PYTHON_FULL_PATH,
						    SETTING_PYTHON_DECORATORS,
						    SETTING_PYTHON_SETUP,
						    SETTING_REGEX_INCLUDE,
						    SETTING_REGEX_EXCLUDE,
						    SETTING_REGEX_RESTRICT,
						    SETTING_REGEX_MODULE_INCLUDE,
						    SETTING_REGEX_MODULE_EXCLUDE,
						    SETTING_REGEX_MODULE_RESTRICT};

	if (settings_table[id].visibility == SETTING_INTERNAL ||
	    !strcmp(settings_table[id].category, "causal"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		if (functions[i] == id)
			return true;
	}
	return strcmp(settings_table[id].category, "instrument") != 0;
}

static const struct short_option_entry python_short_option_table[] = {
	{"I", SETTING_REGEX_INCLUDE},         {"E", SETTING_REGEX_EXCLUDE},
	{"R", SETTING_REGEX_RESTRICT},        {"MI", SETTING_REGEX_MODULE_INCLUDE},
	{"ME", SETTING_REGEX_MODULE_EXCLUDE}, {"MR", SETTING_REGEX_MODULE_RESTRICT},
};

static int apply_setting_option(struct parsed_command_line *result,
				const struct extra_option *option, const char *value,
				struct problem *problem)
{
	char source[32];

	snprintf(source, sizeof(source), "--%s", option->name);
	for (size_t i = 0; i < ARRAY_SIZE(python_setting_options); i++) {
		if (!strcmp(python_setting_options[i].name, option->name))
			return effective_set_if_not_overridden(
				result->settings, python_setting_options[i].id,
				value ? value : "on", ORIGIN_OPTION, source, problem);
	}
	return -EINVAL;
}

/* The file of setup code is found before the program changes its directory. */
static int apply_setup(struct parsed_command_line *result, const struct extra_option *option,
		       const char *value, struct problem *problem)
{
	char *path = realpath(value, NULL);
	int error;

	if (!path)
		return problem_set(problem, -EINVAL, "--setup: cannot open '%s': %s", value,
				   strerror(errno));
	error = apply_setting_option(result, option, path, problem);
	free(path);
	return error;
}

static int apply_label(struct parsed_command_line *result, const struct extra_option *option,
		       const char *value, struct problem *problem)
{
	(void)option;
	if (strstr(value, "args"))
		return problem_set(problem, -EINVAL,
				   "--label args: kymo does not record arguments of Python "
				   "functions, since making texts of them runs the program's code; "
				   "use file, line, file,line or none");
	return effective_set_if_not_overridden(result->settings, SETTING_PYTHON_LABEL, value,
					       ORIGIN_OPTION, "--label", problem);
}

#define SETTING_OPTION_INITIALIZER(name_, letter_, help_)                                          \
	{                                                                                          \
		.name = name_, .letter = letter_, .argument = OPTION_ARGUMENT_ATTACHED,            \
		.metavar = "BOOL", .apply = apply_setting_option, .help = help_                    \
	}

static const struct extra_option python_extra_options[] = {
	{.name = "module",
	 .letter = 'm',
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .metavar = "MODULE",
	 .apply = option_set_text,
	 .offset = offsetof(struct python_command_options, module),
	 .help = "Run a module as python3 -m does."},
	SETTING_OPTION_INITIALIZER("builtin", 'b',
				   "Record only what functions with @profile call, and 'with "
				   "profile:'; both are builtins then, and noprofile."),
	{.name = "setup",
	 .letter = 's',
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .metavar = "FILE",
	 .apply = apply_setup,
	 .help = "Run this file first, and do not record it."},
	SETTING_OPTION_INITIALIZER("full-filepath", 'F',
				   "Show files of functions with their directories."),
	{.name = "label",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .metavar = "LIST",
	 .apply = apply_label,
	 .help = "What stands behind names of functions: file,line (default), file, line or "
		 "none."},
	SETTING_OPTION_INITIALIZER("trace-c", 0, "Record functions written in C, too."),
	{.name = "interpreter",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .metavar = "PROGRAM",
	 .apply = option_set_text,
	 .offset = offsetof(struct python_command_options, interpreter),
	 .help = "The Python that runs the script: python3 by default."},
	{.name = "sample",
	 .apply = option_set_flag,
	 .offset = offsetof(struct python_command_options, sample),
	 .help = "Sample call stacks as well."},
	OPTION_CPUTIME_INITIALIZER,
	OPTION_REALTIME_INITIALIZER,
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static const struct options_grammar python_grammar = {
	.command = "python",
	.extra_options = python_extra_options,
	.extra_option_count = ARRAY_SIZE(python_extra_options),
	.short_options = python_short_option_table,
	.short_option_count = ARRAY_SIZE(python_short_option_table),
	.accepts_setting = python_accepts_setting,
	.runs_program = true,
};

/* ---- the command line of the interpreter ---- */

/* "python3", "/usr/bin/python3.11": it is an interpreter, and no script. */
static bool is_interpreter(const char *operand)
{
	const char *name = strrchr(operand, '/');
	struct problem problem;
	struct target target;

	name = name ? name + 1 : operand;
	return !strncmp(name, "python", 6) && !name[6 + strspn(name + 6, "0123456789.")] &&
	       !target_find_program(operand, &target, &problem);
}

/* A script that is no file is looked for where programs are. */
static int find_script(const char *operand, char **ret, struct problem *problem)
{
	struct target target;
	struct problem reason;

	if (operand[0] == '-' || !access(operand, F_OK)) {
		*ret = strdup(operand);
		return *ret ? 0 : problem_set(problem, -ENOMEM, "out of memory");
	}
	if (strchr(operand, '/') || target_find_program(operand, &target, &reason))
		return problem_set(problem, -ENOENT, "no script '%s': %s", operand,
				   strchr(operand, '/')
					   ? "there is no such file"
					   : "it is neither a file here nor a program in PATH");
	*ret = strdup(target.path);
	return *ret ? 0 : problem_set(problem, -ENOMEM, "out of memory");
}

struct interpreter_command_line {
	char **arguments;
	size_t count;
	char *script; /* owned */
};

static int build_interpreter_command_line(const struct parsed_command_line *result,
					  const struct python_command_options *options,
					  struct interpreter_command_line *ret,
					  struct problem *problem)
{
	static char dash_m[] = "-m";
	bool is_whole = !options->module && is_interpreter(result->operands[0]);
	size_t first = 0;
	int error;

	ret->arguments = calloc(result->operand_count + 4, sizeof(*ret->arguments));
	if (!ret->arguments)
		return problem_set(problem, -ENOMEM, "out of memory");
	if (!is_whole)
		ret->arguments[ret->count++] =
			(char *)(uintptr_t)(options->interpreter ? options->interpreter
								 : PYTHON_DEFAULT_INTERPRETER);
	if (options->module) {
		ret->arguments[ret->count++] = dash_m;
		ret->arguments[ret->count++] = (char *)(uintptr_t)options->module;
	} else if (!is_whole) {
		error = find_script(result->operands[0], &ret->script, problem);
		if (error)
			return error;
		ret->arguments[ret->count++] = ret->script;
		first = 1;
	}
	for (size_t i = first; i < result->operand_count; i++)
		ret->arguments[ret->count++] = result->operands[i];
	return 0;
}

/* ---- the run ---- */

static int apply_python_settings(struct effective_settings *settings,
				 const struct python_command_options *options,
				 struct problem *problem)
{
	bool sampled = options->sample ||
		       !effective_setting_is_default(settings, SETTING_SAMPLING_CPUTIME) ||
		       !effective_setting_is_default(settings, SETTING_SAMPLING_REALTIME) ||
		       !effective_setting_is_default(settings, SETTING_SAMPLING_OVERFLOW);
	int error = effective_set_if_not_overridden(settings, SETTING_PYTHON_CALLS, "on",
						    ORIGIN_OPTION, "kymo python", problem);

	if (!error && effective_setting_is_default(settings, SETTING_USE_SAMPLING))
		error = effective_set_if_not_overridden(settings, SETTING_USE_SAMPLING,
							sampled ? "on" : "off", ORIGIN_OPTION,
							"kymo python", problem);
	return error;
}

static int python_run(struct launch *launch, struct effective_settings *settings,
		      const struct parsed_command_line *result,
		      const struct python_command_options *options)
{
	static const struct profiling_run_callbacks nothing_beside = {0};
	struct interpreter_command_line line = {0};
	struct problem problem;
	int status = EXIT_KYMO_FAILED;

	if (!result->operand_count && !options->module)
		message_error("which script? kymo python [options] -- SCRIPT [arguments], or -m "
			      "MODULE (see kymo python --help)");
	else if (apply_python_settings(settings, options, &problem) ||
		 build_interpreter_command_line(result, options, &line, &problem))
		message_error("%s", problem.text);
	else {
		launch->arguments = line.arguments;
		launch->argument_count = line.count;
		status = run_program(launch, &nothing_beside);
	}
	free(line.arguments);
	free(line.script);
	return status;
}

static int python_run_command(char **arguments, size_t count)
{
	struct effective_settings settings;
	struct python_command_options options = {0};
	struct parsed_command_line result = {.context = &options};
	struct launch launch = {.settings = &settings};
	int status = command_parse_and_read_settings(&python_command_description, arguments, count,
						     &settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	clock_gettime(CLOCK_REALTIME, &launch.start);
	status = python_run(&launch, &settings, &result, &options);
	result_place_deinit(&launch.place);
	free(launch.session);
	effective_deinit(&settings);
	return status;
}

/* The settings on the one-screen help page. */
static const enum setting_id python_help_page_settings[] = {
	SETTING_OUTPUT_PATH,          SETTING_CONFIG_FILE,           SETTING_REGEX_INCLUDE,
	SETTING_REGEX_EXCLUDE,        SETTING_REGEX_RESTRICT,        SETTING_REGEX_MODULE_INCLUDE,
	SETTING_REGEX_MODULE_EXCLUDE, SETTING_REGEX_MODULE_RESTRICT,
};

const struct command python_command_description = {
	.name = "python",
	.summary = "record every call of a Python script's functions",
	.synopsis = "python [options] [--] SCRIPT [arguments]",
	.text = "Runs SCRIPT, or a module (-m), with python3 and records each call of a function "
		"of "
		"Python, in all threads and child processes. Python needs no preparation.\n"
		"\n"
		"It does what kymo instrument --python does. kymo sample shows Python's functions "
		"and lines by samples, at a cost that does not depend on the number of calls.",
	.examples = "kymo python -- app.py arg           every function of app.py and its modules\n"
		    "kymo python -MR 'app[.]py$' -- app.py only functions of this file\n"
		    "kymo python -b -- app.py            only below functions with @profile\n"
		    "kymo python -m pytest tests         a module\n",
	.grammar = &python_grammar,
	.run = python_run_command,
	.operands = COMMAND_OPERANDS_PROGRAM,
	.page = python_help_page_settings,
	.page_count = ARRAY_SIZE(python_help_page_settings),
	.more = "More: --help=all; kymo help python is the manual page.\n",
};
