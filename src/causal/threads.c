/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The states of threads. They lie in slabs as the registry's blocks do, each at the index of its
 * block, so nothing needs to be freed, and handlers of threads that nobody has seen before can make
 * one. A block that is new has no state: what an earlier thread left there is overwritten.
 */
#include <string.h>
#include <sys/mman.h>

#include "causal/oversubscription.h"
#include "causal/state.h"
#include "common/syscalls.h"

#define THREAD_STATES_PER_SLAB 64u
#define THREAD_STATE_SLABS_MAX 65536u /* of as many blocks as the registry may have */

__thread struct causal_thread *kymo_causal_thread;

static _Atomic uint32_t last_thread_life_number;

static void *map_zeroed_memory(size_t size)
{
	void *memory = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return sys_mmap_failed(memory) ? NULL : memory;
}

/* *at, or new memory that everybody finds there from now on. */
static void *find_or_map_memory(void *_Atomic *at, size_t size)
{
	void *there = atomic_load_explicit(at, memory_order_acquire), *memory;

	if (there)
		return there;
	memory = map_zeroed_memory(size);
	if (!memory)
		return NULL;
	if (atomic_compare_exchange_strong(at, &there, memory))
		return memory;
	sys_munmap(memory, size);
	return there;
}

static struct causal_thread *find_or_map_thread_state(uint32_t index)
{
	static void *_Atomic table;
	void *_Atomic *slabs;
	struct causal_thread *states;

	if (index >= THREAD_STATES_PER_SLAB * THREAD_STATE_SLABS_MAX)
		return NULL;
	slabs = find_or_map_memory(&table, THREAD_STATE_SLABS_MAX * sizeof(*slabs));
	if (!slabs)
		return NULL;
	states = find_or_map_memory(&slabs[index / THREAD_STATES_PER_SLAB],
				    THREAD_STATES_PER_SLAB * sizeof(struct causal_thread));
	return states ? &states[index % THREAD_STATES_PER_SLAB] : NULL;
}

/* It begins owing nothing. */
struct causal_thread *causal_find_or_make_thread_state(struct thread *thread)
{
	struct causal_control *control = atomic_load(&kymo_causal);
	struct causal_thread *state = thread->causal_state;

	if (state || !control || thread->origin == THREAD_ORIGIN_INTERNAL)
		return state;
	state = find_or_map_thread_state(thread->index);
	if (!state)
		return NULL;
	memset(state, 0, offsetof(struct causal_thread, attribution.burst_statistics));
	state->attribution.thread_life_number =
		atomic_fetch_add_explicit(&last_thread_life_number, 1, memory_order_relaxed) + 1;
	state->thread = thread;
	causal_store_relaxed(&state->word, ~0ull);
	causal_adopt_experiment_word(
		control, state, atomic_load_explicit(&control->experiment, memory_order_acquire));
	causal_store_relaxed(&state->local_delay, causal_load_relaxed(&control->global_delay));
	thread->causal_state = state;
	return state;
}

void causal_pay_delay_and_init_created_thread(struct thread *child)
{
	struct causal_thread *mine, *state;

	if (!causal_is_active())
		return;
	causal_pay_delay();
	state = causal_find_or_make_thread_state(child);
	mine = causal_find_or_make_current_state();
	if (!state || !mine)
		return;
	causal_store_relaxed(&state->word, causal_load_relaxed(&mine->word));
	causal_store_relaxed(&state->start, causal_load_relaxed(&mine->start));
	causal_store_relaxed(&state->local_delay, causal_compute_local_delay_at(mine, ticks_now()));
	state->attribution.learning_until_ticks = mine->attribution.learning_until_ticks;
	/* from now on it runs */
	causal_begin_burst(atomic_load(&kymo_causal), state,
			   (uint64_t)child->entry | CAUSAL_THREAD_START_BURST_KIND_BIT,
			   ticks_now());
}

/* The parent's block is gone, and the place of its state belongs to another thread of this process:
 * blocks are renumbered. */
void causal_carry_state_over_fork(void)
{
	struct causal_thread *old = kymo_causal_thread, *state;
	_Alignas(struct causal_thread) uint8_t kept[offsetof(struct causal_thread, attribution)];

	kymo_causal_thread = NULL;
	causal_oversubscription_set_forked();
	if (!causal_is_active() || !kymo_thread)
		return;
	if (old)
		memcpy(kept, old, sizeof(kept));
	state = causal_find_or_make_thread_state(kymo_thread);
	if (state && old) {
		memcpy(state, kept, sizeof(kept));
		state->thread = kymo_thread;
		/* the epoch is not new to it */
		state->attribution.learning_until_ticks = 0;
		/* is the parent's */
		state->oversubscription = (struct causal_thread_oversubscription_state){0};
		causal_store_relaxed(&state->busy, 0);
		causal_store_relaxed(&state->waiting, 0);
		state->waits = state->waits_ended_outside_session = state->credited = 0;
	}
	kymo_causal_thread = state;
}
