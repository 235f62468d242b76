/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is recorded of allocations, every tenth of a second and at the end, by the background
 * thread: CALL_SITE and ALLOCATIONS records of sites that changed, sums of the process
 * (ALLOCATION_TOTALS), and what each site held at the process's peak (ALLOCATION_PEAK). And two
 * counters of the process, by its threads.
 *
 * Records are sums so far, so that the next ones make up for one that is lost. A program with many
 * sites that change all the time would fill the disk: a budget that grows by
 * RECORD_BYTES_PER_SECOND says when the next records are due.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/time_units.h"
#include "core/base/ticks.h"
#include "core/runtime.h"
#include "regions/regions.h"
#include "wrappers/memory/private.h"

#define RECORD_PERIOD_LEAST_NS  (100 * MILLISECOND_NS)
#define PEAK_RECORD_PERIOD_NS   SECOND_NS
#define SITE_RECORD_BYTES       48u /* about what a site takes each time */
#define RECORD_BYTES_PER_SECOND (64u << 10)
#define RECORD_BUDGET_BYTES_MAX (8ll << 20)
#define PEAK_SITES_PER_RECORD   1024u

/* Of this process: a forked child begins with zeros. */
static struct allocation_records {
	uint64_t next_ns, next_peak_ns, budget_ns;
	int64_t budget_bytes;
	uint64_t written_allocation_count, written_free_count;
	uint64_t peak_number, peak_ticks, written_peak_number;
	uint64_t unmapped_count;
} * recorded;

static _Atomic uint64_t shown_live_bytes, shown_allocation_count;
static _Atomic uint32_t counter_values_are_pending;

int memory_records_init(void)
{
	recorded = memory_map_pages(sizeof(*recorded), true);
	return recorded ? 0 : -ENOMEM;
}

void memory_records_clear(void)
{
	memory_empty_pages(recorded, sizeof(*recorded));
}

static uint64_t load_sum(const _Atomic uint64_t *sum)
{
	return atomic_load_explicit(sum, memory_order_relaxed);
}

static void write_call_site_record(struct process_records *track, uint32_t number)
{
	const struct memory_site *site = memory_get_site(number);
	const uint64_t *frames = memory_site_get_frames(site);

	process_record_begin(track, SPOOL_RECORD_CALL_SITE);
	process_record_append_unsigned(track, 1);
	process_record_append_unsigned(track, number);
	process_record_append_unsigned(track, site->frame_count);
	for (uint32_t i = 0; i < site->frame_count; i++)
		process_record_append_fixed64(track, frames[i]);
	process_record_append_fixed64(track, site->first_ticks);
	process_record_end_and_commit(track);
	recorded->budget_bytes -= 16 + 8 * (int64_t)site->frame_count;
}

static void write_site_sums(struct process_records *track, uint32_t number)
{
	const struct memory_site *site = memory_get_site(number);

	process_record_begin(track, SPOOL_RECORD_ALLOCATIONS);
	process_record_append_unsigned(track, number);
	process_record_append_unsigned(track, load_sum(&site->allocation_count));
	process_record_append_unsigned(track, load_sum(&site->free_count));
	process_record_append_unsigned(track, load_sum(&site->allocated_bytes));
	process_record_append_unsigned(track, load_sum(&site->freed_bytes));
	process_record_append_unsigned(track, load_sum(&site->peak_bytes));
	process_record_append_fixed64(track, ticks_now());
	process_record_append_unsigned(track, load_sum(&site->temporary_count));
	process_record_end_and_commit(track);
	recorded->budget_bytes -= SITE_RECORD_BYTES;
}

/* Sums of all sites, as they are written. */
struct site_sums {
	uint64_t allocation_count, free_count;
};

static void write_site_if_changed(struct process_records *track, uint32_t number,
				  struct site_sums *sums)
{
	struct memory_site *site = memory_get_site(number);
	uint64_t allocated = load_sum(&site->allocation_count), freed = load_sum(&site->free_count);

	sums->allocation_count += allocated;
	sums->free_count += freed;
	if (allocated + freed == site->written)
		return;
	if (!site->written)
		write_call_site_record(track, number);
	site->written = allocated + freed;
	write_site_sums(track, number);
}

static void write_totals_record(struct process_records *track, const struct site_sums *sums,
				bool last)
{
	const struct memory_process_counts *counts = memory_get_process_counts();
	uint64_t classes[MEMORY_SIZE_CLASS_COUNT];
	uint32_t class_count = MEMORY_SIZE_CLASS_COUNT;

	memory_sum_size_classes(classes);
	while (class_count && !classes[class_count - 1])
		class_count--;
	process_record_begin(track, SPOOL_RECORD_ALLOCATION_TOTALS);
	process_record_append_fixed64(track, ticks_now());
	process_record_append_unsigned(track, last);
	process_record_append_unsigned(track, sums->allocation_count);
	process_record_append_unsigned(track, sums->free_count);
	process_record_append_unsigned(track, load_sum(&counts->live_bytes));
	process_record_append_unsigned(track, load_sum(&counts->peak_bytes));
	process_record_append_unsigned(track, class_count);
	for (uint32_t i = 0; i < class_count; i++)
		process_record_append_unsigned(track, classes[i]);
	process_record_end_and_commit(track);
	recorded->budget_bytes -= SITE_RECORD_BYTES;
}

