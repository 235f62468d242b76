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
#include "common/array.h"
#include "wrappers/got/got.h"

/* libkymo itself stands before libc for some; sanitizers for many. */
#define CAUSAL_LIBC_FILE_NAME_PREFIXES                                                             \
	"libc.so|libc-2.|libpthread|librt|libkymo|libasan|libtsan|libubsan|liblsan"

/* Defines original_NAME, which paced_NAME calls. */
#define DEFINE_ORIGINAL_POINTER(symbol) static _Atomic(void *) original_##symbol
#define ORIGINAL(symbol)                                                                           \
	((__typeof__(&(symbol)))atomic_load_explicit(&original_##symbol, memory_order_relaxed))

#define PACED_TABLE_ROW_FOR_LIBRARY(symbol_, library_)                                             \
	{                                                                                          \
		.symbol = #symbol_, .replacement = (void *)paced_##symbol_,                        \
		.original = &original_##symbol_, .library = (library_)                             \
	}
#define PACED_TABLE_ROW(symbol_)                                                                   \
	PACED_TABLE_ROW_FOR_LIBRARY(symbol_, CAUSAL_LIBC_FILE_NAME_PREFIXES)

#define TABLE_ROWS_AND_COUNT(rows) rows, ARRAY_SIZE(rows)

/* Lists with commas in them, as one argument of a macro. */
#define PARENTHESIZED_PARAMETERS(...) (__VA_ARGS__)
#define PARENTHESIZED_ARGUMENTS(...)  (__VA_ARGS__)

/* A call that may wake others: void, or with a result. */
#define DEFINE_PACED_WAKE(type, symbol, parameters, arguments)                                     \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		if (causal_is_active())                                                            \
			causal_pay_delay_at_site(CAUSAL_GET_CALL_SITE);                            \
		return ORIGINAL(symbol) arguments;                                                 \
	}

/* A call that may wait; `by_us` tells from `result` whether a thread of the session ended it. */
#define DEFINE_PACED_WAIT(type, symbol, by_us, parameters, arguments)                              \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct causal_wait_state waited;                                                   \
		type result;                                                                       \
		if (!causal_is_active())                                                           \
			return ORIGINAL(symbol) arguments;                                         \
		causal_apply_delay_and_begin_wait(&waited);                                        \
		result = ORIGINAL(symbol) arguments;                                               \
		causal_end_wait_at_site(&waited, paced_woken_by_us_to_waker_kind(by_us),           \
					CAUSAL_GET_CALL_SITE);                                     \
		return result;                                                                     \
	}

/* The same, with an absolute deadline `end` on `clock`, which is put off. */
#define DEFINE_PACED_WAIT_UNTIL(type, symbol, clock, by_us, parameters, arguments)                 \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct causal_wait_state waited;                                                   \
		struct timespec space;                                                             \
		type result;                                                                       \
		if (!causal_is_active())                                                           \
			return ORIGINAL(symbol) arguments;                                         \
		causal_apply_delay_and_begin_wait(&waited);                                        \
		end = paced_extend_deadline(clock, end, &space);                                   \
		result = ORIGINAL(symbol) arguments;                                               \
		causal_end_wait_at_site(&waited, paced_woken_by_us_to_waker_kind(by_us),           \
					CAUSAL_GET_CALL_SITE);                                     \
		return result;                                                                     \
	}

static inline enum causal_waker_kind paced_woken_by_us_to_waker_kind(bool by_us)
{
	return by_us ? CAUSAL_WAKER_SESSION : CAUSAL_WAKER_OUTSIDE;
}

/* `end` put off by the pauses that the thread has made, in `space`; `end` itself where there are
 * none, or where it is none. */
const struct timespec *paced_extend_deadline(clockid_t clock, const struct timespec *end,
					     struct timespec *space);

/* Copies what can be read: the original may say EFAULT where we would crash. */
bool paced_copy_readable_memory(void *ret, const void *from, size_t size);

/* Each adds its functions (got_add_wrappers). 0 or negative errno. */
int causal_add_lock_wrappers(void);
int causal_add_condition_wrappers(void);
int causal_add_process_wrappers(void); /* and signals */
int causal_add_sleep_wrappers(void);
int causal_add_futex_wrappers(void);
int causal_add_transfer_wrappers(void);
int causal_add_readiness_wrappers(void);
int causal_add_message_wrappers(void);
int causal_add_close_wrappers(void);
int causal_add_openmp_wrappers(void);

#endif
