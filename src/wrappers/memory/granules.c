/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Small blocks that are allocated now: a word for every 16 bytes of address space, in which the
 * block that begins there has its size and site. Blocks that lie beside each other have their words
 * beside each other, so that looking one up costs as much with millions of blocks as with few: a
 * program that goes through its blocks in some order goes through the words in the same order. A
 * hash table spreads them, and every look-up misses the caches.
 *
 * A block's word is written by whoever allocates or frees that block, so nothing is locked. Leaves
 * of 8 MiB of address space are mapped when the first block in them comes. Large blocks would touch
 * a page of words for a block or two: they are kept in the hash table (blocks.c), as are blocks
 * that begin at other addresses.
 */
#include <errno.h>

#include "common/syscalls.h"
#include "wrappers/memory/private.h"

#define GRANULE_BYTES_SHIFT    4
#define LEAF_BYTES_SHIFT       23 /* of address space */
#define BRANCH_BYTES_SHIFT     33
#define ADDRESS_BITS           47
#define LEAF_WORD_COUNT        (1u << (LEAF_BYTES_SHIFT - GRANULE_BYTES_SHIFT))
#define BRANCH_LEAF_COUNT      (1u << (BRANCH_BYTES_SHIFT - LEAF_BYTES_SHIFT))
#define ROOT_BRANCH_COUNT      (1u << (ADDRESS_BITS - BRANCH_BYTES_SHIFT))
#define WORD_SITE_BITS         20
#define GRANULE_BLOCK_SIZE_MAX 1023u

struct granule_leaf {
	_Atomic uint64_t words[LEAF_WORD_COUNT]; /* site, size above it; 0: no block */
};

struct granule_branch {
	_Atomic(struct granule_leaf *) leaves[BRANCH_LEAF_COUNT];
};

struct granule_root {
	_Atomic(struct granule_branch *) branches[ROOT_BRANCH_COUNT];
};

static struct granule_root *granule_root;

_Static_assert(MEMORY_SITES_MAX <= 1u << WORD_SITE_BITS, "a word has no room for all sites");

int memory_granules_init(void)
{
	granule_root = memory_map_pages(sizeof(*granule_root), true);
	return granule_root ? 0 : -ENOMEM;
}

static void clear_branch(struct granule_branch *branch)
{
	for (uint32_t i = 0; branch && i < BRANCH_LEAF_COUNT; i++)
		memory_empty_pages(atomic_load_explicit(&branch->leaves[i], memory_order_acquire),
				   sizeof(struct granule_leaf));
}

void memory_granules_clear(void)
{
	for (uint32_t i = 0; i < ROOT_BRANCH_COUNT; i++)
		clear_branch(
			atomic_load_explicit(&granule_root->branches[i], memory_order_acquire));
}

bool memory_granules_may_keep(const struct memory_block *block)
{
	return block->size <= GRANULE_BLOCK_SIZE_MAX && block->address >> ADDRESS_BITS == 0 &&
	       !(block->address & ((1u << GRANULE_BYTES_SHIFT) - 1));
}

/* Two threads may need one at once: one of the mappings is given back. */
static void *map_once(_Atomic(void *) *place, uint64_t size)
{
	void *memory = memory_map_pages(size, false), *other = NULL;

	if (!memory)
		return NULL;
	if (atomic_compare_exchange_strong_explicit(place, &other, memory, memory_order_acq_rel,
						    memory_order_acquire))
		return memory;
	sys_munmap(memory, size);
	return other;
}

static struct granule_leaf *find_leaf(uint64_t address, bool add)
{
	_Atomic(struct granule_branch *) *branch_place =
		&granule_root->branches[address >> BRANCH_BYTES_SHIFT];
	struct granule_branch *branch = atomic_load_explicit(branch_place, memory_order_acquire);
	_Atomic(struct granule_leaf *) *leaf_place;
	struct granule_leaf *leaf;

	if (!branch && add)
		branch = map_once((_Atomic(void *) *)branch_place, sizeof(*branch));
	if (!branch)
		return NULL;
	leaf_place = &branch->leaves[(address >> LEAF_BYTES_SHIFT) & (BRANCH_LEAF_COUNT - 1)];
	leaf = atomic_load_explicit(leaf_place, memory_order_acquire);
	if (!leaf && add)
		leaf = map_once((_Atomic(void *) *)leaf_place, sizeof(*leaf));
	return leaf;
}

static _Atomic uint64_t *get_leaf_word(struct granule_leaf *leaf, uint64_t address)
{
	return &leaf->words[(address >> GRANULE_BYTES_SHIFT) & (LEAF_WORD_COUNT - 1)];
}

static struct memory_block make_block_of_word(uint64_t address, uint64_t word)
{
	struct memory_block block = {.address = word ? address : 0};

	block.site = (uint32_t)word & ((1u << WORD_SITE_BITS) - 1);
	block.size = (word >> WORD_SITE_BITS) & MEMORY_BLOCK_SIZE_MASK;
	return block;
}

bool memory_granules_add(const struct memory_block *block, struct memory_block *ret_previous)
{
	struct granule_leaf *leaf = find_leaf(block->address, true);
	_Atomic uint64_t *word;

	if (!leaf)
		return false;
	word = get_leaf_word(leaf, block->address);
	*ret_previous = make_block_of_word(block->address,
					   atomic_load_explicit(word, memory_order_relaxed));
	atomic_store_explicit(word, block->site | (uint64_t)block->size << WORD_SITE_BITS,
			      memory_order_relaxed);
	return true;
}

bool memory_granules_remove(uint64_t address, struct memory_block *ret)
{
	struct granule_leaf *leaf;
	_Atomic uint64_t *word;

	if (address >> ADDRESS_BITS || address & ((1u << GRANULE_BYTES_SHIFT) - 1))
		return false;
	leaf = find_leaf(address, false);
	if (!leaf)
		return false;
	word = get_leaf_word(leaf, address);
	*ret = make_block_of_word(address, atomic_load_explicit(word, memory_order_relaxed));
	if (!ret->address)
		return false;
	atomic_store_explicit(word, 0, memory_order_relaxed);
	return true;
}
