/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Blocks that are allocated now, by address: hash tables with linear probing, one for each of 256
 * parts of all addresses, each with a lock and growing on its own, so that no call waits for more
 * than a 256th part of all blocks to be moved.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "wrappers/memory_private.h"

#define PARTS          256
#define CAPACITY_FIRST 256u
#define CAPACITY_MAX   (1u << 19) /* 100 million blocks in all, 2 GiB */

struct part {
	_Atomic uint32_t lock;
	uint32_t count, capacity;
	struct memory_block *blocks;
} __attribute__((aligned(64)));

static struct part *parts;

int memory_blocks_init(void)
{
	parts = memory_map(PARTS * sizeof(*parts), true);
	return parts ? 0 : -ENOMEM;
}

static uint64_t hash_of(uint64_t address)
{
	return (address >> 3) * 0x9e3779b97f4a7c15ull;
}

static struct part *take(uint64_t hash)
{
	struct part *part = &parts[hash >> 56];

	while (atomic_exchange_explicit(&part->lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
	return part;
}

static void drop(struct part *part)
{
	atomic_store_explicit(&part->lock, 0, memory_order_release);
}

static uint32_t home_of(const struct part *part, uint64_t hash)
{
	return (uint32_t)(hash >> 24) & (part->capacity - 1);
}

/* The place of the address, or the free place where it belongs. */
static uint32_t find(const struct part *part, uint64_t address, uint64_t hash)
{
	uint32_t at = home_of(part, hash);

	while (part->blocks[at].address && part->blocks[at].address != address)
		at = (at + 1) & (part->capacity - 1);
	return at;
}

static bool grow(struct part *part)
{
	struct part larger = {.capacity = part->capacity ? 2 * part->capacity : CAPACITY_FIRST};

	if (larger.capacity > CAPACITY_MAX)
		return false;
	larger.blocks = memory_map(larger.capacity * sizeof(*larger.blocks), false);
	if (!larger.blocks)
		return false;
	for (uint32_t i = 0; i < part->capacity; i++) {
		uint64_t address = part->blocks[i].address;

		if (address)
			larger.blocks[find(&larger, address, hash_of(address))] = part->blocks[i];
	}
	if (part->blocks)
		sys_munmap(part->blocks, part->capacity * sizeof(*part->blocks));
	part->blocks = larger.blocks;
	part->capacity = larger.capacity;
	return true;
}

static bool has_room(struct part *part)
{
	return part->count < part->capacity / 4 * 3 || grow(part);
}

bool memory_block_add(const struct memory_block *block, struct memory_block *ret_previous)
{
	uint64_t hash = hash_of(block->address);
	struct part *part = take(hash);
	bool room = has_room(part);
	uint32_t at;

	memset(ret_previous, 0, sizeof(*ret_previous));
	if (room) {
		at = find(part, block->address, hash);
		if (part->blocks[at].address)
			*ret_previous = part->blocks[at];
		else
			part->count++;
		part->blocks[at] = *block;
	}
	drop(part);
	return room;
}

/* Moves later blocks of the run back, so that no search stops at the place that became free. */
static void close_gap(struct part *part, uint32_t gap)
{
	uint32_t mask = part->capacity - 1;

	for (uint32_t at = (gap + 1) & mask; part->blocks[at].address; at = (at + 1) & mask) {
		uint32_t home = home_of(part, hash_of(part->blocks[at].address));

		/* Does its home lie at or before the gap, going round? */
		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		part->blocks[gap] = part->blocks[at];
		gap = at;
	}
	part->blocks[gap].address = 0;
}

bool memory_block_remove(uint64_t address, struct memory_block *ret)
{
	uint64_t hash = hash_of(address);
	struct part *part = take(hash);
	bool found = false;
	uint32_t at;

	if (part->capacity) {
		at = find(part, address, hash);
		found = part->blocks[at].address == address;
		*ret = part->blocks[at];
		if (found) {
			close_gap(part, at);
			part->count--;
		}
	}
	drop(part);
	return found;
}
