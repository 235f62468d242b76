/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See run_program.h.
 */
#include "runs/run_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/symbols/symbols.h"
#include "console/message.h"
#include "counting/request.h"
#include "launch/result_path.h"
#include "launch/surviving_processes.h"
#include "runs/conflicts.h"
#include "runs/from_outside.h"
#include "runs/own_cost_rates.h"
#include "runs/results.h"

/* The program cannot be profiled: EXIT_KYMO_FAILED under STRICT, else 0, and it runs without. */
static int report_and_refuse_if_strict(const struct launch *launch, const char *why)
{
	if (effective_setting_bool(launch->settings, SETTING_STRICT)) {
		message_error("%s; nothing was run (--strict)", why);
		return EXIT_KYMO_FAILED;
	}
	message_error("%s; the program runs unprofiled", why);
	return 0;
}

/* Makes directories and environment. *ret stays NULL when the program is to run unprofiled. */
static int prepare_session_and_environment(struct launch *launch, const struct target *target,
					   const struct profiling_run_callbacks *beside,
					   char ***ret)
{
	struct problem problem;
	char library[PATH_MAX];
	int error;

	*ret = NULL;
	if (!effective_setting_bool(launch->settings, SETTING_ENABLED))
		return 0;
	if (from_outside_is_wanted(launch, target, beside->only_samples)) {
		error = from_outside_prepare(launch, target, ret, &problem);
		return error ? report_and_refuse_if_strict(launch, problem.text) : 0;
	}
	if (target->obstacle[0])
		return report_and_refuse_if_strict(launch, target->obstacle);
	error = launch_find_libkymo_preload_path(library, &problem);
	if (!error)
		error = launch_create_directories(launch, &problem);
	if (!error && beside->start)
		error = beside->start(beside->context, launch, target, &problem);
	if (!error)
		error = launch_environment_create(launch, library, environ, ret, &problem);
	return error ? report_and_refuse_if_strict(launch, problem.text) : 0;
}

/* Daemons and jobs in the background: their data so far is in the results. */
static void report_surviving_processes(const struct launch *launch, bool measures_only_with_kymo)
{
	pid_t pid = 0;
	size_t count =
		launch->is_session_in_memory ? 0 : surviving_processes_count(launch->session, &pid);

	if (count && measures_only_with_kymo)
		message_note("%zu process%s of the program %s still running (%s%d) and %s not "
			     "measured any more: run the program in the foreground, or set "
			     "--duration, for which kymo goes on after the program's end",
			     count, count == 1 ? "" : "es", count == 1 ? "is" : "are",
			     count == 1 ? "" : "one is ", (int)pid, count == 1 ? "is" : "are");
	else if (count == 1)
		message_note("process %d of the program is still running; the results so far are "
			     "complete; for later data run: kymo report %s",
			     (int)pid, launch->session);
	else if (count)
		message_note("%zu processes of the program are still running (one is %d); the "
			     "results so far are complete; for later data run: kymo report %s",
			     count, (int)pid, launch->session);
}

/* Processes that are still there go on writing to the session's directory. */
static void discard_session_if_processes_ended(struct launch *launch, bool measures_only_with_kymo)
{
	struct problem problem;
	pid_t pid;

	report_surviving_processes(launch, measures_only_with_kymo);
	if (launch->is_session_to_be_moved && surviving_processes_count(launch->session, &pid))
		return;
	if (launch_move_or_remove_session(launch, true, &problem))
		message_error("%s (recorded data: %s)", problem.text, launch->session);
}

static int write_run_results(const struct launch *launch,
			     const struct profiling_run_callbacks *beside, const char *prefix,
			     struct problem *problem)
{
	int error;

	wait_for_ended_processes_data(launch->session);
	error = results_write_all_outputs(launch->settings, launch->session, launch->result, prefix,
					  !beside->write_results, problem);

	if (beside->write_results)
		beside->write_results(beside->context, launch, prefix);
	return error;
}

/* After the program's end. Nothing here changes the exit status. */
static void finish_results_after_end(struct launch *launch,
				     const struct profiling_run_callbacks *beside,
				     char *const *environment,
				     const struct supervised_program_end *end)
{
	struct problem problem;
	struct result_key_values keys = {launch->arguments[0], launch->start, getpid()};
	static char message[4400];
	char *prefix = NULL;

	snprintf(message, sizeof(message),
		 "kymo: interrupted; the recorded data is complete: kymo report %s\n",
		 launch->session);
	if (launch->is_sampled_from_outside)
		launch->signal_cost_ns = 0;
	else if (end->discards_results) /* the rest takes too long */
		launch->signal_cost_ns = own_cost_rates_measure_signal_ns();
	else
		own_cost_rates_measure(launch, environment);
	if (launch_write_json(launch, end, &problem))
		message_error("%s", problem.text);
	if (end->discards_results) {
		message_note("interrupted twice, no results written; to write them: kymo report %s",
			     launch->session);
		return;
	}
	supervise_install_exit_on_interrupt(end->wait_status, message);
	if (result_path_expand_keys(effective_setting_text(launch->settings, SETTING_OUTPUT_PREFIX),
				    &keys, &prefix, &problem) ||
	    write_run_results(launch, beside, prefix, &problem))
		message_error("%s (recorded data: %s)", problem.text, launch->session);
	else
		discard_session_if_processes_ended(launch, beside->measures_only_with_kymo);
	free(prefix);
}

