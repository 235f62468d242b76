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

#include "common/array.h"
#include "wrappers/wrapped.h"
#include "wrappers/wrappers.h"

/* A call that can wait; returns an error number. */
#define DEFINE_WAIT_WRAPPER(symbol, what, subject, parameters, arguments)                          \
	DEFINE_WRAPPED_FUNCTION_STATE(symbol, REGION_PTHREAD);                                     \
	static int wrapped_##symbol parameters                                                     \
	{                                                                                          \
		region_id region = wrapped_get_region_if_recording(&call_##symbol);                \
		int error;                                                                         \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		wrapped_begin_region(                                                              \
			region, wrapped_address_to_value(what, (const volatile void *)(subject))); \
		error = ORIGINAL(symbol) arguments;                                                \
		wrapped_end_region_with_error(region, error);                                      \
		return error;                                                                      \
	}

/* A call that does not wait. */
#define DEFINE_NONWAITING_WRAPPER(symbol, what, subject, parameters, arguments)                    \
	DEFINE_WRAPPED_FUNCTION_STATE(symbol, REGION_PTHREAD);                                     \
	static int wrapped_##symbol parameters                                                     \
	{                                                                                          \
		region_id region = wrapped_get_region_if_recording(&call_##symbol);                \
		uint64_t begin;                                                                    \
		int error;                                                                         \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		begin = ticks_now();                                                               \
		error = ORIGINAL(symbol) arguments;                                                \
		wrapped_record_whole_call(                                                         \
			region, begin,                                                             \
			wrapped_address_to_value(what, (const volatile void *)(subject)), error);  \
		return error;                                                                      \
	}

/* A lock that is tried first. */
#define DEFINE_LOCK_WRAPPER(symbol, attempt, type)                                                 \
	DEFINE_WRAPPED_FUNCTION_STATE(symbol, REGION_PTHREAD);                                     \
	static int wrapped_##symbol(type *lock)                                                    \
	{                                                                                          \
		region_id region = wrapped_get_region_if_recording(&call_##symbol);                \
		uint64_t begin;                                                                    \
		int error = EBUSY;                                                                 \
		if (!region)                                                                       \
			return ORIGINAL(symbol)(lock);                                             \
		begin = ticks_now();                                                               \
		if (ORIGINAL(attempt))                                                             \
			error = ORIGINAL(attempt)(lock);                                           \
		if (error != EBUSY) {                                                              \
			wrapped_record_whole_call(region, begin,                                   \
						  wrapped_address_to_value("lock", lock), error);  \
			return error;                                                              \
		}                                                                                  \
		wrapped_begin_region(region, wrapped_address_to_value("lock", lock));              \
		error = ORIGINAL(symbol)(lock);                                                    \
		wrapped_end_region_with_error(region, error);                                      \
		return error;                                                                      \
	}

/* ---- threads ---- */

DEFINE_WAIT_WRAPPER(pthread_create, "start", function,
		    PARENTHESIZED_PARAMETERS(pthread_t *id, const pthread_attr_t *attributes,
					     void *(*function)(void *), void *argument),
		    PARENTHESIZED_ARGUMENTS(id, attributes, function, argument))
DEFINE_WAIT_WRAPPER(thrd_create, "start", function,
		    PARENTHESIZED_PARAMETERS(thrd_t *id, thrd_start_t function, void *argument),
		    PARENTHESIZED_ARGUMENTS(id, function, argument))
DEFINE_WAIT_WRAPPER(pthread_join, "thread", id, PARENTHESIZED_PARAMETERS(pthread_t id, void **ret),
		    PARENTHESIZED_ARGUMENTS(id, ret))
DEFINE_WAIT_WRAPPER(pthread_timedjoin_np, "thread", id,
		    PARENTHESIZED_PARAMETERS(pthread_t id, void **ret, const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(id, ret, end))
DEFINE_WAIT_WRAPPER(pthread_clockjoin_np, "thread", id,
		    PARENTHESIZED_PARAMETERS(pthread_t id, void **ret, clockid_t clock,
					     const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(id, ret, clock, end))
DEFINE_NONWAITING_WRAPPER(pthread_tryjoin_np, "thread", id,
			  PARENTHESIZED_PARAMETERS(pthread_t id, void **ret),
			  PARENTHESIZED_ARGUMENTS(id, ret))
DEFINE_WAIT_WRAPPER(thrd_join, "thread", id, PARENTHESIZED_PARAMETERS(thrd_t id, int *ret),
		    PARENTHESIZED_ARGUMENTS(id, ret))

/* ---- mutexes ---- */

DEFINE_NONWAITING_WRAPPER(pthread_mutex_trylock, "lock", lock,
			  PARENTHESIZED_PARAMETERS(pthread_mutex_t *lock),
			  PARENTHESIZED_ARGUMENTS(lock))
DEFINE_LOCK_WRAPPER(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t)
DEFINE_WAIT_WRAPPER(pthread_mutex_timedlock, "lock", lock,
		    PARENTHESIZED_PARAMETERS(pthread_mutex_t *lock, const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(lock, end))
DEFINE_WAIT_WRAPPER(pthread_mutex_clocklock, "lock", lock,
		    PARENTHESIZED_PARAMETERS(pthread_mutex_t *lock, clockid_t clock,
					     const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(lock, clock, end))
DEFINE_NONWAITING_WRAPPER(pthread_mutex_unlock, "lock", lock,
			  PARENTHESIZED_PARAMETERS(pthread_mutex_t *lock),
			  PARENTHESIZED_ARGUMENTS(lock))
DEFINE_WAIT_WRAPPER(mtx_lock, "lock", lock, PARENTHESIZED_PARAMETERS(mtx_t *lock),
		    PARENTHESIZED_ARGUMENTS(lock))
DEFINE_WAIT_WRAPPER(mtx_timedlock, "lock", lock,
		    PARENTHESIZED_PARAMETERS(mtx_t *lock, const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(lock, end))
DEFINE_NONWAITING_WRAPPER(mtx_trylock, "lock", lock, PARENTHESIZED_PARAMETERS(mtx_t *lock),
			  PARENTHESIZED_ARGUMENTS(lock))
DEFINE_NONWAITING_WRAPPER(mtx_unlock, "lock", lock, PARENTHESIZED_PARAMETERS(mtx_t *lock),
			  PARENTHESIZED_ARGUMENTS(lock))

/* ---- read-write locks ---- */

DEFINE_NONWAITING_WRAPPER(pthread_rwlock_tryrdlock, "lock", lock,
			  PARENTHESIZED_PARAMETERS(pthread_rwlock_t *lock),
			  PARENTHESIZED_ARGUMENTS(lock))
DEFINE_NONWAITING_WRAPPER(pthread_rwlock_trywrlock, "lock", lock,
			  PARENTHESIZED_PARAMETERS(pthread_rwlock_t *lock),
			  PARENTHESIZED_ARGUMENTS(lock))
DEFINE_LOCK_WRAPPER(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t)
DEFINE_LOCK_WRAPPER(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t)
DEFINE_WAIT_WRAPPER(pthread_rwlock_timedrdlock, "lock", lock,
		    PARENTHESIZED_PARAMETERS(pthread_rwlock_t *lock, const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(lock, end))
DEFINE_WAIT_WRAPPER(pthread_rwlock_timedwrlock, "lock", lock,
		    PARENTHESIZED_PARAMETERS(pthread_rwlock_t *lock, const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(lock, end))
DEFINE_WAIT_WRAPPER(pthread_rwlock_clockrdlock, "lock", lock,
		    PARENTHESIZED_PARAMETERS(pthread_rwlock_t *lock, clockid_t clock,
					     const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(lock, clock, end))
DEFINE_WAIT_WRAPPER(pthread_rwlock_clockwrlock, "lock", lock,
		    PARENTHESIZED_PARAMETERS(pthread_rwlock_t *lock, clockid_t clock,
					     const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(lock, clock, end))
DEFINE_NONWAITING_WRAPPER(pthread_rwlock_unlock, "lock", lock,
			  PARENTHESIZED_PARAMETERS(pthread_rwlock_t *lock),
			  PARENTHESIZED_ARGUMENTS(lock))

/* ---- spin locks and barriers ---- */

DEFINE_NONWAITING_WRAPPER(pthread_spin_trylock, "lock", lock,
			  PARENTHESIZED_PARAMETERS(pthread_spinlock_t *lock),
			  PARENTHESIZED_ARGUMENTS(lock))
DEFINE_LOCK_WRAPPER(pthread_spin_lock, pthread_spin_trylock, pthread_spinlock_t)
DEFINE_NONWAITING_WRAPPER(pthread_spin_unlock, "lock", lock,
			  PARENTHESIZED_PARAMETERS(pthread_spinlock_t *lock),
			  PARENTHESIZED_ARGUMENTS(lock))

DEFINE_WRAPPED_FUNCTION_STATE(pthread_barrier_wait, REGION_PTHREAD);
static int wrapped_pthread_barrier_wait(pthread_barrier_t *barrier)
{
	region_id region = wrapped_get_region_if_recording(&call_pthread_barrier_wait);
	int error;

	if (!region)
		return ORIGINAL(pthread_barrier_wait)(barrier);
	wrapped_begin_region(region, wrapped_address_to_value("barrier", barrier));
	error = ORIGINAL(pthread_barrier_wait)(barrier);
	wrapped_end_region_with_error(region, error == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : error);
	return error;
}

/* ---- conditions and semaphores ---- */

DEFINE_WAIT_WRAPPER(pthread_cond_wait, "condition", condition,
		    PARENTHESIZED_PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock),
		    PARENTHESIZED_ARGUMENTS(condition, lock))
DEFINE_WAIT_WRAPPER(pthread_cond_timedwait, "condition", condition,
		    PARENTHESIZED_PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock,
					     const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(condition, lock, end))
DEFINE_WAIT_WRAPPER(pthread_cond_clockwait, "condition", condition,
		    PARENTHESIZED_PARAMETERS(pthread_cond_t *condition, pthread_mutex_t *lock,
					     clockid_t clock, const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(condition, lock, clock, end))
DEFINE_NONWAITING_WRAPPER(pthread_cond_signal, "condition", condition,
			  PARENTHESIZED_PARAMETERS(pthread_cond_t *condition),
			  PARENTHESIZED_ARGUMENTS(condition))
DEFINE_NONWAITING_WRAPPER(pthread_cond_broadcast, "condition", condition,
			  PARENTHESIZED_PARAMETERS(pthread_cond_t *condition),
			  PARENTHESIZED_ARGUMENTS(condition))
DEFINE_WAIT_WRAPPER(cnd_wait, "condition", condition,
		    PARENTHESIZED_PARAMETERS(cnd_t *condition, mtx_t *lock),
		    PARENTHESIZED_ARGUMENTS(condition, lock))
DEFINE_WAIT_WRAPPER(cnd_timedwait, "condition", condition,
		    PARENTHESIZED_PARAMETERS(cnd_t *condition, mtx_t *lock,
					     const struct timespec *end),
		    PARENTHESIZED_ARGUMENTS(condition, lock, end))

/* Semaphores say what went wrong in errno. sem_wait is not tried first: it is a cancellation point
 * even when it need not wait, sem_trywait is none. */
#define DEFINE_SEMAPHORE_WRAPPER(symbol, parameters, arguments)                                    \
	DEFINE_WRAPPED_FUNCTION_STATE(symbol, REGION_PTHREAD);                                     \
	static int wrapped_##symbol parameters                                                     \
	{                                                                                          \
		region_id region = wrapped_get_region_if_recording(&call_##symbol);                \
		int result;                                                                        \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		wrapped_begin_region(region, wrapped_address_to_value("semaphore", semaphore));    \
		result = ORIGINAL(symbol) arguments;                                               \
		wrapped_end_region_with_error(region, result ? errno : 0);                         \
		return result;                                                                     \
	}

DEFINE_SEMAPHORE_WRAPPER(sem_wait, PARENTHESIZED_PARAMETERS(sem_t *semaphore),
			 PARENTHESIZED_ARGUMENTS(semaphore))
DEFINE_SEMAPHORE_WRAPPER(sem_trywait, PARENTHESIZED_PARAMETERS(sem_t *semaphore),
			 PARENTHESIZED_ARGUMENTS(semaphore))
DEFINE_SEMAPHORE_WRAPPER(sem_timedwait,
			 PARENTHESIZED_PARAMETERS(sem_t *semaphore, const struct timespec *end),
			 PARENTHESIZED_ARGUMENTS(semaphore, end))
DEFINE_SEMAPHORE_WRAPPER(sem_clockwait,
			 PARENTHESIZED_PARAMETERS(sem_t *semaphore, clockid_t clock,
						  const struct timespec *end),
			 PARENTHESIZED_ARGUMENTS(semaphore, clock, end))
DEFINE_SEMAPHORE_WRAPPER(sem_post, PARENTHESIZED_PARAMETERS(sem_t *semaphore),
			 PARENTHESIZED_ARGUMENTS(semaphore))

static struct got_wrapper creation_wrappers[] = {WRAPPER_TABLE_ROW(pthread_create),
						 WRAPPER_TABLE_ROW(thrd_create)};
static struct got_wrapper join_wrappers[] = {
	WRAPPER_TABLE_ROW(pthread_join), WRAPPER_TABLE_ROW(pthread_timedjoin_np),
	WRAPPER_TABLE_ROW(pthread_clockjoin_np), WRAPPER_TABLE_ROW(pthread_tryjoin_np),
	WRAPPER_TABLE_ROW(thrd_join)};
static struct got_wrapper lock_wrappers[] = {WRAPPER_TABLE_ROW(pthread_mutex_lock),
					     WRAPPER_TABLE_ROW(pthread_mutex_trylock),
					     WRAPPER_TABLE_ROW(pthread_mutex_timedlock),
					     WRAPPER_TABLE_ROW(pthread_mutex_clocklock),
					     WRAPPER_TABLE_ROW(pthread_mutex_unlock),
					     WRAPPER_TABLE_ROW(mtx_lock),
					     WRAPPER_TABLE_ROW(mtx_timedlock),
					     WRAPPER_TABLE_ROW(mtx_trylock),
					     WRAPPER_TABLE_ROW(mtx_unlock)};
static struct got_wrapper rw_lock_wrappers[] = {WRAPPER_TABLE_ROW(pthread_rwlock_rdlock),
						WRAPPER_TABLE_ROW(pthread_rwlock_wrlock),
						WRAPPER_TABLE_ROW(pthread_rwlock_tryrdlock),
						WRAPPER_TABLE_ROW(pthread_rwlock_trywrlock),
						WRAPPER_TABLE_ROW(pthread_rwlock_timedrdlock),
						WRAPPER_TABLE_ROW(pthread_rwlock_timedwrlock),
						WRAPPER_TABLE_ROW(pthread_rwlock_clockrdlock),
						WRAPPER_TABLE_ROW(pthread_rwlock_clockwrlock),
						WRAPPER_TABLE_ROW(pthread_rwlock_unlock)};
static struct got_wrapper spin_lock_wrappers[] = {WRAPPER_TABLE_ROW(pthread_spin_lock),
						  WRAPPER_TABLE_ROW(pthread_spin_trylock),
						  WRAPPER_TABLE_ROW(pthread_spin_unlock)};
static struct got_wrapper barrier_wrappers[] = {WRAPPER_TABLE_ROW(pthread_barrier_wait)};
static struct got_wrapper condition_wrappers[] = {WRAPPER_TABLE_ROW(pthread_cond_wait),
						  WRAPPER_TABLE_ROW(pthread_cond_timedwait),
						  WRAPPER_TABLE_ROW(pthread_cond_clockwait),
						  WRAPPER_TABLE_ROW(pthread_cond_signal),
						  WRAPPER_TABLE_ROW(pthread_cond_broadcast),
						  WRAPPER_TABLE_ROW(cnd_wait),
						  WRAPPER_TABLE_ROW(cnd_timedwait),
						  WRAPPER_TABLE_ROW(sem_wait),
						  WRAPPER_TABLE_ROW(sem_trywait),
						  WRAPPER_TABLE_ROW(sem_timedwait),
						  WRAPPER_TABLE_ROW(sem_clockwait),
						  WRAPPER_TABLE_ROW(sem_post)};

#define ROWS_AND_COUNT(rows) rows, ARRAY_SIZE(rows)

int wrappers_threads_add(const struct wrapper_options *options)
{
	const struct {
		bool on;
		struct got_wrapper *rows;
		size_t count;
	} groups[] = {
		{options->wrap_threads, ROWS_AND_COUNT(creation_wrappers)},
		{options->wrap_thread_joins, ROWS_AND_COUNT(join_wrappers)},
		{options->wrap_locks, ROWS_AND_COUNT(lock_wrappers)},
		{options->wrap_rw_locks, ROWS_AND_COUNT(rw_lock_wrappers)},
		{options->wrap_spin_locks, ROWS_AND_COUNT(spin_lock_wrappers)},
		{options->wrap_barriers, ROWS_AND_COUNT(barrier_wrappers)},
		{options->wrap_condition_variables, ROWS_AND_COUNT(condition_wrappers)},
	};
	int error = 0;

	for (size_t i = 0; i < ARRAY_SIZE(groups) && !error; i++) {
		if (groups[i].on)
			error = got_add_wrappers(groups[i].rows, groups[i].count);
	}
	return error;
}
