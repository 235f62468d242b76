/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See memo.h.
 */
#include "core/stacks/memo.h"

#include "core/unwind/frame_cache.h"
#include "core/unwind/walk.h"

#define WORDS_COMPARED_AT_ONCE 8u

/* Words lie above the caller's frame on a stack that is mapped up to its end: see
 * add_word_to_memo(). Stacks that differ do so near their innermost frames. */
UNWIND_UNSANITIZED
bool stack_memo_has_native_stack(const struct stack_memo *memo,
				 const struct unwind_start_registers *caller, uint64_t generation)
{
	if (!stack_memo_has_registers(memo, caller, generation))
		return false;
	for (uint32_t i = 0; i < memo->word_count;) {
		uint32_t end = i + WORDS_COMPARED_AT_ONCE;
		uint64_t differences = 0;

		for (end = end < memo->word_count ? end : memo->word_count; i < end; i++)
			differences |= *(const uint64_t *)(caller->sp + memo->word_offsets[i]) ^
				       memo->words[i];
		if (differences)
			return false;
	}
	return true;
}

/* In four strands that need not wait for each other. */
UNWIND_UNSANITIZED
uint64_t stack_memo_hash_words(const struct stack_memo *memo)
{
	uint64_t strands[4] = {memo->word_count, 1, 2, 3};

	for (uint32_t i = 0; i < memo->word_count; i++) {
		uint64_t word = *(const uint64_t *)(memo->sp + memo->word_offsets[i]);

		strands[i % 4] = fold_hash_add(strands[i % 4], word);
	}
	return (strands[0] * 0xd6e8feb86659fd93ull ^ strands[1]) * 0xa0761d6478bd642full ^
	       (strands[2] * 0xe7037ed1a0b428dbull ^ strands[3]);
}

bool stack_memo_has_words_of(const struct stack_memo *memo, const struct stack_memo *other)
{
	if (memo->ip != other->ip || memo->sp != other->sp || memo->bp != other->bp ||
	    memo->generation != other->generation || memo->word_count != other->word_count)
		return false;
	for (uint32_t i = 0; i < memo->word_count; i++) {
		if (memo->word_offsets[i] != other->word_offsets[i])
			return false;
	}
	return true;
}

/* False: it is further away than the memo can say, or on no stack that is known to be there. */
static bool add_word_to_memo(struct stack_memo *memo, const struct unwind_stack_bounds *bounds,
			     uint64_t address, uint64_t value)
{
	if (!bounds->high || memo->word_count == STACK_MEMO_WORDS_MAX || address < memo->sp ||
	    address < bounds->low || address > bounds->high - 8 || address - memo->sp > UINT32_MAX)
		return false;
	memo->word_offsets[memo->word_count] = (uint32_t)(address - memo->sp);
	memo->words[memo->word_count++] = value;
	return true;
}

/* True where the unwinder's cache alone gives the whole walk: every frame has a compact rule. */
static bool add_words_of_walk(struct stack_memo *memo, const struct unwind_frame_cache *walk,
			      const struct unwind_stack_bounds *bounds, const uint64_t *frames,
			      uint32_t count)
{
	const struct unwind_frame_cache_entry *entry = &walk->frames[walk->start];

	if (walk->start > UNWIND_FRAME_CACHE_ENTRIES ||
	    count > UNWIND_FRAME_CACHE_ENTRIES - walk->start || entry->sp != memo->sp)
		return false;
	for (uint32_t i = 1; i < count; i++) {
		uint64_t how = entry[i].key >> UNWIND_FRAME_CACHE_STEP_SHIFT;

		if (!how || (entry[i].key & UNWIND_FRAME_CACHE_KEY_MASK) != frames[i] ||
		    entry[i].sp <= entry[i - 1].sp ||
		    !add_word_to_memo(memo, bounds, entry[i].sp - 8, frames[i]) ||
		    (how > 1 &&
		     !add_word_to_memo(memo, bounds, entry[i].sp - 8 * (how - 1), entry[i].bp)))
			return false;
	}
	return true;
}

/* Where instrumented functions are, a stack is not all that says who called. */
bool stack_memo_remember(struct stack_memo *memo, const struct stack_request *walked,
			 uint64_t generation)
{
	const struct unwind_start_registers *caller = walked->registers;
	const struct unwind_scratch *scratch = walked->memory.scratch;

	memo->ip = 0;
	if (atomic_load_explicit(&unwind_trampoline_callbacks, memory_order_relaxed) ||
	    scratch->met_interrupted_frame ||
	    (walked->walked_end != SPOOL_STACK_COMPLETE && walked->walked_end != SPOOL_STACK_DEPTH))
		return false;
	memo->word_count = 0;
	memo->sp = caller->sp;
	if (!add_words_of_walk(memo, &scratch->frame_cache, walked->bounds, walked->walked_frames,
			       walked->walked_count))
		return false;
	memo->bp = caller->bp;
	memo->generation = generation;
	for (uint32_t i = 0; i < STACK_MEMO_NUMBERS; i++)
		memo->numbers[i] = STACK_MEMO_NO_NUMBER;
	memo->ip = caller->ip;
	return true;
}
