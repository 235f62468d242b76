/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ids of a process, from 1, without gaps. As long as one thread takes them it owns the source and
 * counts without an atomic addition, which would cost as much as half a record. The second thread
 * takes the source from it, once, and from then on it is everybody's.
 */
#ifndef KYMO_LIBKYMO_SDK_BASE_ID_SOURCE_H
#define KYMO_LIBKYMO_SDK_BASE_ID_SOURCE_H

#include <stdatomic.h>
#include <stdint.h>

#include "libkymo-sdk/base/barrier.h"
#include "libkymo-sdk/base/thread.h"

struct sdk_id_source {
	_Atomic(struct sdk_thread_state *) owner; /* NULL: nobody has been here; id_source.c */
	_Atomic uint64_t last;
};

uint64_t sdk_id_source_take_as_other(struct sdk_id_source *source, struct sdk_thread_state *thread);
/* In the child of a fork: an owner that was taking an id does not exist here. Before threads are
 * reset. */
void sdk_id_source_reset_after_fork(struct sdk_id_source *source);

/* By a thread that is within the record path, so that no signal handler of its own comes here. */
static inline uint64_t sdk_id_source_take(struct sdk_id_source *source,
					  struct sdk_thread_state *thread)
{
	uint64_t id = 0;

	if (__builtin_expect(atomic_load_explicit(&source->owner, memory_order_relaxed) != thread,
			     0))
		return sdk_id_source_take_as_other(source, thread);
	atomic_store_explicit(&thread->is_taking_own_id, true, memory_order_relaxed);
	/* Pairs with sdk_fence_all_threads() of who takes the source away: either this thread sees
	 * that, or that one sees that an id is being taken. */
	sdk_fence_calling_thread();
	if (__builtin_expect(atomic_load_explicit(&source->owner, memory_order_relaxed) == thread,
			     1)) {
		id = atomic_load_explicit(&source->last, memory_order_relaxed) + 1;
		atomic_store_explicit(&source->last, id, memory_order_relaxed);
	}
	atomic_store_explicit(&thread->is_taking_own_id, false, memory_order_release);
	return id ? id : sdk_id_source_take_as_other(source, thread);
}

#endif
