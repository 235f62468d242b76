/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See spins.h.
 */
#include "causal/spins.h"

#include "causal/state.h"

#define SPIN_FUNCTIONS_MAX 32u

static struct {
	_Atomic uint32_t count;
	uint64_t spin_function_addresses[SPIN_FUNCTIONS_MAX];
} spins;

static bool is_spin_function_address(uint64_t address)
{
	uint32_t count = atomic_load_explicit(&spins.count, memory_order_acquire);

	for (uint32_t i = 0; i < count; i++) {
		if (spins.spin_function_addresses[i] == address)
			return true;
	}
	return false;
}

/* Entries are never taken back: where no function is instrumented any more, none is entered. */
void spins_add_function(uint64_t address)
{
	uint32_t count = atomic_load(&spins.count);

	if (is_spin_function_address(address) || count == SPIN_FUNCTIONS_MAX)
		return;
	spins.spin_function_addresses[count] = address;
	atomic_store_explicit(&spins.count, count + 1, memory_order_release);
}

void spins_begin_wait_if_spin_function(uint64_t address)
{
	struct causal_thread *state = is_spin_function_address(address) && causal_is_active()
					      ? causal_find_or_make_current_state()
					      : NULL;

	if (!state)
		return;
	causal_apply_delay_and_begin_wait(&state->spin_wait);
	/* The wait is kept with the state: where on the stack it is must be said. */
	if (state->spin_wait.epoch)
		causal_store_relaxed(&state->waiting, (uint64_t)__builtin_frame_address(0));
}

void spins_end_wait_if_spin_function(uint64_t address)
{
	struct causal_thread *state = is_spin_function_address(address) && causal_is_active()
					      ? causal_find_or_make_current_state()
					      : NULL;
	struct causal_wait_state wait;

	if (!state || !state->spin_wait.epoch)
		return;
	wait = state->spin_wait;
	state->spin_wait.epoch = 0;
	causal_end_wait_at_site(&wait, CAUSAL_WAKER_SESSION, address);
}
