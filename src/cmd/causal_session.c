/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_session.h.
 */
#include "cmd/causal_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "binary/causal_spins.h"
#include "cmd/causal_control.h"
#include "cmd/causal_instrument.h"
#include "cmd/causal_names.h"
#include "cmd/causal_results.h"
#include "cmd/causal_server.h"
#include "cmd/message.h"
#include "cmd/run_program.h"
#include "common/settings_value.h"

/* Without a point to measure by, so many runs in all, or so long where --duration says it. */
#define SESSION_RUNS 10u

struct session_state {
	const struct resolved *settings;
	struct causal_options options;
	struct causal_scope_request scope;
	struct causal_places places; /* the named ones first, then waits of the program */
	size_t named;
	struct causal_server *server;
	struct causal_instrument *instrument; /* NULL: named points need none */
	struct causal_controller *controller;
	char directory[4096];
	uint32_t runs;    /* wanted; 0: until the experiments are done */
	off_t input;      /* where standard input stood; -1: it cannot be read again */
	off_t output;     /* where standard output stood, of a file; -1: it is none */
	bool interrupted; /* or the program failed: no further run */
};

/* ---- the request ---- */

static void session_scope(struct session_state *state)
{
	static const enum setting_id ids[CAUSAL_SCOPES] = {
		[CAUSAL_SCOPE_BINARY] = SETTING_CAUSAL_BINARY_SCOPE,
		[CAUSAL_SCOPE_SOURCE] = SETTING_CAUSAL_SOURCE_SCOPE,
		[CAUSAL_SCOPE_FUNCTION] = SETTING_CAUSAL_FUNCTION_SCOPE,
		[CAUSAL_EXCLUDE_BINARY] = SETTING_CAUSAL_BINARY_EXCLUDE,
		[CAUSAL_EXCLUDE_SOURCE] = SETTING_CAUSAL_SOURCE_EXCLUDE,
		[CAUSAL_EXCLUDE_FUNCTION] = SETTING_CAUSAL_FUNCTION_EXCLUDE,
	};

	for (unsigned i = 0; i < CAUSAL_SCOPES; i++) {
		const struct resolved_value *value = &state->settings->values[ids[i]];

		state->scope.lists[i] = value->text;
		state->scope.sources[i] =
			value->source ? value->source : settings_table[ids[i]].name;
	}
	state->scope.granularity = state->options.lines ? CAUSAL_LINES : CAUSAL_FUNCTIONS;
	state->scope.exclude_defaults =
		resolved_bool(state->settings, SETTING_CAUSAL_FUNCTION_EXCLUDE_DEFAULTS);
}

/* Mistakes end kymo before anything is run: the server would find them too late for that. */
static int session_check_scope(const struct session_state *state, struct problem *problem)
{
	struct causal_scopes *scopes = NULL;
	int error = causal_scopes_create(&state->scope, &scopes, problem);

	if (!error)
		causal_scopes_destroy(scopes);
	return error;
}

static int session_places(struct session_state *state, struct problem *problem)
{
	const struct resolved_value *value = &state->settings->values[SETTING_CAUSAL_PROGRESS];
	char *list = strdup(value->text), *rest = list, *word;
	int error = list ? 0 : problem_set(problem, -ENOMEM, "out of memory");

	while (!error && (word = strsep(&rest, ";"))) {
		word += strspn(word, " \t");
		if (*word)
			error = causal_places_add(&state->places, word,
						  value->source ? value->source : "CAUSAL_PROGRESS",
						  problem);
	}
	free(list);
	if (!error && !state->places.count && *value->text)
		return problem_set(problem, -EINVAL,
				   "%s: '%.100s' has no progress point (CAUSAL_PROGRESS takes "
				   "functions, FILE:LINE and latency:PLACE,PLACE, with semicolons "
				   "between them)",
				   value->source ? value->source : "CAUSAL_PROGRESS", value->text);
	return error;
}

