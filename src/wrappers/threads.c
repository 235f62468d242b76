/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of pthread functions: creation, joins, locks, barriers, conditions, semaphores. Each
 * call is recorded, with the address of what it is about; the time of the region is the time
 * waited.
 *
 * A lock that is free is taken without a begin and an end: it is tried first, and only when that
 * says "busy" a region is begun, so that a thread that waits for ever shows where. POSIX gives the
 * try functions the same results otherwise (pthread_mutex_trylock(3p): EAGAIN, EINVAL, EOWNERDEAD,
 * ENOTRECOVERABLE); a second lock by its owner is EBUSY when tried, and then gets the original's
 * own answer (EDEADLK, or for ever).
 */
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include "wrappers/wrapped.h"
#include "wrappers/wrappers.h"

/* A call that can wait; returns an error number. */
#define WRAPPED_WAIT(symbol, what, subject, parameters, arguments)                                 \
	WRAPPED_CALL(symbol, REGION_PTHREAD);                                                      \
	static int wrapped_##symbol parameters                                                     \
	{                                                                                          \
		region_id region = wrapped_recording(&call_##symbol);                              \
		int error;                                                                         \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		wrapped_begin(region, wrapped_address(what, (const volatile void *)(subject)));    \
		error = ORIGINAL(symbol) arguments;                                                \
		wrapped_end_error(region, error);                                                  \
		return error;                                                                      \
	}

/* A call that does not wait. */
#define WRAPPED_BRIEF(symbol, what, subject, parameters, arguments)                                \
	WRAPPED_CALL(symbol, REGION_PTHREAD);                                                      \
	static int wrapped_##symbol parameters                                                     \
	{                                                                                          \
		region_id region = wrapped_recording(&call_##symbol);                              \
		uint64_t begin;                                                                    \
		int error;                                                                         \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		begin = ticks_now();                                                               \
		error = ORIGINAL(symbol) arguments;                                                \
		wrapped_whole(region, begin,                                                       \
			      wrapped_address(what, (const volatile void *)(subject)), error);     \
		return error;                                                                      \
	}

/* A lock that is tried first. */
#define WRAPPED_LOCK(symbol, attempt, type)                                                        \
	WRAPPED_CALL(symbol, REGION_PTHREAD);                                                      \
	static int wrapped_##symbol(type *lock)                                                    \
	{                                                                                          \
		region_id region = wrapped_recording(&call_##symbol);                              \
		uint64_t begin;                                                                    \
		int error = EBUSY;                                                                 \
		if (!region)                                                                       \
			return ORIGINAL(symbol)(lock);                                             \
		begin = ticks_now();                                                               \
		if (ORIGINAL(attempt))                                                             \
			error = ORIGINAL(attempt)(lock);                                           \
		if (error != EBUSY) {                                                              \
			wrapped_whole(region, begin, wrapped_address("lock", lock), error);        \
			return error;                                                              \
		}                                                                                  \
		wrapped_begin(region, wrapped_address("lock", lock));                              \
		error = ORIGINAL(symbol)(lock);                                                    \
		wrapped_end_error(region, error);                                                  \
		return error;                                                                      \
	}

/* ---- threads ---- */

WRAPPED_WAIT(pthread_create, "start", function,
	     PARAMETERS(pthread_t *id, const pthread_attr_t *attributes, void *(*function)(void *),
			void *argument),
	     ARGUMENTS(id, attributes, function, argument))
WRAPPED_WAIT(thrd_create, "start", function,
	     PARAMETERS(thrd_t *id, thrd_start_t function, void *argument),
	     ARGUMENTS(id, function, argument))
WRAPPED_WAIT(pthread_join, "thread", id, PARAMETERS(pthread_t id, void **ret), ARGUMENTS(id, ret))
WRAPPED_WAIT(pthread_timedjoin_np, "thread", id,
	     PARAMETERS(pthread_t id, void **ret, const struct timespec *end),
	     ARGUMENTS(id, ret, end))
WRAPPED_WAIT(pthread_clockjoin_np, "thread", id,
	     PARAMETERS(pthread_t id, void **ret, clockid_t clock, const struct timespec *end),
	     ARGUMENTS(id, ret, clock, end))
WRAPPED_BRIEF(pthread_tryjoin_np, "thread", id, PARAMETERS(pthread_t id, void **ret),
	      ARGUMENTS(id, ret))
WRAPPED_WAIT(thrd_join, "thread", id, PARAMETERS(thrd_t id, int *ret), ARGUMENTS(id, ret))

/* ---- mutexes ---- */

WRAPPED_BRIEF(pthread_mutex_trylock, "lock", lock, PARAMETERS(pthread_mutex_t *lock),
	      ARGUMENTS(lock))
WRAPPED_LOCK(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t)
WRAPPED_WAIT(pthread_mutex_timedlock, "lock", lock,
	     PARAMETERS(pthread_mutex_t *lock, const struct timespec *end), ARGUMENTS(lock, end))
WRAPPED_WAIT(pthread_mutex_clocklock, "lock", lock,
	     PARAMETERS(pthread_mutex_t *lock, clockid_t clock, const struct timespec *end),
	     ARGUMENTS(lock, clock, end))
WRAPPED_BRIEF(pthread_mutex_unlock, "lock", lock, PARAMETERS(pthread_mutex_t *lock),
	      ARGUMENTS(lock))
WRAPPED_WAIT(mtx_lock, "lock", lock, PARAMETERS(mtx_t *lock), ARGUMENTS(lock))
WRAPPED_WAIT(mtx_timedlock, "lock", lock, PARAMETERS(mtx_t *lock, const struct timespec *end),
	     ARGUMENTS(lock, end))
WRAPPED_BRIEF(mtx_trylock, "lock", lock, PARAMETERS(mtx_t *lock), ARGUMENTS(lock))
WRAPPED_BRIEF(mtx_unlock, "lock", lock, PARAMETERS(mtx_t *lock), ARGUMENTS(lock))

/* ---- read-write locks ---- */

WRAPPED_BRIEF(pthread_rwlock_tryrdlock, "lock", lock, PARAMETERS(pthread_rwlock_t *lock),
	      ARGUMENTS(lock))
WRAPPED_BRIEF(pthread_rwlock_trywrlock, "lock", lock, PARAMETERS(pthread_rwlock_t *lock),
	      ARGUMENTS(lock))
WRAPPED_LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t)
WRAPPED_LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t)
WRAPPED_WAIT(pthread_rwlock_timedrdlock, "lock", lock,
	     PARAMETERS(pthread_rwlock_t *lock, const struct timespec *end), ARGUMENTS(lock, end))
WRAPPED_WAIT(pthread_rwlock_timedwrlock, "lock", lock,
	     PARAMETERS(pthread_rwlock_t *lock, const struct timespec *end), ARGUMENTS(lock, end))
WRAPPED_WAIT(pthread_rwlock_clockrdlock, "lock", lock,
	     PARAMETERS(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *end),
	     ARGUMENTS(lock, clock, end))
WRAPPED_WAIT(pthread_rwlock_clockwrlock, "lock", lock,
	     PARAMETERS(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *end),
	     ARGUMENTS(lock, clock, end))
WRAPPED_BRIEF(pthread_rwlock_unlock, "lock", lock, PARAMETERS(pthread_rwlock_t *lock),
	      ARGUMENTS(lock))

/* ---- spin locks and barriers ---- */

WRAPPED_BRIEF(pthread_spin_trylock, "lock", lock, PARAMETERS(pthread_spinlock_t *lock),
	      ARGUMENTS(lock))
WRAPPED_LOCK(pthread_spin_lock, pthread_spin_trylock, pthread_spinlock_t)
WRAPPED_BRIEF(pthread_spin_unlock, "lock", lock, PARAMETERS(pthread_spinlock_t *lock),
	      ARGUMENTS(lock))

WRAPPED_CALL(pthread_barrier_wait, REGION_PTHREAD);
static int wrapped_pthread_barrier_wait(pthread_barrier_t *barrier)
{
	region_id region = wrapped_recording(&call_pthread_barrier_wait);
	int error;

	if (!region)
		return ORIGINAL(pthread_barrier_wait)(barrier);
	wrapped_begin(region, wrapped_address("barrier", barrier));
	error = ORIGINAL(pthread_barrier_wait)(barrier);
	wrapped_end_error(region, error == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : error);
	return error;
}

/* ---- conditions and semaphores ---- */

WRAPPED_WAIT(pthread_cond_wait, "condition", condition,
	     PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock),
	     ARGUMENTS(condition, lock))
