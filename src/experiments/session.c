/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See session.h.
 */
#include "experiments/session.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "binary/causal/spins.h"
#include "common/monotonic.h"
#include "common/settings_value.h"
#include "common/time_units.h"
#include "console/message.h"
#include "experiments/control.h"
#include "experiments/instrument.h"
#include "experiments/names.h"
#include "experiments/results.h"
#include "experiments/server.h"
#include "launch/supervise.h"
#include "launch/surviving_processes.h"
#include "runs/run_program.h"

/* Where one run is too short, or there is no point to measure by: so many runs in all, as far as
 * they take no longer than this; or as long as --duration says. */
#define SESSION_RUN_COUNT_LEAST      10u
#define SESSION_RUN_COUNT_MAX        200u
#define SESSION_REPEATED_RUNS_MAX_NS (20 * SECOND_NS)
#define SESSION_WHOLE_RUNS_MAX_NS    (5 * SECOND_NS)
/* A longer run has its experiments by itself. */
#define SESSION_SHORT_RUN_MAX_NS      (2 * SECOND_NS)
#define SESSION_ADVISED_FUNCTIONS_MAX 3u

struct session_state {
	const struct effective_settings *settings;
	struct causal_options options;
	struct causal_scope_request scope;
	struct causal_places places; /* the named ones first, then waits of the program */
	size_t named_place_count;
	struct causal_server *server;
	struct causal_instrumentation *instrumentation; /* NULL: named points need none */
	struct causal_controller *controller;
	char directory[4096];
	uint32_t wanted_run_count; /* wanted; 0: until the experiments are done */
	off_t input;               /* where standard input stood; -1: it cannot be read again */
	off_t output;              /* where standard output stood, of a file; -1: it is none */
	bool has_no_further_run;   /* or the program failed: no further run */
};

/* ---- the request ---- */

static void session_set_scope_from_settings(struct session_state *state)
{
	static const enum setting_id scope_setting_ids[CAUSAL_SCOPE_LIST_KIND_COUNT] = {
		[CAUSAL_SCOPE_BINARY] = SETTING_CAUSAL_BINARY_SCOPE,
		[CAUSAL_SCOPE_SOURCE] = SETTING_CAUSAL_SOURCE_SCOPE,
		[CAUSAL_SCOPE_FUNCTION] = SETTING_CAUSAL_FUNCTION_SCOPE,
		[CAUSAL_EXCLUDE_BINARY] = SETTING_CAUSAL_BINARY_EXCLUDE,
		[CAUSAL_EXCLUDE_SOURCE] = SETTING_CAUSAL_SOURCE_EXCLUDE,
		[CAUSAL_EXCLUDE_FUNCTION] = SETTING_CAUSAL_FUNCTION_EXCLUDE,
	};

	for (unsigned i = 0; i < CAUSAL_SCOPE_LIST_KIND_COUNT; i++) {
		const struct effective_value *value =
			&state->settings->values[scope_setting_ids[i]];

		state->scope.lists[i] = value->text;
		state->scope.sources[i] =
			value->source ? value->source : settings_table[scope_setting_ids[i]].name;
	}
	state->scope.granularity =
		state->options.lines ? CAUSAL_GRANULARITY_LINES : CAUSAL_GRANULARITY_FUNCTIONS;
	state->scope.excludes_internal_functions =
		effective_setting_bool(state->settings, SETTING_CAUSAL_FUNCTION_EXCLUDE_DEFAULTS);
}

/* Mistakes end kymo before anything is run: the server would find them too late for that. */
static int session_validate_scope_settings(const struct session_state *state,
					   struct problem *problem)
{
	struct causal_scopes *scopes = NULL;
	int error = causal_scopes_create(&state->scope, &scopes, problem);

	if (!error)
		causal_scopes_destroy(scopes);
	return error;
}

static int session_read_named_points(struct session_state *state, struct problem *problem)
{
	const struct effective_value *value = &state->settings->values[SETTING_CAUSAL_PROGRESS];
	char *list = strdup(value->text), *rest = list, *word;
	int error = list ? 0 : problem_set(problem, -ENOMEM, "out of memory");

	while (!error && (word = strsep(&rest, ";"))) {
		word += strspn(word, " \t");
		if (*word)
			error = causal_named_places_add_from_text(
				&state->places, word,
				value->source ? value->source : "CAUSAL_PROGRESS", problem);
	}
	free(list);
	if (!error && !state->places.count && *value->text)
		return problem_set(
			problem, -EINVAL,
			"%s: '%.100s' has no progress point (CAUSAL_PROGRESS takes functions, "
			"FILE:LINE and latency:PLACE,PLACE, separated by semicolons)",
			value->source ? value->source : "CAUSAL_PROGRESS", value->text);
	return error;
}

