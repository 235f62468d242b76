/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What all work in flight has in common (work.c), and its plain kind (fast_dispatch.c): a kernel
 * that one context wants a record of, as with a profiler that is alone. Between its launch and its
 * end others begin by the thousand, on another processor than they end on, so what counts is how
 * many cache lines it has and how often it waits for stores: two, next to each other, and never.
 */
#ifndef KYMO_LIBKYMO_SDK_WORK_H
#define KYMO_LIBKYMO_SDK_WORK_H

#include "libkymo-sdk/base/pool.h"
#include "libkymo-sdk/calls.h"

/* In front of both kinds. Objects of a pool are of one kind for ever. */
struct sdk_work_header {
	struct sdk_pooled_object_header pooled_object;
	bool is_fast_dispatch;
};

struct sdk_fast_dispatch;

static inline struct sdk_fast_dispatch *sdk_work_to_fast_dispatch(struct sdk_device_work *work)
{
	return ((const struct sdk_work_header *)work)->is_fast_dispatch
		       ? (struct sdk_fast_dispatch *)work
		       : NULL;
}

/* NULL: it is not plain, or there is no memory. Between sdk_thread_try_enter_recording() and
 * ..._end().
 */
struct sdk_device_work *
sdk_fast_dispatch_begin_if_possible(struct sdk_thread_state *thread,
				    rocprofiler_kernel_dispatch_info_t *info);
void sdk_fast_dispatch_cancel(struct sdk_fast_dispatch *plain);
void sdk_fast_dispatch_report_complete(struct sdk_fast_dispatch *plain,
				       const rocprofiler_kernel_dispatch_info_t *info,
				       uint64_t start, uint64_t end);
struct sdk_device_work *sdk_fast_dispatch_copy_with_new_id(struct sdk_fast_dispatch *plain);

/* Only the thread itself writes its counts. */
static inline void sdk_work_increment_thread_counter(_Atomic uint64_t *count)
{
	atomic_store_explicit(count, 1 + atomic_load_explicit(count, memory_order_relaxed),
			      memory_order_release);
}

/* When it begins. Within a call that has just begun that is near enough, and saves a look at the
 * clock; a tool's functions may have taken their time in between (told). */
static inline uint64_t sdk_thread_get_new_work_begin_ns(const struct sdk_thread_state *thread,
							bool told)
{
	return thread->call && thread->call->start && !told ? thread->call->start
							    : sdk_clock_read_now_ns();
}

/* Times of a device are its own: they are kept in order. 0: not known. */
static inline void sdk_clamp_device_times_to_begin(uint64_t begun, uint64_t *start, uint64_t *end)
{
	if (*start && *start < begun)
		*start = begun;
	if (*start && *end < *start)
		*end = *start;
}

/* A thread that is not ours may be within a record of its own when it hears that work is done. */
static inline struct sdk_thread_state *sdk_thread_get_own_and_set_busy(bool *busy)
{
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();

	if (thread) {
		*busy = thread->busy;
		thread->busy = true;
	}
	return thread;
}

/* Threads take ids of kernels by the dozen, as those of calls. */
uint64_t sdk_dispatch_allocate_id(struct sdk_thread_state *thread);

static inline void sdk_dispatch_copy_info_with_id(rocprofiler_kernel_dispatch_info_t *to,
						  const rocprofiler_kernel_dispatch_info_t *info,
						  uint64_t id)
{
	*to = *info;
	to->size = offsetof(rocprofiler_kernel_dispatch_info_t, reserved_padding);
	to->dispatch_id = id;
}

#endif
