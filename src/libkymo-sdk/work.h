/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What all work in flight has in common (work.c), and its plain kind (plain_dispatch.c): a kernel
 * that one context wants a record of, as with a profiler that is alone. Between its launch and its
 * end others begin by the thousand, on another processor than they end on, so what counts is how
 * many cache lines it has and how often it waits for stores: two, next to each other, and never.
 */
#ifndef KYMO_LIBKYMO_SDK_WORK_H
#define KYMO_LIBKYMO_SDK_WORK_H

#include "libkymo-sdk/calls.h"
#include "libkymo-sdk/pool.h"

/* In front of both kinds. Objects of a pool are of one kind for ever. */
struct sdk_work_head {
	struct sdk_pooled pooled;
	bool is_plain;
};

struct sdk_plain;

static inline struct sdk_plain *sdk_plain_of(struct sdk_work *work)
{
	return ((const struct sdk_work_head *)work)->is_plain ? (struct sdk_plain *)work : NULL;
}

/* NULL: it is not plain, or there is no memory. Between sdk_record_begin() and ..._end(). */
struct sdk_work *sdk_plain_begin(struct sdk_thread *thread,
				 rocprofiler_kernel_dispatch_info_t *info);
void sdk_plain_failed(struct sdk_plain *plain);
void sdk_plain_complete(struct sdk_plain *plain, const rocprofiler_kernel_dispatch_info_t *info,
			uint64_t start, uint64_t end);
struct sdk_work *sdk_plain_again(struct sdk_plain *plain);

/* Only the thread itself writes its counts. */
static inline void sdk_work_count(_Atomic uint64_t *count)
{
	atomic_store_explicit(count, 1 + atomic_load_explicit(count, memory_order_relaxed),
			      memory_order_release);
}

/* When it begins. Within a call that has just begun that is near enough, and saves a look at the
 * clock; a tool's functions may have taken their time in between (told). */
static inline uint64_t sdk_work_begins(const struct sdk_thread *thread, bool told)
{
	return thread->call && thread->call->start && !told ? thread->call->start : sdk_now();
}

/* Times of a device are its own: they are kept in order. 0: not known. */
static inline void sdk_work_order(uint64_t begun, uint64_t *start, uint64_t *end)
{
	if (*start && *start < begun)
		*start = begun;
	if (*start && *end < *start)
		*end = *start;
}

/* A thread that is not ours may be within a record of its own when it is told that work is done. */
static inline struct sdk_thread *sdk_work_end_begin(bool *busy)
{
	struct sdk_thread *thread = sdk_thread_self();

	if (thread) {
		*busy = thread->busy;
		thread->busy = true;
	}
	return thread;
}

/* Threads take ids of kernels by the dozen, as those of calls. */
uint64_t sdk_dispatch_next(struct sdk_thread *thread);

static inline void sdk_dispatch_set(rocprofiler_kernel_dispatch_info_t *to,
				    const rocprofiler_kernel_dispatch_info_t *info, uint64_t id)
{
	*to = *info;
	to->size = offsetof(rocprofiler_kernel_dispatch_info_t, reserved_padding);
	to->dispatch_id = id;
}

#endif
