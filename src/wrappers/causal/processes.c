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
#include "wrappers/causal/descriptors.h"
#include "wrappers/causal/paced.h"

#define PID_FOR_ANY_PROCESS_GROUP 0 /* in place of the process, where it is a group of them */

/* ---- signals ---- */

/* In each wrapper for itself: CAUSAL_GET_CALL_SITE is its caller. */
__attribute__((always_inline)) static inline void pay_and_publish_wakeup_before_signal(pid_t pid)
{
	if (!causal_is_active())
		return;
	causal_pay_delay_at_site(CAUSAL_GET_CALL_SITE);
	causal_publish_wakeup_to_session(
		causal_hash_signals_to_pid(pid > 0 ? (uint32_t)pid : PID_FOR_ANY_PROCESS_GROUP));
}

static pid_t get_current_process_id(void)
{
	return (pid_t)kymo_process.pid;
}

#define DEFINE_PACED_SIGNAL(symbol, pid, parameters, arguments)                                    \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static int paced_##symbol parameters                                                       \
	{                                                                                          \
		pay_and_publish_wakeup_before_signal(pid);                                         \
		return ORIGINAL(symbol) arguments;                                                 \
	}

DEFINE_PACED_SIGNAL(kill, pid, (pid_t pid, int number), (pid, number))
DEFINE_PACED_SIGNAL(killpg, PID_FOR_ANY_PROCESS_GROUP, (pid_t group, int number), (group, number))
DEFINE_PACED_SIGNAL(sigqueue, pid, (pid_t pid, int number, const union sigval value),
		    (pid, number, value))
DEFINE_PACED_SIGNAL(tgkill, pid, (pid_t pid, pid_t tid, int number), (pid, tid, number))
DEFINE_PACED_SIGNAL(pthread_kill, get_current_process_id(), (pthread_t id, int number),
		    (id, number))
DEFINE_PACED_SIGNAL(pthread_sigqueue, get_current_process_id(),
		    (pthread_t id, int number, const union sigval value), (id, number, value))

static bool wait_was_ended_by_session_signal(const struct causal_wait_state *wait)
{
	return causal_wait_was_ended_by_hash(causal_hash_signals_to_pid(kymo_process.pid), wait) ||
	       causal_wait_was_ended_by_hash(causal_hash_signals_to_pid(PID_FOR_ANY_PROCESS_GROUP),
					     wait);
}

DEFINE_PACED_WAIT(int, sigwait, wait_was_ended_by_session_signal(&waited),
		  (const sigset_t *set, int *ret), (set, ret))
DEFINE_PACED_WAIT(int, sigwaitinfo, wait_was_ended_by_session_signal(&waited),
		  (const sigset_t *set, siginfo_t *ret), (set, ret))
DEFINE_PACED_WAIT(int, sigtimedwait, result > 0 && wait_was_ended_by_session_signal(&waited),
		  (const sigset_t *set, siginfo_t *ret, const struct timespec *timeout),
		  (set, ret, timeout))
DEFINE_PACED_WAIT(int, sigsuspend, wait_was_ended_by_session_signal(&waited),
		  (const sigset_t *mask), (mask))
DEFINE_PACED_WAIT(int, pause, wait_was_ended_by_session_signal(&waited), (void), ())

/* ---- children: they begin when their parent has paid ---- */

DEFINE_PACED_WAKE(pid_t, fork, (void), ())
DEFINE_PACED_WAKE(pid_t, _Fork, (void), ())
DEFINE_PACED_WAKE(int, posix_spawn,
		  (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
		   const posix_spawnattr_t *attributes, char *const arguments[],
		   char *const environment[]),
		  (pid, path, actions, attributes, arguments, environment))
DEFINE_PACED_WAKE(int, posix_spawnp,
		  (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
		   const posix_spawnattr_t *attributes, char *const arguments[],
		   char *const environment[]),
		  (pid, path, actions, attributes, arguments, environment))
DEFINE_PACED_WAKE(FILE *, popen, (const char *command, const char *mode), (command, mode))

DEFINE_PACED_WAIT(int, system, result != -1, (const char *command), (command))
DEFINE_PACED_WAIT(int, pclose, result != -1, (FILE * stream), (stream))
DEFINE_PACED_WAIT(pid_t, wait, result > 0, (int *status), (status))
DEFINE_PACED_WAIT(pid_t, waitpid, result > 0, (pid_t pid, int *status, int options),
		  (pid, status, options))
DEFINE_PACED_WAIT(pid_t, wait3, result > 0, (int *status, int options, struct rusage *usage),
		  (status, options, usage))
DEFINE_PACED_WAIT(pid_t, wait4, result > 0,
		  (pid_t pid, int *status, int options, struct rusage *usage),
		  (pid, status, options, usage))
DEFINE_PACED_WAIT(int, waitid, !result,
		  (idtype_t type, id_t id, siginfo_t *information, int options),
		  (type, id, information, options))

/* ---- ends: of the process, which its parent may wait for, and of threads, which are joined ----
 */

static void pay_and_publish_wakeup_before_end(void)
{
	if (causal_is_active())
		pay_and_publish_wakeup_before_signal((pid_t)sys_call0(SYS_getppid));
}

#define DEFINE_PACED_EXIT(symbol)                                                                  \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	__attribute__((noreturn)) static void paced_##symbol(int status)                           \
	{                                                                                          \
		pay_and_publish_wakeup_before_end();                                               \
		ORIGINAL(symbol)(status);                                                          \
		__builtin_unreachable();                                                           \
	}

DEFINE_PACED_EXIT(exit)
DEFINE_PACED_EXIT(_exit)
DEFINE_PACED_EXIT(_Exit)
DEFINE_PACED_EXIT(quick_exit)

int causal_add_process_wrappers(void)
{
	static struct got_wrapper rows[] = {
		PACED_TABLE_ROW(kill),         PACED_TABLE_ROW(killpg),
		PACED_TABLE_ROW(sigqueue),     PACED_TABLE_ROW(pthread_kill),
		PACED_TABLE_ROW(tgkill),       PACED_TABLE_ROW(pthread_sigqueue),
		PACED_TABLE_ROW(sigwait),      PACED_TABLE_ROW(sigwaitinfo),
		PACED_TABLE_ROW(sigtimedwait), PACED_TABLE_ROW(sigsuspend),
		PACED_TABLE_ROW(pause),        PACED_TABLE_ROW(fork),
		PACED_TABLE_ROW(_Fork),        PACED_TABLE_ROW(posix_spawn),
		PACED_TABLE_ROW(posix_spawnp), PACED_TABLE_ROW(popen),
		PACED_TABLE_ROW(system),       PACED_TABLE_ROW(pclose),
		PACED_TABLE_ROW(wait),         PACED_TABLE_ROW(waitpid),
		PACED_TABLE_ROW(wait3),        PACED_TABLE_ROW(wait4),
		PACED_TABLE_ROW(waitid),       PACED_TABLE_ROW(exit),
		PACED_TABLE_ROW(_exit),        PACED_TABLE_ROW(_Exit),
		PACED_TABLE_ROW(quick_exit)};

	return got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));
}
