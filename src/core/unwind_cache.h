/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From a pc to the rule for its frame, in one load. The cache is shared by all threads and lossy.
 * An entry is one 64-bit word, so nothing can be seen half written:
 *
 *   bits 0-17   the rule itself, compact (below); never 0 in a used entry
 *   bits 18-30  low bits of the view's generation
 *   bits 31-63  the 33 bits of the hashed pc that are not the index
 *
 * The hash is a bijection of 47-bit user addresses, so index and tag together name one pc exactly.
 *
 * Compact rules cover about 99.9 % of frames: CFA = rsp or rbp + a multiple of 8, return address at
 * CFA - 8, rbp unchanged or at CFA - 8 k. Everything else is looked up in the table every time.
 *
 *   bits 0-12  CFA offset / 8, 1 to 8191; 0: bits 13-16 hold an unwind_special
 *   bits 13-16 k; 0: rbp unchanged
 *   bit  17    the CFA counts from rbp
 */
#ifndef KYMO_CORE_UNWIND_CACHE_H
#define KYMO_CORE_UNWIND_CACHE_H

#include <stdint.h>

#define UNWIND_CACHE_BITS       14
#define UNWIND_CACHE_ENTRIES    (1u << UNWIND_CACHE_BITS)
#define UNWIND_PC_BITS          47
#define UNWIND_TAG_BITS         (UNWIND_PC_BITS - UNWIND_CACHE_BITS)
#define UNWIND_RULE_BITS        18
#define UNWIND_COMPACT_OFFSET   0x1fffu
#define UNWIND_COMPACT_BP_SHIFT 13
#define UNWIND_COMPACT_BP       15u
#define UNWIND_COMPACT_FROM_BP  (1u << 17)
#define UNWIND_GENERATION_BITS  (64 - UNWIND_TAG_BITS - UNWIND_RULE_BITS)

_Static_assert(UNWIND_GENERATION_BITS == 13, "the layout described above");

enum unwind_special { UNWIND_SPECIAL_OUTERMOST = 1, UNWIND_SPECIAL_CONTEXT };

struct unwind_cache {
	_Atomic uint64_t entries[UNWIND_CACHE_ENTRIES];
};

struct unwind_cache_slot {
	uint32_t index;
	uint64_t tag; /* in place, with the generation */
};

/* The multiplier is 2^47 divided by the golden ratio, made odd: multiplication by an odd number is
 * a bijection modulo 2^47, and its high bits mix all bits below. */
static inline struct unwind_cache_slot unwind_cache_slot(uint64_t pc, uint64_t generation)
{
	uint64_t hashed = pc * 0x4f1bbcdcbfa5u & ((1ull << UNWIND_PC_BITS) - 1);
	struct unwind_cache_slot slot;

	slot.index = (uint32_t)(hashed >> UNWIND_TAG_BITS);
	slot.tag = hashed << (64 - UNWIND_TAG_BITS) |
		   (generation & ((1u << UNWIND_GENERATION_BITS) - 1)) << UNWIND_RULE_BITS;
	return slot;
}

/* The compact rule, or 0. Relaxed: the word is all there is. */
static inline uint32_t unwind_cache_find(const struct unwind_cache *cache,
					 struct unwind_cache_slot slot)
{
	uint64_t entry =
		__atomic_load_n((const uint64_t *)&cache->entries[slot.index], __ATOMIC_RELAXED);
	uint64_t rule = entry ^ slot.tag;

	return rule < 1u << UNWIND_RULE_BITS ? (uint32_t)rule : 0;
}

static inline void unwind_cache_store(struct unwind_cache *cache, struct unwind_cache_slot slot,
				      uint32_t compact)
{
	__atomic_store_n((uint64_t *)&cache->entries[slot.index], slot.tag | compact,
			 __ATOMIC_RELAXED);
}

#endif
