/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Signals and processes in causal profiling. Who sends a signal marks the process that gets it; a
 * wait for a signal was ended by the session if it was marked meanwhile. Children are of the
 * session, so waiting for one is waiting for the session.
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/syscalls.h"
#include "wrappers/causal_descriptors.h"
#include "wrappers/causal_paced.h"

#define GROUPS 0 /* in place of the process, where it is a group of them */

/* ---- signals ---- */

/* In each wrapper for itself: CAUSAL_SITE is its caller. */
__attribute__((always_inline)) static inline void before_signal(pid_t pid)
{
	if (!causal_on())
		return;
	causal_pay_at(CAUSAL_SITE);
	causal_mark(causal_signal_hash(pid > 0 ? (uint32_t)pid : GROUPS));
}

static pid_t own(void)
{
	return (pid_t)kymo_runtime.pid;
}

#define PACED_SIGNAL(symbol, pid, parameters, arguments)                                           \
	PACED_ORIGINAL(symbol);                                                                    \
	static int paced_##symbol parameters                                                       \
	{                                                                                          \
		before_signal(pid);                                                                \
		return ORIGINAL(symbol) arguments;                                                 \
	}

PACED_SIGNAL(kill, pid, (pid_t pid, int number), (pid, number))
PACED_SIGNAL(killpg, GROUPS, (pid_t group, int number), (group, number))
PACED_SIGNAL(sigqueue, pid, (pid_t pid, int number, const union sigval value), (pid, number, value))
PACED_SIGNAL(tgkill, pid, (pid_t pid, pid_t tid, int number), (pid, tid, number))
PACED_SIGNAL(pthread_kill, own(), (pthread_t id, int number), (id, number))
PACED_SIGNAL(pthread_sigqueue, own(), (pthread_t id, int number, const union sigval value),
	     (id, number, value))

static bool signalled(const struct causal_wait *wait)
{
	return causal_ended_by(causal_signal_hash(kymo_runtime.pid), wait) ||
	       causal_ended_by(causal_signal_hash(GROUPS), wait);
}

PACED_WAIT(int, sigwait, signalled(&waited), (const sigset_t *set, int *ret), (set, ret))
PACED_WAIT(int, sigwaitinfo, signalled(&waited), (const sigset_t *set, siginfo_t *ret), (set, ret))
PACED_WAIT(int, sigtimedwait, result > 0 && signalled(&waited),
	   (const sigset_t *set, siginfo_t *ret, const struct timespec *timeout),
	   (set, ret, timeout))
PACED_WAIT(int, sigsuspend, signalled(&waited), (const sigset_t *mask), (mask))
PACED_WAIT(int, pause, signalled(&waited), (void), ())

/* ---- children: they begin when their parent has paid ---- */

PACED_WAKE(pid_t, fork, (void), ())
PACED_WAKE(pid_t, _Fork, (void), ())
PACED_WAKE(int, posix_spawn,
	   (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
	    const posix_spawnattr_t *attributes, char *const arguments[],
	    char *const environment[]),
	   (pid, path, actions, attributes, arguments, environment))
PACED_WAKE(int, posix_spawnp,
	   (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
	    const posix_spawnattr_t *attributes, char *const arguments[],
	    char *const environment[]),
	   (pid, path, actions, attributes, arguments, environment))
PACED_WAKE(FILE *, popen, (const char *command, const char *mode), (command, mode))

PACED_WAIT(int, system, result != -1, (const char *command), (command))
PACED_WAIT(int, pclose, result != -1, (FILE * stream), (stream))
PACED_WAIT(pid_t, wait, result > 0, (int *status), (status))
PACED_WAIT(pid_t, waitpid, result > 0, (pid_t pid, int *status, int options),
	   (pid, status, options))
PACED_WAIT(pid_t, wait3, result > 0, (int *status, int options, struct rusage *usage),
	   (status, options, usage))
PACED_WAIT(pid_t, wait4, result > 0, (pid_t pid, int *status, int options, struct rusage *usage),
	   (pid, status, options, usage))
PACED_WAIT(int, waitid, !result, (idtype_t type, id_t id, siginfo_t *information, int options),
	   (type, id, information, options))

/* ---- ends: of the process, which its parent may wait for, and of threads, which are joined ----
 */

static void before_end(void)
{
	if (causal_on())
		before_signal((pid_t)sys_call0(SYS_getppid));
}

#define PACED_END(symbol)                                                                          \
	PACED_ORIGINAL(symbol);                                                                    \
	__attribute__((noreturn)) static void paced_##symbol(int status)                           \
	{                                                                                          \
		before_end();                                                                      \
		ORIGINAL(symbol)(status);                                                          \
		__builtin_unreachable();                                                           \
	}

PACED_END(exit)
PACED_END(_exit)
PACED_END(_Exit)
PACED_END(quick_exit)

int causal_processes_add(void)
{
	static struct got_wrapper rows[] = {
		PACED_ROW(kill),         PACED_ROW(killpg),      PACED_ROW(sigqueue),
		PACED_ROW(pthread_kill), PACED_ROW(tgkill),      PACED_ROW(pthread_sigqueue),
		PACED_ROW(sigwait),      PACED_ROW(sigwaitinfo), PACED_ROW(sigtimedwait),
		PACED_ROW(sigsuspend),   PACED_ROW(pause),       PACED_ROW(fork),
		PACED_ROW(_Fork),        PACED_ROW(posix_spawn), PACED_ROW(posix_spawnp),
		PACED_ROW(popen),        PACED_ROW(system),      PACED_ROW(pclose),
		PACED_ROW(wait),         PACED_ROW(waitpid),     PACED_ROW(wait3),
		PACED_ROW(wait4),        PACED_ROW(waitid),      PACED_ROW(exit),
		PACED_ROW(_exit),        PACED_ROW(_Exit),       PACED_ROW(quick_exit)};

	return got_add(TABLE(rows));
}
