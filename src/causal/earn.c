/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A sample of CPU time: whose time it was, and what the thread earns by it. A target's time is that
 * of all samples that have it anywhere on the stack, as a faster one would make all of it shorter;
 * what is worth a try shows by the time that it is innermost.
 */
#include "causal/points_named.h"
#include "causal/state.h"
#include "core/sampler.h"

/* Recursion brings the same ones again and again; more different ones than this on a stack are not
 * counted for themselves. */
#define SEEN_MAX 96u
/* Samples in which what others did not stand for is caught up with. */
#define CAUGHT_UP 8

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
	/* Else the function that the user calls progress would look as if it were worth a try. */
	bool is_visit = stack->count != 0 && points_named_is_visited(stack->frames[0]);

	for (uint32_t i = 0; i < stack->count; i++) {
		/* Return addresses are behind the call. */
		const uint32_t *id = causal_map_find(stack->frames[i] - (i > 0));

		for (; *id && *id < CAUSAL_TARGETS; id++) {
			hit = hit || *id == target;
			if (!any && !is_visit)
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

/* What the sample stands for, of the program's own CPU time: 0 for those that come while the thread
 * spins in a pause. All others stand for the time between samples, spun or not: places right behind
 * a pause would seem to take less time than those before it, if it went off the sample that follows
 * it. (What was spun in handlers was so behind a sample, wherever that was.) In the long run it is
 * not more or less than there was: a bit of what is missing comes with each. */
static uint64_t own_time(struct causal_thread *state, uint64_t cpu_ns)
{
	struct causal_earning *earning = &state->earning;
	uint64_t spun = atomic_exchange_explicit(&earning->spun_ns, 0, memory_order_relaxed);
	int64_t stands_for = (int64_t)cpu_ns - (int64_t)earning->handler_spun_ns, missing;

	earning->handler_spun_ns = 0;
	missing = earning->missing_ns + (int64_t)cpu_ns - (int64_t)spun;
	if (!atomic_load_explicit(&earning->spinning, memory_order_relaxed)) {
		stands_for = stands_for > 0 ? stands_for : 0;
		stands_for += (missing - stands_for) / CAUGHT_UP;
		stands_for = stands_for > 0 ? stands_for : 0;
	} else {
		stands_for = 0;
	}
	earning->missing_ns = missing - stands_for;
	return (uint64_t)stands_for;
}

void causal_sampled(struct thread *thread, const struct sampler_stack *stack, uint64_t cpu_ns,
		    uint64_t ticks)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_relaxed);
	struct causal_thread *state = control ? causal_state_of(thread) : NULL;
	uint64_t word;
	bool hit;

	if (!state || !(cpu_ns = own_time(state, cpu_ns)))
		return;
	/* Waiting awake is no work, and nothing to be made faster. */
	if (state->spin.epoch && causal_is_waiting(state))
		return;
	word = atomic_load_explicit(&control->experiment, memory_order_acquire);
	hit = attribute(control, stack, cpu_ns, word & CAUSAL_TARGET_MASK);
	if (!(word & CAUSAL_ACTIVE))
		return;
	if (hit)
		causal_count(&control->samples_in_target, 1);
	/* What a wait takes is credited at its end. In the midst of a turn the state may be that of
	 * another experiment. */
	if (causal_is_waiting(state))
		return;
	if (causal_enter(state)) {
		causal_turn(control, state);
		causal_learn(state, cpu_ns, hit, word >> CAUSAL_SPEEDUP_SHIFT & CAUSAL_SPEEDUP_MASK,
			     ticks);
		causal_leave(state);
	} else if (causal_get(&state->word) == word) {
		causal_learn(state, cpu_ns, hit, word >> CAUSAL_SPEEDUP_SHIFT & CAUSAL_SPEEDUP_MASK,
			     ticks);
	}
}