WRAPPED_WAIT(pthread_cond_timedwait, "condition", condition,
	     PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock,
			const struct timespec *end),
	     ARGUMENTS(condition, lock, end))
WRAPPED_WAIT(pthread_cond_clockwait, "condition", condition,
	     PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock, clockid_t clock,
			const struct timespec *end),
	     ARGUMENTS(condition, lock, clock, end))
WRAPPED_BRIEF(pthread_cond_signal, "condition", condition, PARAMETERS(pthread_cond_t *condition),
	      ARGUMENTS(condition))
WRAPPED_BRIEF(pthread_cond_broadcast, "condition", condition, PARAMETERS(pthread_cond_t *condition),
	      ARGUMENTS(condition))
WRAPPED_WAIT(cnd_wait, "condition", condition, PARAMETERS(cnd_t *condition, mtx_t *lock),
	     ARGUMENTS(condition, lock))
WRAPPED_WAIT(cnd_timedwait, "condition", condition,
	     PARAMETERS(cnd_t *condition, mtx_t *lock, const struct timespec *end),
	     ARGUMENTS(condition, lock, end))

/* Semaphores say what went wrong in errno. sem_wait is not tried first: it is a cancellation point
 * even when it need not wait, sem_trywait is none. */
#define WRAPPED_SEMAPHORE(symbol, parameters, arguments)                                           \
	WRAPPED_CALL(symbol, REGION_PTHREAD);                                                      \
	static int wrapped_##symbol parameters                                                     \
	{                                                                                          \
		region_id region = wrapped_recording(&call_##symbol);                              \
		int result;                                                                        \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		wrapped_begin(region, wrapped_address("semaphore", semaphore));                    \
		result = ORIGINAL(symbol) arguments;                                               \
		wrapped_end_error(region, result ? errno : 0);                                     \
		return result;                                                                     \
	}

WRAPPED_SEMAPHORE(sem_wait, PARAMETERS(sem_t *semaphore), ARGUMENTS(semaphore))
WRAPPED_SEMAPHORE(sem_trywait, PARAMETERS(sem_t *semaphore), ARGUMENTS(semaphore))
WRAPPED_SEMAPHORE(sem_timedwait, PARAMETERS(sem_t *semaphore, const struct timespec *end),
		  ARGUMENTS(semaphore, end))
WRAPPED_SEMAPHORE(sem_clockwait,
		  PARAMETERS(sem_t *semaphore, clockid_t clock, const struct timespec *end),
		  ARGUMENTS(semaphore, clock, end))
WRAPPED_SEMAPHORE(sem_post, PARAMETERS(sem_t *semaphore), ARGUMENTS(semaphore))

static struct got_wrapper creation[] = {WRAPPED_ROW(pthread_create), WRAPPED_ROW(thrd_create)};
static struct got_wrapper joins[] = {WRAPPED_ROW(pthread_join), WRAPPED_ROW(pthread_timedjoin_np),
				     WRAPPED_ROW(pthread_clockjoin_np),
				     WRAPPED_ROW(pthread_tryjoin_np), WRAPPED_ROW(thrd_join)};
static struct got_wrapper locks[] = {WRAPPED_ROW(pthread_mutex_lock),
				     WRAPPED_ROW(pthread_mutex_trylock),
				     WRAPPED_ROW(pthread_mutex_timedlock),
				     WRAPPED_ROW(pthread_mutex_clocklock),
				     WRAPPED_ROW(pthread_mutex_unlock),
				     WRAPPED_ROW(mtx_lock),
				     WRAPPED_ROW(mtx_timedlock),
				     WRAPPED_ROW(mtx_trylock),
				     WRAPPED_ROW(mtx_unlock)};
static struct got_wrapper rw_locks[] = {
	WRAPPED_ROW(pthread_rwlock_rdlock),      WRAPPED_ROW(pthread_rwlock_wrlock),
	WRAPPED_ROW(pthread_rwlock_tryrdlock),   WRAPPED_ROW(pthread_rwlock_trywrlock),
	WRAPPED_ROW(pthread_rwlock_timedrdlock), WRAPPED_ROW(pthread_rwlock_timedwrlock),
	WRAPPED_ROW(pthread_rwlock_clockrdlock), WRAPPED_ROW(pthread_rwlock_clockwrlock),
	WRAPPED_ROW(pthread_rwlock_unlock)};
static struct got_wrapper spin_locks[] = {WRAPPED_ROW(pthread_spin_lock),
					  WRAPPED_ROW(pthread_spin_trylock),
					  WRAPPED_ROW(pthread_spin_unlock)};
static struct got_wrapper barriers[] = {WRAPPED_ROW(pthread_barrier_wait)};
static struct got_wrapper conditions[] = {WRAPPED_ROW(pthread_cond_wait),
					  WRAPPED_ROW(pthread_cond_timedwait),
					  WRAPPED_ROW(pthread_cond_clockwait),
					  WRAPPED_ROW(pthread_cond_signal),
					  WRAPPED_ROW(pthread_cond_broadcast),
					  WRAPPED_ROW(cnd_wait),
					  WRAPPED_ROW(cnd_timedwait),
					  WRAPPED_ROW(sem_wait),
					  WRAPPED_ROW(sem_trywait),
					  WRAPPED_ROW(sem_timedwait),
					  WRAPPED_ROW(sem_clockwait),
					  WRAPPED_ROW(sem_post)};

#define TABLE(rows) rows, sizeof(rows) / sizeof(rows[0])

int wrappers_threads_add(const struct options_wrappers *options)
{
	const struct {
		bool on;
		struct got_wrapper *rows;
		size_t count;
	} groups[] = {
		{options->threads, TABLE(creation)},      {options->join, TABLE(joins)},
		{options->locks, TABLE(locks)},           {options->rw_locks, TABLE(rw_locks)},
		{options->spin_locks, TABLE(spin_locks)}, {options->barriers, TABLE(barriers)},
		{options->conditions, TABLE(conditions)},
	};
	int error = 0;

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]) && !error; i++) {
		if (groups[i].on)
			error = got_add(groups[i].rows, groups[i].count);
	}
	return error;
}
