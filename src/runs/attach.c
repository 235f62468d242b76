/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Profiles a process that runs already, for a while, and leaves it as it was.
 *
 * libkymo is loaded by one of the process's own threads (inject/) and then works as it does when it
 * was preloaded. kymo stays beside the process, holding a lock that the library looks at: when kymo
 * is gone, however it ended, the library leaves by itself.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "common/settings_value.h"
#include "common/time_units.h"
#include "console/message.h"
#include "launch/control_process.h"
#include "launch/result_path.h"
#include "launch/surviving_processes.h"
#include "runs/attach.h"
#include "runs/conflicts.h"
#include "runs/from_outside.h"
#include "runs/own_cost_rates.h"
#include "runs/results.h"
#include "settings/command.h"

#define DETACH_WAIT_MAX_NS             (5000 * MILLISECOND_NS)
#define INJECTED_CALL_TRIES_MAX        20
#define RESTORE_CALLS_PATIENCE_SECONDS 2 /* to find a thread that can do it */

static void attach_sleep_briefly(void)
{
	static const struct timespec moment = {.tv_nsec = 2 * MILLISECOND_NS};

	nanosleep(&moment, NULL);
}

/* ---- before ---- */

static int attach_parse_pid(const char *pid, pid_t *ret, struct problem *problem)
{
	int64_t number;

	if (setting_parse_integer(setting_slice_from_text(pid), &number) || number < 1 ||
	    number > INT32_MAX)
		return problem_set(problem, -EINVAL, "'%.100s' is not a process ID", pid);
	*ret = (pid_t)number;
	return 0;
}

/* Looks at the process; while it is stopped by job control nothing can be done in it. */
static int attach_wait_while_stopped_and_check(pid_t pid, struct injection_target *ret,
					       struct problem *problem)
{
	bool told = false;
	int error;

	while (!(error = inject_check_target(pid, ret, problem)) && ret->stopped) {
		if (!told)
			message_note(
				"process %d is stopped; waiting until it continues (kill -CONT %d)",
				(int)pid, (int)pid);
		told = true;
		attach_sleep_briefly();
	}
	if (!error && ret->is_profiled)
		return problem_set(problem, -EALREADY,
				   "process %d is already being profiled, into '%s'", (int)pid,
				   ret->profile_session_directory);
	return error;
}

/* ---- while it runs ---- */

/* TRACE_DELAY and TRACE_DURATION, which also the library follows; -1: no end. */
static int64_t attach_get_duration_ns(const struct effective_settings *settings)
{
	int64_t delay = 0, duration = 0;

	setting_parse_duration(
		setting_slice_from_text(effective_setting_text(settings, SETTING_TRACE_DELAY)),
		&delay);
	setting_parse_duration(
		setting_slice_from_text(effective_setting_text(settings, SETTING_TRACE_DURATION)),
		&duration);
	return duration > 0 ? delay + duration : -1;
}

static void attach_fill_end_signal_set(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGHUP);
	sigaddset(ret, SIGQUIT);
}

/* Until the time is over, a signal asks for the end, or the process ends. True: it is still there.
 */
static bool attach_wait_for_end(pid_t pid, int64_t duration)
{
	struct pollfd wanted[2] = {{.events = POLLIN}, {.events = POLLIN}};
	int64_t end = (int64_t)monotonic_ns() + duration + 50 * MILLISECOND_NS, left = -1;
	sigset_t signals;

	attach_fill_end_signal_set(&signals);
	wanted[0].fd = (int)syscall(SYS_pidfd_open, pid, 0);
	wanted[1].fd = signalfd(-1, &signals, SFD_CLOEXEC);
	for (;;) {
		if (duration >= 0)
			left = (end - (int64_t)monotonic_ns()) / (int64_t)MILLISECOND_NS;
		if (duration >= 0 && left <= 0)
			break;
		/* without pidfd_open(2), Linux 5.3: looks once in a while */
		if (wanted[0].fd < 0 && (left < 0 || left > 200))
			left = 200;
		if (poll(wanted, 2, left > INT32_MAX ? INT32_MAX : (int)left) > 0 ||
		    (kill(pid, 0) && errno == ESRCH))
			break;
	}
	if (wanted[0].fd >= 0)
		close(wanted[0].fd);
	if (wanted[1].fd >= 0)
		close(wanted[1].fd);
	return !(wanted[0].revents & POLLIN);
}

