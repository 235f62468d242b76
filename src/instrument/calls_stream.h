/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the words of calls go: a CALLS record that fills a chunk of the spool. Its bytes are zero
 * until a word is written, so that nothing more has to be told for a reader to find all of them,
 * however the process ends.
 *
 * On the thread itself, in the slow ways of calls.h only.
 */
#ifndef KYMO_INSTRUMENT_CALLS_STREAM_H
#define KYMO_INSTRUMENT_CALLS_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "instrument/calls.h"
#include "instrument/shadow.h"

enum call_word_kind {
	CALL_WORD_ENTRY,    /* on the shadow stack already, as its innermost */
	CALL_WORD_EXIT,     /* taken off it */
	CALL_WORD_ABANDONED /* ends, and is still on it */
};

/* Adds a word; counted as lost when there is no room. */
void calls_write_call_word(struct calls_thread_state *calls, uint32_t id, enum call_word_kind what,
			   uint64_t ticks);
/* The same for a word without its time, whose room the trampoline code did not find. */
void calls_write_word_that_had_no_room(struct calls_thread_state *calls, uint64_t word, bool entry);
/* kymo leaves the process: chunks that threads are about to get are not for them any more. Before
 * those that they have are taken from them. */
void calls_stream_invalidate_chunks(void);
/* The record ends here; what is left of the chunk is for the node's next thread. */
void calls_stream_close_open_record(struct shadow_stack_node *node, const uint64_t *at);

/* Where the thread's entries take the slow way. */
struct shadow_entry *calls_compute_shadow_limit(const struct calls_thread_state *calls);

/* By way of region_begin() and region_end(), for all that words do not do. */
void calls_begin_region(struct shadow_stack_node *node, uint32_t id,
			const struct calls_saved_registers *registers);
/* What signal handlers reserved while a call was summed up. */
void calls_record_reserved_events(struct shadow_stack_node *node);
/* registers NULL: the call did not return. */
void calls_end_region(struct shadow_stack_node *node, uint32_t id,
		      const struct calls_saved_registers *registers);

#endif
