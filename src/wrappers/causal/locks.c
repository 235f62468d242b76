/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Mutexes, read-write locks and spin locks in causal profiling. Unapplied delay is paid before the
 * lock is had: whoever paid inside, before it wakes others or gives the lock free, would make those
 * wait who have nothing to pay. A lock that is free is taken by trying: nobody waited, nothing is
 * credited. POSIX gives the try functions the same
 * results otherwise (pthread_mutex_trylock(3p)); a second lock by its owner is EBUSY when tried,
 * and then gets the original's own answer.
 *
 * In a process of one thread only locks that are shared with others can be waited for. All others
 * go by at once: the C library takes them without atomic operations there, in a fifth of the time
 * (glibc, lll_lock_optimized), but does not when they are tried.
 */
#include <pthread.h>
#include <sys/single_threaded.h>
#include <threads.h>

#include "wrappers/causal/paced.h"

/* PTHREAD_MUTEX_PSHARED_BIT of its kind (glibc, nptl/pthreadP.h). */
#define MUTEX_SHARED_BIT 128

static bool mutex_is_used_by_one_thread_only(const pthread_mutex_t *lock)
{
	return __libc_single_threaded && !(lock->__data.__kind & MUTEX_SHARED_BIT);
}

static bool mtx_is_used_by_one_thread_only(const mtx_t *lock)
{
	(void)lock; /* there are no shared ones */
	return __libc_single_threaded;
}

static bool deny_use_by_one_thread_only(const volatile void *lock)
{
	(void)lock; /* with locks that cost the same either way */
	return false;
}

/* By its own thread. What is more than 1 says so of usual ones, and is the owner of others. */
static bool mutex_has_waiters(const pthread_mutex_t *lock)
{
	return __atomic_load_n(&lock->__data.__lock, __ATOMIC_RELAXED) > 1;
}

/* The C library makes one out of the other. */
static bool mtx_has_waiters(const mtx_t *lock)
{
	return mutex_has_waiters((const pthread_mutex_t *)(const void *)lock);
}

/* PTHREAD_RWLOCK_FUTEX_USED (glibc, nptl/pthread_rwlock_common.c). */
static bool rwlock_has_waiters(const pthread_rwlock_t *lock)
{
	return (__atomic_load_n(&lock->__data.__wrphase_futex, __ATOMIC_RELAXED) |
		__atomic_load_n(&lock->__data.__writers_futex, __ATOMIC_RELAXED)) &
	       2;
}

/* Who waits awake is not on its way for long. */
static bool spinlock_has_sleeping_waiters(const volatile pthread_spinlock_t *lock)
{
	(void)lock;
	return false;
}

#define DEFINE_PACED_LOCK(symbol, attempt, type, busy, is_alone)                                   \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static __attribute__((noinline)) int wait_for_##symbol(type *lock, uint64_t site)          \
	{                                                                                          \
		struct causal_wait_state wait;                                                     \
		int error;                                                                         \
		causal_apply_delay_and_begin_wait(&wait);                                          \
		error = ORIGINAL(symbol)(lock);                                                    \
		causal_end_wait_on_object_at_site(&wait, lock, site);                              \
		return error;                                                                      \
	}                                                                                          \
	static int paced_##symbol(type *lock)                                                      \
	{                                                                                          \
		int error;                                                                         \
		if (!causal_is_active() || is_alone(lock))                                         \
			return ORIGINAL(symbol)(lock);                                             \
		causal_pay_delay_at_lock_if_due(CAUSAL_GET_CALL_SITE);                             \
		if (ORIGINAL(attempt) && (error = ORIGINAL(attempt)(lock)) != (busy))              \
			return error;                                                              \
		return wait_for_##symbol(lock, CAUSAL_GET_CALL_SITE);                              \
	}

#define DEFINE_PACED_LOCK_UNTIL(symbol, attempt, type, busy, timed_out, clock, parameters,         \
				arguments)                                                         \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static int paced_##symbol parameters                                                       \
	{                                                                                          \
		struct causal_wait_state wait;                                                     \
		struct timespec space;                                                             \
		int error;                                                                         \
		if (!causal_is_active())                                                           \
			return ORIGINAL(symbol) arguments;                                         \
		causal_pay_delay_at_lock_if_due(CAUSAL_GET_CALL_SITE);                             \
		if (ORIGINAL(attempt) && (error = ORIGINAL(attempt)(lock)) != (busy))              \
			return error;                                                              \
		causal_apply_delay_and_begin_wait(&wait);                                          \
		end = paced_extend_deadline(clock, end, &space);                                   \
		error = ORIGINAL(symbol) arguments;                                                \
		causal_end_wait_at_site(&wait,                                                     \
					paced_woken_by_us_to_waker_kind(error != (timed_out)),     \
					CAUSAL_GET_CALL_SITE);                                     \
		return error;                                                                      \
	}

#define DEFINE_PACED_UNLOCK(symbol, type, is_alone, is_awaited)                                    \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static int paced_##symbol(type *lock)                                                      \
	{                                                                                          \
		if (causal_is_active() && !is_alone(lock)) {                                       \
			causal_pay_delay_at_lock_if_due(CAUSAL_GET_CALL_SITE);                     \
			if (is_awaited(lock))                                                      \
				causal_record_wakeup_in_process(lock);                             \
		}                                                                                  \
		return ORIGINAL(symbol)(lock);                                                     \
	}

/* Found, but called by their own names without us: they neither wait nor wake. */
DEFINE_ORIGINAL_POINTER(pthread_mutex_trylock);
DEFINE_ORIGINAL_POINTER(pthread_rwlock_tryrdlock);
DEFINE_ORIGINAL_POINTER(pthread_rwlock_trywrlock);
DEFINE_ORIGINAL_POINTER(pthread_spin_trylock);
DEFINE_ORIGINAL_POINTER(mtx_trylock);

