/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is counted of each block: sums of its site and of the whole process, and who held what at
 * the process's peak.
 *
 * Peaks are numbered. When the process's live bytes rise above all before, the peak gets the next
 * number, and what every site holds is what it has right then. Nothing is copied: a site notes what
 * it held when it first changes after that (held_bytes, held_peak_number). A site that did not
 * change holds the same still.
 *
 * A process of one thread counts without locks and locked instructions (__libc_single_threaded,
 * glibc 2.32: false before a second thread is made). With several, what another thread is just
 * counting may be in the sums of the process and not yet in those of its site.
 */
#include <errno.h>
#include <string.h>

#include "common/syscalls.h"
#include "wrappers/memory/private.h"

extern char __libc_single_threaded __attribute__((weak));

static struct memory_process_counts *process_counts;

int memory_counts_init(void)
{
	process_counts = memory_map_pages(sizeof(*process_counts), true);
	return process_counts ? 0 : -ENOMEM;
}

void memory_counts_clear(void)
{
	memory_empty_pages(process_counts, sizeof(*process_counts));
}

const struct memory_process_counts *memory_get_process_counts(void)
{
	return process_counts;
}

static bool has_one_thread(void)
{
	return &__libc_single_threaded && __libc_single_threaded;
}

/* By who has the site's lock. */
static void add_to(_Atomic uint64_t *sum, uint64_t value)
{
	atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + value,
			      memory_order_relaxed);
}

static uint64_t get_site_live_bytes(const struct memory_site *site)
{
	return atomic_load_explicit(&site->allocated_bytes, memory_order_relaxed) -
	       atomic_load_explicit(&site->freed_bytes, memory_order_relaxed);
}

/* Before a change of the site: what it held at the last peak. */
static void note_bytes_at_peak(struct memory_site *site)
{
	uint64_t number = atomic_load_explicit(&process_counts->peak_number, memory_order_relaxed);

	if (atomic_load_explicit(&site->held_peak_number, memory_order_relaxed) == number)
		return;
	atomic_store_explicit(&site->held_bytes, get_site_live_bytes(site), memory_order_relaxed);
	atomic_store_explicit(&site->held_peak_number, number, memory_order_release);
}

uint64_t memory_site_get_bytes_at_peak(const struct memory_site *site, uint64_t peak_number)
{
	return atomic_load_explicit(&site->held_peak_number, memory_order_acquire) == peak_number
		       ? atomic_load_explicit(&site->held_bytes, memory_order_relaxed)
		       : get_site_live_bytes(site);
}

static void count_in_site(struct memory_site *site, uint64_t size)
{
	uint64_t live;

	note_bytes_at_peak(site);
	add_to(&site->allocation_count, 1);
	add_to(&site->allocated_bytes, size);
	live = get_site_live_bytes(site);
	if ((int64_t)live > (int64_t)atomic_load_explicit(&site->peak_bytes, memory_order_relaxed))
		atomic_store_explicit(&site->peak_bytes, live, memory_order_relaxed);
}

static void raise_process_peak(uint64_t live)
{
	uint64_t peak = atomic_load_explicit(&process_counts->peak_bytes, memory_order_relaxed);

	while ((int64_t)live > (int64_t)peak) {
		if (!atomic_compare_exchange_weak_explicit(&process_counts->peak_bytes, &peak, live,
							   memory_order_relaxed,
							   memory_order_relaxed))
			continue;
		atomic_fetch_add_explicit(&process_counts->peak_number, 1, memory_order_relaxed);
		return;
	}
}

void memory_count_allocated_block(uint32_t number, uint64_t size)
{
	struct memory_site *site = memory_get_site(number);
	uint64_t live;

	if (has_one_thread()) {
		count_in_site(site, size);
		if (!number)
			return;
		add_to(&process_counts->live_bytes, size);
		live = atomic_load_explicit(&process_counts->live_bytes, memory_order_relaxed);
		if ((int64_t)live > (int64_t)atomic_load_explicit(&process_counts->peak_bytes,
								  memory_order_relaxed)) {
			atomic_store_explicit(&process_counts->peak_bytes, live,
					      memory_order_relaxed);
			add_to(&process_counts->peak_number, 1);
		}
		return;
	}
	memory_lock(&site->lock);
	count_in_site(site, size);
	memory_unlock(&site->lock);
	if (number)
		raise_process_peak(atomic_fetch_add_explicit(&process_counts->live_bytes, size,
							     memory_order_relaxed) +
				   size);
}

static void count_free_in_site(struct memory_site *site, uint64_t size, bool temporary)
{
	note_bytes_at_peak(site);
	add_to(&site->free_count, 1);
	add_to(&site->freed_bytes, size);
	if (temporary)
		add_to(&site->temporary_count, 1);
}

void memory_count_freed_block(uint32_t number, uint64_t size, bool temporary)
{
	struct memory_site *site = memory_get_site(number);

	if (has_one_thread()) {
		count_free_in_site(site, size, temporary);
		add_to(&process_counts->live_bytes, 0 - size);
		return;
	}
	memory_lock(&site->lock);
	count_free_in_site(site, size, temporary);
	memory_unlock(&site->lock);
	atomic_fetch_sub_explicit(&process_counts->live_bytes, size, memory_order_relaxed);
}
