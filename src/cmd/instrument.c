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

#include "cmd/command.h"
#include "cmd/instrument_attach.h"
#include "cmd/instrument_file.h"
#include "cmd/message.h"
#include "cmd/plan_server.h"
#include "cmd/run_program.h"
#include "cmd/sampler_options.h"

static bool instrument_accepts(enum setting_id id)
{
	return settings_table[id].visibility != SETTING_INTERNAL &&
	       strcmp(settings_table[id].category, "causal");
}

static const struct option_short instrument_shorts[] = {
	{"I", SETTING_REGEX_INCLUDE},         {"E", SETTING_REGEX_EXCLUDE},
	{"R", SETTING_REGEX_RESTRICT},        {"MI", SETTING_REGEX_MODULE_INCLUDE},
	{"ME", SETTING_REGEX_MODULE_EXCLUDE}, {"MR", SETTING_REGEX_MODULE_RESTRICT},
	{"i", SETTING_MIN_INSTRUCTIONS},      {"r", SETTING_MIN_ADDRESS_RANGE},
	{"l", SETTING_INSTRUMENT_LOOPS},
};

#define TEXT_OPTION(name_, metavar_, field, help_, ...)                                            \
	{                                                                                          \
		.name = name_, .argument = OPTION_REQUIRED, .metavar = metavar_,                   \
		.apply = option_set_text, .offset = offsetof(struct instrument_options, field),    \
		.help = help_, __VA_ARGS__                                                         \
	}

#define FLAG_OPTION(name_, field, help_)                                                           \
	{                                                                                          \
		.name = name_, .apply = option_set_flag,                                           \
		.offset = offsetof(struct instrument_options, field), .help = help_                \
	}

static const struct option_extra instrument_extras[] = {
	TEXT_OPTION("rewrite", "FILE", rewrite,
		    "Write an instrumented copy of PROGRAM and run nothing; PROGRAM may be a "
		    "library.",
		    .letter = 'o'),
	TEXT_OPTION("pid", "PID", pid, "Instrument a process that runs already.", .letter = 'p'),
	TEXT_OPTION("mode", "MODE", mode,
		    "trace: the chosen functions (as if not given); sampling: only main, and "
		    "sample; coverage: what is executed at all.",
		    .letter = 'M', .advanced = true),
	FLAG_OPTION("sample", sample, "Sample call stacks as well."),
	FLAG_OPTION("simulate", simulate, "Find and choose functions, list them, run nothing."),
	TEXT_OPTION("print-available", "WHAT", print[PRINT_AVAILABLE],
		    "Print what could be instrumented: functions, functions+ (signatures), "
		    "modules, pair or pair+ (both).",
		    .advanced = true),
	TEXT_OPTION("print-instrumented", "WHAT", print[PRINT_INSTRUMENTED],
		    "Print what is instrumented; WHAT is functions, functions+, modules, pair or "
		    "pair+."),
	TEXT_OPTION("print-excluded", "WHAT", print[PRINT_EXCLUDED],
		    "Print what is not, with the reasons."),
	TEXT_OPTION("print-overlapping", "WHAT", print[PRINT_OVERLAPPING],
		    "Print functions that share code.", .advanced = true),
	{.name = "cputime",
	 .argument = OPTION_NUMBER,
	 .metavar = "HZ",
	 .apply = option_cputime,
	 .advanced = true,
	 .help = "Sample on CPU time as well, at this rate."},
	{.name = "realtime",
	 .argument = OPTION_NUMBER,
	 .metavar = "HZ",
	 .apply = option_realtime,
	 .advanced = true,
	 .help = "Sample on real time as well, at this rate: shows where threads wait."},
	OPTION_QUIET,
	OPTION_VERBOSE,
	OPTION_HELP,
};

static const struct options_grammar instrument_grammar = {
	.command = "instrument",
	.extras = instrument_extras,
	.extra_count = sizeof(instrument_extras) / sizeof(instrument_extras[0]),
	.shorts = instrument_shorts,
	.short_count = sizeof(instrument_shorts) / sizeof(instrument_shorts[0]),
	.accepts = instrument_accepts,
	.runs_program = true,
};

/* ---- running a program ---- */

struct instrument_run {
	struct instrument_request *request;
	const struct instrument_options *options;
	struct plan_server *server;
	char directory[4096];
};

static int instrument_start(void *context, struct launch *launch, const struct target *target,
			    struct problem *problem)
{
	struct instrument_run *run = context;
	struct plan_server_options options;
	int error;

	(void)target;
	snprintf(run->directory, sizeof(run->directory), "%s/instrumentation", launch->session);
	if (mkdir(run->directory, 0777) && errno != EEXIST)
		return problem_set(problem, -errno, "cannot make '%s': %s", run->directory,
				   strerror(errno));
	run->request->setup.directory = run->directory;
	options = (struct plan_server_options){.setup = run->request->setup,
					       .session = launch->session};
	error = plan_server_start(&options, &run->server, problem);
	if (!error)
		launch->plan_socket = plan_server_socket(run->server);
	return error;
}

