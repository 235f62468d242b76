/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo attach`: profiles a process that runs already, for a while, and leaves it as it was.
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

#include "cmd/attach.h"
#include "cmd/command.h"
#include "cmd/ctl_process.h"
#include "cmd/message.h"
#include "cmd/request.h"
#include "cmd/result_path.h"
#include "cmd/results.h"
#include "cmd/sampler_options.h"
#include "common/settings_value.h"

#define MILLISECOND_NS  1000000ll
#define DETACH_NS       (5000 * MILLISECOND_NS)
#define ATTACH_TRIES    20
#define RESTORE_SECONDS 2 /* to find a thread that can do it */

struct attach_options {
	const char *pid;
};

static bool attach_accepts(enum setting_id id)
{
	return settings_table[id].visibility != SETTING_INTERNAL &&
	       strcmp(settings_table[id].category, "instrument") &&
	       strcmp(settings_table[id].category, "counters") &&
	       strcmp(settings_table[id].category, "causal");
}

static const struct option_extra attach_extras[] = {
	{.name = "pid",
	 .letter = 'p',
	 .argument = OPTION_REQUIRED,
	 .metavar = "PID",
	 .apply = option_set_text,
	 .offset = offsetof(struct attach_options, pid),
	 .help = "The process to attach to."},
	OPTION_CPUTIME,
	OPTION_REALTIME,
	OPTION_QUIET,
	OPTION_VERBOSE,
	OPTION_HELP,
};

static const struct options_grammar attach_grammar = {
	.command = "attach",
	.extras = attach_extras,
	.extra_count = sizeof(attach_extras) / sizeof(attach_extras[0]),
	.accepts = attach_accepts,
};

static int64_t attach_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void attach_pause(void)
{
	static const struct timespec moment = {.tv_nsec = 2 * MILLISECOND_NS};

	nanosleep(&moment, NULL);
}

/* ---- before ---- */

static int attach_parse_pid(const char *pid, pid_t *ret, struct problem *problem)
{
	int64_t number;

	if (setting_parse_integer(setting_slice(pid), &number) || number < 1 || number > INT32_MAX)
		return problem_set(problem, -EINVAL, "'%.100s' is no process id", pid);
	*ret = (pid_t)number;
	return 0;
}

static bool attach_is_about_regions(enum setting_id id)
{
	const char *category = settings_table[id].category;

	return !strcmp(category, "wrappers") || !strcmp(category, "regions") ||
	       id == SETTING_SELECTED_REGIONS || id == SETTING_ENABLE_CATEGORIES ||
	       id == SETTING_DISABLE_CATEGORIES;
}

/* Attached processes are sampled; who asks for regions as well is told that there will be none.
 * What a file asks for is meant for other commands, too. */
static void attach_warn_regions(const struct resolved *settings)
{
	for (enum setting_id id = 0; id < SETTING_COUNT; id++) {
		const struct resolved_value *value = &settings->values[id];
		bool off = settings_table[id].type == SETTING_BOOL && !resolved_bool(settings, id);

		if (attach_is_about_regions(id) && value->origin > ORIGIN_CONFIG && !off)
			message_warning("%s: no effect here: attaching samples, and records no "
					"regions",
					value->source);
	}
}

/* Looks at the process; while it is stopped by job control nothing can be done in it. */
static int attach_examine(pid_t pid, struct inject_target *ret, struct problem *problem)
{
	bool told = false;
	int error;

	while (!(error = inject_examine(pid, ret, problem)) && ret->stopped) {
		if (!told)
			message_note(
				"process %d is stopped; waiting for it to go on (kill -CONT %d)",
				(int)pid, (int)pid);
		told = true;
		attach_pause();
	}
	if (!error && ret->profiled)
		return problem_set(problem, -EALREADY,
				   "process %d is being profiled already, into '%s'", (int)pid,
				   ret->profiled_by);
	return error;
}

/* ---- while it runs ---- */

/* TRACE_DELAY and TRACE_DURATION, which also the library follows; -1: no end. */
static int64_t attach_duration(const struct resolved *settings)
{
	int64_t delay = 0, duration = 0;

	setting_parse_duration(setting_slice(resolved_text(settings, SETTING_TRACE_DELAY)), &delay);
	setting_parse_duration(setting_slice(resolved_text(settings, SETTING_TRACE_DURATION)),
			       &duration);
	return duration > 0 ? delay + duration : -1;
}

static void attach_wanted_signals(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGHUP);
	sigaddset(ret, SIGQUIT);
}

/* Until the time is over, a signal asks for the end, or the process ends. True: it is still there.
 */
static bool attach_wait(pid_t pid, int64_t duration)
{
	struct pollfd wanted[2] = {{.events = POLLIN}, {.events = POLLIN}};
	int64_t end = attach_now() + duration + 50 * MILLISECOND_NS, left = -1;
	sigset_t signals;

	attach_wanted_signals(&signals);
	wanted[0].fd = (int)syscall(SYS_pidfd_open, pid, 0);
	wanted[1].fd = signalfd(-1, &signals, SFD_CLOEXEC);
	for (;;) {
		if (duration >= 0)
			left = (end - attach_now()) / MILLISECOND_NS;
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
static int attach_leave_one(pid_t pid, struct problem *problem)
{
	int64_t end = attach_now() + DETACH_NS;
	struct ctl_process process;
	int error = ctl_process_open(pid, &process, problem);

	if (error) {
		ctl_process_close(&process);
		return 0; /* it has ended, or left already */
	}
	error = ctl_process_ask(&process, SPOOL_CONTROL_DETACH, problem);
	while (!error && attach_now() < end && !kill(pid, 0) &&
	       __atomic_load_n(&process.header->state, __ATOMIC_ACQUIRE) == SPOOL_STATE_OPEN)
		attach_pause();
	ctl_process_close(&process);
	/* what is left to do there takes a moment */
	while (!error && attach_now() < end && !ctl_process_open(pid, &process, NULL)) {
		ctl_process_close(&process);
		attach_pause();
	}
	return error;
}

/* The thread that is borrowed may be in the midst of what would have to wait for it. */
static int attach_call(const struct inject_target *target, const struct inject_call *call,
		       int *ret_result, struct problem *problem)
{
	int error, tries = ATTACH_TRIES;

	do
		error = inject_run(target, call, ret_result, problem);
	while (!error && *ret_result == -EAGAIN && --tries);
	return error;
}

/* Its calls lead where they led before. One in which that cannot be done goes on as well: what they
 * lead to does nothing. */
static void attach_restore_calls(pid_t pid, const struct attach_session *session)
{
	struct inject_call call = {.library = session->library,
				   .function = "kymo_detach",
				   .block = "",
				   .block_size = 1,
				   .patience = RESTORE_SECONDS};
	struct inject_target target;
	struct problem problem;
	int result, error = inject_examine(pid, &target, &problem);

	if (!error && !target.stopped && !target.profiled)
		error = attach_call(&target, &call, &result, &problem);
	if (error && error != -ESRCH && !kill(pid, 0))
		message_note("calls of process %d go on passing through libkymo, which does "
			     "nothing (%s)",
			     (int)pid, problem.text);
}

/* The process, and its children since. */
static void attach_leave(pid_t pid, const struct attach_session *session,
			 const struct attach_beside *beside)
{
	struct ctl_process process;
	struct problem problem;
	size_t count = 0;
	pid_t *pids = NULL;
	int error = ctl_process_open(pid, &process, &problem);

	if (!error)
		error = ctl_session_processes(&process, &pids, &count, &problem);
	ctl_process_close(&process);
	for (size_t i = 0; !error && i < count; i++) {
		if (beside->leave)
			beside->leave(beside->context, pids[i], false);
		if (attach_leave_one(pids[i], &problem))
			message_error("%s; it leaves by itself when it goes on", problem.text);
		if (beside->leave)
			beside->leave(beside->context, pids[i], true);
		attach_restore_calls(pids[i], session);
	}
	free(pids);
}

/* ---- afterwards ---- */

static int attach_finish(struct attach_session *session, pid_t pid)
{
	struct launch *launch = &session->launch;
	struct supervised end = {.pid = pid, .wait_status = -1};
	struct result_keys keys = {launch->arguments[0], launch->start, getpid()};
	static char message[PATH_MAX + 100];
	char *prefix = NULL;
	struct problem problem;
	int error;

	snprintf(message, sizeof(message),
		 "kymo: interrupted; the recorded data is complete: kymo report %s\n",
		 launch->session);
	if (launch_write_json(launch, &end, &problem))
		message_error("%s", problem.text);
	supervise_give_up_on_interrupt(0, message);
	error = result_path_expand(resolved_text(launch->settings, SETTING_OUTPUT_PREFIX), &keys,
				   &prefix, &problem);
	if (!error)
		error = results_write(launch->settings, launch->session, launch->result, prefix,
				      true, &problem);
	if (error)
		message_error("%s (recorded data: %s)", problem.text, launch->session);
	else
		launch_discard_session(launch);
	free(prefix);
	return error ? EXIT_OWN_FAILURE : EXIT_SUCCESS;
}

static int attach_inject(const struct attach_session *session, const struct inject_target *target,
			 struct problem *problem)
{
	struct inject_call call = {.library = session->library,
				   .function = "kymo_attach",
				   .block = session->block,
				   .block_size = session->block_size};
	int result, error = attach_call(target, &call, &result, problem);

	if (error || !result)
		return error;
	if (result == -EALREADY)
		return problem_set(problem, result, "process %d is being profiled already",
				   (int)target->pid);
	return problem_set(problem, result,
			   "libkymo cannot start in process %d: %s (does it have the rights to "
			   "write to '%s'?)",
			   (int)target->pid, strerror(-result), session->launch.session);
}

/* The thread that was borrowed is back; now it may be sampled like the others. */
static int attach_start(const struct attach_session *session, pid_t pid, struct problem *problem)
{
	struct ctl_process process;
	int error;

	if (!resolved_bool(session->launch.settings, SETTING_INIT_ENABLED))
		return 0;
	error = ctl_process_open(pid, &process, problem);
	if (!error)
		error = ctl_process_ask(&process, SPOOL_CONTROL_START, problem);
	ctl_process_close(&process);
	return error && !kill(pid, 0) ? error : 0;
}

static int attach_profile(struct attach_session *session, const struct inject_target *target,
			  const struct attach_beside *beside, struct problem *problem)
{
	sigset_t signals, none;
	int error;

	attach_wanted_signals(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	error = attach_inject(session, target, problem);
	if (!error && beside->attached)
		error = beside->attached(beside->context, problem);
	if (!error)
		error = attach_start(session, target->pid, problem);
	if (error)
		return error;
	message_note("attached to process %d (%s)%s", (int)target->pid,
		     session->launch.arguments[0],
		     attach_duration(session->launch.settings) < 0 ? "; Ctrl-C detaches" : "");
	if (attach_wait(target->pid, attach_duration(session->launch.settings)))
		attach_leave(target->pid, session, beside);
	attach_session_unlock(session);
	signal(SIGINT, SIG_IGN); /* what was typed is done; from here on it is about the results */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return 0;
}

int attach_process(const char *text, struct resolved *settings, const struct attach_beside *beside)
{
	static const struct attach_beside nothing;
	struct attach_session session = {.lock = -1};
	struct inject_target target;
	struct problem problem;
	pid_t pid = 0;
	int status = EXIT_OWN_FAILURE;
	int error = attach_parse_pid(text, &pid, &problem);

	beside = beside ? beside : &nothing;
	if (!error)
		error = request_check(settings, &problem);
	if (!error)
		error = attach_examine(pid, &target, &problem);
	if (!error)
		error = attach_session_create(&session, settings, &target, &problem);
	if (!error && beside->start)
		error = beside->start(beside->context, &session, &target, &problem);
	if (!error)
		error = attach_session_make_block(&session, &target, &problem);
	if (!error)
		error = attach_profile(&session, &target, beside, &problem);
	if (beside->end)
		beside->end(beside->context, &session.launch);
	if (error && session.launch.result && session.launch.session) {
		attach_session_unlock(&session);
		launch_discard_result(&session.launch);
	}
	if (error)
		message_error("%s", problem.text);
	else
		status = attach_finish(&session, pid);
	attach_session_destroy(&session);
	return status;
}

static int attach_run(char **arguments, size_t count)
{
	struct resolved settings;
	struct attach_options options = {0};
	struct options_result result = {.context = &options};
	int status = command_begin(&command_attach, arguments, count, &settings, &result);

	if (status != COMMAND_GO_ON)
		return status;
	if (result.operand_count || !options.pid) {
		message_error("which process? kymo attach -p PID [options] (to run a program under "
			      "kymo: kymo sample -- PROGRAM)");
		status = EXIT_OWN_FAILURE;
	} else {
		attach_warn_regions(&settings);
		status = attach_process(options.pid, &settings, NULL);
	}
	resolved_deinit(&settings);
	return status;
}

const struct command command_attach = {
	.name = "attach",
	.summary = "profile a process that runs already",
	.synopsis = "attach -p PID [options]",
	.text = "Loads kymo's library into a running process, samples it until --duration is over, "
		"Ctrl-C, or the process ends, and leaves it as it was: only the library stays in "
		"its memory, doing nothing. Any number of times.\n\n"
		"The process need not be prepared. It must be dynamically linked with glibc, and "
		"the "
		"system must allow to trace it (the same user and kernel.yama.ptrace_scope=0, or "
		"root). Children that it makes by fork while kymo is attached are profiled as "
		"well; "
		"programs that it executes are not. No regions are recorded.",
	.examples = "kymo attach -p 1234 -d 10             what is it doing, for 10 seconds\n"
		    "kymo attach -p 1234 --realtime        where does it wait, until Ctrl-C\n",
	.grammar = &attach_grammar,
	.run = attach_run,
};
