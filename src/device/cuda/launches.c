/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From a launch to its records: a table by correlation id, which CUPTI counts up from 1. Ids that
 * are a table's length apart share a place; the table is long enough for everything that can be in
 * flight between two flushes. What is found there when its place is wanted again is given up and
 * counted.
 *
 * A kernel has one record. A copy, a graph or a fill may have several or none, so their correlation
 * is kept for a while after its first record.
 */
#include "common/hot.h"
#include "device/cuda/counting.h"

#define LAUNCH_TABLE_SLOT_COUNT (1u << 20)

#define OLD_LAUNCHES_EXAMINED_MAX (1u << 16)

enum {
	LAUNCH_SLOT_FREE,
	LAUNCH_SLOT_WITHOUT_RECORD,
	LAUNCH_SLOT_WITH_RECORD,
	LAUNCH_SLOT_CLOSABLE
}; /* SEEN: a record has come; OLD: and a flush since */

static struct launch_slot {
	_Atomic uint32_t correlation_id; /* 0: free */
	_Atomic uint32_t state;          /* kind << 8 | FREE, USED, SEEN */
	_Atomic device_handle launch_handle;
} launch_slots[LAUNCH_TABLE_SLOT_COUNT];

/* What threads that launch write, and what those write that hear of ends, far behind on other
 * processors: cache lines of their own, or each would wait for the other's. */
static struct {
	_Alignas(64) _Atomic uint64_t put;
	_Atomic uint32_t newest_correlation_id;
	_Alignas(64) _Atomic uint64_t taken;
	_Alignas(64) char end;
} launch_table_counts;

static struct launch_slot *get_launch_slot_of_correlation(uint32_t correlation)
{
	return &launch_slots[correlation % LAUNCH_TABLE_SLOT_COUNT];
}

/* Takes what is there, if it is still `correlation`. */
KYMO_HOT static struct cuda_pending_launch take_launch_from_slot(struct launch_slot *place,
								 uint32_t correlation)
{
	struct cuda_pending_launch launch = {CUDA_LAUNCH_NONE, DEVICE_HANDLE_NONE};
	uint32_t state = atomic_load_explicit(&place->state, memory_order_acquire);
	device_handle handle = atomic_load_explicit(&place->launch_handle, memory_order_relaxed);

	if (!atomic_compare_exchange_strong(&place->correlation_id, &correlation, 0))
		return launch;
	atomic_fetch_add_explicit(&launch_table_counts.taken, 1, memory_order_release);
	launch.kind = (enum cuda_launch_kind)(state >> 8);
	launch.handle = handle;
	return launch;
}

static void close_launch(struct cuda_pending_launch launch)
{
	const struct device_sink *sink = device_get_sink();

	if (launch.kind == CUDA_LAUNCH_KERNEL) {
		sink->kernel_complete(launch.handle, NULL, 0, 0);
	} else if (launch.kind == CUDA_LAUNCH_OTHER) {
		sink->correlation_close(launch.handle);
	} else if (launch.kind == CUDA_LAUNCH_COUNTED) {
		cuda_profiled_kernel_add_record(launch.handle, NULL, 0, 0);
	}
}

KYMO_HOT bool cuda_launch_add(uint32_t correlation, struct cuda_pending_launch launch)
{
	struct launch_slot *place = get_launch_slot_of_correlation(correlation);
	uint32_t old = atomic_load_explicit(&place->correlation_id, memory_order_relaxed);

	if (correlation == 0)
		return false;
	if (old != 0) {
		struct cuda_pending_launch lost = take_launch_from_slot(place, old);

		if (lost.kind == CUDA_LAUNCH_KERNEL || lost.kind == CUDA_LAUNCH_COUNTED)
			cuda_record_loss_counts.dropped++;
		close_launch(lost);
	}
	atomic_store_explicit(&place->launch_handle, launch.handle, memory_order_relaxed);
	atomic_store_explicit(&place->state,
			      (uint32_t)launch.kind << 8 | LAUNCH_SLOT_WITHOUT_RECORD,
			      memory_order_relaxed);
	atomic_fetch_add_explicit(&launch_table_counts.put, 1, memory_order_relaxed);
	atomic_store_explicit(&launch_table_counts.newest_correlation_id, correlation,
			      memory_order_relaxed);
	atomic_store_explicit(&place->correlation_id, correlation, memory_order_release);
	/* The last one to write there was on another processor. */
	__builtin_prefetch(get_launch_slot_of_correlation(correlation + 8), 1);
	return true;
}