/* Asks one process to leave and waits until it has. */
static int attach_detach_process(pid_t pid, struct problem *problem)
{
	int64_t end = (int64_t)monotonic_ns() + DETACH_WAIT_MAX_NS;
	struct ctl_process process;
	int error = ctl_process_open_spool_file(pid, &process, problem);

	if (error) {
		ctl_process_close_spool_file(&process);
		return 0; /* it has ended, or left already */
	}
	error = ctl_process_write_command_and_wait(&process, SPOOL_CONTROL_DETACH, problem);
	while (!error && (int64_t)monotonic_ns() < end && !kill(pid, 0) &&
	       !ctl_process_read_header(&process) && process.header.state == SPOOL_STATE_OPEN)
		attach_sleep_briefly();
	ctl_process_close_spool_file(&process);
	/* what is left to do there takes a moment */
	while (!error && (int64_t)monotonic_ns() < end &&
	       !ctl_process_open_spool_file(pid, &process, NULL)) {
		ctl_process_close_spool_file(&process);
		attach_sleep_briefly();
	}
	return error;
}

/* The thread that is borrowed may be in the midst of what would have to wait for it. */
static int attach_run_call_with_retries(const struct injection_target *target,
					const struct injection_call *call, int *ret_result,
					struct problem *problem)
{
	int error, tries = INJECTED_CALL_TRIES_MAX;

	do
		error = inject_call_function(target, call, ret_result, problem);
	while (!error && *ret_result == -EAGAIN && --tries);
	return error;
}

/* Its calls lead where they led before. One in which that cannot be done goes on as well: what they
 * lead to does nothing. */
static void attach_unwrap_calls_of_process(pid_t pid, const struct attach_session *session)
{
	struct injection_call call = {.library = session->library,
				      .function = "kymo_detach",
				      .block = "",
				      .block_size = 1,
				      .patience_seconds = RESTORE_CALLS_PATIENCE_SECONDS};
	struct injection_target target;
	struct problem problem;
	int result, error = inject_check_target(pid, &target, &problem);

	if (!error && !target.stopped && !target.is_profiled)
		error = attach_run_call_with_retries(&target, &call, &result, &problem);
	if (error && error != -ESRCH && !kill(pid, 0))
		message_note("could not restore the calls of process %d: they still pass through "
			     "libkymo, which does nothing (%s)",
			     (int)pid, problem.text);
}

/* The process, and its children since. */
static void attach_detach_all_processes(pid_t pid, const struct attach_session *session,
					const struct attach_callbacks *beside)
{
	struct ctl_process process;
	struct problem problem;
	size_t count = 0;
	pid_t *pids = NULL;
	int error = ctl_process_open_spool_file(pid, &process, &problem);

	if (!error)
		error = ctl_list_session_processes(&process, &pids, &count, &problem);
	ctl_process_close_spool_file(&process);
	for (size_t i = 0; !error && i < count; i++) {
		if (beside->leave_process)
			beside->leave_process(beside->context, pids[i], false);
		if (attach_detach_process(pids[i], &problem))
			message_error("%s; kymo's library detaches when the process continues",
				      problem.text);
		if (beside->leave_process)
			beside->leave_process(beside->context, pids[i], true);
		attach_unwrap_calls_of_process(pids[i], session);
	}
	free(pids);
}

/* ---- afterwards ---- */

