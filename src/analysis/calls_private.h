/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls inside this room: scan_calls.h notes where each thread's words are and which functions they
 * name, instrumented.c makes regions of those, call_stream.c gives the words to the walk over all
 * events.
 */
#ifndef KYMO_ANALYSIS_CALLS_PRIVATE_H
#define KYMO_ANALYSIS_CALLS_PRIVATE_H

#include "analysis/calls.h"
#include "analysis/id_map.h"

#define CALL_IDS ((uint32_t)1 << SPOOL_CALL_ID_BITS)

static inline uint32_t call_word_id(uint64_t word)
{
	return (uint32_t)(word >> SPOOL_CALL_ID_SHIFT) & (CALL_IDS - 1);
}

/* A word's time, which is nearer to that of the word before it than half the range of its bits. */
static inline uint64_t call_word_ticks(uint64_t word, uint64_t before)
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
struct call_part {
	uint32_t thread, chunk, from, size;
	uint64_t ticks;
};

/* CALL_COUNTS of one thread; the last record counts. */
struct call_count {
	uint32_t id;
	uint64_t calls;
};

/* Of one process. */
struct process_calls {
	struct call_part *parts; /* by thread, in order of time */
	size_t part_count, part_capacity;
	uint64_t *used;    /* ids, as bits; NULL: there are no calls */
	uint32_t *regions; /* by id below limit, index in model_regions.regions or MODEL_NONE */
	uint32_t limit;
	struct id_map count_of; /* internal id and function id -> counts[] */
	struct call_count *counts;
	size_t count_count, count_capacity;
};

static inline bool calls_used(const struct process_calls *calls, uint32_t id)
{
	return calls->used[id / 64] >> id % 64 & 1;
}

struct calls_capacity {
	size_t modules, counted, demoted;
};

/* instrumented.c: after the scan of a process: its functions become regions, its counts sums. 0 or
 * -ENOMEM. */
int instrumented_resolve(struct session *session, uint32_t process);
/* After the last process. */
void calls_sort(struct session *session);
void process_calls_deinit(struct process_calls *calls);
void session_free_calls(struct session *session);

#endif
