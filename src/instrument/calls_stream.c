/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See calls_stream.h.
 */
#include "instrument/calls_stream.h"

#include <stddef.h>

#include "core/chunk_wait.h"
#include "core/ticks.h"
#include "instrument/demote.h"
#include "instrument/vectors.h"
#include "regions/stream.h"

#define OPEN_MAX       512u  /* open calls listed at the start of a record: the innermost ones */
#define WORTH          1024u /* less room than this is not worth another record */
#define RETRY_FRACTION 20    /* of a second, after which a chunk is asked for again */
#define HEAD           8u    /* an empty STRING, kind and length: what follows is aligned */

/* The call whose word has to be written into the new record. */
struct next_record {
	struct calls_thread *calls;
	uint64_t ticks;
	uint32_t exit_id; /* it ends: open still, as far as the record goes */
	bool entry;       /* it begins: on the shadow stack already, but not open yet */
	uint8_t reserved; /* words that the gate code reserved for it at most, and left */
};

static _Atomic uint32_t times_left; /* that kymo left the process */

void calls_stream_left(void)
{
	atomic_fetch_add(&times_left, 1);
}

/* A thread that was about to begin a record, and was held up, must not go on with a chunk of
 * before: its memory is used otherwise when kymo comes again. Either it sees here that kymo left,
 * or what it has stored is seen, and taken back, by who leaves (calls_poke()). */
static bool is_still_on(const struct next_record *next, uint32_t before)
{
	struct calls_thread *calls = next->calls;

	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&times_left) == before)
		return true;
	calls->at = calls->end = NULL;
	calls->node->chunk = NULL;
	calls->node->record = calls->node->rest = NULL;
	return false;
}

static void put_length(uint8_t *at, uint32_t length)
{
	at[0] = (uint8_t)(length | 0x80);
	at[1] = (uint8_t)(length >> 7 | 0x80);
	at[2] = (uint8_t)(length >> 14);
}

/* A record whose payload begins at a multiple of eight. */
static uint8_t *put_head(uint8_t *at, uint32_t length)
{
	at[0] = SPOOL_RECORD_STRING;
	at[1] = 2;
	at[2] = at[3] = 0;
	put_length(at + 5, length);
	at[4] = SPOOL_RECORD_CALLS;
	return at + HEAD;
}

static uint32_t *put_open(const struct next_record *next, struct spool_calls *head)
{
	const struct shadow_node *node = next->calls->node;
	const struct shadow_entry *end = next->calls->top - next->entry;
	uint32_t open = 0, left_out = 0, *at = (uint32_t *)(head + 1);

	for (const struct shadow_entry *entry = node->entries + 1; entry < end; entry++)
		open += shadow_is_open(entry);
	if (open > OPEN_MAX)
		left_out = open - OPEN_MAX;
	head->open_left_out = left_out;
	open = 0;
	for (const struct shadow_entry *entry = node->entries + 1; entry < end; entry++) {
		if (!shadow_is_open(entry) || open++ < left_out)
			continue;
		*at++ = entry->id;
	}
	if (next->exit_id)
		*at++ = next->exit_id;
	head->open_count = (uint32_t)(at - (uint32_t *)(head + 1));
	return at + (head->open_count & 1);
}

static void begin_record(const struct next_record *next, uint8_t *record, uint8_t *limit)
{
	struct shadow_node *node = next->calls->node;
	struct spool_calls *head = (void *)put_head(record, (uint32_t)(limit - record) - HEAD);

	head->internal_id = node->internal_id;
	head->tid = node->tid;
	head->ticks = next->ticks;
	node->record = record;
	node->chunk_ticks = next->ticks;
	next->calls->at = (uint64_t *)(void *)put_open(next, head);
	next->calls->end = (uint64_t *)(void *)limit;
}

static const uint64_t *first_word(const uint8_t *record)
{
	const struct spool_calls *head = (const void *)(record + HEAD);
	uint32_t listed = (head->open_count + 1) & ~1u;

	return (const void *)((const uint32_t *)(head + 1) + listed);
}

static void count_words(struct shadow_node *node, const uint64_t *at)
{
	atomic_fetch_add_explicit((_Atomic uint64_t *)&kymo_runtime.spool.header->region_events,
				  (uint64_t)(at - first_word(node->record)), memory_order_relaxed);
}

static uint64_t *limit_of(const struct shadow_node *node)
{
	uint8_t *data = spool_chunk_data(node->chunk);

	return (uint64_t *)(void *)(data + spool_chunk_capacity(node->chunk));
}

/* Is there a word whose place was taken and that is not written? It is that of gate code which a
 * signal handler interrupted, and this runs in the handler. */
static bool is_awaited(const uint64_t *at, const uint64_t *end)
{
	while (end - at >= 4 && at[0] && at[1] && at[2] && at[3])
		at += 4;
	while (at < end && *at)
		at++;
	return at < end;
}

static void retire(struct shadow_node *node, const struct next_record *next)
{
	bool awaited = false;

	if (node->record) {
		/* Beyond the limit: the gate code reserves before it looks. */
		const uint64_t *first = first_word(node->record), *limit = limit_of(node),
			       *at = next->calls->at, *end = at < limit ? at : limit;

		count_words(node, end);
		demote_judge(first, (size_t)(end - first), next->ticks - node->chunk_ticks);
		at -= next->reserved;
		awaited = is_awaited(first, at < limit ? at : limit);
	}
	/* One that is awaited is not given back, neither for use nor to be unmapped. */
	if (node->chunk && !awaited)
		spool_chunk_retire(&kymo_runtime.spool, node->chunk);
	node->chunk = NULL;
	node->record = NULL;
	node->rest = NULL; /* it was too small, and is no part of the chunk that follows */
}

