/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See call_paths.h. A tree again, made in one pass over the session's nodes: appending a function
 * to a path gives a child of its node, or, where it completes a repetition, one of its ancestors.
 */
#include "output/call_paths.h"

#include <errno.h>
#include <stdlib.h>

#include "output/strings.h"

/* Longest cycle that is looked for; mutual recursion has few members. */
#define CYCLE_MAX 8

struct path_builder {
	const struct session *session;
	struct call_paths *result;
	uint32_t *of_node; /* by session node */
	uint32_t *program; /* by process */
	uint32_t *slots;   /* path + 1; open addressing, at most half full */
	size_t mask;
};

static uint32_t function_of(const struct path_builder *builder, uint32_t path)
{
	return builder->session->frames[builder->result->paths[path].frame].function_id;
}

/* The path that is left when `function` behind `caller` repeats what is before it, or MODEL_NONE.
 */
static uint32_t without_repetition(const struct path_builder *builder, uint32_t caller,
				   uint32_t function)
{
	const struct call_path *paths = builder->result->paths;
	uint32_t before = caller; /* the end of what may be repeated */

	for (unsigned length = 1; length <= CYCLE_MAX && before != MODEL_NONE; length++) {
		uint32_t left = before, right = caller;
		bool same = function_of(builder, left) == function;

		for (unsigned i = 1; same && i < length; i++) {
			left = paths[left].caller;
			same = left != MODEL_NONE &&
			       function_of(builder, left) == function_of(builder, right);
			right = paths[right].caller;
		}
		if (same)
			return before;
		before = paths[before].caller;
	}
	return MODEL_NONE;
}

static uint64_t mix(uint64_t value) /* the finaliser of splitmix64 */
{
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

static uint32_t append(struct path_builder *builder, uint32_t caller, uint32_t frame,
		       uint32_t program)
{
	uint32_t function = builder->session->frames[frame].function_id;
	uint64_t slot = mix(mix((uint64_t)caller << 32 | function) + program) & builder->mask;
	uint32_t path = without_repetition(builder, caller, function);

	if (path != MODEL_NONE)
		return path;
	for (; builder->slots[slot]; slot = (slot + 1) & builder->mask) {
		const struct call_path *known = &builder->result->paths[builder->slots[slot] - 1];

		if (known->caller == caller && known->program == program &&
		    function_of(builder, builder->slots[slot] - 1) == function)
			return builder->slots[slot] - 1;
	}
	path = builder->result->count++;
	builder->result->paths[path] =
		(struct call_path){.caller = caller, .frame = frame, .program = program};
	builder->slots[slot] = path + 1;
	return path;
}

static int number_programs(struct path_builder *builder)
{
	struct strings programs;
	int error = 0;

	strings_init(&programs);
	for (uint32_t i = 0; i < builder->session->process_count && error == 0; i++)
		error = strings_add(&programs, builder->session->processes[i].executable,
				    &builder->program[i]);
	strings_deinit(&programs);
	return error;
}

static void add_nodes(struct path_builder *builder, enum view_measure measure)
{
	for (uint32_t i = 0; i < builder->session->node_count; i++) {
		const struct model_node *node = &builder->session->nodes[i];
		uint32_t caller =
			node->parent == MODEL_NONE ? MODEL_NONE : builder->of_node[node->parent];
		uint64_t self = view_sum(node->self_weight, measure);

		builder->of_node[i] =
			append(builder, caller, node->frame, builder->program[node->process]);
		builder->result->paths[builder->of_node[i]].self += self;
		builder->result->total += self;
	}
}

int call_paths_init(struct call_paths *paths, const struct session *session,
		    enum view_measure measure)
{
	size_t count = session->node_count, capacity = 64;
	struct path_builder builder = {.session = session, .result = paths};
	int error = -ENOMEM;

	while (capacity < count * 2)
		capacity *= 2;
	*paths = (struct call_paths){.paths = calloc(count + 1, sizeof(*paths->paths))};
	builder.of_node = calloc(count + 1, sizeof(*builder.of_node));
	builder.program = calloc((size_t)session->process_count + 1, sizeof(*builder.program));
	builder.slots = calloc(capacity, sizeof(*builder.slots));
	builder.mask = capacity - 1;
	if (paths->paths && builder.of_node && builder.program && builder.slots)
		error = number_programs(&builder);
	if (error == 0)
		add_nodes(&builder, measure);
	free(builder.of_node);
	free(builder.program);
	free(builder.slots);
	if (error < 0)
		call_paths_deinit(paths);
	return error;
}

void call_paths_deinit(struct call_paths *paths)
{
	free(paths->paths);
	*paths = (struct call_paths){0};
}
