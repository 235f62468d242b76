/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is recorded of allocations: CALL_SITE and ALLOCATIONS records of sites that changed, every
 * second, or less often where that would be much, and at the end; and two counters of the process.
 */
#include <string.h>
#include <time.h>

#include "core/runtime.h"
#include "core/ticks.h"
#include "regions/regions.h"
#include "wrappers/memory_private.h"

#define SECOND_NS        1000000000ull
#define RECORD_BYTES     40u         /* about what a site takes each time */
#define BYTES_PER_SECOND (32u << 10) /* not more than this on average */

static uint64_t next_ns;
static _Atomic uint64_t live_bytes, allocations;
static _Atomic uint32_t counters_wanted;

static void describe(struct track *track, uint32_t number)
{
	const struct memory_site *site = memory_site_at(number);
	const uint64_t *frames = memory_site_frames(site);

	track_begin(track, SPOOL_RECORD_CALL_SITE);
	track_unsigned(track, 1);
	track_unsigned(track, number);
	track_unsigned(track, site->frames);
	for (uint32_t i = 0; i < site->frames; i++)
		track_fixed(track, frames[i]);
	track_end(track);
}

static void write_sums(struct track *track, uint32_t number, uint64_t allocated, uint64_t freed)
{
	struct memory_site *site = memory_site_at(number);

	track_begin(track, SPOOL_RECORD_ALLOCATIONS);
	track_unsigned(track, number);
	track_unsigned(track, atomic_load_explicit(&site->allocations, memory_order_relaxed));
	track_unsigned(track, atomic_load_explicit(&site->frees, memory_order_relaxed));
	track_unsigned(track, allocated);
	track_unsigned(track, freed);
	track_unsigned(track, atomic_load_explicit(&site->peak_bytes, memory_order_relaxed));
	track_end(track);
}

/* Returns whether anything was written. */
static bool follow_site(struct track *track, uint32_t number, uint64_t *live, uint64_t *calls)
{
	struct memory_site *site = memory_site_at(number);
	uint64_t allocated_calls = atomic_load_explicit(&site->allocations, memory_order_relaxed);
	uint64_t changes =
		allocated_calls + atomic_load_explicit(&site->frees, memory_order_relaxed);
	uint64_t freed = atomic_load_explicit(&site->freed_bytes, memory_order_relaxed);
	uint64_t allocated = atomic_load_explicit(&site->allocated_bytes, memory_order_relaxed);

	*calls += allocated_calls;
	*live += allocated > freed ? allocated - freed : 0;
	if (changes == site->written)
		return false;
	if (!site->written)
		describe(track, number);
	site->written = changes;
	write_sums(track, number, allocated, freed);
	return true;
}

void memory_follow(struct runtime *runtime, bool last)
{
	uint64_t now = ticks_clock_ns(CLOCK_MONOTONIC), live = 0, calls = 0, written = 0;
	uint32_t count;

	if (now < next_ns && !last)
		return;
	count = memory_sites_count();
	for (uint32_t i = 0; i < count; i++)
		written += follow_site(&runtime->track, i, &live, &calls);
	next_ns = now + SECOND_NS;
	if (written * RECORD_BYTES > BYTES_PER_SECOND)
		next_ns = now + written * RECORD_BYTES * SECOND_NS / BYTES_PER_SECOND;
	atomic_store_explicit(&live_bytes, live, memory_order_relaxed);
	atomic_store_explicit(&allocations, calls, memory_order_relaxed);
	atomic_store_explicit(&counters_wanted, 1, memory_order_relaxed);
}

static void record_counter(const char *name, uint64_t value)
{
	double real = (double)value;
	uint64_t bits;

	memcpy(&bits, &real, sizeof(bits));
	region_counter(region_named(REGION_MEMORY, name), bits);
}

void memory_counters(void)
{
	if (!atomic_load_explicit(&counters_wanted, memory_order_relaxed) ||
	    !atomic_exchange_explicit(&counters_wanted, 0, memory_order_relaxed))
		return;
	record_counter("allocated bytes", atomic_load_explicit(&live_bytes, memory_order_relaxed));
	record_counter("allocations", atomic_load_explicit(&allocations, memory_order_relaxed));
}
