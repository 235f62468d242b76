/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A sample of CPU time: whose time it was, and what local delay the thread gains by it. A target's
 * time is that of all samples that have it anywhere on the stack, as a faster one would make all of
 * it shorter; what is worth a try shows by the time that it is innermost.
 */
#include "causal/points_named.h"
#include "causal/state.h"
#include "core/sampler.h"

/* Recursion brings the same ones again and again; more different ones than this on a stack are not
 * counted for themselves. */
#define SEEN_TARGETS_PER_STACK_MAX 96u
/* Samples in which what others did not stand for is caught up with. */
#define MISSING_CPU_CATCH_UP_DIVISOR 8

/* Functions that threads start in, of which the latest sample is kept; power of two. */
#define THREAD_ENTRY_SLOTS 64u

struct targets_seen_on_stack {
	uint32_t count;
	uint32_t innermost; /* in scope; 0: none, or the stack is that of a visit */
	uint32_t ids[SEEN_TARGETS_PER_STACK_MAX];
};

/* True when it was not there. */
static bool add_seen_target_if_new(struct targets_seen_on_stack *seen, uint32_t id)
{
	for (uint32_t i = 0; i < seen->count; i++) {
		if (seen->ids[i] == id)
			return false;
	}
	if (seen->count == SEEN_TARGETS_PER_STACK_MAX)
		return false;
	seen->ids[seen->count++] = id;
	return true;
}

/* ---- what threads do that started in the same function ---- */

struct thread_entry_sample {
	_Atomic uint32_t sequence; /* odd: being written */
	_Atomic uint32_t innermost, count;
	_Atomic uint64_t entry;
	_Atomic uint32_t ids[CAUSAL_LATEST_SAMPLE_TARGETS_MAX];
};

static struct thread_entry_sample thread_entry_samples[THREAD_ENTRY_SLOTS];

static struct thread_entry_sample *find_thread_entry_sample(uint64_t entry)
{
	return &thread_entry_samples[(entry * 0x9e3779b97f4a7c15ull >> 32) % THREAD_ENTRY_SLOTS];
}

/* Who comes while another one writes leaves it: any sample will do. */
static void keep_sample_for_thread_entry(uint64_t entry, const struct targets_seen_on_stack *seen)
{
	struct thread_entry_sample *sample = find_thread_entry_sample(entry);
	uint32_t sequence = atomic_load_explicit(&sample->sequence, memory_order_relaxed);

	if (sequence & 1 ||
	    !atomic_compare_exchange_strong(&sample->sequence, &sequence, sequence + 1))
		return;
	atomic_store_explicit(&sample->entry, entry, memory_order_release);
	atomic_store_explicit(&sample->innermost, seen->innermost, memory_order_release);
	sequence += 2;
	atomic_store_explicit(&sample->count,
			      seen->count < CAUSAL_LATEST_SAMPLE_TARGETS_MAX
				      ? seen->count
				      : CAUSAL_LATEST_SAMPLE_TARGETS_MAX,
			      memory_order_release);
	for (uint32_t i = 0; i < seen->count && i < CAUSAL_LATEST_SAMPLE_TARGETS_MAX; i++)
		atomic_store_explicit(&sample->ids[i], seen->ids[i], memory_order_release);
	atomic_store_explicit(&sample->sequence, sequence, memory_order_release);
}

static void keep_sample_for_thread(struct causal_attribution_state *attribution,
				   const struct targets_seen_on_stack *seen)
{
	struct causal_latest_sample *latest = &attribution->latest_sample;

	latest->innermost = seen->innermost;
	latest->count = seen->count < CAUSAL_LATEST_SAMPLE_TARGETS_MAX
				? seen->count
				: CAUSAL_LATEST_SAMPLE_TARGETS_MAX;
	for (uint32_t i = 0; i < latest->count; i++)
		latest->ids[i] = seen->ids[i];
	attribution->has_latest_sample = true;
}

static void copy_sample_of_thread(const struct causal_attribution_state *attribution,
				  struct targets_seen_on_stack *ret)
{
	const struct causal_latest_sample *latest = &attribution->latest_sample;

	ret->innermost = latest->innermost;
	ret->count = latest->count;
	for (uint32_t i = 0; i < latest->count; i++)
		ret->ids[i] = latest->ids[i];
}

