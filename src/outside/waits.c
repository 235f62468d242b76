/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The waits of a process, added up by thread, stack and waker: a hash table that grows.
 */
#include <stdlib.h>
#include <string.h>

#include "outside/blocking.h"

#define WAITS_MAX       20000u /* different ones of a process; others are added up in one */
#define SLOTS_LEAST     64u
#define FRAMES_RECORDED 400u /* of each stack, at most: the record's room */

struct outside_wait {
	uint64_t hash;
	uint32_t internal_id, tid;
	uint32_t count, waker_count; /* frames: the blocked thread's, then the waker's */
	enum spool_stack_end end;
	struct outside_waker waker; /* without frames */
	uint64_t *frames;
	uint64_t waits, ns, longest_ns;
};

struct outside_waits {
	struct outside_wait *list; /* the first one: those that found no room */
	uint32_t count, capacity;
	uint32_t *slots; /* number of a wait; 0: none */
	uint32_t slot_count;
};

static uint64_t hash_words(uint64_t hash, const uint64_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u ^ hash >> 29;
	return hash;
}

static uint32_t limit_frames(uint32_t count)
{
	return count < FRAMES_RECORDED ? count : FRAMES_RECORDED;
}

static struct outside_wait describe_wait(const struct outside_thread *thread)
{
	const struct outside_block *block = thread->block;
	struct outside_wait wait = {.internal_id = thread->internal_id,
				    .tid = thread->tid,
				    .count = limit_frames(block->stack.count),
				    .end = block->stack.end,
				    .waker = {.kind = block->waker.kind}};
	bool is_thread = block->waker.kind == SPOOL_WAKER_THREAD;

	if (is_thread) {
		wait.waker = block->waker;
		wait.waker_count = limit_frames(block->waker.stack.count);
	}
	wait.hash = hash_words((uint64_t)thread->internal_id << 32 | wait.waker.kind,
			       block->stack.frames, wait.count);
	wait.hash =
		hash_words(wait.hash ^ wait.waker.tid, block->waker.stack.frames, wait.waker_count);
	return wait;
}

static bool waits_are_equal(const struct outside_wait *wait, const struct outside_wait *other,
			    const struct outside_block *block)
{
	return wait->hash == other->hash && wait->internal_id == other->internal_id &&
	       wait->count == other->count && wait->waker_count == other->waker_count &&
	       wait->waker.kind == other->waker.kind && wait->waker.tid == other->waker.tid &&
	       !memcmp(wait->frames, block->stack.frames, wait->count * sizeof(uint64_t)) &&
	       (!wait->waker_count || !memcmp(wait->frames + wait->count, block->waker.stack.frames,
					      wait->waker_count * sizeof(uint64_t)));
}

static bool grow_slots(struct outside_waits *waits)
{
	uint32_t count = waits->slot_count ? 2 * waits->slot_count : SLOTS_LEAST;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t i = 1; i < waits->count; i++) {
		uint32_t at = (uint32_t)waits->list[i].hash & (count - 1);

		while (slots[at])
			at = (at + 1) & (count - 1);
		slots[at] = i;
	}
	free(waits->slots);
	waits->slots = slots;
	waits->slot_count = count;
	return true;
}

static bool reserve_wait(struct outside_waits *waits)
{
	struct outside_wait *more;

	if (2 * waits->count >= waits->slot_count && !grow_slots(waits))
		return false;
	if (waits->count < waits->capacity)
		return true;
	more = realloc(waits->list, (2 * waits->capacity + 16) * sizeof(*more));
	if (!more)
		return false;
	waits->capacity = 2 * waits->capacity + 16;
	waits->list = more;
	if (!waits->count)
		waits->list[waits->count++] = (struct outside_wait){.end = SPOOL_STACK_NOT_WALKED};
	return true;
}

static struct outside_wait *find_or_add(struct outside_waits *waits,
					const struct outside_thread *thread)
{
	const struct outside_block *block = thread->block;
	struct outside_wait wait = describe_wait(thread);
	uint32_t at;

	if (!reserve_wait(waits))
		return waits->count ? &waits->list[0] : NULL;
	at = (uint32_t)wait.hash & (waits->slot_count - 1);
	for (; waits->slots[at]; at = (at + 1) & (waits->slot_count - 1)) {
		if (waits_are_equal(&waits->list[waits->slots[at]], &wait, block))
			return &waits->list[waits->slots[at]];
	}
	wait.frames = waits->count < WAITS_MAX
			      ? malloc((wait.count + wait.waker_count + 1) * sizeof(uint64_t))
			      : NULL;
	if (!wait.frames)
		return &waits->list[0];
	memcpy(wait.frames, block->stack.frames, wait.count * sizeof(uint64_t));
	if (wait.waker_count)
		memcpy(wait.frames + wait.count, block->waker.stack.frames,
		       wait.waker_count * sizeof(uint64_t));
	waits->slots[at] = waits->count;
	waits->list[waits->count] = wait;
	return &waits->list[waits->count++];
}

void outside_waits_add(struct outside_thread *thread, uint64_t ns)
{
	struct outside_process *process = thread->process;
	struct outside_wait *wait;

	if (!process->waits)
		process->waits = calloc(1, sizeof(*process->waits));
	wait = process->waits ? find_or_add(process->waits, thread) : NULL;
	if (!wait)
		return;
	wait->waits++;
	wait->ns += ns;
	if (ns > wait->longest_ns)
		wait->longest_ns = ns;
}

static void write_frames(struct outside_spool *spool, const uint64_t *frames, uint32_t count)
{
	uint64_t before = 0;

	outside_record_unsigned(spool, count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t delta = frames[i] - before;

		outside_record_unsigned(spool, delta << 1 ^ -(delta >> 63));
		before = frames[i];
	}
}

static void write_wait(struct outside_spool *spool, const struct outside_wait *wait)
{
	outside_record_begin(spool);
	outside_record_unsigned(spool, wait->internal_id);
	outside_record_unsigned(spool, wait->tid);
	outside_record_unsigned(spool, wait->waits);
	outside_record_unsigned(spool, wait->ns);
	outside_record_unsigned(spool, wait->longest_ns);
	outside_record_unsigned(spool, wait->end);
	write_frames(spool, wait->frames, wait->count);
	outside_record_unsigned(spool, wait->waker.kind);
	outside_record_unsigned(spool, wait->waker.pid);
	outside_record_unsigned(spool, wait->waker.image);
	outside_record_unsigned(spool, wait->waker.tid);
	outside_record_text(spool, wait->waker.name);
	write_frames(spool, wait->frames + wait->count, wait->waker_count);
	outside_record_end(spool, SPOOL_RECORD_WAITS);
}

void outside_waits_write(struct outside_process *process)
{
	struct outside_waits *waits = process->waits;

	for (uint32_t i = 0; waits && i < waits->count; i++) {
		if (process->spool && waits->list[i].waits)
			write_wait(process->spool, &waits->list[i]);
		free(waits->list[i].frames);
	}
	if (waits) {
		free(waits->list);
		free(waits->slots);
	}
	free(waits);
	process->waits = NULL;
}
