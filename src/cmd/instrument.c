/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo instrument`: records entry and exit of the functions of an unmodified program. The options,
 * and which of the three modes is meant: run a program, attach to a process, rewrite a file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/commands.h"
#include "common/array.h"
#include "console/message.h"
#include "launch/result_path.h"
#include "planning/attach.h"
#include "planning/file.h"
#include "planning/server.h"
#include "runs/run_program.h"
#include "settings/sampler_options.h"

static bool instrument_accepts_setting(enum setting_id id)
{
	return settings_table[id].visibility != SETTING_INTERNAL &&
	       strcmp(settings_table[id].category, "causal");
}

static const struct short_option_entry instrument_short_option_table[] = {
	{"I", SETTING_REGEX_INCLUDE},         {"E", SETTING_REGEX_EXCLUDE},
	{"R", SETTING_REGEX_RESTRICT},        {"MI", SETTING_REGEX_MODULE_INCLUDE},
	{"ME", SETTING_REGEX_MODULE_EXCLUDE}, {"MR", SETTING_REGEX_MODULE_RESTRICT},
	{"i", SETTING_MIN_INSTRUCTIONS},      {"r", SETTING_MIN_ADDRESS_RANGE},
	{"l", SETTING_INSTRUMENT_LOOPS},
};

#define TEXT_OPTION_INITIALIZER(name_, metavar_, field, help_, ...)                                \
	{                                                                                          \
		.name = name_, .argument = OPTION_ARGUMENT_REQUIRED, .metavar = metavar_,          \
		.apply = option_set_text,                                                          \
		.offset = offsetof(struct instrument_command_options, field), .help = help_,       \
		__VA_ARGS__                                                                        \
	}

#define FLAG_OPTION_INITIALIZER(name_, field, help_)                                               \
	{                                                                                          \
		.name = name_, .apply = option_set_flag,                                           \
		.offset = offsetof(struct instrument_command_options, field), .help = help_        \
	}

static const struct extra_option instrument_extra_options[] = {
	TEXT_OPTION_INITIALIZER(
		"rewrite", "FILE", rewritten_file_path,
		"Write an instrumented copy of PROGRAM and run nothing; PROGRAM may be a "
		"library.",
		.letter = 'o'),
	TEXT_OPTION_INITIALIZER("pid", "PID", pid, "Instrument a running process.", .letter = 'p'),
	TEXT_OPTION_INITIALIZER(
		"mode", "MODE", mode,
		"trace: record calls of the chosen functions (default); sampling: record only "
		"main, and sample stacks; coverage: record which code runs.",
		.letter = 'M', .advanced = true),
	FLAG_OPTION_INITIALIZER("sample", sample, "Sample call stacks as well."),
	FLAG_OPTION_INITIALIZER("simulate", is_simulation,
				"Find and select functions, list them, run nothing."),
	TEXT_OPTION_INITIALIZER(
		"print-available", "WHAT", print[PRINT_AVAILABLE],
		"Print what could be instrumented: functions, functions+ (signatures), "
		"modules, pair or pair+ (both).",
		.advanced = true),
	TEXT_OPTION_INITIALIZER(
		"print-instrumented", "WHAT", print[PRINT_INSTRUMENTED],
		"Print what is instrumented; WHAT is functions, functions+, modules, pair or "
		"pair+."),
	TEXT_OPTION_INITIALIZER("print-excluded", "WHAT", print[PRINT_EXCLUDED],
				"Print what is not instrumented, with the reasons."),
	TEXT_OPTION_INITIALIZER("print-overlapping", "WHAT", print[PRINT_OVERLAPPING],
				"Print functions that share code.", .advanced = true),
	{.name = "cputime",
	 .argument = OPTION_ARGUMENT_OPTIONAL_NUMBER,
	 .metavar = "HZ",
	 .apply = option_apply_cputime,
	 .advanced = true,
	 .help = "Sample on CPU time as well, at this rate."},
	{.name = "realtime",
	 .argument = OPTION_ARGUMENT_OPTIONAL_NUMBER,
	 .metavar = "HZ",
	 .apply = option_apply_realtime,
	 .advanced = true,
	 .help = "Sample on real time as well, at this rate; shows where threads wait."},
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static const struct options_grammar instrument_grammar = {
	.command = "instrument",
	.extra_options = instrument_extra_options,
	.extra_option_count = ARRAY_SIZE(instrument_extra_options),
	.short_options = instrument_short_option_table,
	.short_option_count = ARRAY_SIZE(instrument_short_option_table),
	.accepts_setting = instrument_accepts_setting,
	.runs_program = true,
};

/* ---- running a program ---- */

struct instrument_run_state {
	struct instrumentation_request *request;
	const struct instrument_command_options *options;
	struct plan_server *plan_server;
	char directory[4096];
};

static int instrument_start_plan_server(void *context, struct launch *launch,
					const struct target *target, struct problem *problem)
{
	struct instrument_run_state *run = context;
	struct plan_server_options options;
	int error;

	(void)target;
	snprintf(run->directory, sizeof(run->directory), "%s/instrumentation", launch->session);
	if (mkdir(run->directory, 0777) && errno != EEXIST)
		return problem_set(problem, -errno, "cannot make '%s': %s", run->directory,
				   strerror(errno));
	run->request->setup.directory = run->directory;
	options = (struct plan_server_options){.instrumentation_setup = run->request->setup,
					       .session = launch->session};
	error = plan_server_start(&options, &run->plan_server, problem);
	if (!error)
		launch->plan_socket_path = plan_server_get_socket_path(run->plan_server);
	return error;
}

/* What printing lists must not mix with is the program's output: they go to standard error. */
static void instrument_stop_server_and_write_lists(void *context, struct launch *launch)
{
	struct instrument_run_state *run = context;
	struct function_list_output_args lists = {.labels = run->request->signature_part_flags,
						  .rules = run->request->rules};
	struct problem problem;

	if (!run->plan_server)
		return;
	plan_server_stop(run->plan_server);
	lists.modules = plan_server_get_modules(run->plan_server, &lists.count);
	if (!lists.count)
		message_warning("no process was instrumented: the results list processes that "
				"could not be profiled");
	else if (instrument_print_and_write_lists(&lists, launch, run->options, stderr, &problem))
		message_error("%s", problem.text);
}

static int instrument_run_program(struct launch *launch, struct instrumentation_request *request,
				  const struct instrument_command_options *options)
{
	struct instrument_run_state run = {.request = request, .options = options};
	struct profiling_run_callbacks beside = {.start = instrument_start_plan_server,
						 .end = instrument_stop_server_and_write_lists,
						 .context = &run};
	int status = run_program(launch, &beside);

	plan_server_destroy(run.plan_server);
	return status;
}

/* ---- which mode ---- */

static int instrument_check_options(const struct launch *launch,
				    const struct instrument_command_options *options,
				    struct problem *problem)
{
	static const char *const lists[PRINT_LIST_COUNT] = {"available", "instrumented", "excluded",
							    "overlapping"};
	int error = 0;

	for (unsigned i = 0; !error && i < PRINT_LIST_COUNT; i++) {
		if (options->print[i])
			error = instrument_check_print_argument(options->print[i], lists[i],
								problem);
	}
	if (error)
		return error;
	if (options->pid && options->rewritten_file_path)
		return problem_set(problem, -EINVAL,
				   "-p and -o cannot both be given: a running process, or a file?");
	if (options->pid && launch->argument_count)
		return problem_set(problem, -EINVAL,
				   "-p PID and a program ('%s') cannot both be given",
				   launch->arguments[0]);
	if (options->pid && options->is_simulation)
		return problem_set(problem, -EINVAL,
				   "--simulate takes a program: kymo instrument --simulate -- "
				   "/proc/%s/exe",
				   options->pid);
	if (!options->pid && !launch->argument_count)
		return problem_set(problem, -EINVAL,
				   "which program? kymo instrument [options] -- PROGRAM "
				   "[arguments] (see kymo instrument --help)");
	if (options->rewritten_file_path && launch->argument_count > 1)
		return problem_set(problem, -EINVAL,
				   "-o takes one file and no arguments for it ('%s'): nothing is "
				   "run (--output names the result directory)",
				   launch->arguments[1]);
	return 0;
}

/* Functions of Python are chosen in the process, and nothing is patched. */
static int instrument_run_python(struct launch *launch,
				 const struct instrument_command_options *options)
{
	static const struct profiling_run_callbacks nothing_beside = {0};
	const char *option = options->pid                   ? "-p"
			     : options->rewritten_file_path ? "-o"
			     : options->is_simulation       ? "--simulate"
							    : NULL;

	if (option) {
		message_error("--python and %s cannot both be given: functions of Python are found "
			      "when they are called, in a program that kymo starts",
			      option);
		return EXIT_KYMO_FAILED;
	}
	return run_program(launch, &nothing_beside);
}

static int instrument_run_chosen_mode(struct launch *launch, struct effective_settings *settings,
				      const struct instrument_command_options *options)
{
	struct instrumentation_request request = {0};
	struct problem problem;
	int status;

	if (instrument_check_options(launch, options, &problem) ||
	    instrument_request_init(&request, settings, options, &problem)) {
		message_error("%s", problem.text);
		return EXIT_KYMO_FAILED;
	}
	if (effective_setting_bool(settings, SETTING_PYTHON_CALLS))
		status = instrument_run_python(launch, options);
	else if (options->rewritten_file_path || options->is_simulation)
		status = instrument_list_or_rewrite_file(launch, &request, options);
	else if (options->pid)
		status = instrument_running_process(settings, &request, options);
	else
		status = instrument_run_program(launch, &request, options);
	instrument_request_deinit(&request);
	return status;
}

static int instrument_run_command(char **arguments, size_t count)
{
	struct effective_settings settings;
	struct instrument_command_options options = {0};
	struct parsed_command_line result = {.context = &options};
	struct launch launch = {.settings = &settings};
	int status = command_parse_and_read_settings(&instrument_command_description, arguments,
						     count, &settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	launch.arguments = result.operands; /* argv ends with NULL */
	launch.argument_count = result.operand_count;
	clock_gettime(CLOCK_REALTIME, &launch.start);
	status = instrument_run_chosen_mode(&launch, &settings, &options);
	result_place_deinit(&launch.place);
	free(launch.session);
	effective_deinit(&settings);
	return status;
}

/* The settings on the one-screen help page. */
static const enum setting_id instrument_help_page_settings[] = {
	SETTING_OUTPUT_PATH,      SETTING_PYTHON_CALLS,   SETTING_REGEX_INCLUDE,
	SETTING_REGEX_EXCLUDE,    SETTING_REGEX_RESTRICT, SETTING_REGEX_MODULE_INCLUDE,
	SETTING_INSTRUMENT_COUNT,
};

const struct command instrument_command_description = {
	.name = "instrument",
	.summary = "record every call of a program's functions",
	.synopsis = "instrument [options] [--] PROGRAM [arguments]",
	.text = "Records entry and exit of the functions of PROGRAM and its libraries. The program "
		"needs no preparation: kymo finds the functions in its files, even stripped ones, "
		"and patches them when the program starts. It patches a function only if that is "
		"provably safe; instrumentation/ in the results lists the others with the reason.\n"
		"\n"
		"Processes that the program starts and libraries that it opens later are "
		"instrumented as well.",
	.examples =
		"kymo instrument -- ./app arg          every function of app and its libraries\n"
		"kymo instrument -R '^parse_' -- ./app only functions whose names begin so\n"
		"kymo instrument --simulate --print-excluded pair -- ./app\n",
	.grammar = &instrument_grammar,
	.run = instrument_run_command,
	.page = instrument_help_page_settings,
	.page_count = ARRAY_SIZE(instrument_help_page_settings),
	.more = "More: --help=all; kymo help instrument is the manual page.\n",
};
