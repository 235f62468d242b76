/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Conditions, semaphores, barriers, and the begin and end of threads in causal profiling. A wait
 * that reaches its deadline was ended by time, all others by a thread of the session.
 *
 * sem_wait is not tried first: it is a cancellation point even when it need not wait. New threads
 * are seen by libkymo's own pthread_create.
 */
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include "wrappers/causal/paced.h"

/* ---- conditions: waiting gives a lock free as well, which is paid for before ---- */

DEFINE_PACED_WAIT(int, pthread_cond_wait, true,
		  PARENTHESIZED_PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock),
		  PARENTHESIZED_ARGUMENTS(condition, lock))
DEFINE_PACED_WAIT_UNTIL(int, pthread_cond_clockwait, clock, result != ETIMEDOUT,
			PARENTHESIZED_PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock,
						 clockid_t clock, const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(condition, lock, clock, end))
DEFINE_PACED_WAIT_UNTIL(int, pthread_cond_timedwait, CLOCK_REALTIME, result != ETIMEDOUT,
			PARENTHESIZED_PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock,
						 const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(condition, lock, end))
DEFINE_PACED_WAKE(int, pthread_cond_signal, PARENTHESIZED_PARAMETERS(pthread_cond_t *condition),
		  PARENTHESIZED_ARGUMENTS(condition))
DEFINE_PACED_WAKE(int, pthread_cond_broadcast, PARENTHESIZED_PARAMETERS(pthread_cond_t *condition),
		  PARENTHESIZED_ARGUMENTS(condition))
DEFINE_PACED_WAIT(int, cnd_wait, true, PARENTHESIZED_PARAMETERS(cnd_t *condition, mtx_t *lock),
		  PARENTHESIZED_ARGUMENTS(condition, lock))
DEFINE_PACED_WAIT_UNTIL(int, cnd_timedwait, CLOCK_REALTIME, result != thrd_timedout,
			PARENTHESIZED_PARAMETERS(cnd_t *condition, mtx_t *lock,
						 const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(condition, lock, end))
DEFINE_PACED_WAKE(int, cnd_signal, PARENTHESIZED_PARAMETERS(cnd_t *condition),
		  PARENTHESIZED_ARGUMENTS(condition))
DEFINE_PACED_WAKE(int, cnd_broadcast, PARENTHESIZED_PARAMETERS(cnd_t *condition),
		  PARENTHESIZED_ARGUMENTS(condition))

/* ---- semaphores: a signal handler may end the wait ---- */

DEFINE_PACED_WAIT(int, sem_wait, !result, PARENTHESIZED_PARAMETERS(sem_t *semaphore),
		  PARENTHESIZED_ARGUMENTS(semaphore))
DEFINE_PACED_WAIT_UNTIL(int, sem_timedwait, CLOCK_REALTIME, !result,
			PARENTHESIZED_PARAMETERS(sem_t *semaphore, const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(semaphore, end))
DEFINE_PACED_WAIT_UNTIL(int, sem_clockwait, clock, !result,
			PARENTHESIZED_PARAMETERS(sem_t *semaphore, clockid_t clock,
						 const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(semaphore, clock, end))
DEFINE_PACED_WAKE(int, sem_post, PARENTHESIZED_PARAMETERS(sem_t *semaphore),
		  PARENTHESIZED_ARGUMENTS(semaphore))

/* ---- barriers: the last one wakes the others ---- */

DEFINE_PACED_WAIT(int, pthread_barrier_wait, true,
		  PARENTHESIZED_PARAMETERS(pthread_barrier_t *barrier),
		  PARENTHESIZED_ARGUMENTS(barrier))

/* ---- threads ---- */

DEFINE_PACED_WAIT(int, pthread_join, true, PARENTHESIZED_PARAMETERS(pthread_t id, void **ret),
		  PARENTHESIZED_ARGUMENTS(id, ret))
DEFINE_PACED_WAIT_UNTIL(int, pthread_timedjoin_np, CLOCK_REALTIME, !result,
			PARENTHESIZED_PARAMETERS(pthread_t id, void **ret,
						 const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(id, ret, end))
DEFINE_PACED_WAIT_UNTIL(int, pthread_clockjoin_np, clock, !result,
			PARENTHESIZED_PARAMETERS(pthread_t id, void **ret, clockid_t clock,
						 const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(id, ret, clock, end))
DEFINE_PACED_WAIT(int, thrd_join, true, PARENTHESIZED_PARAMETERS(thrd_t id, int *ret),
		  PARENTHESIZED_ARGUMENTS(id, ret))
DEFINE_PACED_WAKE(int, pthread_cancel, PARENTHESIZED_PARAMETERS(pthread_t id),
		  PARENTHESIZED_ARGUMENTS(id))

int causal_add_condition_wrappers(void)
{
	static struct got_wrapper rows[] = {PACED_TABLE_ROW(pthread_cond_wait),
					    PACED_TABLE_ROW(pthread_cond_timedwait),
					    PACED_TABLE_ROW(pthread_cond_clockwait),
					    PACED_TABLE_ROW(pthread_cond_signal),
					    PACED_TABLE_ROW(pthread_cond_broadcast),
					    PACED_TABLE_ROW(cnd_wait),
					    PACED_TABLE_ROW(cnd_timedwait),
					    PACED_TABLE_ROW(cnd_signal),
					    PACED_TABLE_ROW(cnd_broadcast),
					    PACED_TABLE_ROW(sem_wait),
					    PACED_TABLE_ROW(sem_timedwait),
					    PACED_TABLE_ROW(sem_clockwait),
					    PACED_TABLE_ROW(sem_post),
					    PACED_TABLE_ROW(pthread_barrier_wait),
					    PACED_TABLE_ROW(pthread_join),
					    PACED_TABLE_ROW(pthread_timedjoin_np),
					    PACED_TABLE_ROW(pthread_clockjoin_np),
					    PACED_TABLE_ROW(thrd_join),
					    PACED_TABLE_ROW(pthread_cancel)};

	return got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));
}