/* How many -F there are. */
static uint32_t session_scopes(const struct session_state *state)
{
	const char *list = resolved_text(state->settings, SETTING_CAUSAL_FUNCTION_SCOPE);
	uint32_t count = 1;

	for (; *list; list++)
		count += *list == ';';
	return count;
}

/* Where there is no such program, run_program() says so. */
static int session_check_places(struct session_state *state, const struct launch *launch,
				struct problem *problem)
{
	struct problem ignored;
	struct target target;
	int error;

	state->named = state->places.count;
	if (target_resolve(launch->arguments[0], &target, &ignored) ||
	    target_inspect(&target, &ignored) || target.obstacle[0])
		return 0;
	error = causal_names_check(&state->places, target.path,
				   resolved_text(state->settings, SETTING_DEBUG_PATH), problem);
	return error ? error : causal_spins_add(&state->places, target.path, problem);
}

static int session_request(struct session_state *state, const struct launch *launch,
			   struct resolved *settings, struct problem *problem)
{
	int error = causal_options_init(&state->options, settings, problem);

	if (error)
		return error;
	state->settings = settings;
	session_scope(state);
	error = session_check_scope(state, problem);
	if (!error)
		error = session_places(state, problem);
	if (!error)
		error = session_check_places(state, launch, problem);
	state->runs = state->options.iterations;
	if (state->options.end_to_end)
		state->runs *= (uint32_t)state->options.speedups.count * session_scopes(state) + 1;
	return error;
}

/* ---- beside the program ---- */

static void session_say(void *context, const char *text)
{
	(void)context;
	message_warning("%s", text);
}

static int session_serve(struct session_state *state, const struct target *target,
			 struct problem *problem)
{
	struct causal_server_options options = {
		.scope = state->scope,
		.directory = state->directory,
		.debug_path = resolved_text(state->settings, SETTING_DEBUG_PATH),
		.places = state->places.count ? &state->places : NULL,
		.instrumented = state->instrument != NULL,
		.say = session_say};
	int error = causal_server_start(&options, &state->server, problem);

	if (error)
		return error;
	error = causal_server_prepare(state->server, target->path, problem);
	/* a script's interpreter is asked for when it runs */
	return error == -ENOENT || error == -ENOEXEC ? 0 : error;
}

static int session_instrument(struct session_state *state, struct launch *launch,
			      struct problem *problem)
{
	int error;

	if (!causal_instrument_wanted(&state->places, state->settings))
		return 0;
	error = causal_instrument_start(&state->places, state->settings, launch->session,
					&state->instrument, problem);
	if (!error)
		launch->plan_socket = causal_instrument_socket(state->instrument);
	return error;
}

static int session_start(void *context, struct launch *launch, const struct target *target,
			 struct problem *problem)
{
	struct session_state *state = context;
	struct causal_control_options options = {.request = &state->options,
						 .session = launch->session,
						 .scopes = session_scopes(state),
						 .command = launch->arguments};
	int error;

