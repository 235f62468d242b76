/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The states of threads. They lie in slabs as the registry's blocks do, each at the index of its
 * block, so nothing needs to be freed, and handlers of threads that nobody has seen before can make
 * one. A block that is new has no state: what an earlier thread left there is overwritten.
 */
#include <string.h>
#include <sys/mman.h>

#include "causal/crowd.h"
#include "causal/state.h"
#include "common/syscalls.h"

#define SLAB_STATES 64u
#define SLABS       65536u /* of as many blocks as the registry may have */

__thread struct causal_thread *kymo_causal_thread;

static _Atomic uint32_t lives;

static void *map(size_t size)
{
	void *memory = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return sys_failed(memory) ? NULL : memory;
}

/* *at, or new memory that everybody finds there from now on. */
static void *found_or_mapped(void *_Atomic *at, size_t size)
{
	void *there = atomic_load_explicit(at, memory_order_acquire), *memory;

	if (there)
		return there;
	memory = map(size);
	if (!memory)
		return NULL;
	if (atomic_compare_exchange_strong(at, &there, memory))
		return memory;
	sys_munmap(memory, size);
	return there;
}

static struct causal_thread *state_at(uint32_t index)
{
	static void *_Atomic table;
	void *_Atomic *slabs;
	struct causal_thread *states;

	if (index >= SLAB_STATES * SLABS)
		return NULL;
	slabs = found_or_mapped(&table, SLABS * sizeof(*slabs));
	if (!slabs)
		return NULL;
	states = found_or_mapped(&slabs[index / SLAB_STATES],
				 SLAB_STATES * sizeof(struct causal_thread));
	return states ? &states[index % SLAB_STATES] : NULL;
}

/* It begins owing nothing. */
struct causal_thread *causal_state_of(struct thread *thread)
{
	struct causal_control *control = atomic_load(&kymo_causal);
	struct causal_thread *state = thread->causal;

	if (state || !control || thread->how == THREAD_INTERNAL)
		return state;
	state = state_at(thread->index);
	if (!state)
		return NULL;
	memset(state, 0, offsetof(struct causal_thread, earning.stretches));
	state->earning.life = atomic_fetch_add_explicit(&lives, 1, memory_order_relaxed) + 1;
	state->thread = thread;
	causal_set(&state->word, ~0ull);
	causal_change_epoch(control, state,
			    atomic_load_explicit(&control->experiment, memory_order_acquire));
	causal_set(&state->delay, causal_get(&control->delay));
	thread->causal = state;
	return state;
}

void causal_thread_created(struct thread *child)
{
	struct causal_thread *mine, *state;

	if (!causal_on())
		return;
	causal_pay();
	state = causal_state_of(child);
	mine = causal_self();
	if (!state || !mine)
		return;
	causal_set(&state->word, causal_get(&mine->word));
	causal_set(&state->start, causal_get(&mine->start));
	causal_set(&state->delay, causal_delay_at(mine, ticks_now()));
	state->earning.learning_until = mine->earning.learning_until;
	/* from now on it runs */
	causal_run(atomic_load(&kymo_causal), state, (uint64_t)child->entry | CAUSAL_KIND_START,
		   ticks_now());
}

/* The parent's block is gone, and the place of its state belongs to another thread of this process:
 * blocks are numbered anew. */
void causal_state_forked(void)
{
	struct causal_thread *old = kymo_causal_thread, *state;
	_Alignas(struct causal_thread) uint8_t kept[offsetof(struct causal_thread, earning)];

	kymo_causal_thread = NULL;
	causal_crowd_forked();
	if (!causal_on() || !kymo_thread)
		return;
	if (old)
		memcpy(kept, old, sizeof(kept));
	state = causal_state_of(kymo_thread);
	if (state && old) {
		memcpy(state, kept, sizeof(kept));
		state->thread = kymo_thread;
		/* the epoch is not new to it */
		state->earning.learning_until = 0;
		/* is the parent's */
		state->crowd = (struct causal_crowd){0};
		causal_set(&state->busy, 0);
		causal_set(&state->waiting, 0);
		state->waits = state->waits_outside = state->credited = 0;
	}
	kymo_causal_thread = state;
}
