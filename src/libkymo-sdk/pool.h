/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Objects of one size that a thread takes and any thread gives back: no lock, and no allocation
 * once as many are there as are in flight. The owner takes from a list of its own; what other
 * threads give back waits on a second list, which the owner takes as a whole (so there is no ABA).
 */
#ifndef KYMO_LIBKYMO_SDK_POOL_H
#define KYMO_LIBKYMO_SDK_POOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct sdk_pool;

/* In front of every object. */
struct sdk_pooled {
	struct sdk_pooled *next;
	struct sdk_pool *pool;
};

/* Other threads write to a cache line of their own, or the owner would miss its line each time. */
struct sdk_pool {
	_Alignas(64) struct sdk_pooled *own;
	_Alignas(64) _Atomic(struct sdk_pooled *) returned;
};

/* size: of the whole object, which begins with a struct sdk_pooled. Only its pool's thread calls
 * it. NULL: no memory. */
void *sdk_pool_take(struct sdk_pool *pool, size_t size);
/* `own`: the calling thread's pool for such objects, or NULL. */
void sdk_pool_give(void *object, struct sdk_pool *own);

#endif