/* What printing lists must not mix with is the program's output: they go to standard error. */
static void instrument_end(void *context, struct launch *launch)
{
	struct instrument_run *run = context;
	struct instrument_lists lists = {.labels = run->request->labels,
					 .rules = run->request->rules};
	struct problem problem;

	if (!run->server)
		return;
	plan_server_stop(run->server);
	lists.modules = plan_server_modules(run->server, &lists.count);
	if (!lists.count)
		message_warning("no process asked what to instrument: see the results for "
				"processes that could not be profiled");
	else if (instrument_report(&lists, launch, run->options, stderr, &problem))
		message_error("%s", problem.text);
}

static int instrument_program(struct launch *launch, struct instrument_request *request,
			      const struct instrument_options *options)
{
	struct instrument_run run = {.request = request, .options = options};
	struct run_beside beside = {
		.start = instrument_start, .end = instrument_end, .context = &run};
	int status = run_program(launch, &beside);

	plan_server_destroy(run.server);
	return status;
}

/* ---- which mode ---- */

static int instrument_check(const struct launch *launch, const struct instrument_options *options,
			    struct problem *problem)
{
	static const char *const lists[PRINT_LISTS] = {"available", "instrumented", "excluded",
						       "overlapping"};
	int error = 0;

	for (unsigned i = 0; !error && i < PRINT_LISTS; i++) {
		if (options->print[i])
			error = instrument_lists_check(options->print[i], lists[i], problem);
	}
	if (error)
		return error;
	if (options->pid && options->rewrite)
		return problem_set(problem, -EINVAL,
				   "-p and -o cannot both be given: a running process, or a file?");
	if (options->pid && launch->argument_count)
		return problem_set(problem, -EINVAL,
				   "-p PID and a program ('%s') cannot both be given",
				   launch->arguments[0]);
	if (options->pid && options->simulate)
		return problem_set(problem, -EINVAL,
				   "--simulate takes a program: kymo instrument --simulate -- "
				   "/proc/%s/exe",
				   options->pid);
	if (!options->pid && !launch->argument_count)
		return problem_set(problem, -EINVAL,
				   "which program? kymo instrument [options] -- PROGRAM "
				   "[arguments] (see kymo instrument --help)");
	if (options->rewrite && launch->argument_count > 1)
		return problem_set(problem, -EINVAL,
				   "-o takes one file and no arguments for it ('%s'): nothing is "
				   "run",
				   launch->arguments[1]);
	return 0;
}

static int instrument_dispatch(struct launch *launch, struct resolved *settings,
			       const struct instrument_options *options)
{
	struct instrument_request request = {0};
	struct problem problem;
	int status;

	if (instrument_check(launch, options, &problem) ||
	    instrument_request_init(&request, settings, options, &problem)) {
		message_error("%s", problem.text);
		return EXIT_OWN_FAILURE;
	}
	if (options->rewrite || options->simulate)
		status = instrument_file(launch, &request, options);
	else if (options->pid)
		status = instrument_attach(settings, &request, options);
	else
		status = instrument_program(launch, &request, options);
	instrument_request_deinit(&request);
	return status;
}

static int instrument_run(char **arguments, size_t count)
{
	struct resolved settings;
	struct instrument_options options = {0};
	struct options_result result = {.context = &options};
	struct launch launch = {.settings = &settings};
	int status = command_begin(&command_instrument, arguments, count, &settings, &result);

	if (status != COMMAND_GO_ON)
		return status;
	launch.arguments = result.operands; /* argv ends with NULL */
	launch.argument_count = result.operand_count;
	clock_gettime(CLOCK_REALTIME, &launch.start);
	status = instrument_dispatch(&launch, &settings, &options);
	free(launch.result);
	free(launch.session);
	resolved_deinit(&settings);
	return status;
}

const struct command command_instrument = {
	.name = "instrument",
	.summary = "record every call of a program's functions",
	.synopsis = "instrument [options] [--] PROGRAM [arguments]",
	.text = "Records entry and exit of functions of PROGRAM and its libraries. The program "
		"needs no preparation: the functions are found in its files, stripped ones too, "
		"and patched when it starts. A function is patched only where that is provably "
		"safe; the others are listed with the reason, in instrumentation/ of the "
		"results.\n\n"
		"Processes that the program starts are instrumented as well, and libraries that "
		"it opens later.",
	.examples =
		"kymo instrument -- ./app arg          every function of app and its libraries\n"
		"kymo instrument -R '^parse_' -- ./app only functions whose names begin so\n"
		"kymo instrument --simulate --print-excluded pair -- ./app\n",
	.grammar = &instrument_grammar,
	.run = instrument_run,
};