/* Neither pipe nor process can be had (ulimit -n, ulimit -u): EXIT_KYMO_FAILED under STRICT, else
 * 0, and the program is to take kymo's place. */
static int drop_profiling_after_failed_start(struct launch *launch, char ***environment, int error)
{
	struct problem problem;

	if (!*environment)
		return 0;
	launch_remove_created_directories(launch);
	launch_environment_destroy(*environment);
	*environment = NULL;
	problem_set(&problem, error, "cannot start a process: %s", strerror(-error));
	return report_and_refuse_if_strict(launch, problem.text);
}

/* Runs the program with the environment made for it, or, when that is too long for the kernel
 * (execve(2): E2BIG), with its own. *environment is NULL when it ran unprofiled. */
static int run_target_supervised(struct launch *launch, const struct target *target,
				 char ***environment, bool again,
				 struct supervised_program_end *end)
{
	char **variables = *environment ? *environment : environ;
	int status, error;

	error = again ? supervise_run_program_again(target->path, launch->arguments, variables, end)
		      : supervise_run_program(target->path, launch->arguments, variables, end);

	if (error && !again) {
		status = drop_profiling_after_failed_start(launch, environment, error);
		if (status)
			return status;
		error = 0;
		end->exec_errno = supervise_exec_in_place(target->path, launch->arguments, environ);
	}
	if (!error && end->exec_errno && *environment)
		launch_remove_created_directories(launch);
	if (!error && end->exec_errno == E2BIG && *environment) {
		launch_environment_destroy(*environment);
		*environment = NULL;
		status = report_and_refuse_if_strict(
			launch, "the program's arguments and environment leave no "
				"room for kymo's variables");
		if (status)
			return status;
		error = supervise_run_program_again(target->path, launch->arguments, environ, end);
	}
	if (error) {
		message_error("cannot start a process: %s", strerror(-error));
		return EXIT_KYMO_FAILED;
	}
	if (!end->exec_errno)
		return 0;
	message_error("cannot execute '%s': %s", target->path, strerror(end->exec_errno));
	return end->exec_errno == ENOENT ? EXIT_PROGRAM_NOT_FOUND : EXIT_PROGRAM_NOT_EXECUTABLE;
}

/* As often as is wanted. *end is that of the last run, but with the status that counts. */
static int run_target_repeatedly(struct launch *launch, const struct target *target,
				 const struct profiling_run_callbacks *beside, char ***environment,
				 struct supervised_program_end *end)
{
	int failure = 0, status;
	bool again = false;

	do {
		status = run_target_supervised(launch, target, environment, again, end);
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
		      const struct profiling_run_callbacks *beside)
{
	struct supervised_program_end end;
	char **environment;
	int status = prepare_session_and_environment(launch, target, beside, &environment);

	if (status)
		return status;
	message_detail("running '%s'%s%s", target->path, environment ? ", results in " : "",
		       environment ? launch->place.shown : "");
	symbolizer_keep_program_open(target->path);
	if (environment && beside->only_samples && !launch->is_sampled_from_outside)
		from_outside_serve(launch);
	status = run_target_repeatedly(launch, target, beside, &environment, &end);
	from_outside_finish(launch);
	if (beside->end)
		beside->end(beside->context, launch);
	if (!status && environment)
		finish_results_after_end(launch, beside, environment, &end);
	launch_environment_destroy(environment);
	if (!status)
		supervise_exit_like_program(end.wait_status);
	return status;
}

/* Path keys are checked early: a mistake there is a mistake on the command line. */
static int check_output_path_keys(const struct launch *launch, struct problem *problem)
{
	static const enum setting_id output_path_setting_ids[] = {SETTING_OUTPUT_PATH,
								  SETTING_OUTPUT_PREFIX};
	struct result_key_values keys = {launch->arguments[0], launch->start, getpid()};
	int error = 0;

	for (unsigned i = 0; !error && i < 2; i++) {
		char *expanded = NULL;

		error = result_path_expand_keys(
			effective_setting_text(launch->settings, output_path_setting_ids[i]), &keys,
			&expanded, problem);
		free(expanded);
	}
	return error;
}

int run_program(struct launch *launch, const struct profiling_run_callbacks *beside)
{
	struct target target;
	struct problem problem;
	int status = EXIT_KYMO_FAILED;

	if (!check_output_path_keys(launch, &problem) &&
	    !conflicts_check_settings(launch->settings, &problem))
		status = target_find_program(launch->arguments[0], &target, &problem);
	if (!status)
		status = target_find_obstacle(&target, &problem);
	if (!status && effective_setting_bool(launch->settings, SETTING_ENABLED) &&
	    counters_request_check_on_devices(launch->settings, &launch->loads_tool_library_early,
					      &problem))
		status = EXIT_KYMO_FAILED;
	if (!status)
		return run_target(launch, &target, beside);
	message_error("%s", problem.text);
	return status;
}
