/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls inside this room: call_records.c notes where each thread's words are and which
 * functions they name, instrumented.c makes regions of those, call_stream.c gives the words to the
 * walk over all events.
 */
#ifndef KYMO_ANALYSIS_REGIONS_CALLS_PRIVATE_H
#define KYMO_ANALYSIS_REGIONS_CALLS_PRIVATE_H

#include "analysis/id_map.h"
#include "analysis/regions/calls.h"

#define CALL_FUNCTION_ID_COUNT ((uint32_t)1 << SPOOL_CALL_ID_BITS)

static inline uint32_t call_word_to_function_id(uint64_t word)
{
	return (uint32_t)(word >> SPOOL_CALL_ID_SHIFT) & (CALL_FUNCTION_ID_COUNT - 1);
}

/* A word's time, which is nearer to that of the word before it than half the range of its bits. */
static inline uint64_t call_word_to_ticks(uint64_t word, uint64_t before)
{
	uint64_t bits = word >> SPOOL_CALL_TICK_SHIFT << SPOOL_CALL_TICK_SHIFT;
	int64_t difference =
		(int64_t)(bits - (before << SPOOL_CALL_TICK_SHIFT)) >> SPOOL_CALL_TICK_SHIFT;

	if (difference < 0 && (uint64_t)-difference > before)
		return 0;
	return before + (uint64_t)difference;
}

/* A CALLS record without the words behind the last one that was written; bytes of a chunk, counted
 * from its first record. */
struct call_record_part {
	uint32_t thread, chunk, from, size;
	uint64_t ticks;
};

/* CALL_COUNTS of one thread; the last record counts. */
struct function_call_count_entry {
	uint32_t id;
	uint64_t calls;
};

/* A function that the process has defined as a region, which has its calls. */
struct defined_function_region {
	uint32_t id, region;
};

/* Calls of one process. */
struct calls_of_process {
	struct call_record_part *parts; /* by thread, in order of time */
	size_t part_count, part_capacity;
	uint64_t *used;    /* ids, as bits; NULL: there are no calls */
	uint32_t *regions; /* by id below limit, index in model_regions.regions or
			      MODEL_ENTRY_INDEX_NONE */
	uint32_t limit;
	struct id_map call_count_index_by_function; /* internal id and function id -> counts[] */
	struct function_call_count_entry *call_count_entries;
	size_t call_count_entry_count, call_count_entry_capacity;
	struct defined_function_region *defined_regions;
	size_t defined_region_count, defined_region_capacity;
	uint64_t last; /* ticks of the latest word */
};

static inline bool function_id_is_used(const struct calls_of_process *calls, uint32_t id)
{
	return calls->used[id / 64] >> id % 64 & 1;
}

struct calls_array_capacities {
	size_t module_capacity, counted_function_capacity, demoted_function_capacity;
};

/* What the session keeps. */
struct session_calls_storage {
	struct model_instrumented_calls model; /* first: session_get_calls() */
	struct calls_array_capacities capacity;
};

static inline struct calls_array_capacities *
calls_get_array_capacities(const struct session *session)
{
	return &((struct session_calls_storage *)session_find_kind_data(session,
									CALLS_DATA_KIND_NAME))
			->capacity;
}

static inline struct calls_of_process *process_get_calls(const struct session *session,
							 uint32_t process)
{
	return (struct calls_of_process *)session_find_kind_data_of_processes(
		       session, CALLS_DATA_KIND_NAME) +
	       process;
}

/* call_records.c: a region is what an instrumented function is called in the process's profile. */
int calls_add_defined_function_region(struct session *session, uint32_t process, uint32_t id,
				      uint32_t region);
/* instrumented.c: after the scan of a process: its functions become regions, its counts sums. 0 or
 * -ENOMEM. */
int instrumented_make_process_regions(struct session *session, uint32_t process);

#endif