/* How many -F there are. */
static uint32_t session_count_function_scopes(const struct session_state *state)
{
	const char *list = effective_setting_text(state->settings, SETTING_CAUSAL_FUNCTION_SCOPE);
	uint32_t count = 1;

	for (; *list; list++)
		count += *list == ';';
	return count;
}

/* Where there is no such program, run_program() says so. */
static int session_check_points_and_add_spins(struct session_state *state,
					      const struct launch *launch, struct problem *problem)
{
	struct problem ignored;
	struct target target;
	int error;

	state->named_place_count = state->places.count;
	if (target_find_program(launch->arguments[0], &target, &ignored) ||
	    target_find_obstacle(&target, &ignored) || target.obstacle[0])
		return 0;
	error = causal_check_named_points_exist(
		&state->places, target.path,
		effective_setting_text(state->settings, SETTING_DEBUG_PATH), problem);
	return error ? error
		     : causal_places_add_spin_functions(&state->places, target.path, problem);
}

static int session_read_settings_and_check(struct session_state *state, const struct launch *launch,
					   struct effective_settings *settings,
					   struct problem *problem)
{
	int error = causal_options_read_settings(&state->options, settings, problem);

	if (error)
		return error;
	state->settings = settings;
	session_set_scope_from_settings(state);
	error = session_validate_scope_settings(state, problem);
	if (!error)
		error = session_read_named_points(state, problem);
	if (!error)
		error = session_check_points_and_add_spins(state, launch, problem);
	state->wanted_run_count = state->options.iterations;
	if (state->options.end_to_end)
		state->wanted_run_count *= (uint32_t)state->options.speedups.count *
						   session_count_function_scopes(state) +
					   1;
	return error;
}

/* ---- beside the program ---- */

static void session_print_warning(void *context, const char *text)
{
	(void)context;
	message_warning("%s", text);
}

static int session_start_server(struct session_state *state, const struct target *target,
				struct problem *problem)
{
	struct causal_server_options options = {
		.scope = state->scope,
		.directory = state->directory,
		.debug_search_path = effective_setting_text(state->settings, SETTING_DEBUG_PATH),
		.places = state->places.count ? &state->places : NULL,
		.instrumented = state->instrumentation != NULL,
		.say = session_print_warning};
	int error = causal_server_start(&options, &state->server, problem);

	if (error)
		return error;
	error = causal_server_make_program_map(state->server, target->path, problem);
	/* a script's interpreter is asked for when it runs */
	return error == -ENOENT || error == -ENOEXEC ? 0 : error;
}

static int session_instrument_points_if_needed(struct session_state *state, struct launch *launch,
					       struct problem *problem)
{
	int error;

	if (!causal_instrumentation_is_needed(&state->places, state->settings))
		return 0;
	error = causal_instrumentation_start(&state->places, state->settings, launch->session,
					     &state->instrumentation, problem);
	if (!error)
		launch->plan_socket_path =
			causal_instrumentation_get_socket_path(state->instrumentation);
	return error;
}

static int session_start_experiments(void *context, struct launch *launch,
				     const struct target *target, struct problem *problem)
{
	struct session_state *state = context;
	struct causal_control_options options = {.request = &state->options,
						 .session = launch->session,
						 .scopes = session_count_function_scopes(state),
						 .command = launch->arguments};
	int error;

	snprintf(state->directory, sizeof(state->directory), "%s/causal", launch->session);
	if (mkdir(state->directory, 0777) && errno != EEXIST)
		return problem_set(problem, -errno, "cannot make '%s': %s", state->directory,
				   strerror(errno));
	error = causal_results_set_earlier_aside(launch, problem);
	if (!error)
		error = session_instrument_points_if_needed(state, launch, problem);
	if (!error)
		error = session_start_server(state, target, problem);
	if (error)
		return error;
	options.targets = causal_server_get_targets(state->server);
	error = causal_control_create(&options, &state->controller, problem);
	if (!error && (error = causal_control_begin_run(state->controller)))
		problem_set(problem, error, "cannot start a thread: %s", strerror(-error));
	if (error)
		return error;
	launch->causal_directory = state->directory;
	state->input = lseek(STDIN_FILENO, 0, SEEK_CUR);
	if (state->input < 0 && (isatty(STDIN_FILENO) || errno == EBADF))
		state->input = 0;
	state->output = lseek(STDOUT_FILENO, 0, SEEK_CUR);
	return 0;
}

/* ---- several runs ---- */

/* Would what the program wrote be there once more, for whoever reads the pipe or file that it went
 * to? Of a pipe nobody knows whether there was anything. */
static bool program_may_have_written_stdout(const struct session_state *state)
{
	struct stat status;

	if (fstat(STDOUT_FILENO, &status))
		return false;
	if (S_ISREG(status.st_mode))
		return lseek(STDOUT_FILENO, 0, SEEK_CUR) != state->output;
	return S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
}

