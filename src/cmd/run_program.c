/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See run_program.h.
 */
#include "cmd/run_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/counters_request.h"
#include "cmd/left_running.h"
#include "cmd/message.h"
#include "cmd/request.h"
#include "cmd/result_path.h"
#include "cmd/results.h"

/* The program cannot be profiled: EXIT_OWN_FAILURE under STRICT, else 0, and it runs without. */
static int run_without(const struct launch *launch, const char *why)
{
	if (resolved_bool(launch->settings, SETTING_STRICT)) {
		message_error("%s; nothing was run (--strict)", why);
		return EXIT_OWN_FAILURE;
	}
	message_error("%s; the program runs unprofiled", why);
	return 0;
}

/* Makes directories and environment. *ret stays NULL when the program is to run unprofiled. */
static int run_prepare(struct launch *launch, const struct target *target,
		       const struct run_beside *beside, char ***ret)
{
	struct problem problem;
	char *library = NULL;
	int error;

	*ret = NULL;
	if (!resolved_bool(launch->settings, SETTING_ENABLED))
		return 0;
	if (target->obstacle[0])
		return run_without(launch, target->obstacle);
	error = launch_find_library(&library, &problem);
	if (!error)
		error = launch_prepare(launch, &problem);
	if (!error && beside->start)
		error = beside->start(beside->context, launch, target, &problem);
	if (!error)
		error = launch_environment_create(launch, library, environ, ret, &problem);
	free(library);
	return error ? run_without(launch, problem.text) : 0;
}

/* Daemons and jobs in the background: their data so far is in the results. */
static void run_note_running(const struct launch *launch)
{
	pid_t pid = 0;
	size_t count = launch->in_memory ? 0 : left_running_count(launch->session, &pid);

	if (count == 1)
		message_note("process %d of the program is still running; the results so far are "
			     "complete, later ones: kymo report %s",
			     (int)pid, launch->session);
	else if (count)
		message_note("%zu processes of the program are still running (one is %d); the "
			     "results so far are complete, later ones: kymo report %s",
			     count, (int)pid, launch->session);
}

static int run_results(const struct launch *launch, const struct run_beside *beside,
		       const char *prefix, struct problem *problem)
{
	int error = results_write(launch->settings, launch->session, launch->result, prefix,
				  !beside->results, problem);

	if (beside->results)
		beside->results(beside->context, launch, prefix);
	return error;
}

/* After the program's end. Nothing here changes the exit status. */
static void run_finish(struct launch *launch, const struct run_beside *beside,
		       const struct supervised *end)
{
	struct problem problem;
	struct result_keys keys = {launch->arguments[0], launch->start, getpid()};
	static char message[4400];
	char *prefix = NULL;

	snprintf(message, sizeof(message),
		 "kymo: interrupted; the recorded data is complete: kymo report %s\n",
		 launch->session);
	if (launch_write_json(launch, end, &problem))
		message_error("%s", problem.text);
	if (end->give_up) {
		message_note(
			"interrupted twice, no results written; make them with: kymo report %s",
			launch->session);
		return;
	}
	supervise_give_up_on_interrupt(end->wait_status, message);
	if (result_path_expand(resolved_text(launch->settings, SETTING_OUTPUT_PREFIX), &keys,
			       &prefix, &problem) ||
	    run_results(launch, beside, prefix, &problem))
		message_error("%s (recorded data: %s)", problem.text, launch->session);
	else
		launch_discard_session(launch);
	run_note_running(launch);
	free(prefix);
}

/* Neither pipe nor process can be had (ulimit -n, ulimit -u): EXIT_OWN_FAILURE under STRICT, else
 * 0, and the program is to take kymo's place. */
static int run_give_way(struct launch *launch, char ***environment, int error)
{
	struct problem problem;

	if (!*environment)
		return 0;
	launch_discard_result(launch);
	launch_environment_destroy(*environment);
	*environment = NULL;
	problem_set(&problem, error, "cannot start a process: %s", strerror(-error));
	return run_without(launch, problem.text);
}