static int attach_write_results(struct attach_session *session, pid_t pid)
{
	struct launch *launch = &session->launch;
	struct supervised_program_end end = {.pid = pid, .wait_status = -1};
	struct result_key_values keys = {launch->arguments[0], launch->start, getpid()};
	static char message[PATH_MAX + 100];
	char *prefix = NULL;
	struct problem problem;
	int error;

	snprintf(message, sizeof(message),
		 "kymo: interrupted; the recorded data is complete: kymo report %s\n",
		 launch->session);
	launch->signal_cost_ns = own_cost_rates_measure_signal_ns();
	if (launch_write_json(launch, &end, &problem))
		message_error("%s", problem.text);
	supervise_install_exit_on_interrupt(0, message);
	wait_for_ended_processes_data(launch->session);
	error = result_path_expand_keys(
		effective_setting_text(launch->settings, SETTING_OUTPUT_PREFIX), &keys, &prefix,
		&problem);
	if (!error)
		error = results_write_all_outputs(launch->settings, launch->session, launch->result,
						  prefix, true, &problem);
	if (error)
		message_error("%s (recorded data: %s)", problem.text, launch->session);
	else if (launch_move_or_remove_session(launch, true, &problem))
		message_error("%s (recorded data: %s)", problem.text, launch->session);
	free(prefix);
	return error ? EXIT_KYMO_FAILED : EXIT_SUCCESS;
}

static int attach_inject_library(const struct attach_session *session,
				 const struct injection_target *target, struct problem *problem)
{
	struct injection_call call = {.library = session->library,
				      .function = "kymo_attach",
				      .block = session->settings_block,
				      .block_size = session->settings_block_bytes};
	int result, error = attach_run_call_with_retries(target, &call, &result, problem);

	if (error || !result)
		return error;
	if (result == -EALREADY)
		return problem_set(problem, result, "process %d is already being profiled",
				   (int)target->pid);
	return problem_set(problem, result,
			   "libkymo cannot start in process %d: %s (does it have the rights to "
			   "write to '%s'?)",
			   (int)target->pid, strerror(-result), session->launch.session);
}

/* The thread that was borrowed is back; now it may be sampled like the others. */
static int attach_start_sampling_if_enabled(const struct attach_session *session, pid_t pid,
					    struct problem *problem)
{
	struct ctl_process process;
	int error;

	if (!effective_setting_bool(session->launch.settings, SETTING_INIT_ENABLED))
		return 0;
	error = ctl_process_open_spool_file(pid, &process, problem);
	if (!error)
		error = ctl_process_write_command_and_wait(&process, SPOOL_CONTROL_START, problem);
	ctl_process_close_spool_file(&process);
	return error && !kill(pid, 0) ? error : 0;
}

