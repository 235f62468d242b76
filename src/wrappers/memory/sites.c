/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocation sites: stacks, each with a number, found by hash. Looking up takes no lock; a new site
 * is added under one. Sites whose code was unmapped are retired: what is mapped there next has
 * sites of its own.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/fold_hash.h"
#include "common/syscalls.h"
#include "core/base/ticks.h"
#include "wrappers/memory/private.h"

#define SITE_HASH_SLOT_COUNT (2 * MEMORY_SITES_MAX)

struct allocation_site_store {
	_Atomic uint32_t lock, count;
	uint32_t used_frame_count;
	_Atomic uint32_t slot[SITE_HASH_SLOT_COUNT]; /* site, 0: free */
	struct memory_site site[MEMORY_SITES_MAX];
	uint64_t frames[];
};

static struct allocation_site_store *allocation_site_store;
static uint32_t frames_per_site_capacity;

void *memory_map_pages(uint64_t size, bool kept_in_child)
{
	void *memory;

	if (is_calling_thread_in_own_filter())
		return NULL;
	memory = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_mmap_failed(memory))
		return NULL;
	sys_madvise(memory, size, kept_in_child ? MADV_WIPEONFORK : MADV_DONTFORK);
	return memory;
}

void memory_empty_pages(void *pages, uint64_t size)
{
	if (pages)
		sys_madvise(pages, size, MADV_DONTNEED);
}

/* Where it was made once it has room for the deepest stacks: who attaches next may want them. */
static uint64_t get_store_size(void)
{
	return sizeof(*allocation_site_store) +
	       (uint64_t)MEMORY_SITES_MAX * frames_per_site_capacity * sizeof(uint64_t);
}

int memory_sites_init(uint32_t depth)
{
	frames_per_site_capacity = *kymo_memory.is_attached ? MEMORY_SITE_FRAMES_MAX : depth;
	allocation_site_store = memory_map_pages(get_store_size(), true);
	return allocation_site_store ? 0 : -ENOMEM;
}

void memory_sites_clear(void)
{
	memory_empty_pages(allocation_site_store, get_store_size());
}

struct memory_site *memory_get_site(uint32_t site)
{
	return &allocation_site_store->site[site];
}

const uint64_t *memory_site_get_frames(const struct memory_site *site)
{
	return allocation_site_store->frames + site->first_frame_index;
}

uint32_t memory_get_site_count(void)
{
	return atomic_load_explicit(&allocation_site_store->count, memory_order_acquire) + 1;
}

static uint64_t hash_frames(const uint64_t *frames, uint32_t count)
{
	uint64_t hash = count;

	for (uint32_t i = 0; i < count; i++)
		hash = fold_hash_add(hash, frames[i]);
	return hash;
}

static bool site_has_frames(const struct memory_site *site, uint64_t hash, const uint64_t *frames,
			    uint32_t count)
{
	return site->hash == hash && site->frame_count == count &&
	       !atomic_load_explicit(&site->is_retired, memory_order_relaxed) &&
	       !memcmp(memory_site_get_frames(site), frames, count * sizeof(*frames));
}

/* The site, or NONE and where it would be. */
static uint32_t find_site(uint64_t hash, const uint64_t *frames, uint32_t count, uint32_t *ret_slot)
{
	bool has_place = false;

	for (uint32_t slot = (uint32_t)hash % SITE_HASH_SLOT_COUNT;;
	     slot = (slot + 1) % SITE_HASH_SLOT_COUNT) {
		uint32_t number = atomic_load_explicit(&allocation_site_store->slot[slot],
						       memory_order_acquire);
		const struct memory_site *site = &allocation_site_store->site[number];

		if (!has_place)
			*ret_slot = slot;
		if (!number || site_has_frames(site, hash, frames, count))
			return number;
		/* A site that is retired is never looked for again. */
		has_place =
			has_place || atomic_load_explicit(&site->is_retired, memory_order_relaxed);
	}
}

static uint32_t find_or_add_site_locked(uint64_t hash, const uint64_t *frames, uint32_t count)
{
	uint32_t slot, number = find_site(hash, frames, count, &slot);
	uint32_t most = count > 1 ? MEMORY_DEEP_SITES_MAX : MEMORY_SITES_MAX;
	struct memory_site *site;

	if (number || allocation_site_store->count + 1 >= most)
		return number;
	number = allocation_site_store->count + 1;
	site = &allocation_site_store->site[number];
	site->hash = hash;
	site->first_frame_index = allocation_site_store->used_frame_count;
	site->frame_count = count;
	site->first_ticks = ticks_now();
	memcpy(allocation_site_store->frames + site->first_frame_index, frames,
	       count * sizeof(*frames));
	allocation_site_store->used_frame_count += count;
	atomic_store_explicit(&allocation_site_store->count, number, memory_order_release);
	atomic_store_explicit(&allocation_site_store->slot[slot], number, memory_order_release);
	return number;
}

static uint32_t find_or_add_site_locking(const uint64_t *frames, uint32_t count)
{
	uint64_t hash = hash_frames(frames, count);
	uint32_t slot, site = find_site(hash, frames, count, &slot);

	if (site)
		return site;
	memory_lock(&allocation_site_store->lock);
	site = find_or_add_site_locked(hash, frames, count);
	memory_unlock(&allocation_site_store->lock);
	return site;
}

/* When stacks have become too many, what remains is distinguished by the caller alone. */
uint32_t memory_find_or_add_site(const uint64_t *frames, uint32_t count)
{
	uint32_t site;

	if (count > frames_per_site_capacity)
		count = frames_per_site_capacity;
	site = find_or_add_site_locking(frames, count);
	return site || count <= 1 ? site : find_or_add_site_locking(frames, 1);
}

static bool any_frame_is_in(const struct memory_site *site, struct module_range range)
{
	const uint64_t *frames = memory_site_get_frames(site);

	for (uint32_t i = 0; i < site->frame_count; i++) {
		if (frames[i] - 1 >= range.start && frames[i] - 1 < range.end)
			return true;
	}
	return false;
}

void memory_retire_sites_in_range(struct module_range range)
{
	uint32_t count = memory_get_site_count();

	for (uint32_t i = 1; i < count; i++) {
		struct memory_site *site = memory_get_site(i);

		if (!atomic_load_explicit(&site->is_retired, memory_order_relaxed) &&
		    any_frame_is_in(site, range))
			atomic_store_explicit(&site->is_retired, 1, memory_order_relaxed);
	}
}
