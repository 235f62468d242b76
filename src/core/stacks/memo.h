/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Memos of stacks that were walked outside of handlers. A program allocates, and launches work on
 * devices, at the same places again and again. A walk follows from the registers that it begins
 * with, the unwind tables and the stack words that it reads, which are the return addresses and
 * saved frame pointers. A memo has the registers, the tables' generation and these words: where
 * they are what they were, the stack is what it was, and nothing is walked. With it goes the number
 * that the caller gave the stack, one for each set of interpreted frames.
 */
#ifndef KYMO_CORE_STACKS_MEMO_H
#define KYMO_CORE_STACKS_MEMO_H

#include "common/fold_hash.h"
#include "core/stacks/stacks.h"

#define STACK_MEMO_WORDS_MAX 160u
#define STACK_MEMO_NUMBERS   8u
#define STACK_MEMO_NO_NUMBER 0u

/* A native stack, and numbers that it is known to have, by the hash of its interpreted frames. */
struct stack_memo {
	uint64_t ip, sp, bp, generation;                 /* ip 0: none */
	uint64_t interpreted_hashes[STACK_MEMO_NUMBERS]; /* 0: no interpreted frames */
	uint32_t numbers[STACK_MEMO_NUMBERS];
	uint32_t word_count;
	uint32_t word_offsets[STACK_MEMO_WORDS_MAX]; /* from sp */
	uint64_t words[STACK_MEMO_WORDS_MAX];
};

/* Is the stack above these registers the memo's? They are those of a caller on the thread's own
 * stack. */
bool stack_memo_has_native_stack(const struct stack_memo *memo,
				 const struct unwind_start_registers *caller, uint64_t generation);
/* Fills the memo from a walk that has just ended. False: the stack is none that a memo can tell,
 * and the memo is empty. */
bool stack_memo_remember(struct stack_memo *memo, const struct stack_request *walked,
			 uint64_t generation);

/* Which words of stacks it takes to tell whether they are the memo's is a matter of the memo; what
 * they are now is this. Two stacks for which it is the same, with the registers of the memo, are
 * the same stack. Registers and generation must be the memo's. */
uint64_t stack_memo_hash_words(const struct stack_memo *memo);
/* Do both memos look at the same words from the same registers? */
bool stack_memo_has_words_of(const struct stack_memo *memo, const struct stack_memo *other);

static inline bool stack_memo_has_registers(const struct stack_memo *memo,
					    const struct unwind_start_registers *caller,
					    uint64_t generation)
{
	return memo->ip == caller->ip && memo->sp == caller->sp && memo->bp == caller->bp &&
	       memo->generation == generation;
}

/* For tables of memos: `bits` bits that tell callers apart. */
static inline uint32_t stack_memo_hash_caller(uint64_t ip, uint64_t sp, unsigned bits)
{
	return (uint32_t)((ip ^ sp >> 3) * FOLD_HASH_FACTOR >> (64 - bits));
}

static inline uint32_t stack_memo_get_number(const struct stack_memo *memo,
					     uint64_t interpreted_hash)
{
	uint32_t at = (uint32_t)(interpreted_hash >> 32) % STACK_MEMO_NUMBERS;

	return memo->interpreted_hashes[at] == interpreted_hash ? memo->numbers[at]
								: STACK_MEMO_NO_NUMBER;
}

static inline void stack_memo_set_number(struct stack_memo *memo, uint64_t interpreted_hash,
					 uint32_t number)
{
	uint32_t at = (uint32_t)(interpreted_hash >> 32) % STACK_MEMO_NUMBERS;

	memo->interpreted_hashes[at] = interpreted_hash;
	memo->numbers[at] = number;
}

#endif
