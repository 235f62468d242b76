/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A sample of CPU time: whose time it was, and what the thread earns by it. A target's time is that
 * of all samples that have it anywhere on the stack, as a faster one would make all of it shorter;
 * what is worth a try shows by the time that it is innermost.
 */
#include "causal/state.h"
#include "core/sampler.h"

/* Recursion brings the same ones again and again; more different ones than this on a stack are not
 * counted for themselves. */
#define SEEN_MAX 96u

struct seen {
	uint32_t count;
	uint32_t ids[SEEN_MAX];
};

/* True when it was not there. */
static bool add(struct seen *seen, uint32_t id)
{
	for (uint32_t i = 0; i < seen->count; i++) {
		if (seen->ids[i] == id)
			return false;
	}
	if (seen->count == SEEN_MAX)
		return false;
	seen->ids[seen->count++] = id;
	return true;
}

/* Counts the sample for all targets on the stack; is `target` one of them? */
static bool attribute(struct causal_control *control, const struct sampler_stack *stack,
		      uint64_t cpu_ns, uint32_t target)
{
	struct seen seen = {.count = 0};
	bool hit = false, any = false;

	for (uint32_t i = 0; i < stack->count; i++) {
		/* Return addresses are behind the call. */
		const uint32_t *id = causal_map_find(stack->frames[i] - (i > 0));

		for (; *id && *id < CAUSAL_TARGETS; id++) {
			hit = hit || *id == target;
			if (!any)
				causal_count(&control->targets[*id].self_ns, cpu_ns);
			any = true;
			if (add(&seen, *id))
				causal_count(&control->targets[*id].total_ns, cpu_ns);
		}
	}
	causal_count(&control->samples, 1);
	if (any)
		causal_count(&control->samples_in_scope, 1);
	return hit;
}

/* What was earned before becomes delay for the time that the thread ran since. */
static void earn(struct causal_control *control, struct causal_thread *state, uint64_t ticks,
		 uint64_t amount)
{
	bool entered = causal_enter(state);

	if (entered) {
		causal_turn(control, state);
		state->mark = ticks;
	}
	atomic_fetch_add_explicit(&state->pending, amount, memory_order_relaxed);
	if (entered)
		causal_leave(state);
}

void causal_sampled(struct thread *thread, const struct sampler_stack *stack, uint64_t cpu_ns,
		    uint64_t ticks)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_relaxed);
	struct causal_thread *state = control ? causal_state_of(thread) : NULL;
	uint64_t word, speedup;

	if (!state)
		return;
	word = atomic_load_explicit(&control->experiment, memory_order_acquire);
	if (!attribute(control, stack, cpu_ns, word & CAUSAL_TARGET_MASK))
		return;
	if (!(word & CAUSAL_ACTIVE))
		return;
	causal_count(&control->samples_in_target, 1);
	speedup = word >> CAUSAL_SPEEDUP_SHIFT & CAUSAL_SPEEDUP_MASK;
	/* A state that is in the midst of another experiment has another target. */
	if (speedup && (!causal_get(&state->busy) || causal_get(&state->word) == word))
		earn(control, state, ticks, causal_ticks(cpu_ns) * speedup / 1000);
}
