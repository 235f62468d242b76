/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See pool.h.
 */
#include "libkymo-sdk/base/pool.h"
#include "common/hot.h"

#include <sys/mman.h>

#define OBJECT_POOL_SLAB_BYTES ((size_t)64 << 10)

/* From the kernel, not from malloc: the program may be anywhere, its allocator included. */
static void object_pool_add_slab(struct sdk_object_pool *pool, size_t size)
{
	char *slab = mmap(NULL, OBJECT_POOL_SLAB_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (slab == MAP_FAILED)
		return;
	for (size_t offset = 0; offset + size <= OBJECT_POOL_SLAB_BYTES; offset += size) {
		struct sdk_pooled_object_header *object =
			(struct sdk_pooled_object_header *)(void *)(slab + offset);

		object->pool = pool;
		object->next = pool->own;
		pool->own = object;
	}
}

/* The next object: who gave it back did so on another processor, as a rule, so it is fetched while
 * the program goes on. */
static inline void prefetch_pooled_object(struct sdk_pooled_object_header *object)
{
	if (!object)
		return;
	__builtin_prefetch(object, 1);
	__builtin_prefetch((char *)object + 64, 1);
}

KYMO_HOT void *sdk_object_pool_take(struct sdk_object_pool *pool, size_t size)
{
	struct sdk_pooled_object_header *object;

	size = (size + 63) & ~(size_t)63;
	if (!pool->own)
		pool->own = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
	if (!pool->own)
		object_pool_add_slab(pool, size);
	object = pool->own;
	if (object) {
		pool->own = object->next;
		prefetch_pooled_object(object->next);
	}
	return object;
}

KYMO_HOT void sdk_object_pool_return(void *object, struct sdk_object_pool *own)
{
	struct sdk_pooled_object_header *pooled = object;
	struct sdk_object_pool *pool = pooled->pool;
	struct sdk_pooled_object_header *first;

	if (pool == own) {
		pooled->next = pool->own;
		pool->own = pooled;
		return;
	}
	first = atomic_load_explicit(&pool->returned, memory_order_relaxed);
	do
		pooled->next = first;
	while (!atomic_compare_exchange_weak_explicit(&pool->returned, &first, pooled,
						      memory_order_release, memory_order_relaxed));
}