#define ORIGINAL_ONLY_TABLE_ROW(symbol_)                                                           \
	{                                                                                          \
		.symbol = #symbol_, .original = &original_##symbol_,                               \
		.library = CAUSAL_LIBC_FILE_NAME_PREFIXES                                          \
	}

/* ---- mutexes ---- */

DEFINE_PACED_LOCK(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t, EBUSY,
		  mutex_is_used_by_one_thread_only)
DEFINE_PACED_LOCK_UNTIL(pthread_mutex_timedlock, pthread_mutex_trylock, pthread_mutex_t, EBUSY,
			ETIMEDOUT, CLOCK_REALTIME,
			PARENTHESIZED_PARAMETERS(pthread_mutex_t *lock, const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(lock, end))
DEFINE_PACED_LOCK_UNTIL(pthread_mutex_clocklock, pthread_mutex_trylock, pthread_mutex_t, EBUSY,
			ETIMEDOUT, clock,
			PARENTHESIZED_PARAMETERS(pthread_mutex_t *lock, clockid_t clock,
						 const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(lock, clock, end))
DEFINE_PACED_UNLOCK(pthread_mutex_unlock, pthread_mutex_t, mutex_is_used_by_one_thread_only,
		    mutex_has_waiters)

DEFINE_PACED_LOCK(mtx_lock, mtx_trylock, mtx_t, thrd_busy, mtx_is_used_by_one_thread_only)
DEFINE_PACED_LOCK_UNTIL(mtx_timedlock, mtx_trylock, mtx_t, thrd_busy, thrd_timedout, CLOCK_REALTIME,
			PARENTHESIZED_PARAMETERS(mtx_t *lock, const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(lock, end))
DEFINE_PACED_UNLOCK(mtx_unlock, mtx_t, mtx_is_used_by_one_thread_only, mtx_has_waiters)

/* ---- read-write locks ---- */

DEFINE_PACED_LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t, EBUSY,
		  deny_use_by_one_thread_only)
DEFINE_PACED_LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t, EBUSY,
		  deny_use_by_one_thread_only)
DEFINE_PACED_LOCK_UNTIL(pthread_rwlock_timedrdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t,
			EBUSY, ETIMEDOUT, CLOCK_REALTIME,
			PARENTHESIZED_PARAMETERS(pthread_rwlock_t *lock,
						 const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(lock, end))
DEFINE_PACED_LOCK_UNTIL(pthread_rwlock_timedwrlock, pthread_rwlock_trywrlock, pthread_rwlock_t,
			EBUSY, ETIMEDOUT, CLOCK_REALTIME,
			PARENTHESIZED_PARAMETERS(pthread_rwlock_t *lock,
						 const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(lock, end))
DEFINE_PACED_LOCK_UNTIL(pthread_rwlock_clockrdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t,
			EBUSY, ETIMEDOUT, clock,
			PARENTHESIZED_PARAMETERS(pthread_rwlock_t *lock, clockid_t clock,
						 const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(lock, clock, end))
DEFINE_PACED_LOCK_UNTIL(pthread_rwlock_clockwrlock, pthread_rwlock_trywrlock, pthread_rwlock_t,
			EBUSY, ETIMEDOUT, clock,
			PARENTHESIZED_PARAMETERS(pthread_rwlock_t *lock, clockid_t clock,
						 const struct timespec *end),
			PARENTHESIZED_ARGUMENTS(lock, clock, end))
DEFINE_PACED_UNLOCK(pthread_rwlock_unlock, pthread_rwlock_t, deny_use_by_one_thread_only,
		    rwlock_has_waiters)

/* ---- spin locks ---- */

DEFINE_PACED_LOCK(pthread_spin_lock, pthread_spin_trylock, pthread_spinlock_t, EBUSY,
		  deny_use_by_one_thread_only)
DEFINE_PACED_UNLOCK(pthread_spin_unlock, pthread_spinlock_t, deny_use_by_one_thread_only,
		    spinlock_has_sleeping_waiters)

int causal_add_lock_wrappers(void)
{
	static struct got_wrapper rows[] = {ORIGINAL_ONLY_TABLE_ROW(pthread_mutex_trylock),
					    ORIGINAL_ONLY_TABLE_ROW(pthread_rwlock_tryrdlock),
					    ORIGINAL_ONLY_TABLE_ROW(pthread_rwlock_trywrlock),
					    ORIGINAL_ONLY_TABLE_ROW(pthread_spin_trylock),
					    ORIGINAL_ONLY_TABLE_ROW(mtx_trylock),
					    PACED_TABLE_ROW(pthread_mutex_lock),
					    PACED_TABLE_ROW(pthread_mutex_timedlock),
					    PACED_TABLE_ROW(pthread_mutex_clocklock),
					    PACED_TABLE_ROW(pthread_mutex_unlock),
					    PACED_TABLE_ROW(mtx_lock),
					    PACED_TABLE_ROW(mtx_timedlock),
					    PACED_TABLE_ROW(mtx_unlock),
					    PACED_TABLE_ROW(pthread_rwlock_rdlock),
					    PACED_TABLE_ROW(pthread_rwlock_wrlock),
					    PACED_TABLE_ROW(pthread_rwlock_timedrdlock),
					    PACED_TABLE_ROW(pthread_rwlock_timedwrlock),
					    PACED_TABLE_ROW(pthread_rwlock_clockrdlock),
					    PACED_TABLE_ROW(pthread_rwlock_clockwrlock),
					    PACED_TABLE_ROW(pthread_rwlock_unlock),
					    PACED_TABLE_ROW(pthread_spin_lock),
					    PACED_TABLE_ROW(pthread_spin_unlock)};

	return got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));
}
