/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocation sites: stacks, each with a number, found by hash. Looking up takes no lock; a new site
 * is added under one.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "wrappers/memory_private.h"

#define SLOTS (2 * MEMORY_SITES_MAX)

struct tables {
	_Atomic uint32_t lock, count;
	uint32_t frames_used;
	_Atomic uint32_t slot[SLOTS]; /* site, 0: free */
	struct memory_site site[MEMORY_SITES_MAX];
	uint64_t frames[];
};

static struct tables *tables;
static uint32_t depth_maximum;

void *memory_map(uint64_t size, bool kept_in_child)
{
	void *memory = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_failed(memory))
		return NULL;
	sys_madvise(memory, size, kept_in_child ? MADV_WIPEONFORK : MADV_DONTFORK);
	return memory;
}

int memory_sites_init(uint32_t depth)
{
	depth_maximum = depth;
	tables = memory_map(sizeof(*tables) + (uint64_t)MEMORY_SITES_MAX * depth * sizeof(uint64_t),
			    true);
	return tables ? 0 : -ENOMEM;
}

struct memory_site *memory_site_at(uint32_t site)
{
	return &tables->site[site];
}

const uint64_t *memory_site_frames(const struct memory_site *site)
{
	return tables->frames + site->first_frame;
}

uint32_t memory_sites_count(void)
{
	return atomic_load_explicit(&tables->count, memory_order_acquire) + 1;
}

/* Multiply and fold (as in wyhash): every bit of a frame moves every bit of the hash. */
static uint64_t hash_of(const uint64_t *frames, uint32_t count)
{
	uint64_t hash = count;

	for (uint32_t i = 0; i < count; i++) {
		unsigned __int128 product =
			(unsigned __int128)(hash ^ frames[i]) * 0x9e3779b97f4a7c15ull;

		hash = (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	return hash;
}

static bool is_site(const struct memory_site *site, uint64_t hash, const uint64_t *frames,
		    uint32_t count)
{
	return site->hash == hash && site->frames == count &&
	       !memcmp(memory_site_frames(site), frames, count * sizeof(*frames));
}

/* The site, or NONE and where it would be. */
static uint32_t find(uint64_t hash, const uint64_t *frames, uint32_t count, uint32_t *ret_slot)
{
	for (uint32_t slot = (uint32_t)hash % SLOTS;; slot = (slot + 1) % SLOTS) {
		uint32_t site = atomic_load_explicit(&tables->slot[slot], memory_order_acquire);

		*ret_slot = slot;
		if (!site || is_site(&tables->site[site], hash, frames, count))
			return site;
	}
}

static uint32_t add(uint64_t hash, const uint64_t *frames, uint32_t count)
{
	uint32_t slot, number = find(hash, frames, count, &slot);
	uint32_t most = count > 1 ? MEMORY_SITES_DEEP : MEMORY_SITES_MAX;
	struct memory_site *site;

	if (number || tables->count + 1 >= most)
		return number;
	number = tables->count + 1;
	site = &tables->site[number];
	site->hash = hash;
	site->first_frame = tables->frames_used;
	site->frames = count;
	memcpy(tables->frames + site->first_frame, frames, count * sizeof(*frames));
	tables->frames_used += count;
	atomic_store_explicit(&tables->count, number, memory_order_release);
	atomic_store_explicit(&tables->slot[slot], number, memory_order_release);
	return number;
}

static uint32_t find_or_add(const uint64_t *frames, uint32_t count)
{
	uint64_t hash = hash_of(frames, count);
	uint32_t slot, site = find(hash, frames, count, &slot);

	if (site)
		return site;
	while (atomic_exchange_explicit(&tables->lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
	site = add(hash, frames, count);
	atomic_store_explicit(&tables->lock, 0, memory_order_release);
	return site;
}

/* When stacks have become too many, what remains is told apart by the caller alone. */
uint32_t memory_site_of(const uint64_t *frames, uint32_t count)
{
	uint32_t site;

	if (count > depth_maximum)
		count = depth_maximum;
	site = find_or_add(frames, count);
	return site || count <= 1 ? site : find_or_add(frames, 1);
}

void memory_site_allocated(uint32_t number, uint64_t size)
{
	struct memory_site *site = &tables->site[number];
	uint64_t allocated, live, peak;

	atomic_fetch_add_explicit(&site->allocations, 1, memory_order_relaxed);
	allocated = atomic_fetch_add_explicit(&site->allocated_bytes, size, memory_order_relaxed) +
		    size;
	live = allocated - atomic_load_explicit(&site->freed_bytes, memory_order_relaxed);
	peak = atomic_load_explicit(&site->peak_bytes, memory_order_relaxed);
	while ((int64_t)live > (int64_t)peak &&
	       !atomic_compare_exchange_weak_explicit(&site->peak_bytes, &peak, live,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

void memory_site_freed(uint32_t number, uint64_t size)
{
	struct memory_site *site = &tables->site[number];

	atomic_fetch_add_explicit(&site->frees, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&site->freed_bytes, size, memory_order_relaxed);
}
