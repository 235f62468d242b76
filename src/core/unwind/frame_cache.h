/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What one thread's last walk saw, so that the next one need not find it out again. Most of a stack
 * is the same from sample to sample: its outer part. A frame is described by sp, bp and pc; the
 * frame after it follows from these, the rule of the pc, and the one or two stack words that hold
 * the return address and rbp. So where a walk meets a frame of the last walk, and those words are
 * what they were, the next frame is what it was: no hash, no rule, and above all no chain of loads
 * that each wait for the one before, which is what a walk through cold caches spends its time on.
 *
 * The memo is an array filled from its end, innermost frame first. Frames of a walk that the memo
 * did not know are collected in `fresh` and put in front of the part that was still right.
 */
#ifndef KYMO_CORE_UNWIND_FRAME_CACHE_H
#define KYMO_CORE_UNWIND_FRAME_CACHE_H

#include "core/unwind/unwind.h"

#define UNWIND_FRAME_CACHE_STEP_SHIFT 56
#define UNWIND_FRAME_CACHE_KEY_MASK   ((1ull << UNWIND_FRAME_CACHE_STEP_SHIFT) - 1)

/* A walk's place in the memo. */
struct unwind_frame_cache_cursor {
	struct unwind_frame_cache *cache; /* NULL: there is none */
	uint32_t at;                      /* entries below are further in than the walk */
	uint32_t tail_start_index;        /* entries from here on are frames of this walk;
				 UNWIND_FRAME_CACHE_ENTRIES:        none */
	uint32_t new_frame_count; /* entries collected; more than UNWIND_FRAME_CACHE_ENTRIES: too
				     many */
};

static inline struct unwind_frame_cache_cursor
unwind_frame_cache_begin_walk(struct unwind_frame_cache *memo, uint64_t generation)
{
	struct unwind_frame_cache_cursor cursor = {.cache = memo,
						   .tail_start_index = UNWIND_FRAME_CACHE_ENTRIES};

	if (!memo)
		return cursor;
	if (memo->generation != generation || memo->start > UNWIND_FRAME_CACHE_ENTRIES) {
		memo->generation = generation;
		memo->start = UNWIND_FRAME_CACHE_ENTRIES;
	}
	cursor.at = memo->start;
	return cursor;
}

static inline void unwind_frame_cache_append_new_frame(struct unwind_frame_cache_cursor *cursor,
						       uint64_t sp, uint64_t bp, uint64_t key)
{
	if (cursor->new_frame_count < UNWIND_FRAME_CACHE_ENTRIES)
		cursor->cache->new_frames[cursor->new_frame_count] =
			(struct unwind_frame_cache_entry){.sp = sp, .bp = bp, .key = key};
	cursor->new_frame_count++;
}

/* The part that was thought to be the rest of the walk was not: it counts as collected. */
static inline void unwind_frame_cache_copy_tail_to_new(struct unwind_frame_cache_cursor *cursor,
						       uint32_t end)
{
	for (uint32_t i = cursor->tail_start_index; i < end; i++) {
		const struct unwind_frame_cache_entry *frame = &cursor->cache->frames[i];

		unwind_frame_cache_append_new_frame(cursor, frame->sp, frame->bp, frame->key);
	}
	cursor->tail_start_index = UNWIND_FRAME_CACHE_ENTRIES;
}

/* Notes a frame that the walk has arrived in. saved: how it came from the last one noted, by a
 * compact rule with rbp saved in that word (0: kept), or -1: otherwise. */
static inline void unwind_frame_cache_record_frame(struct unwind_frame_cache_cursor *cursor,
						   uint64_t sp, uint64_t bp, uint64_t key,
						   int32_t saved)
{
	if (cursor->tail_start_index != UNWIND_FRAME_CACHE_ENTRIES)
		unwind_frame_cache_copy_tail_to_new(cursor, UNWIND_FRAME_CACHE_ENTRIES);
	unwind_frame_cache_append_new_frame(
		cursor, sp, bp, key | (uint64_t)(saved + 1) << UNWIND_FRAME_CACHE_STEP_SHIFT);
}

/* True when the last walk was in this very frame. Two entries are passed at most, without a branch:
 * how the frames of two stacks interleave is not predictable. */
static inline bool unwind_frame_cache_find_frame_onward(struct unwind_frame_cache_cursor *cursor,
							uint64_t sp, uint64_t bp, uint64_t key)
{
	const struct unwind_frame_cache_entry *frames = cursor->cache->frames;

	while (cursor->at < UNWIND_FRAME_CACHE_ENTRIES && frames[cursor->at].sp < sp)
		cursor->at++;
	return cursor->at < UNWIND_FRAME_CACHE_ENTRIES && frames[cursor->at].sp == sp &&
	       frames[cursor->at].bp == bp &&
	       (frames[cursor->at].key & UNWIND_FRAME_CACHE_KEY_MASK) == key;
}

/* Takes the entry at hand over; the way into it is that of this walk. */
static inline void unwind_frame_cache_reuse_frame(struct unwind_frame_cache_cursor *cursor,
						  uint64_t key, int32_t saved)
{
	cursor->cache->frames[cursor->at].key = key | (uint64_t)(saved + 1)
							      << UNWIND_FRAME_CACHE_STEP_SHIFT;
	cursor->tail_start_index = cursor->at;
}

/* Keeps what this walk saw for the next. */
static inline void unwind_frame_cache_save_walk(struct unwind_frame_cache_cursor *cursor)
{
	struct unwind_frame_cache *memo = cursor->cache;
	uint32_t start = cursor->tail_start_index, kept = cursor->new_frame_count;

	if (!memo)
		return;
	if (cursor->new_frame_count > UNWIND_FRAME_CACHE_ENTRIES) {
		memo->start = cursor->tail_start_index;
		return;
	}
	/* Word by word: wider loads of what was just stored word by word would wait for the stores.
	 */
	while (kept && start) {
		const struct unwind_frame_cache_entry *from = &memo->new_frames[--kept];
		struct unwind_frame_cache_entry *to = &memo->frames[--start];

		to->sp = __atomic_load_n(&from->sp, __ATOMIC_RELAXED);
		to->bp = __atomic_load_n(&from->bp, __ATOMIC_RELAXED);
		to->key = __atomic_load_n(&from->key, __ATOMIC_RELAXED);
	}
	memo->start = start;
}

#endif
