/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ranges as one event each: ENTER where they begin, EXIT where they end, with the same correlation
 * id and user data. Ranges of a thread are a stack; a range that was begun while nobody wanted it
 * is on it, too, so that its end is not taken for another one's. Ranges of the process are found by
 * their id in a table that takes no lock.
 */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "libkymo-sdk/calls.h"
#include "libkymo-sdk/markers.h"

#define RANGE_TEXT    128
#define RANGE_PROCESS 4096 /* open at a time */

struct range {
	struct sdk_pooled pooled;
	_Atomic uint64_t id;
	struct range *outer; /* of the thread */
	uint32_t skipped;    /* ranges within it that could not be kept */
	bool is_told;
	char *text; /* `room`, or from malloc */
	rocprofiler_callback_tracing_marker_api_data_t data;
	struct sdk_call call;
	char room[RANGE_TEXT];
};

static struct range *_Atomic range_process[RANGE_PROCESS];

static struct range *range_begin(int32_t operation, const char *message)
{
	struct sdk_thread *thread = sdk_thread_self();
	size_t length = message ? strlen(message) + 1 : 1;
	struct range *range;

	if (!thread || thread->busy || thread->is_own)
		return NULL;
	range = sdk_pool_take(&thread->ranges, sizeof(*range));
	if (!range)
		return NULL;
	range->text = length <= sizeof(range->room) ? range->room : malloc(length);
	if (!range->text) {
		range->text = range->room;
		length = sizeof(range->room) - 1;
		range->room[length] = '\0';
	}
	memcpy(range->text, message ? message : "", length);
	memset(&range->data, 0, sizeof(range->data));
	range->data.size = sizeof(range->data);
	range->data.args.roctxThreadRangeA.message = range->text;
	range->is_told = sdk_call_enter_detached(&range->call, SDK_DOMAIN_MARKER_CORE_RANGE,
						 operation, &range->data);
	return range;
}

static void range_end(struct range *range)
{
	struct sdk_thread *thread = sdk_thread_current;

	if (range->is_told)
		sdk_call_exit(&range->call, &range->data);
	if (range->text != range->room)
		free(range->text);
	sdk_pool_give(range, thread ? &thread->ranges : NULL);
}

/* Anything open, or anybody who wants it? */
static bool range_is_wanted(int32_t operation)
{
	return sdk_wants(SDK_DOMAIN_MARKER_CORE_RANGE, operation);
}

void sdk_range_mark(const char *message)
{
	rocprofiler_callback_tracing_marker_api_data_t data = {.size = sizeof(data)};
	struct sdk_call call;

	if (!range_is_wanted(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA))
		return;
	data.args.roctxMarkA.message = message;
	if (sdk_call_enter(&call, SDK_DOMAIN_MARKER_CORE_RANGE,
			   ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA, &data))
		sdk_call_exit(&call, &data);
}

void sdk_range_push(const char *message)
{
	struct sdk_thread *thread = sdk_thread_self();
	struct range *range;

	device_region_push(message);
	if (!thread)
		return;
	if (!thread->range &&
	    !range_is_wanted(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA)) {
		thread->untold_ranges++;
		return;
	}
	range = range_begin(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA, message);
	if (!range) {
		if (thread->range)
			thread->range->skipped++;
		else
			thread->untold_ranges++;
		return;
	}
	range->skipped = 0;
	range->outer = thread->range;
	thread->range = range;
}

void sdk_range_pop(void)
{
	struct sdk_thread *thread = sdk_thread_self();
	struct range *range = thread ? thread->range : NULL;

	device_region_pop();
	if (!thread)
		return;
	if (!range) {
		if (thread->untold_ranges)
			thread->untold_ranges--;
		return;
	}
	if (range->skipped) {
		range->skipped--;
		return;
	}
	thread->range = range->outer;
	range_end(range);
}

void sdk_range_start(uint64_t id, const char *message)
{
	struct range *range;

	if (!range_is_wanted(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA))
		return;
	range = range_begin(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA, message);
	if (!range)
		return;
	atomic_store_explicit(&range->id, id, memory_order_relaxed);
	for (unsigned i = 0; i < RANGE_PROCESS; i++) {
		struct range *none = NULL;

		if (atomic_compare_exchange_strong_explicit(
			    &range_process[(id + i) % RANGE_PROCESS], &none, range,
			    memory_order_release, memory_order_relaxed))
			return;
	}
	/* More are open than the table has room for: this one ends where it begins. */
	atomic_fetch_add_explicit(&sdk_thread_lost, 1, memory_order_relaxed);
	range_end(range);
}

void sdk_range_stop(uint64_t id)
{
	for (unsigned i = 0; i < RANGE_PROCESS; i++) {
		struct range *_Atomic *place = &range_process[(id + i) % RANGE_PROCESS];
		struct range *range = atomic_load_explicit(place, memory_order_acquire);

		/* Memory of ranges is never unmapped, and only who stops `id` takes it out. */
		if (!range || atomic_load_explicit(&range->id, memory_order_relaxed) != id)
			continue;
		if (atomic_compare_exchange_strong_explicit(
			    place, &range, NULL, memory_order_acquire, memory_order_relaxed))
			range_end(range);
		return;
	}
}
