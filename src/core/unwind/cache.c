/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The memory of the cache described in cache.h: 128 KiB a process, zeroes at first. An empty
 * entry can match a pc only as rule 0, which means "not here".
 */
#include "core/unwind/cache.h"

#include "core/unwind/unwind.h"
#include "core/unwind/vector.h"

/* Forks do not copy it: a child begins with an empty one, where there are any samples of it. */
struct unwind_cache *unwind_cache_create(void)
{
	struct unwind_cache *cache = unwind_map_memory(sizeof(*cache));

	if (cache)
		sys_madvise(cache, sizeof(*cache), MADV_WIPEONFORK);
	return cache;
}

void unwind_cache_clear(struct unwind_cache *cache)
{
	for (uint32_t i = 0; i < UNWIND_CACHE_ENTRY_COUNT; i++)
		__atomic_store_n(&cache->entries[i], 0, __ATOMIC_RELAXED);
}