/* A ring hands out chunks with what was in them. */
static void clear(uint8_t *at, const uint8_t *end)
{
	for (; at < end; at += sizeof(uint64_t))
		*(volatile uint64_t *)(void *)at = 0;
}

static struct spool_chunk *take_chunk(struct shadow_node *node)
{
	struct spool_writer *spool = &kymo_runtime.spool;
	enum spool_chunk_class wanted = node->large ? SPOOL_LARGE : SPOOL_SMALL;
	struct spool_chunk *chunk = spool_chunk_take(spool, wanted);

	if (!chunk)
		return chunk_wait(SPOOL_LARGE, CHUNK_IN_CALL);
	if (atomic_load_explicit(&spool->wanted, memory_order_relaxed))
		background_wake(&kymo_runtime.background);
	return chunk;
}

/* Behind the record of the thread that had the node before. */
static bool go_on_in_chunk(const struct next_record *next)
{
	struct shadow_node *node = next->calls->node;
	struct spool_chunk *chunk = node->chunk;
	uint8_t *limit;

	if (!chunk || !node->rest)
		return false;
	limit = spool_chunk_data(chunk) + spool_chunk_capacity(chunk);
	if ((size_t)(limit - node->rest) < WORTH + 4 * OPEN_MAX)
		return false;
	clear(node->rest, node->rest + HEAD);
	begin_record(next, node->rest, limit);
	node->rest = NULL;
	return true;
}

static uint64_t next_record(void *argument)
{
	const struct next_record *next = argument;
	struct calls_thread *calls = next->calls;
	struct shadow_node *node = calls->node;
	uint32_t before = atomic_load(&times_left);
	struct spool_chunk *chunk;
	uint8_t *data, *limit;

	if (atomic_load_explicit(&kymo_runtime.state, memory_order_relaxed) == RUNTIME_INACTIVE)
		return 0;
	if (go_on_in_chunk(next))
		return is_still_on(next, before);
	if (node->record && next->ticks - node->chunk_ticks < kymo_runtime.sampling.growth_ticks)
		node->large = true;
	retire(node, next);
	calls->at = calls->end = NULL;
	if (node->retry_ticks > next->ticks)
		return 0;
	chunk = take_chunk(node);
	if (!chunk) {
		node->retry_ticks = next->ticks + kymo_runtime.sampling.tick_hz / RETRY_FRACTION;
		return 0;
	}
	data = spool_chunk_data(chunk);
	limit = data + spool_chunk_capacity(chunk);
	if (kymo_runtime.spool.ring)
		clear(data, limit);
	node->chunk = chunk;
	begin_record(next, data, limit);
	/* release: who sees the length sees the head */
	atomic_store_explicit((_Atomic uint32_t *)&chunk->header->committed,
			      spool_chunk_capacity(chunk), memory_order_release);
	return is_still_on(next, before);
}

static bool has_room(struct next_record *next)
{
	const struct calls_thread *calls = next->calls;

	if (calls->at < calls->end)
		return true;
	if (!calls->node->record && calls->node->retry_ticks > next->ticks)
		return false;
	return vectors_keep(calls->node->vectors, next_record, next) != 0;
}

static void put_word(struct next_record *next, uint64_t word)
{
	if (has_room(next))
		*next->calls->at++ = word;
	else
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_CALL_EVENTS);
}

void calls_write(struct calls_thread *calls, uint32_t id, enum call_word what, uint64_t ticks)
{
	/* Of tail calls, which write two words, room for both may have been reserved. */
	struct next_record next = {calls, ticks, what == CALL_EXIT ? id : 0, what == CALL_ENTRY,
				   what == CALL_LEFT ? 2 : 0};

	put_word(&next, ticks << SPOOL_CALL_TICK_SHIFT | (uint64_t)id << SPOOL_CALL_ID_SHIFT |
				(what == CALL_ENTRY ? 0 : SPOOL_CALL_EXIT));
}

/* The gate code has reserved room that is not there; handlers may have done so since. */
void calls_write_word(struct calls_thread *calls, uint64_t word, bool entry)
{
	uint32_t id = (uint32_t)word >> SPOOL_CALL_ID_SHIFT & PLAN_ID_MAX;
	struct next_record next = {calls, ticks_now(), entry ? 0 : id, entry, 1};
	const uint64_t mask = (1ull << SPOOL_CALL_TICK_SHIFT) - 1;

	calls->limit = NULL; /* what interrupts this goes the slow way, and finds it busy */
	atomic_store_explicit(&calls->busy, (uint64_t)(uintptr_t)&next, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	put_word(&next, (word & mask) | next.ticks << SPOOL_CALL_TICK_SHIFT);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&calls->busy, 0, memory_order_relaxed);
	calls->limit = calls_limit(calls);
}

void calls_stream_end(struct shadow_node *node, const uint64_t *at)
{
	uint8_t *limit, *rest = (uint8_t *)(uintptr_t)at;

	node->rest = NULL;
	if (!node->record || !node->chunk)
		return;
	limit = (uint8_t *)limit_of(node);
	if (rest > limit)
		rest = limit;
	count_words(node, (const void *)rest);
	put_length(node->record + 5, (uint32_t)(rest - node->record) - HEAD);
	node->record = NULL;
	if (rest == limit)
		return;
	/* What is left reads as an empty string. */
	put_length(rest + 1, (uint32_t)(limit - rest) - 4);
	rest[0] = SPOOL_RECORD_STRING;
	node->rest = rest;
}
