/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What replacements of causal profiling are made of (causal/causal.h): a call that may wait begins
 * without debts and is credited if a thread of the session ended it; a call that may wake somebody
 * pays first.
 *
 * Only functions of the C library and of the run times that define them are replaced: what a
 * program defines itself under one of these names is its own. Calls keep errno, stay cancellation
 * points, and leave nothing behind when the thread is cancelled inside: all there is lies on its
 * stack.
 */
#ifndef KYMO_WRAPPERS_CAUSAL_PACED_H
#define KYMO_WRAPPERS_CAUSAL_PACED_H

#include <errno.h>
#include <stdint.h>
#include <time.h>

#include "causal/causal.h"
#include "wrappers/got.h"

/* libkymo itself stands before libc for some; sanitizers for many. */
#define CAUSAL_LIBC "libc.so|libc-2.|libpthread|librt|libkymo|libasan|libtsan|libubsan|liblsan"

/* Defines original_NAME, which paced_NAME calls. */
#define PACED_ORIGINAL(symbol) static _Atomic(void *) original_##symbol
#define ORIGINAL(symbol)                                                                           \
	((__typeof__(&(symbol)))atomic_load_explicit(&original_##symbol, memory_order_relaxed))

#define PACED_ROW_IN(symbol_, library_)                                                            \
	{                                                                                          \
		.symbol = #symbol_, .replacement = (void *)paced_##symbol_,                        \
		.original = &original_##symbol_, .library = (library_)                             \
	}
#define PACED_ROW(symbol_) PACED_ROW_IN(symbol_, CAUSAL_LIBC)

#define TABLE(rows) rows, sizeof(rows) / sizeof(rows[0])

/* Lists with commas in them, as one argument of a macro. */
#define PARAMETERS(...) (__VA_ARGS__)
#define ARGUMENTS(...)  (__VA_ARGS__)

/* A call that may wake others: void, or with a result. */
#define PACED_WAKE(type, symbol, parameters, arguments)                                            \
	PACED_ORIGINAL(symbol);                                                                    \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		if (causal_on())                                                                   \
			causal_pay_at(CAUSAL_SITE);                                                \
		return ORIGINAL(symbol) arguments;                                                 \
	}

/* A call that may wait; `by_us` tells from `result` whether a thread of the session ended it. */
#define PACED_WAIT(type, symbol, by_us, parameters, arguments)                                     \
	PACED_ORIGINAL(symbol);                                                                    \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct causal_wait waited;                                                         \
		type result;                                                                       \
		if (!causal_on())                                                                  \
			return ORIGINAL(symbol) arguments;                                         \
		causal_before_wait(&waited);                                                       \
		result = ORIGINAL(symbol) arguments;                                               \
		causal_after_wait_at(&waited, paced_waker(by_us), CAUSAL_SITE);                    \
		return result;                                                                     \
	}

/* The same, with an absolute deadline `end` on `clock`, which is put off. */
#define PACED_WAIT_UNTIL(type, symbol, clock, by_us, parameters, arguments)                        \
	PACED_ORIGINAL(symbol);                                                                    \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct causal_wait waited;                                                         \
		struct timespec space;                                                             \
		type result;                                                                       \
		if (!causal_on())                                                                  \
			return ORIGINAL(symbol) arguments;                                         \
		causal_before_wait(&waited);                                                       \
		end = paced_deadline(clock, end, &space);                                          \
		result = ORIGINAL(symbol) arguments;                                               \
		causal_after_wait_at(&waited, paced_waker(by_us), CAUSAL_SITE);                    \
		return result;                                                                     \
	}

static inline enum causal_waker paced_waker(bool by_us)
{
	return by_us ? CAUSAL_WAKER_SESSION : CAUSAL_WAKER_OUTSIDE;
}

/* `end` put off by the pauses that the thread has made, in `space`; `end` itself where there are
 * none, or where it is none. */
const struct timespec *paced_deadline(clockid_t clock, const struct timespec *end,
				      struct timespec *space);

/* Copies what can be read: the original may say EFAULT where we would crash. */
bool paced_read_memory(void *ret, const void *from, size_t size);

/* Each adds its functions (got_add). 0 or negative errno. */
int causal_locks_add(void);
int causal_conditions_add(void);
int causal_processes_add(void); /* and signals */
int causal_sleeps_add(void);
int causal_futex_add(void);
int causal_bytes_add(void);
int causal_ready_add(void);
int causal_messages_add(void);
int causal_closes_add(void);
int causal_openmp_add(void);

#endif