/* False: there is none, or it is being written. */
static bool copy_sample_of_thread_entry(uint64_t entry, struct targets_seen_on_stack *ret)
{
	struct thread_entry_sample *sample = find_thread_entry_sample(entry);
	uint32_t sequence = atomic_load_explicit(&sample->sequence, memory_order_acquire);

	ret->count = 0;
	if (sequence & 1 || atomic_load_explicit(&sample->entry, memory_order_acquire) != entry)
		return false;
	ret->innermost = atomic_load_explicit(&sample->innermost, memory_order_acquire);
	ret->count = atomic_load_explicit(&sample->count, memory_order_acquire);
	for (uint32_t i = 0; i < ret->count && i < CAUSAL_LATEST_SAMPLE_TARGETS_MAX; i++)
		ret->ids[i] = atomic_load_explicit(&sample->ids[i], memory_order_acquire);
	return ret->count <= CAUSAL_LATEST_SAMPLE_TARGETS_MAX &&
	       atomic_load_explicit(&sample->sequence, memory_order_acquire) == sequence;
}

/* ---- samples ---- */

/* 0: it is none of many. */
static uint64_t get_thread_entry(const struct thread *thread)
{
	return thread->origin == THREAD_ORIGIN_CREATED ? thread->entry : 0;
}

/* Counts the sample for all targets on the stack; is `target` one of them? */
static bool count_sample_and_test_if_target_hit(struct causal_control *control,
						struct causal_thread *state,
						const struct sampled_stack *stack, uint64_t cpu_ns,
						uint32_t target)
{
	uint64_t entry = get_thread_entry(state->thread);
	struct targets_seen_on_stack seen = {.count = 0};
	bool hit = false, any = false;
	/* Else the function that the user calls progress would look as if it were worth a try. */
	bool is_visit = stack->count != 0 && points_named_has_breakpoint_at(stack->frames[0]);

	for (uint32_t i = 0; i < stack->count; i++) {
		/* Return addresses are behind the call. */
		const uint32_t *id = causal_map_find_targets_of_address(stack->frames[i] - (i > 0));

		for (; *id && *id < CAUSAL_TARGETS; id++) {
			hit = hit || *id == target;
			if (!any && !is_visit) {
				causal_add_to_counter(&control->targets[*id].self_ns, cpu_ns);
				seen.innermost = *id;
			}
			any = true;
			if (add_seen_target_if_new(&seen, *id))
				causal_add_to_counter(&control->targets[*id].total_ns, cpu_ns);
		}
	}
	causal_add_to_counter(&control->samples, 1);
	if (any)
		causal_add_to_counter(&control->samples_in_scope, 1);
	if (entry && !is_visit) {
		keep_sample_for_thread_entry(entry, &seen);
		keep_sample_for_thread(&state->attribution, &seen);
	}
	return hit;
}

/* What the sample stands for, of the program's own CPU time: 0 for those that come while the thread
 * spins in a pause. All others stand for the time between samples, spun or not: places right behind
 * a pause would seem to take less time than those before it, if it went off the sample that follows
 * it. (What was spun in handlers was so behind a sample, wherever that was.) In the long run it is
 * not more or less than there was: a bit of what is missing comes with each. */
static uint64_t compute_program_cpu_ns_of_sample(struct causal_thread *state, uint64_t cpu_ns)
{
	struct causal_attribution_state *attribution = &state->attribution;
	uint64_t spun = atomic_exchange_explicit(&attribution->spun_ns, 0, memory_order_relaxed);
	int64_t stands_for = (int64_t)cpu_ns - (int64_t)attribution->handler_spun_ns, missing;

	attribution->handler_spun_ns = 0;
	missing = attribution->unsampled_cpu_ns + (int64_t)cpu_ns - (int64_t)spun;
	if (!atomic_load_explicit(&attribution->is_pausing, memory_order_relaxed)) {
		stands_for = stands_for > 0 ? stands_for : 0;
		stands_for += (missing - stands_for) / MISSING_CPU_CATCH_UP_DIVISOR;
		stands_for = stands_for > 0 ? stands_for : 0;
	} else {
		stands_for = 0;
	}
	attribution->unsampled_cpu_ns = missing - stands_for;
	return (uint64_t)stands_for;
}