/* A part of the sites, from `first` on; returns the next one. */
static uint32_t write_peak_record(struct process_records *track, uint64_t number, uint64_t bytes,
				  uint32_t first, uint32_t site_count)
{
	uint32_t held[PEAK_SITES_PER_RECORD], count = 0, next = first;

	for (; next < site_count && count < PEAK_SITES_PER_RECORD; next++) {
		if ((int64_t)memory_site_get_bytes_at_peak(memory_get_site(next), number) > 0)
			held[count++] = next;
	}
	process_record_begin(track, SPOOL_RECORD_ALLOCATION_PEAK);
	process_record_append_fixed64(track, recorded->peak_ticks);
	process_record_append_unsigned(track, number);
	process_record_append_unsigned(track, bytes);
	process_record_append_unsigned(track, count);
	for (uint32_t i = 0; i < count; i++) {
		process_record_append_unsigned(track, held[i]);
		process_record_append_unsigned(
			track, memory_site_get_bytes_at_peak(memory_get_site(held[i]), number));
	}
	process_record_end_and_commit(track);
	recorded->budget_bytes -= 32 + 8 * (int64_t)count;
	return next;
}

static void write_peak_if_new(struct process_records *track)
{
	const struct memory_process_counts *counts = memory_get_process_counts();
	uint32_t site_count = memory_get_site_count();

	if (recorded->peak_number == recorded->written_peak_number)
		return;
	recorded->written_peak_number = recorded->peak_number;
	for (uint32_t next = 1; next < site_count;)
		next = write_peak_record(track, recorded->peak_number,
					 load_sum(&counts->peak_bytes), next, site_count);
}

static void note_time_of_peak(void)
{
	uint64_t number = load_sum(&memory_get_process_counts()->peak_number);

	if (number == recorded->peak_number)
		return;
	recorded->peak_number = number;
	recorded->peak_ticks = ticks_now();
}

static void retire_sites_if_code_was_unmapped(void)
{
	const struct loaded_modules *modules = kymo_memory.modules;
	uint64_t count = modules->unmapped_count, done = recorded->unmapped_count;

	recorded->unmapped_count = count;
	if (count - done > MODULES_UNMAPPED_KEPT) { /* which ones is not known any more */
		memory_retire_sites_in_range((struct module_range){0, UINT64_MAX});
		return;
	}
	for (; done < count; done++)
		memory_retire_sites_in_range(modules->unmapped[done % MODULES_UNMAPPED_KEPT]);
}

static void add_to_budget(uint64_t now)
{
	uint64_t passed = now - recorded->budget_ns;

	if (!recorded->budget_ns) {
		recorded->budget_bytes += RECORD_BUDGET_BYTES_MAX;
		passed = 0;
	}
	recorded->budget_ns = now;
	recorded->budget_bytes += (int64_t)(passed / 1000 * RECORD_BYTES_PER_SECOND / 1000000);
	if (recorded->budget_bytes > RECORD_BUDGET_BYTES_MAX)
		recorded->budget_bytes = RECORD_BUDGET_BYTES_MAX;
}

static void set_next_record_time(uint64_t now)
{
	uint64_t owed = recorded->budget_bytes < 0 ? (uint64_t)-recorded->budget_bytes : 0;

	recorded->next_ns =
		now + RECORD_PERIOD_LEAST_NS + owed * SECOND_NS / RECORD_BYTES_PER_SECOND;
}

void memory_write_changed_sites_if_due(struct runtime *runtime, bool last)
{
	uint64_t now = read_posix_clock_ns(CLOCK_MONOTONIC);
	struct site_sums sums = {0, 0};
	uint32_t count;

	retire_sites_if_code_was_unmapped();
	note_time_of_peak();
	if (now < recorded->next_ns && !last)
		return;
	add_to_budget(now);
	count = memory_get_site_count();
	for (uint32_t i = 0; i < count; i++)
		write_site_if_changed(&runtime->records, i, &sums);
	if (last || sums.allocation_count != recorded->written_allocation_count ||
	    sums.free_count != recorded->written_free_count)
		write_totals_record(&runtime->records, &sums, last);
	recorded->written_allocation_count = sums.allocation_count;
	recorded->written_free_count = sums.free_count;
	if (last || now >= recorded->next_peak_ns) {
		write_peak_if_new(&runtime->records);
		recorded->next_peak_ns = now + PEAK_RECORD_PERIOD_NS;
	}
	set_next_record_time(now);
	atomic_store_explicit(&shown_live_bytes, load_sum(&memory_get_process_counts()->live_bytes),
			      memory_order_relaxed);
	atomic_store_explicit(&shown_allocation_count, sums.allocation_count, memory_order_relaxed);
	atomic_store_explicit(&counter_values_are_pending, 1, memory_order_relaxed);
}

static void record_memory_counter(const char *name, uint64_t value)
{
	double real = (double)value;
	uint64_t bits;

	memcpy(&bits, &real, sizeof(bits));
	region_write_counter(region_find_or_add_name(REGION_MEMORY, name), bits);
}

void memory_counters(void)
{
	if (!atomic_load_explicit(&counter_values_are_pending, memory_order_relaxed) ||
	    !atomic_exchange_explicit(&counter_values_are_pending, 0, memory_order_relaxed))
		return;
	record_memory_counter("allocated bytes", load_sum(&shown_live_bytes));
	record_memory_counter("allocations", load_sum(&shown_allocation_count));
}
