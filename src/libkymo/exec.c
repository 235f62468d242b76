/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of exec. A sampling signal that is pending when the image is replaced kills the new
 * program (default action of SIGTRAP; disposition of handled signals is reset by exec, pending
 * signals stay: execve(2)). So the thread's source is stopped, what is pending is taken, and the
 * program's own mask and disposition are put in place. The new program gets the session's
 * environment, and the results say what came of this one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/syscalls.h"
#include "core/base/own_work.h"
#include "core/helper.h"
#include "core/notices.h"
#include "core/runtime.h"
#include "core/sampler.h"
#include "libkymo/ask_outside.h"
#include "libkymo/dormant.h"
#include "libkymo/exec_target.h"
#include "libkymo/real.h"
#include "libkymo/session_environment.h"
#include "libkymo/session_reach.h"

#define NOTICE_TIMEOUT_NS 100000000ull

/* What is undone when exec fails. */
struct exec_undo_state {
	struct thread *thread;
	bool were_kymo_threads_ended;
	struct session_environment_list list;
};

/* A child that has just been forked may exec before its collection has begun. That is waited for
 * only when there is something to be said about it. */
static bool can_record_exec(struct runtime *runtime, bool own, bool important)
{
	if (!runtime->options.follow_children || !process_is_where_runtime_started())
		return false;
	if (own && important && kymo_process.state == RUNTIME_STARTING)
		background_wait_for_stage(&runtime->background, BACKGROUND_STAGE_COLLECTING,
					  NOTICE_TIMEOUT_NS);
	return runtime_is_active();
}

static struct exec_target find_exec_target_and_obstacle(const struct runtime *runtime,
							const char *path, bool by_name,
							char space[PATH_MAX])
{
	struct exec_target target =
		by_name ? exec_target_find_in_search_path(path, space) : exec_target_examine(path);

	if (target.found && !target.profiling_obstacle_text)
		target.profiling_obstacle_text = session_reach_find_obstacle(runtime);
	return target;
}

/* Of a dormant process; false: it is none any more. An image that cannot be executed is not told
 * of, but the wake timer may go off until the kernel has said so as well. */
static bool prepare_exec_of_dormant_process(const struct runtime *runtime, const char *path,
					    const struct exec_target *target, uint64_t begun_ns)
{
	if (target->found)
		return dormant_prepare_exec(
			target->path,
			runtime->options.follow_children ? target->profiling_obstacle_text : NULL,
			begun_ns);
	return path || dormant_prepare_exec(NULL, NULL, begun_ns);
}

/* True when there is something to be written before the image goes. */
static bool post_notices_before_exec(struct runtime *runtime, const struct exec_target *target)
{
	bool own = kymo_process.pid == (uint32_t)sys_getpid(); /* else a vfork child */

	if (!target->found || !can_record_exec(runtime, own, target->profiling_obstacle_text))
		return false;
	if (target->profiling_obstacle_text)
		notices_post(&runtime->background, SPOOL_NOTICE_NOT_FOLLOWED,
			     (uint64_t)sys_getpid(), target->path, target->profiling_obstacle_text);
	if (own)
		notices_post(&runtime->background, SPOOL_NOTICE_EXEC, 0, target->path, NULL);
	return own;
}

/* Of a process that collects. */
static void leave_collection_before_exec(struct exec_undo_state *departure,
					 const struct exec_target *target)
{
	struct runtime *runtime = &kymo_runtime;
	uint64_t bit =
		signal_to_mask_bit(runtime->signals.signal ? runtime->signals.signal : SIGTRAP);
	bool unwritten = kymo_process.state && post_notices_before_exec(runtime, target);

	departure->thread = runtime_stop_thread_sampling_for_exec();
	if (!departure->thread)
		return;
	if (!runtime_flush_and_wait_if_unwritten() && unwritten)
		background_request_flush_and_wait(&runtime->background, NOTICE_TIMEOUT_NS);
	helper_record_if_program_is_subreaper(runtime->options.spool_directory);
	atomic_store(&runtime->background.is_exec_pending, 1);
	departure->were_kymo_threads_ended = runtime_end_helper_if_program_child(false);
	background_wake(&runtime->background);
	program_signals_apply_ignore_at_exec(&runtime->signals);
	/* Were the source still on (no answer in time), a blocked signal would do no harm to the
	 * new image. */
	if (!departure->thread->wants_signal_blocked && !departure->thread->armed &&
	    !departure->thread->overflow_armed)
		call_rt_sigprocmask(SIG_UNBLOCK, &bit, NULL);
	if (runtime->spool.header)
		runtime->spool.header->state = SPOOL_STATE_EXEC;
}

/* What no library can be loaded into gets no environment that says so, where that would do harm, or
 * where it is sampled from outside with all that it starts. */
static void complete_environment(struct exec_undo_state *departure, struct exec_target *target,
				 char *const environment[])
{
	const struct options *options = &kymo_runtime.options;

	if (options->follow_children && options_want_sampling(options) &&
	    target->can_be_sampled_from_outside && ask_outside_for_exec(options->spool_directory)) {
		target->profiling_obstacle_text = NULL;
		target->must_not_preload = true;
	}
	if (target->must_not_preload)
		session_environment_list_init_without(&departure->list, environment);
	else
		session_environment_list_init(&departure->list, environment);
}

