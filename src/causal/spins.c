/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See spins.h.
 */
#include "causal/spins.h"

#include "causal/state.h"

#define SPINS_MAX 32u

static struct {
	_Atomic uint32_t count;
	uint64_t addresses[SPINS_MAX];
} spins;

static bool is_one(uint64_t address)
{
	uint32_t count = atomic_load_explicit(&spins.count, memory_order_acquire);

	for (uint32_t i = 0; i < count; i++) {
		if (spins.addresses[i] == address)
			return true;
	}
	return false;
}

/* Entries are never taken back: where no function is instrumented any more, none is entered. */
void spins_add(uint64_t address)
{
	uint32_t count = atomic_load(&spins.count);

	if (is_one(address) || count == SPINS_MAX)
		return;
	spins.addresses[count] = address;
	atomic_store_explicit(&spins.count, count + 1, memory_order_release);
}

void spins_entered(uint64_t address)
{
	struct causal_thread *state = is_one(address) && causal_on() ? causal_self() : NULL;

	if (!state)
		return;
	causal_before_wait(&state->spin);
	/* The wait is kept with the state: where on the stack it is must be said. */
	if (state->spin.epoch)
		causal_set(&state->waiting, (uint64_t)__builtin_frame_address(0));
}

void spins_left(uint64_t address)
{
	struct causal_thread *state = is_one(address) && causal_on() ? causal_self() : NULL;
	struct causal_wait wait;

	if (!state || !state->spin.epoch)
		return;
	wait = state->spin;
	state->spin.epoch = 0;
	causal_after_wait_at(&wait, CAUSAL_WAKER_SESSION, address);
}