/* Runs the program with the environment made for it, or, when that is too long for the kernel
 * (execve(2): E2BIG), with its own. *environment is NULL when it ran unprofiled. */
static int run_supervise(struct launch *launch, const struct target *target, char ***environment,
			 bool again, struct supervised *end)
{
	char **variables = *environment ? *environment : environ;
	int status, error;

	error = again ? supervise_run_again(target->path, launch->arguments, variables, end)
		      : supervise_run(target->path, launch->arguments, variables, end);

	if (error && !again) {
		status = run_give_way(launch, environment, error);
		if (status)
			return status;
		error = 0;
		end->exec_errno = supervise_replace(target->path, launch->arguments, environ);
	}
	if (!error && end->exec_errno && *environment)
		launch_discard_result(launch);
	if (!error && end->exec_errno == E2BIG && *environment) {
		launch_environment_destroy(*environment);
		*environment = NULL;
		status = run_without(launch, "no room for kymo's variables beside the "
					     "program's arguments and environment");
		if (status)
			return status;
		error = supervise_run_again(target->path, launch->arguments, environ, end);
	}
	if (error) {
		message_error("cannot start a process: %s", strerror(-error));
		return EXIT_OWN_FAILURE;
	}
	if (!end->exec_errno)
		return 0;
	message_error("cannot execute '%s': %s", target->path, strerror(end->exec_errno));
	return end->exec_errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* As often as is wanted. *end is that of the last run, but with the status that counts. */
static int run_repeatedly(struct launch *launch, const struct target *target,
			  const struct run_beside *beside, char ***environment,
			  struct supervised *end)
{
	int failure = 0, status;
	bool again = false;

	do {
		status = run_supervise(launch, target, environment, again, end);
		again = true;
		if (!status && !failure)
			failure = end->wait_status;
	} while (!status && *environment && beside->again &&
		 beside->again(beside->context, launch, end));
	if (failure)
		end->wait_status = failure;
	return status;
}

static int run_target(struct launch *launch, const struct target *target,
		      const struct run_beside *beside)
{
	struct supervised end;
	char **environment;
	int status = run_prepare(launch, target, beside, &environment);

	if (status)
		return status;
	message_detail("running '%s'%s%s", target->path, environment ? ", results in " : "",
		       environment ? launch->result : "");
	status = run_repeatedly(launch, target, beside, &environment, &end);
	if (beside->end)
		beside->end(beside->context, launch);
	if (!status && environment)
		run_finish(launch, beside, &end);
	launch_environment_destroy(environment);
	if (!status)
		supervise_exit_like(end.wait_status);
	return status;
}

/* Path keys are checked early: a mistake there is a mistake on the command line. */
static int run_check_paths(const struct launch *launch, struct problem *problem)
{
	static const enum setting_id ids[] = {SETTING_OUTPUT_PATH, SETTING_OUTPUT_PREFIX};
	struct result_keys keys = {launch->arguments[0], launch->start, getpid()};
	int error = 0;

	for (unsigned i = 0; !error && i < 2; i++) {
		char *expanded = NULL;

		error = result_path_expand(resolved_text(launch->settings, ids[i]), &keys,
					   &expanded, problem);
		free(expanded);
	}
	return error;
}

int run_program(struct launch *launch, const struct run_beside *beside)
{
	struct target target;
	struct problem problem;
	int status = EXIT_OWN_FAILURE;

	if (!run_check_paths(launch, &problem) && !request_check(launch->settings, &problem))
		status = target_resolve(launch->arguments[0], &target, &problem);
	if (!status)
		status = target_inspect(&target, &problem);
	if (!status && resolved_bool(launch->settings, SETTING_ENABLED) &&
	    counters_request_check(launch->settings, &launch->counts_early, &problem))
		status = EXIT_OWN_FAILURE;
	if (!status)
		return run_target(launch, &target, beside);
	message_error("%s", problem.text);
	return status;
}
