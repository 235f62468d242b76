/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See calls_stream.h.
 */
#include "instrument/calls_stream.h"

#include <stddef.h>

#include "core/base/ticks.h"
#include "core/spool/chunk_wait.h"
#include "instrument/demote.h"
#include "instrument/state.h"
#include "instrument/vectors.h"
#include "regions/stream.h"

#define OPEN_CALLS_LISTED_MAX                                                                      \
	512u /* open calls listed at the start of a record: the innermost ones */
#define CALLS_RECORD_BYTES_LEAST 1024u /* less room than this is not worth another record */
#define CHUNK_RETRIES_PER_SECOND 20    /* of a second, after which a chunk is asked for again */
#define CALLS_RECORD_HEAD_BYTES  8u /* an empty STRING, kind and length: what follows is aligned */

/* The call whose word has to be written into the new record. */
struct pending_call_info {
	struct calls_thread_state *calls;
	uint64_t ticks;
	uint32_t exiting_function_id; /* it ends: open still, as far as the record goes */
	bool entry;                   /* it begins: on the shadow stack already, but not open yet */
	uint8_t reserved; /* words that the trampoline code reserved for it at most, and left */
};

static _Atomic uint32_t detach_count; /* that kymo left the process */

void calls_stream_invalidate_chunks(void)
{
	atomic_fetch_add(&detach_count, 1);
}

/* A thread that was about to begin a record, and was held up, must not go on with a chunk of
 * before: its memory is used otherwise when kymo comes again. Either it sees here that kymo left,
 * or what it has stored is seen, and taken back, by who leaves (calls_force_new_records()). */
static bool keep_chunk_unless_detached(const struct pending_call_info *next, uint32_t before)
{
	struct calls_thread_state *calls = next->calls;

	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&detach_count) == before)
		return true;
	calls->at = calls->end = NULL;
	calls->node->chunk = NULL;
	calls->node->record = calls->node->rest = NULL;
	return false;
}

static void encode_record_length(uint8_t *at, uint32_t length)
{
	at[0] = (uint8_t)(length | 0x80);
	at[1] = (uint8_t)(length >> 7 | 0x80);
	at[2] = (uint8_t)(length >> 14);
}

/* A record whose payload begins at a multiple of eight. */
static uint8_t *encode_record_head(uint8_t *at, uint32_t length)
{
	at[0] = SPOOL_RECORD_STRING;
	at[1] = 2;
	at[2] = at[3] = 0;
	encode_record_length(at + 5, length);
	at[4] = SPOOL_RECORD_CALLS;
	return at + CALLS_RECORD_HEAD_BYTES;
}

static uint32_t *encode_open_calls(const struct pending_call_info *next, struct spool_calls *head)
{
	const struct shadow_stack_node *node = next->calls->node;
	const struct shadow_entry *end = next->calls->top - next->entry;
	uint32_t open = 0, left_out = 0, *at = (uint32_t *)(head + 1);

	for (const struct shadow_entry *entry = node->entries + 1; entry < end; entry++)
		open += shadow_entry_is_open(entry);
	if (open > OPEN_CALLS_LISTED_MAX)
		left_out = open - OPEN_CALLS_LISTED_MAX;
	head->open_left_out = left_out;
	open = 0;
	for (const struct shadow_entry *entry = node->entries + 1; entry < end; entry++) {
		if (!shadow_entry_is_open(entry) || open++ < left_out)
			continue;
		*at++ = entry->id;
	}
	if (next->exiting_function_id)
		*at++ = next->exiting_function_id;
	head->open_count = (uint32_t)(at - (uint32_t *)(head + 1));
	return at + (head->open_count & 1);
}

/* Returns where its first word goes. */
static uint64_t *begin_calls_record(const struct pending_call_info *next, uint8_t *record,
				    uint8_t *limit)
{
	struct shadow_stack_node *node = next->calls->node;
	struct spool_calls *head = (void *)encode_record_head(
		record, (uint32_t)(limit - record) - CALLS_RECORD_HEAD_BYTES);

	head->internal_id = node->internal_thread_id;
	head->tid = node->tid;
	head->ticks = next->ticks;
	node->record = record;
	node->chunk_ticks = next->ticks;
	return (uint64_t *)(void *)encode_open_calls(next, head);
}

/* Last: a signal handler that interrupts what comes before, and is left by siglongjmp, leaves a
 * thread that has no room, and begins a record with its next word. */
