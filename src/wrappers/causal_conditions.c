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

#include "wrappers/causal_paced.h"
#include "wrappers/wrappers.h"

/* ---- conditions: waiting gives a lock free as well, which is paid for before ---- */

PACED_WAIT(int, pthread_cond_wait, true,
	   PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock), ARGUMENTS(condition, lock))
PACED_WAIT_UNTIL(int, pthread_cond_clockwait, clock, result != ETIMEDOUT,
		 PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock, clockid_t clock,
			    const struct timespec *end),
		 ARGUMENTS(condition, lock, clock, end))
PACED_WAIT_UNTIL(int, pthread_cond_timedwait, CLOCK_REALTIME, result != ETIMEDOUT,
		 PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock,
			    const struct timespec *end),
		 ARGUMENTS(condition, lock, end))
PACED_WAKE(int, pthread_cond_signal, PARAMETERS(pthread_cond_t *condition), ARGUMENTS(condition))
PACED_WAKE(int, pthread_cond_broadcast, PARAMETERS(pthread_cond_t *condition), ARGUMENTS(condition))
PACED_WAIT(int, cnd_wait, true, PARAMETERS(cnd_t *condition, mtx_t *lock),
	   ARGUMENTS(condition, lock))
PACED_WAIT_UNTIL(int, cnd_timedwait, CLOCK_REALTIME, result != thrd_timedout,
		 PARAMETERS(cnd_t *condition, mtx_t *lock, const struct timespec *end),
		 ARGUMENTS(condition, lock, end))
PACED_WAKE(int, cnd_signal, PARAMETERS(cnd_t *condition), ARGUMENTS(condition))
PACED_WAKE(int, cnd_broadcast, PARAMETERS(cnd_t *condition), ARGUMENTS(condition))

/* ---- semaphores: a signal handler may end the wait ---- */

PACED_WAIT(int, sem_wait, !result, PARAMETERS(sem_t *semaphore), ARGUMENTS(semaphore))
PACED_WAIT_UNTIL(int, sem_timedwait, CLOCK_REALTIME, !result,
		 PARAMETERS(sem_t *semaphore, const struct timespec *end),
		 ARGUMENTS(semaphore, end))
PACED_WAIT_UNTIL(int, sem_clockwait, clock, !result,
		 PARAMETERS(sem_t *semaphore, clockid_t clock, const struct timespec *end),
		 ARGUMENTS(semaphore, clock, end))
PACED_WAKE(int, sem_post, PARAMETERS(sem_t *semaphore), ARGUMENTS(semaphore))

/* ---- barriers: the last one wakes the others ---- */

PACED_WAIT(int, pthread_barrier_wait, true, PARAMETERS(pthread_barrier_t *barrier),
	   ARGUMENTS(barrier))

/* ---- threads ---- */

PACED_WAIT(int, pthread_join, true, PARAMETERS(pthread_t id, void **ret), ARGUMENTS(id, ret))
PACED_WAIT_UNTIL(int, pthread_timedjoin_np, CLOCK_REALTIME, !result,
		 PARAMETERS(pthread_t id, void **ret, const struct timespec *end),
		 ARGUMENTS(id, ret, end))
PACED_WAIT_UNTIL(int, pthread_clockjoin_np, clock, !result,
		 PARAMETERS(pthread_t id, void **ret, clockid_t clock, const struct timespec *end),
		 ARGUMENTS(id, ret, clock, end))
PACED_WAIT(int, thrd_join, true, PARAMETERS(thrd_t id, int *ret), ARGUMENTS(id, ret))
PACED_WAKE(int, pthread_cancel, PARAMETERS(pthread_t id), ARGUMENTS(id))

int causal_conditions_add(void)
{
	static struct got_wrapper rows[] = {PACED_ROW(pthread_cond_wait),
					    PACED_ROW(pthread_cond_timedwait),
					    PACED_ROW(pthread_cond_clockwait),
					    PACED_ROW(pthread_cond_signal),
					    PACED_ROW(pthread_cond_broadcast),
					    PACED_ROW(cnd_wait),
					    PACED_ROW(cnd_timedwait),
					    PACED_ROW(cnd_signal),
					    PACED_ROW(cnd_broadcast),
					    PACED_ROW(sem_wait),
					    PACED_ROW(sem_timedwait),
					    PACED_ROW(sem_clockwait),
					    PACED_ROW(sem_post),
					    PACED_ROW(pthread_barrier_wait),
					    PACED_ROW(pthread_join),
					    PACED_ROW(pthread_timedjoin_np),
					    PACED_ROW(pthread_clockjoin_np),
					    PACED_ROW(thrd_join),
					    PACED_ROW(pthread_cancel)};

	return got_add(TABLE(rows));
}