	snprintf(state->directory, sizeof(state->directory), "%s/causal", launch->session);
	if (mkdir(state->directory, 0777) && errno != EEXIST)
		return problem_set(problem, -errno, "cannot make '%s': %s", state->directory,
				   strerror(errno));
	error = causal_results_prepare(launch, problem);
	if (!error)
		error = session_instrument(state, launch, problem);
	if (!error)
		error = session_serve(state, target, problem);
	if (error)
		return error;
	options.targets = causal_server_targets(state->server);
	error = causal_control_create(&options, &state->controller, problem);
	if (!error && (error = causal_control_begin(state->controller)))
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
static bool session_output_matters(const struct session_state *state)
{
	struct stat status;

	if (fstat(STDOUT_FILENO, &status))
		return false;
	if (S_ISREG(status.st_mode))
		return lseek(STDOUT_FILENO, 0, SEEK_CUR) != state->output;
	return S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
}

/* Nothing to measure by was found in the first run: whole runs are measured. Not where running
 * once more would be another thing: input that was read and is gone, a failure, named points; nor
 * oftener than was asked for. */
static bool session_turn_end_to_end(struct session_state *state, const struct supervised *end)
{
	struct causal_control_seen seen;

	if (state->options.end_to_end || causal_control_points(state->controller))
		return false;
	causal_control_seen(state->controller, &seen);
	if (!seen.samples_in_scope || end->wait_status || state->named ||
	    (state->options.iterations_given && state->runs == 1))
		return false;
	if (state->input < 0) {
		message_note("no progress point was visited; to measure whole runs, kymo would "
			     "have to run the program again, but its input is a pipe: use "
			     "--end-to-end or --progress");
		return false;
	}
	if (!state->options.iterations_given && session_output_matters(state)) {
		message_note("no progress point was visited; to measure whole runs, kymo would "
			     "have to run the program again, and what it writes to standard output "
			     "would be there as often: say --iterations=10, or --progress");
		return false;
	}
	state->options.end_to_end = true;
	if (!state->options.iterations_given) {
		state->runs = state->options.duration_ns ? UINT32_MAX : SESSION_RUNS;
		message_note("no progress point was visited: the program is run again, %s, and "
			     "whole runs are compared (Ctrl-C ends that; name a point with "
			     "--progress, or say --iterations=1, to need one run only)",
			     state->options.duration_ns ? "as long as --duration says"
							: "10 times in all");
	}
	causal_control_end_to_end(state->controller);
	return true;
}

static void session_show_progress(const struct session_state *state, const struct launch *launch)
{
	uint32_t next = causal_control_runs(state->controller) + 1;
	struct timespec now;

	if (!isatty(STDERR_FILENO))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	if (state->runs == UINT32_MAX)
		message_note("run %u, %ld s", next, (long)(now.tv_sec - launch->start.tv_sec));
	else
		message_note("run %u of %u, %ld s", next, state->runs,
			     (long)(now.tv_sec - launch->start.tv_sec));
}

static bool session_again(void *context, struct launch *launch, const struct supervised *end)
{
	struct session_state *state = context;
	struct causal_load used = {.cpu_ns = (uint64_t)(end->user_ns + end->system_ns),
				   .involuntary_switches = end->involuntary_switches};

	causal_control_end(state->controller, end->wait_status, &used);
	if (end->interrupted || WIFSIGNALED(end->wait_status))
		return false;
	if (causal_control_runs(state->controller) == 1)
		session_turn_end_to_end(state, end);
	if (causal_control_runs(state->controller) >= state->runs ||
	    !causal_control_unfinished(state->controller))
		return false;
	if (state->input > 0 || (state->input == 0 && !isatty(STDIN_FILENO)))
		lseek(STDIN_FILENO, state->input, SEEK_SET);
	session_show_progress(state, launch);
	return !causal_control_begin(state->controller);
}

static void session_end(void *context, struct launch *launch)
{
	struct session_state *state = context;

	(void)launch;
	if (state->controller)
		causal_control_end(state->controller, 0, NULL);
	if (state->server)
		causal_server_stop(state->server);
}

static void session_results(void *context, const struct launch *launch, const char *prefix)
{
	struct session_state *state = context;
	struct causal_control_seen seen;

	causal_control_seen(state->controller, &seen);
	causal_results_write(causal_control_data(state->controller), &state->options, &seen, launch,
			     prefix);
}

int causal_session(struct launch *launch, struct resolved *settings)
{
	struct session_state state = {.settings = settings};
	struct run_beside beside = {.start = session_start,
				    .again = session_again,
				    .end = session_end,
				    .results = session_results,
				    .context = &state};
	struct problem problem;
	int status;

	if (session_request(&state, launch, settings, &problem)) {
		message_error("%s", problem.text);
		status = EXIT_OWN_FAILURE;
	} else {
		status = run_program(launch, &beside);
	}
	causal_control_destroy(state.controller);
	causal_server_destroy(state.server);
	causal_instrument_stop(state.instrument);
	causal_places_deinit(&state.places);
	return status;
}