static void open_record_for_words(struct calls_thread_state *calls, uint64_t *at, uint8_t *limit)
{
	atomic_signal_fence(memory_order_seq_cst);
	calls->at = at;
	atomic_signal_fence(memory_order_seq_cst);
	calls->end = (uint64_t *)(void *)limit;
}

static const uint64_t *find_first_word_of_record(const uint8_t *record)
{
	const struct spool_calls *head = (const void *)(record + CALLS_RECORD_HEAD_BYTES);
	uint32_t listed = (head->open_count + 1) & ~1u;

	return (const void *)((const uint32_t *)(head + 1) + listed);
}

static void add_call_words_to_event_count(struct shadow_stack_node *node, const uint64_t *at)
{
	atomic_fetch_add_explicit((_Atomic uint64_t *)&kymo_instrument.spool->header->region_events,
				  (uint64_t)(at - find_first_word_of_record(node->record)),
				  memory_order_relaxed);
}

static uint64_t *get_chunk_end(const struct shadow_stack_node *node)
{
	uint8_t *data = spool_chunk_get_data(node->chunk);

	return (uint64_t *)(void *)(data + spool_chunk_get_capacity(node->chunk));
}

/* Is there a word whose place was taken and that is not written? It is that of trampoline code
 * which a signal handler interrupted, and this runs in the handler. */
static bool has_reserved_but_unwritten_word(const uint64_t *at, const uint64_t *end)
{
	while (end - at >= 4 && at[0] && at[1] && at[2] && at[3])
		at += 4;
	while (at < end && *at)
		at++;
	return at < end;
}

/* The node forgets the chunk before it is given back: a handler that is left by siglongjmp in
 * between loses one chunk, and does not give it back twice. */
static void retire_calls_chunk(struct shadow_stack_node *node, const struct pending_call_info *next)
{
	struct spool_chunk *chunk = node->chunk;
	bool awaited = false;

	if (node->record && next->calls->at) {
		/* Beyond the limit: the trampoline code reserves before it looks. */
		const uint64_t *first = find_first_word_of_record(node->record),
			       *limit = get_chunk_end(node), *at = next->calls->at,
			       *end = at < limit ? at : limit;

		add_call_words_to_event_count(node, end);
		demote_enqueue_short_functions(first, (size_t)(end - first),
					       next->ticks - node->chunk_ticks);
		at -= next->reserved;
		awaited = has_reserved_but_unwritten_word(first, at < limit ? at : limit);
	}
	node->record = NULL;
	node->rest = NULL; /* it was too small, and is no part of the chunk that follows */
	atomic_signal_fence(memory_order_seq_cst);
	node->chunk = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	/* One that is awaited is not given back, neither for use nor to be unmapped. */
	if (chunk && !awaited)
		spool_chunk_retire(kymo_instrument.spool, chunk);
}

static void clear_words(uint8_t *at, const uint8_t *end)
{
	for (; at < end; at += sizeof(uint64_t))
		*(volatile uint64_t *)(void *)at = 0;
}

static struct spool_chunk *acquire_calls_chunk(struct shadow_stack_node *node)
{
	struct spool_writer *spool = kymo_instrument.spool;
	enum spool_chunk_class wanted =
		node->large ? SPOOL_CHUNK_CLASS_LARGE : SPOOL_CHUNK_CLASS_SMALL;
	struct spool_chunk *chunk = spool_chunk_take(spool, wanted);

	if (!chunk)
		return spool_wait_for_chunk(spool, SPOOL_CHUNK_CLASS_LARGE, CHUNK_WAIT_IN_CALL);
	if (atomic_load_explicit(&spool->wanted, memory_order_relaxed))
		background_wake(kymo_instrument.background);
	return chunk;
}

/* Behind the record of the thread that had the node before. */
static bool begin_record_in_rest_of_chunk(const struct pending_call_info *next)
{
	struct shadow_stack_node *node = next->calls->node;
	struct spool_chunk *chunk = node->chunk;
	uint8_t *limit;

	if (!chunk || !node->rest)
		return false;
	limit = spool_chunk_get_data(chunk) + spool_chunk_get_capacity(chunk);
	if ((size_t)(limit - node->rest) < CALLS_RECORD_BYTES_LEAST + 4 * OPEN_CALLS_LISTED_MAX)
		return false;
	clear_words(node->rest, node->rest + CALLS_RECORD_HEAD_BYTES);
	open_record_for_words(next->calls, begin_calls_record(next, node->rest, limit), limit);
	node->rest = NULL;
	return true;
}

