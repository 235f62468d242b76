/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See id_source.h.
 */
#include "libkymo-sdk/base/id_source.h"

#include <sched.h>

/* Who owns a source that is everybody's, and one that is being taken from its owner. */
static struct sdk_thread_state everybody, nobody;

/* The owner takes a few instructions for an id; it may lose its CPU in between. */
static void take_from_owner(struct sdk_id_source *source, struct sdk_thread_state *owner)
{
	sdk_fence_all_threads();
	while (atomic_load_explicit(&owner->is_taking_own_id, memory_order_acquire))
		sched_yield();
	atomic_store_explicit(&source->owner, &everybody, memory_order_release);
}

uint64_t sdk_id_source_take_as_other(struct sdk_id_source *source, struct sdk_thread_state *thread)
{
	struct sdk_thread_state *owner = NULL;

	if (atomic_compare_exchange_strong(&source->owner, &owner, thread))
		return sdk_id_source_take(source, thread);
	while (owner != &everybody) {
		if (owner != &nobody &&
		    atomic_compare_exchange_strong(&source->owner, &owner, &nobody))
			take_from_owner(source, owner);
		else
			sched_yield();
		owner = atomic_load_explicit(&source->owner, memory_order_acquire);
	}
	return atomic_fetch_add_explicit(&source->last, 1, memory_order_relaxed) + 1;
}

/* What the owner of the parent had not stored is not used. */
void sdk_id_source_reset_after_fork(struct sdk_id_source *source)
{
	if (atomic_load(&source->owner))
		atomic_store(&source->owner, &everybody);
}