void causal_attribute_sample(struct thread *thread, const struct sampled_stack *stack,
			     uint64_t cpu_ns, uint64_t ticks)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_relaxed);
	struct causal_thread *state = control ? causal_find_or_make_thread_state(thread) : NULL;
	uint64_t word;
	bool hit;

	if (!state || !(cpu_ns = compute_program_cpu_ns_of_sample(state, cpu_ns)))
		return;
	/* Waiting awake is no work, and nothing to be made faster. */
	if (state->spin_wait.epoch && causal_thread_is_waiting(state))
		return;
	word = atomic_load_explicit(&control->experiment, memory_order_acquire);
	hit = count_sample_and_test_if_target_hit(control, state, stack, cpu_ns,
						  word & CAUSAL_TARGET_MASK);
	if (!(word & CAUSAL_ACTIVE))
		return;
	if (hit)
		causal_add_to_counter(&control->samples_in_target, 1);
	/* What a wait takes is credited at its end. In the midst of a turn the state may be that of
	 * another experiment. */
	if (causal_thread_is_waiting(state))
		return;
	if (causal_try_enter_state(state)) {
		causal_sync_with_experiment(control, state);
		causal_add_sample_to_attribution(state, cpu_ns, hit,
						 word >> CAUSAL_SPEEDUP_SHIFT & CAUSAL_SPEEDUP_MASK,
						 ticks);
		causal_leave_state(state);
	} else if (causal_load_relaxed(&state->word) == word) {
		causal_add_sample_to_attribution(state, cpu_ns, hit,
						 word >> CAUSAL_SPEEDUP_SHIFT & CAUSAL_SPEEDUP_MASK,
						 ticks);
	}
}

/* ---- the ends of threads ---- */

/* Where its function begins is on its stack all the time, whatever samples of others say. */
static void add_targets_of_thread_entry(uint64_t entry, struct targets_seen_on_stack *seen)
{
	const uint32_t *id;

	causal_map_begin_use();
	id = causal_map_find_targets_of_address(entry);
	causal_map_end_use(); /* the list is the file's, which stays */
	for (; *id && *id < CAUSAL_TARGETS; id++) {
		seen->innermost = seen->innermost ? seen->innermost : *id;
		add_seen_target_if_new(seen, *id);
	}
}

/* Reading the clock is a system call, which a filter of the program may answer with its end. */
static uint64_t compute_unsampled_cpu_ns(const struct causal_thread *state)
{
	const struct causal_attribution_state *attribution = &state->attribution;
	int64_t left;

	if (state->thread->has_own_seccomp_filter || process_has_seccomp_thread())
		return 0;
	left = (int64_t)(read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID) - state->thread->cpu_ns) +
	       attribution->unsampled_cpu_ns - (int64_t)causal_load_relaxed(&attribution->spun_ns);

	return left > 0 ? (uint64_t)left : 0;
}

void causal_attribute_unsampled_time_of_ending_thread(struct causal_control *control,
						      struct causal_thread *state)
{
	uint64_t entry = get_thread_entry(state->thread), word = causal_load_relaxed(&state->word),
		 cpu_ns = entry ? compute_unsampled_cpu_ns(state) : 0;
	struct targets_seen_on_stack seen = {.count = 0};
	bool hit = false;

	if (!cpu_ns)
		return;
	if (state->attribution.has_latest_sample)
		copy_sample_of_thread(&state->attribution, &seen);
	else if (!copy_sample_of_thread_entry(entry, &seen))
		seen.count = seen.innermost = 0;
	add_targets_of_thread_entry(entry, &seen);
	if (seen.innermost && seen.innermost < CAUSAL_TARGETS)
		causal_add_to_counter(&control->targets[seen.innermost].self_ns, cpu_ns);
	for (uint32_t i = 0; i < seen.count; i++) {
		hit = hit || seen.ids[i] == (word & CAUSAL_TARGET_MASK);
		causal_add_to_counter(&control->targets[seen.ids[i]].total_ns, cpu_ns);
	}
	if (hit && word & CAUSAL_ACTIVE)
		causal_add_unsampled_time_to_attribution(
			state, cpu_ns, word >> CAUSAL_SPEEDUP_SHIFT & CAUSAL_SPEEDUP_MASK,
			ticks_now());
}
