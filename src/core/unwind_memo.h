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
#ifndef KYMO_CORE_UNWIND_MEMO_H
#define KYMO_CORE_UNWIND_MEMO_H

#include "core/unwind.h"

#define UNWIND_MEMO_HOW_SHIFT 56
#define UNWIND_MEMO_KEY       ((1ull << UNWIND_MEMO_HOW_SHIFT) - 1)

/* A walk's place in the memo. */
struct unwind_memo_cursor {
	struct unwind_memo *memo; /* NULL: there is none */
	uint32_t at;              /* entries below are further in than the walk */
	uint32_t tail;  /* entries from here on are frames of this walk; UNWIND_MEMO: none */
	uint32_t fresh; /* entries collected; more than UNWIND_MEMO: too many */
};

static inline struct unwind_memo_cursor unwind_memo_begin(struct unwind_memo *memo,
							  uint64_t generation)
{
	struct unwind_memo_cursor cursor = {.memo = memo, .tail = UNWIND_MEMO};

	if (!memo)
		return cursor;
	if (memo->generation != generation || memo->start > UNWIND_MEMO) {
		memo->generation = generation;
		memo->start = UNWIND_MEMO;
	}
	cursor.at = memo->start;
	return cursor;
}

static inline void unwind_memo_append(struct unwind_memo_cursor *cursor, uint64_t sp, uint64_t bp,
				      uint64_t key)
{
	if (cursor->fresh < UNWIND_MEMO)
		cursor->memo->fresh[cursor->fresh] =
			(struct unwind_memo_frame){.sp = sp, .bp = bp, .key = key};
	cursor->fresh++;
}

/* The part that was thought to be the rest of the walk was not: it counts as collected. */
static inline void unwind_memo_flush(struct unwind_memo_cursor *cursor, uint32_t end)
{
	for (uint32_t i = cursor->tail; i < end; i++) {
		const struct unwind_memo_frame *frame = &cursor->memo->frames[i];

		unwind_memo_append(cursor, frame->sp, frame->bp, frame->key);
	}
	cursor->tail = UNWIND_MEMO;
}

/* Notes a frame that the walk has arrived in. saved: how it came from the last one noted, by a
 * compact rule with rbp saved in that word (0: kept), or -1: otherwise. */
static inline void unwind_memo_note(struct unwind_memo_cursor *cursor, uint64_t sp, uint64_t bp,
				    uint64_t key, int32_t saved)
{
	if (cursor->tail != UNWIND_MEMO)
		unwind_memo_flush(cursor, UNWIND_MEMO);
	unwind_memo_append(cursor, sp, bp, key | (uint64_t)(saved + 1) << UNWIND_MEMO_HOW_SHIFT);
}

/* True when the last walk was in this very frame. Two entries are passed at most, without a branch:
 * how the frames of two stacks interleave is not predictable. */
static inline bool unwind_memo_meets(struct unwind_memo_cursor *cursor, uint64_t sp, uint64_t bp,
				     uint64_t key)
{
	const struct unwind_memo_frame *frames = cursor->memo->frames;

	while (cursor->at < UNWIND_MEMO && frames[cursor->at].sp < sp)
		cursor->at++;
	return cursor->at < UNWIND_MEMO && frames[cursor->at].sp == sp &&
	       frames[cursor->at].bp == bp && (frames[cursor->at].key & UNWIND_MEMO_KEY) == key;
}

/* Takes the entry at hand over; the way into it is that of this walk. */
static inline void unwind_memo_meet(struct unwind_memo_cursor *cursor, uint64_t key, int32_t saved)
{
	cursor->memo->frames[cursor->at].key = key | (uint64_t)(saved + 1) << UNWIND_MEMO_HOW_SHIFT;
	cursor->tail = cursor->at;
}

/* Keeps what this walk saw for the next. */
static inline void unwind_memo_end(struct unwind_memo_cursor *cursor)
{
	struct unwind_memo *memo = cursor->memo;
	uint32_t start = cursor->tail, kept = cursor->fresh;

	if (!memo)
		return;
	if (cursor->fresh > UNWIND_MEMO) {
		memo->start = cursor->tail;
		return;
	}
	/* Word by word: wider loads of what was just stored word by word would wait for the stores.
	 */
	while (kept && start) {
		const struct unwind_memo_frame *from = &memo->fresh[--kept];
		struct unwind_memo_frame *to = &memo->frames[--start];

		to->sp = __atomic_load_n(&from->sp, __ATOMIC_RELAXED);
		to->bp = __atomic_load_n(&from->bp, __ATOMIC_RELAXED);
		to->key = __atomic_load_n(&from->key, __ATOMIC_RELAXED);
	}
	memo->start = start;
}

#endif
