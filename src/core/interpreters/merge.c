/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Puts the frames of interpreted code where the native frames stand that run them.
 *
 * The frames that one call of the evaluation loop runs come with a boundary: an address in that
 * call's own frame on the native stack, so between its stack pointer and its caller's. The native
 * frame gives way to them. A call that has no boundary is about to begin or has just ended, and
 * stays as it is. Where no boundary is known, calls and frames are counted, from the outermost on:
 * a call too many is the innermost, which has no frame yet or no more. What finds no place (the
 * native stack was cut, or is another coroutine's) stands outside of the rest: the interpreter's
 * view is whole.
 */
#include "common/fold_hash.h"
#include "core/interpreters/list.h"

#define INTERPRETED_RUN_UNPLACED UINT32_MAX

struct merge_state {
	const struct native_stack *stack;
	struct interpreted_merge *merge;
	const struct interpreter *interpreter;
	uint32_t count;         /* frames so far */
	uint32_t native_next;   /* native frame to be looked at */
	uint32_t calls_to_skip; /* innermost calls of the evaluation loop that have no frame */
};

static void append_merged(struct merge_state *state, uint64_t frame)
{
	if (state->count == state->merge->maximum)
		state->merge->is_cut = true;
	else
		state->merge->frames[state->count++] = frame;
}

static bool native_frame_evaluates(const struct merge_state *state, uint32_t index)
{
	uint32_t symbol = state->interpreter->kind->evaluate_symbol;
	uint64_t pc = state->stack->frames[index] - (index != 0);

	return pc - state->interpreter->symbols[symbol] < state->interpreter->symbol_sizes[symbol];
}

/* The native frame that has the address in it, from the next one on. */
static uint32_t find_native_frame_of_address(const struct merge_state *state, uint64_t address)
{
	const struct native_stack *stack = state->stack;

	for (uint32_t i = state->native_next; i < stack->count; i++) {
		if (stack->stack_pointers[i] > address)
			return INTERPRETED_RUN_UNPLACED;
		if (i + 1 < stack->count ? stack->stack_pointers[i + 1] > address
					 : native_frame_evaluates(state, i))
			return i;
	}
	return INTERPRETED_RUN_UNPLACED;
}

static uint32_t find_next_evaluating_frame(struct merge_state *state)
{
	for (uint32_t i = state->native_next; i < state->stack->count; i++) {
		if (!native_frame_evaluates(state, i))
			continue;
		if (!state->calls_to_skip)
			return i;
		state->calls_to_skip--;
	}
	return INTERPRETED_RUN_UNPLACED;
}

static void append_native_rest(struct merge_state *state)
{
	while (state->native_next < state->stack->count)
		append_merged(state, state->stack->frames[state->native_next++]);
}

/* The frames of one call, items [first, end), whose boundary is items[end]. */
static void place_run(struct merge_state *state, uint32_t first, uint32_t end)
{
	const struct native_stack *stack = state->stack;
	uint64_t boundary = state->merge->items[end] & ~INTERPRETED_BOUNDARY_BIT;
	uint32_t at = boundary ? find_native_frame_of_address(state, boundary)
			       : find_next_evaluating_frame(state);

	if (at == INTERPRETED_RUN_UNPLACED) {
		append_native_rest(state);
	} else {
		while (state->native_next < at)
			append_merged(state, stack->frames[state->native_next++]);
		if (first != end)
			state->native_next++; /* it gives way */
	}
	for (uint32_t i = first; i < end; i++)
		append_merged(state, state->merge->items[i]);
}

static void count_calls_to_skip(struct merge_state *state, uint32_t item_count)
{
	uint32_t runs = 0, calls = 0;

	for (uint32_t i = 0; i < item_count; i++) {
		if (state->merge->items[i] > INTERPRETED_BOUNDARY_BIT)
			return; /* where calls stand is known */
		runs += state->merge->items[i] == INTERPRETED_BOUNDARY_BIT;
	}
	for (uint32_t i = 0; i < state->stack->count; i++)
		calls += native_frame_evaluates(state, i);
	/* Of a walk that broke off nobody knows. */
	if (state->stack->is_complete && calls > runs &&
	    state->merge->items[item_count - 1] == INTERPRETED_BOUNDARY_BIT)
		state->calls_to_skip = calls - runs;
}

static void merge_items(struct merge_state *state, const struct interpreted_walk *walk)
{
	uint32_t first = 0;

	count_calls_to_skip(state, walk->count);
	for (uint32_t i = 0; i < walk->count; i++) {
		if (!(state->merge->items[i] & INTERPRETED_BOUNDARY_BIT))
			continue;
		place_run(state, first, i);
		first = i + 1;
	}
	if (first == walk->count) {
		append_native_rest(state);
		return;
	}
	/* The walk broke off within a run: where there was no room for more, what is outside of it
	 * is left out as well. */
	state->merge->items[walk->count] = INTERPRETED_BOUNDARY_BIT;
	place_run(state, first, walk->count);
	if (walk->is_full)
		state->merge->is_cut = true;
	else
		append_native_rest(state);
}

/* Collects the items of the thread; false: it runs no interpreted code. */
static bool collect_items(struct interpreted_walk *walk, const struct native_stack *stack,
			  struct interpreted_merge *merge, bool only_differences)
{
	uint32_t count = atomic_load_explicit(&interpreter_list_count, memory_order_acquire);

	for (uint32_t i = 0; i < count; i++) {
		*walk = (struct interpreted_walk){.interpreter = &interpreter_list[i],
						  .stack = stack,
						  .merge = merge,
						  .capacity = 2 * merge->maximum - 1,
						  .only_differences = only_differences,
						  .cannot_describe = !merge->scratch};
		if (atomic_load_explicit(&walk->interpreter->is_present, memory_order_acquire) &&
		    walk->interpreter->kind->collect(walk) && walk->count)
			return true;
	}
	return false;
}

uint32_t interpreters_merge_frames(const struct native_stack *stack,
				   struct interpreted_merge *merge)
{
	struct merge_state state = {.stack = stack, .merge = merge};
	struct interpreted_walk walk;

	if (!collect_items(&walk, stack, merge, false))
		return 0;
	state.interpreter = walk.interpreter;
	merge_items(&state, &walk);
	return state.count;
}

uint64_t interpreters_hash_frames(const struct native_stack *stack, struct interpreted_merge *merge)
{
	struct interpreted_walk walk;
	uint64_t hash = 1;

	/* A thread may have a state and no frames, as PyTorch's that compute gradients. */
	if (!collect_items(&walk, stack, merge, true) || !walk.count)
		return 0;
	for (uint32_t i = 0; i < walk.count; i++)
		hash = fold_hash_add(hash, merge->items[i]);
	return hash | 1;
}

uint64_t interpreters_find_innermost_frame(const struct native_stack *stack,
					   struct interpreted_merge *merge)
{
	struct interpreted_walk walk;

	if (!collect_items(&walk, stack, merge, false))
		return 0;
	/* A call of the evaluation loop that has no frame yet is a boundary alone. */
	for (uint32_t i = 0; i < walk.count; i++) {
		if (!(merge->items[i] & INTERPRETED_BOUNDARY_BIT))
			return merge->items[i];
	}
	return 0;
}
