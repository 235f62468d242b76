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
 *   bits 0-12  CFA offset / 8, 1 to 8191; 0: bits 13-16 hold an unwind_compact_special_rule_kind
 *   bits 13-16 k; 0: rbp unchanged; never more than the CFA offset, so that what is read lies
 *              between the register that the CFA counts from and the CFA
 *   bit  17    the CFA counts from rbp
 */
#ifndef KYMO_CORE_UNWIND_CACHE_H
#define KYMO_CORE_UNWIND_CACHE_H

#include <stdint.h>

#define UNWIND_CACHE_INDEX_BITS        14
#define UNWIND_CACHE_ENTRY_COUNT       (1u << UNWIND_CACHE_INDEX_BITS)
#define UNWIND_CACHE_PC_BITS           47
#define UNWIND_CACHE_TAG_BITS          (UNWIND_CACHE_PC_BITS - UNWIND_CACHE_INDEX_BITS)
#define UNWIND_CACHE_RULE_BITS         18
#define UNWIND_COMPACT_CFA_OFFSET_MASK 0x1fffu
#define UNWIND_COMPACT_RBP_SLOT_SHIFT  13
#define UNWIND_COMPACT_RBP_SLOT_MASK   15u
#define UNWIND_COMPACT_CFA_FROM_RBP    (1u << 17)
#define UNWIND_CACHE_GENERATION_BITS   (64 - UNWIND_CACHE_TAG_BITS - UNWIND_CACHE_RULE_BITS)

_Static_assert(UNWIND_CACHE_GENERATION_BITS == 13, "the layout described above");

enum unwind_compact_special_rule_kind {
	UNWIND_COMPACT_RULE_OUTERMOST = 1,
	UNWIND_COMPACT_RULE_UCONTEXT
};

struct unwind_cache {
	uint64_t entries[UNWIND_CACHE_ENTRY_COUNT];
};

/* The 47-bit hash in the high bits of a word. The multiplier is 2^47 divided by the golden ratio,
 * made odd: multiplication by an odd number is a bijection modulo 2^47, and the high bits of the
 * product depend on all bits below. */
static inline uint64_t unwind_cache_hash_key(uint64_t key)
{
	return key * (0x4f1bbcdcbfa5u << (64 - UNWIND_CACHE_PC_BITS));
}

/* The generation where entries have it. */
static inline uint64_t unwind_cache_generation_to_tag_bits(uint64_t generation)
{
	return (generation & ((1u << UNWIND_CACHE_GENERATION_BITS) - 1)) << UNWIND_CACHE_RULE_BITS;
}

/* What must be equal in an entry for this key. */
static inline uint64_t unwind_cache_compute_tag(uint64_t hash, uint64_t generation)
{
	return hash << UNWIND_CACHE_INDEX_BITS | generation;
}

/* The word is all there is, so relaxed order does. */
static inline uint64_t unwind_cache_load_entry(const struct unwind_cache *cache, uint64_t hash)
{
	return __atomic_load_n(&cache->entries[hash >> (64 - UNWIND_CACHE_INDEX_BITS)],
			       __ATOMIC_RELAXED);
}

/* `key` is the looked-up pc plus one, which is the return address of a caller's frame. */
static inline void unwind_cache_store_rule(struct unwind_cache *cache, uint64_t key,
					   uint64_t generation, uint32_t compact)
{
	uint64_t hash = unwind_cache_hash_key(key);

	__atomic_store_n(&cache->entries[hash >> (64 - UNWIND_CACHE_INDEX_BITS)],
			 unwind_cache_compute_tag(hash, generation) | compact, __ATOMIC_RELAXED);
}

#endif
