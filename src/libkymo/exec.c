/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of exec. A sampling signal that is pending when the image is replaced kills the new
 * program (default action of SIGTRAP; disposition of handled signals is reset by exec, pending
 * signals stay: execve(2)). So the thread's source is stopped, what is pending is taken, and the
 * program's own mask and disposition are put in place.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/runtime.h"
#include "core/sampler.h"
#include "libkymo/real.h"

static struct thread *leave(void)
{
	struct thread *thread = runtime_thread_leave();
	uint64_t bit =
		signal_bit(kymo_runtime.signals.signal ? kymo_runtime.signals.signal : SIGTRAP);

	if (!thread)
		return NULL;
	program_signals_prepare_exec(&kymo_runtime.signals);
	/* Were the source still on (no answer in time), a blocked signal would do no harm to the
	 * new image. */
	if (!thread->wants_blocked && !thread->armed && !thread->overflow_armed)
		kernel_sigmask(SIG_UNBLOCK, &bit, NULL);
	if (kymo_runtime.spool.header)
		kymo_runtime.spool.header->state = SPOOL_STATE_EXEC;
	return thread;
}

/* exec failed. */
static int stay(struct thread *thread, int result)
{
	int error = errno;

	if (thread) {
		if (kymo_runtime.spool.header)
			kymo_runtime.spool.header->state = SPOOL_STATE_OPEN;
		program_signals_take_again(&kymo_runtime.signals, (void *)sampler_handler);
		runtime_thread_stay(thread);
	}
	errno = error;
	return result;
}

EXPORTED int execve(const char *path, char *const arguments[], char *const environment[])
{
	struct thread *thread = leave();

	return stay(thread, REAL(execve)(path, arguments, environment));
}

EXPORTED int execv(const char *path, char *const arguments[])
{
	struct thread *thread = leave();

	return stay(thread, REAL(execv)(path, arguments));
}

EXPORTED int execvp(const char *file, char *const arguments[])
{
	struct thread *thread = leave();

	return stay(thread, REAL(execvp)(file, arguments));
}

EXPORTED int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	struct thread *thread = leave();

	return stay(thread, REAL(execvpe)(file, arguments, environment));
}

EXPORTED int fexecve(int fd, char *const arguments[], char *const environment[])
{
	struct thread *thread = leave();

	return stay(thread, REAL(fexecve)(fd, arguments, environment));
}

EXPORTED int execveat(int directory, const char *path, char *const arguments[],
		      char *const environment[], int flags)
{
	struct thread *thread = leave();

	return stay(thread, REAL(execveat)(directory, path, arguments, environment, flags));
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