static int attach_profile_until_end(struct attach_session *session,
				    const struct injection_target *target,
				    const struct attach_callbacks *beside, struct problem *problem)
{
	sigset_t signals, none;
	int error;

	attach_fill_end_signal_set(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	error = attach_inject_library(session, target, problem);
	if (!error && beside->attached)
		error = beside->attached(beside->context, problem);
	if (!error)
		error = attach_start_sampling_if_enabled(session, target->pid, problem);
	if (error)
		return error;
	message_note(
		"attached to process %d (%s)%s", (int)target->pid, session->launch.arguments[0],
		attach_get_duration_ns(session->launch.settings) < 0 ? "; Ctrl-C detaches" : "");
	if (attach_wait_for_end(target->pid, attach_get_duration_ns(session->launch.settings)))
		attach_detach_all_processes(target->pid, session, beside);
	attach_session_release_lock(session);
	signal(SIGINT, SIG_IGN); /* what was typed is done; from here on it is about the results */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return 0;
}

/* ---- from outside ---- */

static int attach_sample_from_outside_until_end(struct attach_session *session, pid_t pid,
						struct problem *problem)
{
	struct launch *launch = &session->launch;
	int64_t duration = attach_get_duration_ns(launch->settings);
	sigset_t signals, none;
	int error;

	attach_fill_end_signal_set(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	error = from_outside_attach(launch, pid, problem);
	if (!error) {
		message_note("sampling process %d (%s) from outside%s", (int)pid,
			     launch->arguments[0], duration < 0 ? "; Ctrl-C ends it" : "");
		attach_wait_for_end(pid, duration);
	}
	from_outside_finish(launch);
	signal(SIGINT, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return error;
}

/* `why` nothing is loaded into the process; "": that was asked for. */
static int attach_from_outside(pid_t pid, struct effective_settings *settings, const char *why)
{
	struct attach_session session = {.lock = -1};
	int status = EXIT_KYMO_FAILED, error;
	struct problem problem;

	session.launch.settings = settings;
	error = from_outside_check(&session.launch, &problem);
	if (error) {
		message_error("%s%s%s", why, *why ? ", and from outside: " : "", problem.text);
		return status;
	}
	if (*why)
		message_note("%s; kymo samples it from outside", why);
	error = attach_session_create_outside(&session, settings, pid, &problem);
	if (!error)
		error = attach_sample_from_outside_until_end(&session, pid, &problem);
	from_outside_finish(&session.launch);
	if (error && session.launch.result && session.launch.session)
		launch_remove_created_directories(&session.launch);
	if (error)
		message_error("%s", problem.text);
	else
		status = attach_write_results(&session, pid);
	attach_session_destroy(&session);
	return status;
}

/* What the check of a process says against loading anything; false: nothing, or it ends the
 * attempt. */
static bool attach_finds_reason_for_outside(const struct effective_settings *settings,
					    const struct injection_target *target, int error,
					    struct problem *problem)
{
	if (effective_setting_bool(settings, SETTING_FROM_OUTSIDE) ||
	    effective_setting_bool(settings, SETTING_OFF_CPU) ||
	    effective_setting_bool(settings, SETTING_KERNEL_FRAMES)) {
		problem->text[0] = '\0';
		return !error || target->can_be_sampled_from_outside;
	}
	if (!error && target->is_go)
		problem_set(problem, 0, "process %d is a Go program", (int)target->pid);
	return error ? target->can_be_sampled_from_outside : target->is_go;
}

int attach_and_profile_process(const char *text, struct effective_settings *settings,
			       const struct attach_callbacks *beside)
{
	static const struct attach_callbacks nothing;
	struct attach_session session = {.lock = -1};
	struct injection_target target;
	struct problem problem;
	pid_t pid = 0;
	int status = EXIT_KYMO_FAILED;
	bool only_samples = !beside, sees_no_library;
	int error = attach_parse_pid(text, &pid, &problem);

	beside = beside ? beside : &nothing;
	if (!error)
		error = conflicts_check_settings(settings, &problem);
	if (!error) {
		error = attach_wait_while_stopped_and_check(pid, &target, &problem);
		if (only_samples &&
		    attach_finds_reason_for_outside(settings, &target, error, &problem))
			return attach_from_outside(pid, settings, problem.text);
	}
	if (!error) {
		error = attach_session_create(&session, settings, &target, &problem);
		sees_no_library = error == -ENOENT && session.launch.session;
		if (sees_no_library && only_samples) {
			attach_session_release_lock(&session);
			launch_remove_created_directories(&session.launch);
			attach_session_destroy(&session);
			return attach_from_outside(pid, settings, problem.text);
		}
	}
	if (!error && beside->start)
		error = beside->start(beside->context, &session, &target, &problem);
	if (!error)
		error = attach_session_create_settings_block(&session, &target, &problem);
	if (!error)
		error = attach_profile_until_end(&session, &target, beside, &problem);
	if (beside->end)
		beside->end(beside->context, &session.launch);
	if (error && session.launch.result && session.launch.session) {
		attach_session_release_lock(&session);
		launch_remove_created_directories(&session.launch);
	}
	if (error)
		message_error("%s", problem.text);
	else
		status = attach_write_results(&session, pid);
	attach_session_destroy(&session);
	return status;
}