static void prepare_for_exec(struct exec_undo_state *departure, const char *path, bool by_name,
			     char *const environment[])
{
	char space[PATH_MAX];
	struct exec_target target;
	uint64_t begun_ns;

	departure->thread = NULL;
	departure->were_kymo_threads_ended = false;
	departure->list = (struct session_environment_list){.environment = environment};
	/* None of the calls below are made in a seccomp filter. */
	if (is_calling_thread_off_limits())
		return;
	dormant_install_pending_wrappers();
	begun_ns = own_work_read_clock_ns();
	target = find_exec_target_and_obstacle(&kymo_runtime, path, by_name, space);
	complete_environment(departure, &target, environment);
	if (!dormant_is_this_process() ||
	    !prepare_exec_of_dormant_process(&kymo_runtime, path, &target, begun_ns))
		leave_collection_before_exec(departure, &target);
	own_work_add_since(begun_ns);
}

/* exec failed. */
static int undo_exec_preparation(struct exec_undo_state *departure)
{
	struct runtime *runtime = &kymo_runtime;
	int error = errno;

	dormant_resume_after_failed_exec();
	if (departure->thread) {
		atomic_store(&runtime->background.is_exec_pending, 0);
		if (runtime->spool.header)
			runtime->spool.header->state = SPOOL_STATE_OPEN;
		program_signals_reinstall_our_handler(&runtime->signals,
						      (void *)sampler_handle_signal);
		if (departure->were_kymo_threads_ended)
			runtime_restart_kymo_threads();
		else
			runtime_resume_after_failed_exec(departure->thread);
	}
	session_environment_list_deinit(&departure->list);
	errno = error;
	return -1;
}

/* With the completed environment, or with the program's own where that is all the kernel takes. */
#define EXECUTE_WITH_SESSION_ENVIRONMENT(path, by_name, environment, as_given, with_session)       \
	({                                                                                         \
		struct exec_undo_state departure;                                                  \
		prepare_for_exec(&departure, path, by_name, environment);                          \
		if (departure.list.is_completed)                                                   \
			with_session;                                                              \
		if (!departure.list.is_completed || errno == E2BIG)                                \
			as_given;                                                                  \
		undo_exec_preparation(&departure);                                                 \
	})

EXPORTED int execve(const char *path, char *const arguments[], char *const environment[])
{
	return EXECUTE_WITH_SESSION_ENVIRONMENT(
		path, false, environment, REAL(execve)(path, arguments, environment),
		REAL(execve)(path, arguments, departure.list.environment));
}

EXPORTED int execv(const char *path, char *const arguments[])
{
	return EXECUTE_WITH_SESSION_ENVIRONMENT(
		path, false, environ, REAL(execv)(path, arguments),
		REAL(execve)(path, arguments, departure.list.environment));
}

EXPORTED int execvp(const char *file, char *const arguments[])
{
	return EXECUTE_WITH_SESSION_ENVIRONMENT(
		file, true, environ, REAL(execvp)(file, arguments),
		REAL(execvpe)(file, arguments, departure.list.environment));
}

EXPORTED int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	return EXECUTE_WITH_SESSION_ENVIRONMENT(
		file, true, environment, REAL(execvpe)(file, arguments, environment),
		REAL(execvpe)(file, arguments, departure.list.environment));
}

EXPORTED int fexecve(int fd, char *const arguments[], char *const environment[])
{
	return EXECUTE_WITH_SESSION_ENVIRONMENT(
		NULL, false, environment, REAL(fexecve)(fd, arguments, environment),
		REAL(fexecve)(fd, arguments, departure.list.environment));
}

EXPORTED int execveat(int directory, const char *path, char *const arguments[],
		      char *const environment[], int flags)
{
	return EXECUTE_WITH_SESSION_ENVIRONMENT(
		*path == '/' ? path : NULL, false, environment,
		REAL(execveat)(directory, path, arguments, environment, flags),
		REAL(execveat)(directory, path, arguments, departure.list.environment, flags));
}

/* The list forms: arguments are collected into an array on the stack, as libc does it. */
static size_t count_argument_array_slots(va_list list)
{
	size_t count = 2; /* the first and the terminating NULL */

	while (va_arg(list, char *))
		count++;
	return count;
}

static void collect_arguments(char **arguments, size_t count, const char *first, va_list list)
{
	arguments[0] = (char *)first;
	for (size_t i = 1; i < count; i++)
		arguments[i] = va_arg(list, char *);
}

#define COLLECT_ARGUMENTS(first)                                                                   \
	va_list list, counting;                                                                    \
	size_t count;                                                                              \
	va_start(list, first);                                                                     \
	va_copy(counting, list);                                                                   \
	count = count_argument_array_slots(counting);                                              \
	va_end(counting);                                                                          \
	char *arguments[count];                                                                    \
	collect_arguments(arguments, count, first, list)

EXPORTED int execl(const char *path, const char *first, ...)
{
	COLLECT_ARGUMENTS(first);
	va_end(list);
	return execv(path, arguments);
}

EXPORTED int execlp(const char *file, const char *first, ...)
{
	COLLECT_ARGUMENTS(first);
	va_end(list);
	return execvp(file, arguments);
}

EXPORTED int execle(const char *path, const char *first, ...)
{
	COLLECT_ARGUMENTS(first);
	char *const *environment = va_arg(list, char *const *);
	va_end(list);
	return execve(path, arguments, environment);
}