/* How many runs like the last one are worth it. */
static uint32_t session_compute_run_count(const struct session_state *state)
{
	bool whole = !causal_control_count_visited_points(state->controller);
	uint64_t count = (whole ? SESSION_WHOLE_RUNS_MAX_NS : SESSION_REPEATED_RUNS_MAX_NS) /
			 (causal_control_get_last_run_ns(state->controller) + 1);

	return count < SESSION_RUN_COUNT_LEAST ? SESSION_RUN_COUNT_LEAST
	       : count > SESSION_RUN_COUNT_MAX ? SESSION_RUN_COUNT_MAX
					       : (uint32_t)count;
}

static double session_compute_seconds_of_runs(const struct session_state *state, uint32_t count)
{
	return ceil((double)count * (double)causal_control_get_last_run_ns(state->controller) /
		    SECOND_NS);
}

/* Why the program would be run again, and for what. */
struct session_further_runs_reason {
	const char *why;       /* "the program ended ..." */
	const char *what;      /* kymo could "compare whole runs" */
	const char *otherwise; /* what else the user can do */
};

/* Running once more would be another thing where input that was read is gone, or output would be
 * there twice. Says so. */
static bool session_can_run_again(const struct session_state *state,
				  const struct session_further_runs_reason *reason)
{
	uint32_t count = session_compute_run_count(state);

	if (state->input < 0) {
		message_note("%s. kymo could %s, but it cannot run the program again because "
			     "standard input is a pipe: use --end-to-end, or %s",
			     reason->why, reason->what, reason->otherwise);
		return false;
	}
	if (!state->options.iterations_given && program_may_have_written_stdout(state)) {
		message_note("%s. kymo could %s, but the program would then write its standard "
			     "output once per run: allow it with --iterations=%u (about %.0f s), "
			     "or %s",
			     reason->why, reason->what, count,
			     session_compute_seconds_of_runs(state, count), reason->otherwise);
		return false;
	}
	return true;
}

/* Sets how often, where nobody said it, and says so. */
static void session_set_run_count(struct session_state *state,
				  const struct session_further_runs_reason *reason)
{
	char how_often[64] = "until --duration is over";

	if (state->options.iterations_given)
		return;
	state->wanted_run_count = UINT32_MAX;
	if (!state->options.experiments_duration_max_ns) {
		state->wanted_run_count = session_compute_run_count(state);
		snprintf(how_often, sizeof(how_often), "%u times in all (about %.0f s)",
			 state->wanted_run_count,
			 session_compute_seconds_of_runs(state, state->wanted_run_count));
	}
	message_note("%s: kymo runs it again, %s, to %s (Ctrl-C stops; --iterations=1 forbids more "
		     "runs; or %s)",
		     reason->why, how_often, reason->what, reason->otherwise);
}

/* What to name as a progress point is for the user to say; where the time is tells where to look.
 */
static void session_format_progress_advice(const struct session_state *state, char *buffer,
					   size_t size)
{
	uint32_t hottest[SESSION_ADVISED_FUNCTIONS_MAX];
	size_t count = causal_control_find_hottest_targets(state->controller, hottest,
							   SESSION_ADVISED_FUNCTIONS_MAX),
	       used;
	struct causal_target target;

	used = (size_t)snprintf(buffer, size,
				"name a function that runs once per unit of work with --progress");
	for (size_t i = 0; i < count && used < size && !state->options.lines; i++) {
		if (!causal_targets_copy_target(causal_server_get_targets(state->server),
						hottest[i], &target) ||
		    !target.name)
			continue;
		used += (size_t)snprintf(buffer + used, size - used, "%s%.80s",
					 i ? ", " : "; most time is in ", target.name);
	}
}

/* Nothing to measure by was found in the first run: whole runs are measured. Not where points were
 * named. */
static void session_try_switch_to_end_to_end(struct session_state *state)
{
	char advice[1024];
	const struct session_further_runs_reason reason = {"the program reached no progress point",
							   "compare whole runs", advice};
	struct causal_program_activity seen;

	session_format_progress_advice(state, advice, sizeof(advice));
	causal_control_get_program_activity(state->controller, &seen);
	if (!seen.samples_in_scope || state->named_place_count ||
	    !session_can_run_again(state, &reason))
		return;
	state->options.end_to_end = true;
	session_set_run_count(state, &reason);
	causal_control_switch_to_end_to_end(state->controller);
}

