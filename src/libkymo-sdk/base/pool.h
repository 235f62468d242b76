/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Objects of one size that a thread takes and any thread gives back: no lock, and no allocation
 * once as many are there as are in flight. The owner takes from a list of its own; what other
 * threads give back waits on a second list, which the owner takes as a whole (so there is no ABA).
 */
#ifndef KYMO_LIBKYMO_SDK_BASE_POOL_H
#define KYMO_LIBKYMO_SDK_BASE_POOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct sdk_object_pool;

/* In front of every object. */
struct sdk_pooled_object_header {
	struct sdk_pooled_object_header *next;
	struct sdk_object_pool *pool;
};

/* Other threads write to a cache line of their own, or the owner would miss its line each time. */
struct sdk_object_pool {
	_Alignas(64) struct sdk_pooled_object_header *own;
	_Alignas(64) _Atomic(struct sdk_pooled_object_header *) returned;
};

/* size: of the whole object, which begins with a struct sdk_pooled_object_header. Only its pool's
 * thread calls it. NULL: no memory. */
void *sdk_object_pool_take(struct sdk_object_pool *pool, size_t size);
/* `own`: the calling thread's pool for such objects, or NULL. */
void sdk_object_pool_return(void *object, struct sdk_object_pool *own);

#endif
