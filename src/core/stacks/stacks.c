/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See stacks.h.
 */
#include "core/stacks/stacks.h"

static struct interpreted_merge make_merge(const struct stack_request *request)
{
	const struct stack_memory *memory = &request->memory;

	return (struct interpreted_merge){.items = memory->interpreted_items,
					  .frames = memory->frames,
					  .maximum = memory->maximum,
					  .scratch =
						  memory->scratch ? memory->scratch->window : NULL,
					  .sink = request->sink,
					  .interpreter_thread = request->interpreter_thread,
					  .names_tasks = request->names_tasks};
}

static void put_interpreted_frames(struct stack_request *request, struct sampled_stack *stack)
{
	const struct stack_memory *memory = &request->memory;
	struct native_stack native = {.frames = memory->native_frames,
				      .stack_pointers = memory->stack_pointers,
				      .count = stack->count,
				      .is_complete = stack->end == SPOOL_STACK_COMPLETE,
				      .stack_high = request->bounds->high,
				      .tid = request->tid,
				      .pthread = request->pthread,
				      .first_argument = request->first_argument,
				      .has_interrupted_frame =
					      memory->scratch->met_interrupted_frame};
	struct interpreted_merge merge = make_merge(request);
	uint32_t count = interpreters_merge_frames(&native, &merge);

	request->lost_frame_walks = merge.lost_frame_walks;
	request->lost_code = merge.lost_code;
	request->has_interpreted_frames = count != 0;
	stack->interpreter_state = merge.thread_state;
	if (count) {
		stack->frames = memory->frames;
		stack->count = count;
	} else if (stack->count > memory->maximum) {
		stack->count = memory->maximum;
		merge.is_cut = true;
	}
	if (merge.is_cut)
		stack->end = SPOOL_STACK_DEPTH;
}

void stack_walk(struct stack_request *request, struct sampled_stack *ret)
{
	const struct stack_memory *memory = &request->memory;
	bool interpreted = interpreters_are_present();
	uint64_t *frames = interpreted ? memory->native_frames : memory->frames;

	request->lost_frame_walks = request->lost_code = 0;
	request->has_interpreted_frames = false;
	memory->scratch->stack_pointers = interpreted ? memory->stack_pointers : NULL;
	ret->frames = frames;
	ret->interpreter_state = SPOOL_INTERPRETER_STATE_NONE;
	ret->count = unwind_walk_stack(
		request->view, request->cache, request->registers, request->bounds, memory->scratch,
		frames, interpreted ? memory->native_maximum : memory->maximum, &ret->end);
	request->walked_frames = frames;
	request->walked_count = ret->count;
	request->walked_end = ret->end;
	if (interpreted)
		put_interpreted_frames(request, ret);
}

/* Only where it begins: what the interpreter says of the thread needs no more. */
static struct native_stack make_stack_of_first_frame(const struct stack_request *request)
{
	return (struct native_stack){.frames = &request->registers->ip,
				     .stack_pointers = &request->registers->sp,
				     .count = 1,
				     .stack_high = request->bounds->high};
}

uint64_t stack_hash_interpreted_frames(struct stack_request *request)
{
	struct native_stack native = make_stack_of_first_frame(request);
	struct interpreted_merge merge = make_merge(request);

	return interpreters_hash_frames(&native, &merge);
}

uint64_t stack_find_interpreted_caller(struct stack_request *request)
{
	struct native_stack native = make_stack_of_first_frame(request);
	struct interpreted_merge merge = make_merge(request);
	uint64_t frame;

	native.is_not_walked = true;
	frame = interpreters_find_innermost_frame(&native, &merge);
	request->lost_code = merge.lost_code;
	return frame;
}
