/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Blocks that are allocated now, by address. Small ones are kept by granules (granules.c). The
 * others are here, in hash tables with linear probing, one for each of 256 parts of all addresses,
 * each with a lock and growing on its own, so that no call waits for more than a 256th part of all
 * blocks to be moved.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "wrappers/memory/private.h"

#define BLOCK_TABLE_PART_COUNT 256
#define PART_CAPACITY_INITIAL  256u
#define PART_CAPACITY_MAX      (1u << 19) /* 100 million blocks in all, 2 GiB */

struct block_table_part {
	_Atomic uint32_t lock;
	uint32_t count, capacity;
	struct memory_block *blocks;
} __attribute__((aligned(64)));

static struct block_table_part *block_table_parts;

int memory_blocks_init(void)
{
	block_table_parts =
		memory_map_pages(BLOCK_TABLE_PART_COUNT * sizeof(*block_table_parts), true);
	return block_table_parts ? memory_granules_init() : -ENOMEM;
}

void memory_blocks_clear(void)
{
	memory_granules_clear();
	for (uint32_t i = 0; i < BLOCK_TABLE_PART_COUNT; i++) {
		struct block_table_part *part = &block_table_parts[i];

		memory_lock(&part->lock);
		memory_empty_pages(part->blocks, part->capacity * sizeof(*part->blocks));
		part->count = 0;
		memory_unlock(&part->lock);
	}
}

static uint64_t hash_address(uint64_t address)
{
	return (address >> 3) * 0x9e3779b97f4a7c15ull;
}

static struct block_table_part *lock_part_of_hash(uint64_t hash)
{
	struct block_table_part *part = &block_table_parts[hash >> 56];

	memory_lock(&part->lock);
	return part;
}

static uint32_t compute_home_slot(const struct block_table_part *part, uint64_t hash)
{
	return (uint32_t)(hash >> 24) & (part->capacity - 1);
}

/* The place of the address, or the free place where it belongs. */
static uint32_t find_block_slot(const struct block_table_part *part, uint64_t address,
				uint64_t hash)
{
	uint32_t at = compute_home_slot(part, hash);

	while (part->blocks[at].address && part->blocks[at].address != address)
		at = (at + 1) & (part->capacity - 1);
	return at;
}

static bool grow_table_part(struct block_table_part *part)
{
	struct block_table_part larger = {.capacity = part->capacity ? 2 * part->capacity
								     : PART_CAPACITY_INITIAL};

	if (larger.capacity > PART_CAPACITY_MAX)
		return false;
	larger.blocks = memory_map_pages(larger.capacity * sizeof(*larger.blocks), false);
	if (!larger.blocks)
		return false;
	for (uint32_t i = 0; i < part->capacity; i++) {
		uint64_t address = part->blocks[i].address;

		if (address)
			larger.blocks[find_block_slot(&larger, address, hash_address(address))] =
				part->blocks[i];
	}
	if (part->blocks)
		sys_munmap(part->blocks, part->capacity * sizeof(*part->blocks));
	part->blocks = larger.blocks;
	part->capacity = larger.capacity;
	return true;
}

static bool ensure_part_room(struct block_table_part *part)
{
	return part->count < part->capacity / 4 * 3 || grow_table_part(part);
}

static bool add_to_table(const struct memory_block *block, struct memory_block *ret_previous)
{
	uint64_t hash = hash_address(block->address);
	struct block_table_part *part = lock_part_of_hash(hash);
	bool room = ensure_part_room(part);
	uint32_t at;

	memset(ret_previous, 0, sizeof(*ret_previous));
	if (room) {
		at = find_block_slot(part, block->address, hash);
		if (part->blocks[at].address)
			*ret_previous = part->blocks[at];
		else
			part->count++;
		part->blocks[at] = *block;
	}
	memory_unlock(&part->lock);
	return room;
}

/* Moves later blocks of the run back, so that no search stops at the place that became free. */
static void close_table_gap(struct block_table_part *part, uint32_t gap)
{
	uint32_t mask = part->capacity - 1;

	for (uint32_t at = (gap + 1) & mask; part->blocks[at].address; at = (at + 1) & mask) {
		uint32_t home = compute_home_slot(part, hash_address(part->blocks[at].address));

		/* Does its home lie at or before the gap, going round? */
		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		part->blocks[gap] = part->blocks[at];
		gap = at;
	}
	part->blocks[gap].address = 0;
}

static bool remove_from_table(uint64_t address, struct memory_block *ret)
{
	uint64_t hash = hash_address(address);
	struct block_table_part *part = lock_part_of_hash(hash);
	bool found = false;
	uint32_t at;

	if (part->capacity) {
		at = find_block_slot(part, address, hash);
		found = part->blocks[at].address == address;
		*ret = part->blocks[at];
		if (found) {
			close_table_gap(part, at);
			part->count--;
		}
	}
	memory_unlock(&part->lock);
	return found;
}

bool memory_block_add(const struct memory_block *block, struct memory_block *ret_previous)
{
	struct memory_block stale;

	if (memory_granules_may_keep(block) && memory_granules_add(block, ret_previous))
		return true;
	/* A smaller one that was freed unseen, and was a granule: it would be found first. */
	if (!memory_granules_remove(block->address, &stale))
		return add_to_table(block, ret_previous);
	if (!add_to_table(block, ret_previous)) {
		memory_count_freed_block(stale.site, stale.size, false);
		return false;
	}
	*ret_previous = stale;
	return true;
}

bool memory_block_remove(uint64_t address, struct memory_block *ret)
{
	return memory_granules_remove(address, ret) || remove_from_table(address, ret);
}
