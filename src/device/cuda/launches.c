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

#define PLACES (1u << 20)

#define SWEPT (1u << 16)

enum { FREE, USED, SEEN, OLD }; /* SEEN: a record has come; OLD: and a flush since */

static struct place {
	_Atomic uint32_t correlation; /* 0: free */
	_Atomic uint32_t state;       /* kind << 8 | FREE, USED, SEEN */
	_Atomic device_handle handle;
} places[PLACES];

/* What threads that launch write, and what those write that hear of ends, far behind on other
 * processors: cache lines of their own, or each would wait for the other's. */
static struct {
	_Alignas(64) _Atomic uint64_t put;
	_Atomic uint32_t newest;
	_Alignas(64) _Atomic uint64_t taken;
	_Alignas(64) char end;
} counts;

static struct place *place_of(uint32_t correlation)
{
	return &places[correlation % PLACES];
}

/* Takes what is there, if it is still `correlation`. */
KYMO_HOT static struct cuda_launch take(struct place *place, uint32_t correlation)
{
	struct cuda_launch launch = {CUDA_LAUNCH_NONE, DEVICE_NONE};
	uint32_t state = atomic_load_explicit(&place->state, memory_order_acquire);
	device_handle handle = atomic_load_explicit(&place->handle, memory_order_relaxed);

	if (!atomic_compare_exchange_strong(&place->correlation, &correlation, 0))
		return launch;
	atomic_fetch_add_explicit(&counts.taken, 1, memory_order_release);
	launch.kind = (enum cuda_launch_kind)(state >> 8);
	launch.handle = handle;
	return launch;
}

static void give_up(struct cuda_launch launch)
{
	const struct device_sink *sink = device_sink();

	if (launch.kind == CUDA_LAUNCH_KERNEL) {
		sink->kernel_complete(launch.handle, NULL, 0, 0);
	} else if (launch.kind == CUDA_LAUNCH_OTHER) {
		sink->correlation_close(launch.handle);
	} else if (launch.kind == CUDA_LAUNCH_COUNTED) {
		cuda_counted_ran(launch.handle, NULL, 0, 0);
	}
}

KYMO_HOT bool cuda_launch_put(uint32_t correlation, struct cuda_launch launch)
{
	struct place *place = place_of(correlation);
	uint32_t old = atomic_load_explicit(&place->correlation, memory_order_relaxed);

	if (correlation == 0)
		return false;
	if (old != 0) {
		struct cuda_launch lost = take(place, old);

		if (lost.kind == CUDA_LAUNCH_KERNEL || lost.kind == CUDA_LAUNCH_COUNTED)
			cuda_losses.dropped++;
		give_up(lost);
	}
	atomic_store_explicit(&place->handle, launch.handle, memory_order_relaxed);
	atomic_store_explicit(&place->state, (uint32_t)launch.kind << 8 | USED,
			      memory_order_relaxed);
	atomic_fetch_add_explicit(&counts.put, 1, memory_order_relaxed);
	atomic_store_explicit(&counts.newest, correlation, memory_order_relaxed);
	atomic_store_explicit(&place->correlation, correlation, memory_order_release);
	/* The last one to write there was on another processor. */
	__builtin_prefetch(place_of(correlation + 8), 1);
	return true;
}

struct cuda_launch cuda_launch_get(uint32_t correlation, bool keep)
{
	struct place *place = place_of(correlation);
	struct cuda_launch launch = {CUDA_LAUNCH_NONE, DEVICE_NONE};

	if (correlation == 0 ||
	    atomic_load_explicit(&place->correlation, memory_order_acquire) != correlation)
		return launch;
	if (!keep)
		return take(place, correlation);
	launch.kind = (enum cuda_launch_kind)(atomic_load(&place->state) >> 8);
	launch.handle = atomic_load(&place->handle);
	atomic_store(&place->state, (uint32_t)launch.kind << 8 | SEEN);
	return launch;
}

uint64_t cuda_launches_waiting(void)
{
	uint64_t taken = atomic_load(&counts.taken); /* first: what is taken was put */
	uint64_t put = atomic_load(&counts.put);

	return put > taken ? put - taken : 0;
}

/* Called by the flush thread behind each flush: what has had its first record two flushes ago has
 * had them all. */
void cuda_launches_sweep(void)
{
	uint32_t end = atomic_load(&counts.newest) + 1;

	for (uint32_t correlation = end > SWEPT ? end - SWEPT : 0; correlation != end;
	     correlation++) {
		struct place *place = place_of(correlation);
		uint32_t state;

		if (atomic_load_explicit(&place->correlation, memory_order_acquire) != correlation)
			continue;
		state = atomic_load(&place->state);
		if ((state & 0xff) == OLD)
			give_up(take(place, correlation));
		else if ((state & 0xff) == SEEN)
			atomic_compare_exchange_strong(&place->state, &state, state + (OLD - SEEN));
	}
}

uint32_t cuda_launches_newest(void)
{
	return atomic_load(&counts.newest);
}

static void close_until(uint32_t last, bool counted_too)
{
	uint32_t end = last + 1;

	for (uint32_t i = end > PLACES ? end - PLACES : 0; i != end && cuda_launches_waiting() != 0;
	     i++) {
		struct place *place = place_of(i);
		uint32_t correlation = atomic_load(&place->correlation);
		struct cuda_launch launch;

		if (correlation == 0 || (int32_t)(correlation - last) > 0 ||
		    (!counted_too && atomic_load(&place->state) >> 8 == CUDA_LAUNCH_COUNTED))
			continue;
		launch = take(place, correlation);
		if (launch.kind == CUDA_LAUNCH_KERNEL)
			cuda_losses.incomplete++;
		give_up(launch);
	}
}

void cuda_launches_give_up(uint32_t last)
{
	close_until(last, false);
}

/* The end: what has no record yet will have none. */
void cuda_launches_close(void)
{
	close_until(atomic_load(&counts.newest), true);
}