struct cuda_pending_launch cuda_launch_find_and_maybe_remove(uint32_t correlation, bool keep)
{
	struct launch_slot *place = get_launch_slot_of_correlation(correlation);
	struct cuda_pending_launch launch = {CUDA_LAUNCH_NONE, DEVICE_HANDLE_NONE};

	if (correlation == 0 ||
	    atomic_load_explicit(&place->correlation_id, memory_order_acquire) != correlation)
		return launch;
	if (!keep)
		return take_launch_from_slot(place, correlation);
	launch.kind = (enum cuda_launch_kind)(atomic_load(&place->state) >> 8);
	launch.handle = atomic_load(&place->launch_handle);
	atomic_store(&place->state, (uint32_t)launch.kind << 8 | LAUNCH_SLOT_WITH_RECORD);
	return launch;
}

uint64_t cuda_launches_get_in_flight_count(void)
{
	uint64_t taken = atomic_load(&launch_table_counts.taken); /* first: what is taken was put */
	uint64_t put = atomic_load(&launch_table_counts.put);

	return put > taken ? put - taken : 0;
}

/* Called by the flush thread behind each flush: what has had its first record two flushes ago has
 * had them all. */
void cuda_launches_close_fully_recorded(void)
{
	uint32_t end = atomic_load(&launch_table_counts.newest_correlation_id) + 1;

	for (uint32_t correlation =
		     end > OLD_LAUNCHES_EXAMINED_MAX ? end - OLD_LAUNCHES_EXAMINED_MAX : 0;
	     correlation != end; correlation++) {
		struct launch_slot *place = get_launch_slot_of_correlation(correlation);
		uint32_t state;

		if (atomic_load_explicit(&place->correlation_id, memory_order_acquire) !=
		    correlation)
			continue;
		state = atomic_load(&place->state);
		if ((state & 0xff) == LAUNCH_SLOT_CLOSABLE)
			close_launch(take_launch_from_slot(place, correlation));
		else if ((state & 0xff) == LAUNCH_SLOT_WITH_RECORD)
			atomic_compare_exchange_strong(
				&place->state, &state,
				state + (LAUNCH_SLOT_CLOSABLE - LAUNCH_SLOT_WITH_RECORD));
	}
}

uint32_t cuda_launches_get_newest_correlation(void)
{
	return atomic_load(&launch_table_counts.newest_correlation_id);
}

static void close_launches_until(uint32_t last, bool counted_too)
{
	uint32_t end = last + 1;

	for (uint32_t i = end > LAUNCH_TABLE_SLOT_COUNT ? end - LAUNCH_TABLE_SLOT_COUNT : 0;
	     i != end && cuda_launches_get_in_flight_count() != 0; i++) {
		struct launch_slot *place = get_launch_slot_of_correlation(i);
		uint32_t correlation = atomic_load(&place->correlation_id);
		struct cuda_pending_launch launch;

		if (correlation == 0 || (int32_t)(correlation - last) > 0 ||
		    (!counted_too && atomic_load(&place->state) >> 8 == CUDA_LAUNCH_COUNTED))
			continue;
		launch = take_launch_from_slot(place, correlation);
		if (launch.kind == CUDA_LAUNCH_KERNEL)
			cuda_record_loss_counts.incomplete++;
		close_launch(launch);
	}
}

void cuda_launches_give_up_until(uint32_t last)
{
	close_launches_until(last, false);
}

/* The end: what has no record yet will have none. */
void cuda_launches_close_all(void)
{
	close_launches_until(atomic_load(&launch_table_counts.newest_correlation_id), true);
}
