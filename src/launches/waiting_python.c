/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See waiting_python.h.
 */
#include "launches/waiting_python.h"

#include "common/fold_hash.h"
#include "core/base/ticks.h"
#include "core/threads.h"

/* Blocks of threads stay readable when their threads have ended. */
static _Atomic(const struct thread *) last_python_launcher;

void waiting_python_note_launch(const struct thread *thread)
{
	if (atomic_load_explicit(&last_python_launcher, memory_order_relaxed) != thread)
		atomic_store_explicit(&last_python_launcher, thread, memory_order_relaxed);
}

static bool thread_waits_without_lock(enum spool_interpreter_state state)
{
	return state == SPOOL_INTERPRETER_WAITS_UNLOCKED;
}

static void read_frames(struct waiting_python *waiting, const struct thread *other,
			uint8_t *scratch, struct interpreted_code_sink sink)
{
	struct native_stack stack = {.tid = other->tid, .pthread = other->pthread};
	struct interpreted_merge merge = {.items = waiting->items,
					  .frames = waiting->frames,
					  .maximum = WAITING_PYTHON_FRAMES_MAX,
					  .scratch = scratch,
					  .sink = sink,
					  .interpreter_thread = &waiting->interpreter_thread};
	uint64_t hash = 1;

	if (waiting->tid != other->tid)
		waiting->interpreter_thread = 0;
	waiting->tid = other->tid;
	waiting->count = interpreters_merge_frames(&stack, &merge);
	waiting->hash = 0;
	if (merge.lost_frame_walks || !thread_waits_without_lock(merge.thread_state))
		waiting->count = 0;
	for (uint32_t i = 0; i < waiting->count; i++)
		hash = fold_hash_add(hash, waiting->frames[i]);
	if (waiting->count)
		waiting->hash = hash | 1;
}

void waiting_python_refresh(struct waiting_python *waiting, const struct thread *own,
			    uint64_t ticks_per_second, uint8_t *scratch,
			    struct interpreted_code_sink sink)
{
	const struct thread *other =
		atomic_load_explicit(&last_python_launcher, memory_order_relaxed);
	uint64_t now = ticks_now();

	if (now < waiting->next_ticks)
		return;
	waiting->next_ticks = now + ticks_per_second / 1000000 * WAITING_PYTHON_PERIOD_US;
	if (other && other != own &&
	    atomic_load_explicit(&other->state, memory_order_relaxed) != THREAD_STATE_ENDED) {
		read_frames(waiting, other, scratch, sink);
	} else {
		waiting->count = 0;
		waiting->hash = 0;
	}
}
