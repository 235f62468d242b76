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
#include "libkymo-sdk/runtimes/markers.h"

#define RANGE_TEXT_SIZE    128
#define PROCESS_RANGES_MAX 4096 /* open at a time */

struct marker_range {
	struct sdk_pooled_object_header pooled_object;
	_Atomic uint64_t id;
	struct marker_range *outer; /* of the thread */
	uint32_t skipped;           /* ranges within it that could not be kept */
	bool is_reported;
	char *text; /* `room`, or from malloc */
	rocprofiler_callback_tracing_marker_api_data_t data;
	struct sdk_call_state call;
	char room[RANGE_TEXT_SIZE];
};

static struct marker_range *_Atomic active_process_ranges[PROCESS_RANGES_MAX];

static struct marker_range *begin_marker_range(int32_t operation, const char *message)
{
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();
	size_t length = message ? strlen(message) + 1 : 1;
	struct marker_range *range;

	if (!thread || thread->busy || thread->is_profiler_thread)
		return NULL;
	range = sdk_object_pool_take(&thread->range_pool, sizeof(*range));
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
	range->is_reported = sdk_call_enter_detached(&range->call, SDK_DOMAIN_MARKER_CORE_RANGE,
						     operation, &range->data);
	return range;
}

static void end_marker_range(struct marker_range *range)
{
	struct sdk_thread_state *thread = sdk_current_thread_state;

	if (range->is_reported)
		sdk_call_exit(&range->call, &range->data);
	if (range->text != range->room)
		free(range->text);
	sdk_object_pool_return(range, thread ? &thread->range_pool : NULL);
}

/* Anything open, or anybody who wants it? */
static bool is_range_operation_wanted(int32_t operation)
{
	return sdk_is_operation_wanted(SDK_DOMAIN_MARKER_CORE_RANGE, operation);
}

void sdk_range_report_mark(const char *message)
{
	rocprofiler_callback_tracing_marker_api_data_t data = {.size = sizeof(data)};
	struct sdk_call_state call;

	if (!is_range_operation_wanted(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA))
		return;
	data.args.roctxMarkA.message = message;
	if (sdk_call_enter(&call, SDK_DOMAIN_MARKER_CORE_RANGE,
			   ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA, &data))
		sdk_call_exit(&call, &data);
}

void sdk_range_begin_on_thread(const char *message)
{
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();
	struct marker_range *range;

	device_host_region_push(message);
	if (!thread)
		return;
	if (!thread->range &&
	    !is_range_operation_wanted(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA)) {
		thread->unreported_range_depth++;
		return;
	}
	range = begin_marker_range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA, message);
	if (!range) {
		if (thread->range)
			thread->range->skipped++;
		else
			thread->unreported_range_depth++;
		return;
	}
	range->skipped = 0;
	range->outer = thread->range;
	thread->range = range;
}

void sdk_range_end_on_thread(void)
{
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();
	struct marker_range *range = thread ? thread->range : NULL;

	device_host_region_pop();
	if (!thread)
		return;
	if (!range) {
		if (thread->unreported_range_depth)
			thread->unreported_range_depth--;
		return;
	}
	if (range->skipped) {
		range->skipped--;
		return;
	}
	thread->range = range->outer;
	end_marker_range(range);
}

void sdk_range_begin_in_process(uint64_t id, const char *message)
{
	struct marker_range *range;

	if (!is_range_operation_wanted(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA))
		return;
	range = begin_marker_range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA,
				   message);
	if (!range)
		return;
	atomic_store_explicit(&range->id, id, memory_order_relaxed);
	for (unsigned i = 0; i < PROCESS_RANGES_MAX; i++) {
		struct marker_range *none = NULL;

		if (atomic_compare_exchange_strong_explicit(
			    &active_process_ranges[(id + i) % PROCESS_RANGES_MAX], &none, range,
			    memory_order_release, memory_order_relaxed))
			return;
	}
	/* More are open than the table has room for: this one ends where it begins. */
	atomic_fetch_add_explicit(&sdk_signal_handler_lost_event_count, 1, memory_order_relaxed);
	end_marker_range(range);
}

void sdk_range_end_in_process(uint64_t id)
{
	for (unsigned i = 0; i < PROCESS_RANGES_MAX; i++) {
		struct marker_range *_Atomic *place =
			&active_process_ranges[(id + i) % PROCESS_RANGES_MAX];
		struct marker_range *range = atomic_load_explicit(place, memory_order_acquire);

		/* Memory of ranges is never unmapped, and only who stops `id` takes it out. */
		if (!range || atomic_load_explicit(&range->id, memory_order_relaxed) != id)
			continue;
		if (atomic_compare_exchange_strong_explicit(
			    place, &range, NULL, memory_order_acquire, memory_order_relaxed))
			end_marker_range(range);
		return;
	}
}
