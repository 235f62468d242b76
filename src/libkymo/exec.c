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
#include "core/notices.h"
#include "core/runtime.h"
#include "core/sampler.h"
#include "libkymo/exec_target.h"
#include "libkymo/real.h"
#include "libkymo/session_environment.h"

#define NOTICE_TIMEOUT_NS 100000000ull

/* What is undone when exec fails. */
struct departure {
	struct thread *thread;
	struct session_list list;
};

/* In a seccomp filter none of the calls below are made. */
static bool in_sandbox(void)
{
	return kymo_runtime.sealed && (!kymo_thread || kymo_thread->sealed);
}

/* A child that has just been forked may exec before its collection has begun. That is waited for
 * only when there is something to be said about it. */
static bool can_tell(bool own, bool important)
{
	if (!kymo_runtime.options.follow_children || !kymo_runtime.same_process ||
	    !*kymo_runtime.same_process)
		return false;
	if (own && important && kymo_runtime.state == RUNTIME_STARTING)
		background_wait(&kymo_runtime.background, BACKGROUND_COLLECTING, NOTICE_TIMEOUT_NS);
	return runtime_active();
}

/* Another user, another root: a process that cannot make its spool file. */
static const char *session_obstacle(void)
{
	switch (sys_call4(SYS_faccessat2, AT_FDCWD, (long)kymo_runtime.options.spool_directory,
			  W_OK | X_OK, AT_EACCESS)) {
	case -EACCES:
		return " was not profiled: it may not write to the result directory";
	case -ENOENT:
		return " was not profiled: it cannot reach the result directory";
	default:
		return NULL;
	}
}

/* True when there is something to be written before the image goes. */
static bool announce(const char *path, bool by_name)
{
	char space[PATH_MAX];
	struct exec_target target =
		by_name ? exec_target_search(path, space) : exec_target_look(path);
	bool own = kymo_runtime.pid == (uint32_t)sys_getpid(); /* else a vfork child */

	if (target.found && !target.obstacle)
		target.obstacle = session_obstacle();

	if (!target.found || !can_tell(own, target.obstacle))
		return false;
	if (target.obstacle)
		notices_post(&kymo_runtime.background, SPOOL_NOTICE_NOT_FOLLOWED,
			     (uint64_t)sys_getpid(), target.path, target.obstacle);
	if (own)
		notices_post(&kymo_runtime.background, SPOOL_NOTICE_EXEC, 0, target.path, NULL);
	return own;
}

static void leave(struct departure *departure, const char *path, bool by_name,
		  char *const environment[])
{
	uint64_t bit =
		signal_bit(kymo_runtime.signals.signal ? kymo_runtime.signals.signal : SIGTRAP);
	bool unwritten;

	departure->thread = NULL;
	departure->list = (struct session_list){.environment = environment};
	if (in_sandbox())
		return;
	session_list_make(&departure->list, environment);
	unwritten = kymo_runtime.state && announce(path, by_name);
	departure->thread = runtime_thread_leave();
	if (!departure->thread)
		return;
	if (!runtime_write_kept() && unwritten)
		background_flush(&kymo_runtime.background, NOTICE_TIMEOUT_NS);
	program_signals_prepare_exec(&kymo_runtime.signals);
	/* Were the source still on (no answer in time), a blocked signal would do no harm to the
	 * new image. */
	if (!departure->thread->wants_blocked && !departure->thread->armed &&
	    !departure->thread->overflow_armed)
		kernel_sigmask(SIG_UNBLOCK, &bit, NULL);
	if (kymo_runtime.spool.header)
		kymo_runtime.spool.header->state = SPOOL_STATE_EXEC;
}

/* exec failed. */
static int stay(struct departure *departure)
{
	int error = errno;

	if (departure->thread) {
		if (kymo_runtime.spool.header)
			kymo_runtime.spool.header->state = SPOOL_STATE_OPEN;
		program_signals_take_again(&kymo_runtime.signals, (void *)sampler_handler);
		runtime_thread_stay(departure->thread);
	}
	session_list_destroy(&departure->list);
	errno = error;
	return -1;
}

/* With the completed environment, or with the program's own where that is all the kernel takes. */
#define EXECUTE(path, by_name, environment, as_given, with_session)                                \
	({                                                                                         \
		struct departure departure;                                                        \
		leave(&departure, path, by_name, environment);                                     \
		if (departure.list.completed)                                                      \
			with_session;                                                              \
		if (!departure.list.completed || errno == E2BIG)                                   \
			as_given;                                                                  \
		stay(&departure);                                                                  \
	})

EXPORTED int execve(const char *path, char *const arguments[], char *const environment[])
{
	return EXECUTE(path, false, environment, REAL(execve)(path, arguments, environment),
		       REAL(execve)(path, arguments, departure.list.environment));
}

EXPORTED int execv(const char *path, char *const arguments[])
{
	return EXECUTE(path, false, environ, REAL(execv)(path, arguments),
		       REAL(execve)(path, arguments, departure.list.environment));
}

EXPORTED int execvp(const char *file, char *const arguments[])
{
	return EXECUTE(file, true, environ, REAL(execvp)(file, arguments),
		       REAL(execvpe)(file, arguments, departure.list.environment));
}

EXPORTED int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	return EXECUTE(file, true, environment, REAL(execvpe)(file, arguments, environment),
		       REAL(execvpe)(file, arguments, departure.list.environment));
}

EXPORTED int fexecve(int fd, char *const arguments[], char *const environment[])
{
	return EXECUTE(NULL, false, environment, REAL(fexecve)(fd, arguments, environment),
		       REAL(fexecve)(fd, arguments, departure.list.environment));
}

EXPORTED int execveat(int directory, const char *path, char *const arguments[],
		      char *const environment[], int flags)
{
	return EXECUTE(
		*path == '/' ? path : NULL, false, environment,
		REAL(execveat)(directory, path, arguments, environment, flags),
		REAL(execveat)(directory, path, arguments, departure.list.environment, flags));
}

/* The list forms: arguments are collected into an array on the stack, as libc does it. */
static size_t count_arguments(va_list list)
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

#define COLLECT(first)                                                                             \
	va_list list, counting;                                                                    \
	size_t count;                                                                              \
	va_start(list, first);                                                                     \
	va_copy(counting, list);                                                                   \
	count = count_arguments(counting);                                                         \
	va_end(counting);                                                                          \
	char *arguments[count];                                                                    \
	collect_arguments(arguments, count, first, list)

EXPORTED int execl(const char *path, const char *first, ...)
{
	COLLECT(first);
	va_end(list);
	return execv(path, arguments);
}

EXPORTED int execlp(const char *file, const char *first, ...)
{
	COLLECT(first);
	va_end(list);
	return execvp(file, arguments);
}

EXPORTED int execle(const char *path, const char *first, ...)
{
	COLLECT(first);
	char *const *environment = va_arg(list, char *const *);
	va_end(list);
	return execve(path, arguments, environment);
}