static uint64_t begin_next_calls_record(void *argument)
{
	const struct pending_call_info *next = argument;
	struct calls_thread_state *calls = next->calls;
	struct shadow_stack_node *node = calls->node;
	uint32_t before = atomic_load(&detach_count);
	struct spool_chunk *chunk;
	uint8_t *data, *limit;
	uint64_t *at;

	if (atomic_load_explicit(&kymo_process.state, memory_order_relaxed) == RUNTIME_INACTIVE)
		return 0;
	if (begin_record_in_rest_of_chunk(next))
		return keep_chunk_unless_detached(next, before);
	if (node->record &&
	    next->ticks - node->chunk_ticks < kymo_instrument.sampler->large_chunk_fill_ticks)
		node->large = true;
	retire_calls_chunk(node, next);
	calls->at = calls->end = NULL;
	if (node->retry_ticks > next->ticks)
		return 0;
	chunk = acquire_calls_chunk(node);
	if (!chunk) {
		node->retry_ticks =
			next->ticks + kymo_instrument.sampler->tick_hz / CHUNK_RETRIES_PER_SECOND;
		return 0;
	}
	data = spool_chunk_get_data(chunk);
	limit = data + spool_chunk_get_capacity(chunk);
	node->chunk = chunk;
	at = begin_calls_record(next, data, limit);
	spool_chunk_set_changes_in_place(chunk);
	/* release: who sees the length sees the head */
	atomic_store_explicit((_Atomic uint32_t *)&chunk->header->committed,
			      spool_chunk_get_capacity(chunk), memory_order_release);
	open_record_for_words(calls, at, limit);
	return keep_chunk_unless_detached(next, before);
}

static bool ensure_word_room(struct pending_call_info *next)
{
	const struct calls_thread_state *calls = next->calls;

	if (calls->at < calls->end)
		return true;
	if (!calls->node->record && calls->node->retry_ticks > next->ticks)
		return false;
	return vectors_call_preserving_registers(calls->node->vector_area, begin_next_calls_record,
						 next) != 0;
}

static void write_call_word(struct pending_call_info *next, uint64_t word)
{
	if (ensure_word_room(next))
		*next->calls->at++ = word;
	else
		spool_count_loss(kymo_instrument.spool, SPOOL_LOSS_CALL_EVENTS);
}

void calls_write_call_word(struct calls_thread_state *calls, uint32_t id, enum call_word_kind what,
			   uint64_t ticks)
{
	/* For tail calls, which write two words, room for both may have been reserved. */
	struct pending_call_info next = {calls, ticks, what == CALL_WORD_EXIT ? id : 0,
					 what == CALL_WORD_ENTRY,
					 what == CALL_WORD_ABANDONED ? 2 : 0};

	write_call_word(&next, ticks << SPOOL_CALL_TICK_SHIFT |
				       (uint64_t)id << SPOOL_CALL_ID_SHIFT |
				       (what == CALL_WORD_ENTRY ? 0 : SPOOL_CALL_EXIT));
}

/* The trampoline code has reserved room that is not there; handlers may have done so since. */
void calls_write_word_that_had_no_room(struct calls_thread_state *calls, uint64_t word, bool entry)
{
	uint32_t id = (uint32_t)word >> SPOOL_CALL_ID_SHIFT & PLAN_ID_MAX;
	struct pending_call_info next = {calls, ticks_now(), entry ? 0 : id, entry, 1};
	const uint64_t mask = (1ull << SPOOL_CALL_TICK_SHIFT) - 1;

	calls->limit = NULL; /* what interrupts this goes the slow way, and finds it busy */
	atomic_store_explicit(&calls->busy, (uint64_t)(uintptr_t)&next, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	write_call_word(&next, (word & mask) | next.ticks << SPOOL_CALL_TICK_SHIFT);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&calls->busy, 0, memory_order_relaxed);
	calls->limit = calls_compute_shadow_limit(calls);
}

void calls_stream_close_open_record(struct shadow_stack_node *node, const uint64_t *at)
{
	uint8_t *limit, *rest = (uint8_t *)(uintptr_t)at;

	node->rest = NULL;
	if (!node->record || !node->chunk)
		return;
	limit = (uint8_t *)get_chunk_end(node);
	if (rest > limit)
		rest = limit;
	add_call_words_to_event_count(node, (const void *)rest);
	encode_record_length(node->record + 5,
			     (uint32_t)(rest - node->record) - CALLS_RECORD_HEAD_BYTES);
	node->record = NULL;
	if (rest == limit)
		return;
	/* What is left reads as an empty string. */
	encode_record_length(rest + 1, (uint32_t)(limit - rest) - 4);
	rest[0] = SPOOL_RECORD_STRING;
	node->rest = rest;
}
