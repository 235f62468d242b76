/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Mutexes, read-write locks and spin locks in causal profiling. What is owed is paid before the
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

#include "wrappers/causal_paced.h"
#include "wrappers/wrappers.h"

/* PTHREAD_MUTEX_PSHARED_BIT of its kind (glibc, nptl/pthreadP.h). */
#define MUTEX_SHARED 128

static bool is_alone_with_mutex(const pthread_mutex_t *lock)
{
	return __libc_single_threaded && !(lock->__data.__kind & MUTEX_SHARED);
}

static bool is_alone_with_mtx(const mtx_t *lock)
{
	(void)lock; /* there are no shared ones */
	return __libc_single_threaded;
}

static bool is_never_alone(const volatile void *lock)
{
	(void)lock; /* with locks that cost the same either way */
	return false;
}

/* By its own thread. What is more than 1 says so of usual ones, and is the owner of others. */
static bool is_mutex_awaited(const pthread_mutex_t *lock)
{
	return __atomic_load_n(&lock->__data.__lock, __ATOMIC_RELAXED) > 1;
}

/* The C library makes one out of the other. */
static bool is_mtx_awaited(const mtx_t *lock)
{
	return is_mutex_awaited((const pthread_mutex_t *)(const void *)lock);
}

/* PTHREAD_RWLOCK_FUTEX_USED (glibc, nptl/pthread_rwlock_common.c). */
static bool is_rwlock_awaited(const pthread_rwlock_t *lock)
{
	return (__atomic_load_n(&lock->__data.__wrphase_futex, __ATOMIC_RELAXED) |
		__atomic_load_n(&lock->__data.__writers_futex, __ATOMIC_RELAXED)) &
	       2;
}

/* Who waits awake is not on its way for long. */
static bool is_never_awaited(const volatile pthread_spinlock_t *lock)
{
	(void)lock;
	return false;
}

#define PACED_LOCK(symbol, attempt, type, busy, is_alone)                                          \
	PACED_ORIGINAL(symbol);                                                                    \
	static __attribute__((noinline)) int wait_for_##symbol(type *lock, uint64_t site)          \
	{                                                                                          \
		struct causal_wait wait;                                                           \
		int error;                                                                         \
		causal_before_wait(&wait);                                                         \
		error = ORIGINAL(symbol)(lock);                                                    \
		causal_after_wait_for(&wait, lock, site);                                          \
		return error;                                                                      \
	}                                                                                          \
	static int paced_##symbol(type *lock)                                                      \
	{                                                                                          \
		int error;                                                                         \
		if (!causal_on() || is_alone(lock))                                                \
			return ORIGINAL(symbol)(lock);                                             \
		causal_pay_often_at(CAUSAL_SITE);                                                  \
		if (ORIGINAL(attempt) && (error = ORIGINAL(attempt)(lock)) != (busy))              \
			return error;                                                              \
		return wait_for_##symbol(lock, CAUSAL_SITE);                                       \
	}

#define PACED_LOCK_UNTIL(symbol, attempt, type, busy, timed_out, clock, parameters, arguments)     \
	PACED_ORIGINAL(symbol);                                                                    \
	static int paced_##symbol parameters                                                       \
	{                                                                                          \
		struct causal_wait wait;                                                           \
		struct timespec space;                                                             \
		int error;                                                                         \
		if (!causal_on())                                                                  \
			return ORIGINAL(symbol) arguments;                                         \
		causal_pay_often_at(CAUSAL_SITE);                                                  \
		if (ORIGINAL(attempt) && (error = ORIGINAL(attempt)(lock)) != (busy))              \
			return error;                                                              \
		causal_before_wait(&wait);                                                         \
		end = paced_deadline(clock, end, &space);                                          \
		error = ORIGINAL(symbol) arguments;                                                \
		causal_after_wait_at(&wait, paced_waker(error != (timed_out)), CAUSAL_SITE);       \
		return error;                                                                      \
	}

#define PACED_UNLOCK(symbol, type, is_alone, is_awaited)                                           \
	PACED_ORIGINAL(symbol);                                                                    \
	static int paced_##symbol(type *lock)                                                      \
	{                                                                                          \
		if (causal_on() && !is_alone(lock)) {                                              \
			causal_pay_often_at(CAUSAL_SITE);                                          \
			if (is_awaited(lock))                                                      \
				causal_give(lock);                                                 \
		}                                                                                  \
		return ORIGINAL(symbol)(lock);                                                     \
	}

/* Found, but called by their own names without us: they neither wait nor wake. */
PACED_ORIGINAL(pthread_mutex_trylock);
PACED_ORIGINAL(pthread_rwlock_tryrdlock);
PACED_ORIGINAL(pthread_rwlock_trywrlock);
PACED_ORIGINAL(pthread_spin_trylock);
PACED_ORIGINAL(mtx_trylock);

