/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Finding the profiler and giving it the tables.
 */
#ifndef KYMO_LIBKYMO_SDK_ROCTX_ANNOUNCE_H
#define KYMO_LIBKYMO_SDK_ROCTX_ANNOUNCE_H

#include <stdatomic.h>
#include <stdint.h>

/* Calls until the next look for a profiler; 0 for good once it has the tables. */
extern atomic_uint_fast64_t roctx_call_count_until_next_lookup;

void roctx_find_profiler_and_register_tables(void *const *tables, uint64_t count);

static inline void roctx_announce_tables_when_due(void *const *tables, uint64_t count)
{
	uint64_t next =
		atomic_load_explicit(&roctx_call_count_until_next_lookup, memory_order_relaxed);

	/* Threads that count at once lose some of it: it is looked for a little later. */
	if (next > 1)
		atomic_store_explicit(&roctx_call_count_until_next_lookup, next - 1,
				      memory_order_relaxed);
	else if (next)
		roctx_find_profiler_and_register_tables(tables, count);
}

#endif