/* Points were visited, but the run was too short for enough experiments. */
static void session_try_repeat_short_program(struct session_state *state)
{
	static const struct session_further_runs_reason before_first = {
		"the program ended before the first experiment", "measure several runs",
		"give it more work"};
	static const struct session_further_runs_reason after_few = {
		"the program ended after a few experiments", "measure several runs",
		"give it more work"};
	const struct session_further_runs_reason *reason =
		causal_control_try_switch_to_brief_runs(state->controller) ? &before_first
									   : &after_few;

	if (!state->options.iterations_given &&
	    causal_control_get_last_run_ns(state->controller) < SESSION_SHORT_RUN_MAX_NS &&
	    session_can_run_again(state, reason))
		session_set_run_count(state, reason);
}

/* After the first run: what the others are for, and whether there are others. Not after a failure,
 * nor oftener than was asked for. */
static void session_choose_further_runs(struct session_state *state,
					const struct supervised_program_end *end)
{
	if (state->options.end_to_end || end->wait_status ||
	    (state->options.iterations_given && state->wanted_run_count == 1))
		return;
	if (causal_control_count_visited_points(state->controller))
		session_try_repeat_short_program(state);
	else
		session_try_switch_to_end_to_end(state);
}

static void session_print_run_progress(const struct session_state *state,
				       const struct launch *launch)
{
	uint32_t next = causal_control_get_run_count(state->controller) + 1;
	struct timespec now;

	if (!isatty(STDERR_FILENO))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	if (state->wanted_run_count == UINT32_MAX)
		message_note("run %u, %ld s", next, (long)(now.tv_sec - launch->start.tv_sec));
	else
		message_note("run %u of %u, %ld s", next, state->wanted_run_count,
			     (long)(now.tv_sec - launch->start.tv_sec));
}

/* A program that goes to the background leaves its processes behind when it ends. They are measured
 * as long as --duration says; who did not say for how long wants the command back. */
static void session_measure_background_processes(const struct session_state *state,
						 const struct launch *launch)
{
	static const struct timespec pause = {0, 100 * MILLISECOND_NS};
	uint64_t limit = state->options.experiments_duration_max_ns, end = monotonic_ns() + limit;
	pid_t pid;

	if (!limit || state->options.end_to_end ||
	    !surviving_processes_count(launch->session, &pid))
		return;
	message_note("the program went on in the background (process %d): kymo measures it until "
		     "--duration is over or it ends (Ctrl-C stops)",
		     (int)pid);
	while (!supervise_was_interrupted() && monotonic_ns() < end &&
	       causal_control_wants_more_experiments(state->controller) &&
	       surviving_processes_count(launch->session, &pid))
		nanosleep(&pause, NULL);
}

static bool session_end_run_and_begin_next(void *context, struct launch *launch,
					   const struct supervised_program_end *end)
{
	struct session_state *state = context;
	struct causal_session_usage used = {.cpu_ns = (uint64_t)(end->user_ns + end->system_ns),
					    .involuntary_switches = end->involuntary_switches};

	if (!end->interrupted)
		session_measure_background_processes(state, launch);
	causal_control_end_run(state->controller, end->wait_status, &used);
	if (end->interrupted || supervise_was_interrupted() || WIFSIGNALED(end->wait_status))
		return false;
	if (causal_control_get_run_count(state->controller) == 1)
		session_choose_further_runs(state, end);
	if (causal_control_get_run_count(state->controller) >= state->wanted_run_count ||
	    !causal_control_wants_more_experiments(state->controller))
		return false;
	if (state->input > 0 || (state->input == 0 && !isatty(STDIN_FILENO)))
		lseek(STDIN_FILENO, state->input, SEEK_SET);
	session_print_run_progress(state, launch);
	return !causal_control_begin_run(state->controller);
}

static void session_end_experiments(void *context, struct launch *launch)
{
	struct session_state *state = context;

	(void)launch;
	if (state->controller)
		causal_control_end_run(state->controller, 0, NULL);
	if (state->server)
		causal_server_stop(state->server);
}

static void session_write_results(void *context, const struct launch *launch, const char *prefix)
{
	struct session_state *state = context;
	struct causal_program_activity seen;

	causal_control_get_program_activity(state->controller, &seen);
	causal_results_write(causal_control_get_recorded_data(state->controller), &state->options,
			     &seen, launch, prefix);
}

int causal_session_run(struct launch *launch, struct effective_settings *settings)
{
	struct session_state state = {.settings = settings};
	struct profiling_run_callbacks beside = {.start = session_start_experiments,
						 .again = session_end_run_and_begin_next,
						 .end = session_end_experiments,
						 .write_results = session_write_results,
						 .measures_only_with_kymo = true,
						 .context = &state};
	struct problem problem;
	int status;

	if (session_read_settings_and_check(&state, launch, settings, &problem)) {
		message_error("%s", problem.text);
		status = EXIT_KYMO_FAILED;
	} else {
		status = run_program(launch, &beside);
	}
	causal_control_destroy(state.controller);
	causal_server_destroy(state.server);
	causal_instrumentation_stop(state.instrumentation);
	causal_named_places_deinit(&state.places);
	return status;
}