#define FOUND_ROW(symbol_)                                                                         \
	{                                                                                          \
		.symbol = #symbol_, .original = &original_##symbol_, .library = CAUSAL_LIBC        \
	}

/* ---- mutexes ---- */

PACED_LOCK(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t, EBUSY, is_alone_with_mutex)
PACED_LOCK_UNTIL(pthread_mutex_timedlock, pthread_mutex_trylock, pthread_mutex_t, EBUSY, ETIMEDOUT,
		 CLOCK_REALTIME, PARAMETERS(pthread_mutex_t *lock, const struct timespec *end),
		 ARGUMENTS(lock, end))
PACED_LOCK_UNTIL(pthread_mutex_clocklock, pthread_mutex_trylock, pthread_mutex_t, EBUSY, ETIMEDOUT,
		 clock,
		 PARAMETERS(pthread_mutex_t *lock, clockid_t clock, const struct timespec *end),
		 ARGUMENTS(lock, clock, end))
PACED_UNLOCK(pthread_mutex_unlock, pthread_mutex_t, is_alone_with_mutex, is_mutex_awaited)

PACED_LOCK(mtx_lock, mtx_trylock, mtx_t, thrd_busy, is_alone_with_mtx)
PACED_LOCK_UNTIL(mtx_timedlock, mtx_trylock, mtx_t, thrd_busy, thrd_timedout, CLOCK_REALTIME,
		 PARAMETERS(mtx_t *lock, const struct timespec *end), ARGUMENTS(lock, end))
PACED_UNLOCK(mtx_unlock, mtx_t, is_alone_with_mtx, is_mtx_awaited)

/* ---- read-write locks ---- */

PACED_LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t, EBUSY, is_never_alone)
PACED_LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t, EBUSY, is_never_alone)
PACED_LOCK_UNTIL(pthread_rwlock_timedrdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t, EBUSY,
		 ETIMEDOUT, CLOCK_REALTIME,
		 PARAMETERS(pthread_rwlock_t *lock, const struct timespec *end),
		 ARGUMENTS(lock, end))
PACED_LOCK_UNTIL(pthread_rwlock_timedwrlock, pthread_rwlock_trywrlock, pthread_rwlock_t, EBUSY,
		 ETIMEDOUT, CLOCK_REALTIME,
		 PARAMETERS(pthread_rwlock_t *lock, const struct timespec *end),
		 ARGUMENTS(lock, end))
PACED_LOCK_UNTIL(pthread_rwlock_clockrdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t, EBUSY,
		 ETIMEDOUT, clock,
		 PARAMETERS(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *end),
		 ARGUMENTS(lock, clock, end))
PACED_LOCK_UNTIL(pthread_rwlock_clockwrlock, pthread_rwlock_trywrlock, pthread_rwlock_t, EBUSY,
		 ETIMEDOUT, clock,
		 PARAMETERS(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *end),
		 ARGUMENTS(lock, clock, end))
PACED_UNLOCK(pthread_rwlock_unlock, pthread_rwlock_t, is_never_alone, is_rwlock_awaited)

/* ---- spin locks ---- */

PACED_LOCK(pthread_spin_lock, pthread_spin_trylock, pthread_spinlock_t, EBUSY, is_never_alone)
PACED_UNLOCK(pthread_spin_unlock, pthread_spinlock_t, is_never_alone, is_never_awaited)

int causal_locks_add(void)
{
	static struct got_wrapper rows[] = {FOUND_ROW(pthread_mutex_trylock),
					    FOUND_ROW(pthread_rwlock_tryrdlock),
					    FOUND_ROW(pthread_rwlock_trywrlock),
					    FOUND_ROW(pthread_spin_trylock),
					    FOUND_ROW(mtx_trylock),
					    PACED_ROW(pthread_mutex_lock),
					    PACED_ROW(pthread_mutex_timedlock),
					    PACED_ROW(pthread_mutex_clocklock),
					    PACED_ROW(pthread_mutex_unlock),
					    PACED_ROW(mtx_lock),
					    PACED_ROW(mtx_timedlock),
					    PACED_ROW(mtx_unlock),
					    PACED_ROW(pthread_rwlock_rdlock),
					    PACED_ROW(pthread_rwlock_wrlock),
					    PACED_ROW(pthread_rwlock_timedrdlock),
					    PACED_ROW(pthread_rwlock_timedwrlock),
					    PACED_ROW(pthread_rwlock_clockrdlock),
					    PACED_ROW(pthread_rwlock_clockwrlock),
					    PACED_ROW(pthread_rwlock_unlock),
					    PACED_ROW(pthread_spin_lock),
					    PACED_ROW(pthread_spin_unlock)};

	return got_add(TABLE(rows));
}
