/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See call_paths.h. A tree again, made in one pass over the session's nodes: appending a function
 * to a path gives a child of its node, or, where it completes a repetition, one of its ancestors.
 */
#include "output/call_paths.h"

#include <errno.h>
#include <stdlib.h>

#include "common/splitmix64.h"
#include "output/code_origin.h"
#include "output/strings.h"

/* Longest cycle that is looked for; mutual recursion has few members. */
#define RECURSION_CYCLE_FUNCTIONS_MAX 8

struct call_paths_builder {
	const struct session *session;
	struct call_paths *result;
	struct code_origins origins;
	uint32_t *path_by_node;       /* by session node: without what libc has at its end */
	uint32_t *program_by_process; /* by process */
	uint32_t *slots;              /* path + 1; open addressing, at most half full */
	size_t mask;
};

static uint32_t get_call_path_function_id(const struct call_paths_builder *builder, uint32_t path)
{
	return builder->session->frames[builder->result->paths[path].frame].function_id;
}

/* The path that is left when `function` behind `caller` repeats what is before it, or
 * MODEL_ENTRY_INDEX_NONE.
 */
static uint32_t find_call_path_without_repetition(const struct call_paths_builder *builder,
						  uint32_t caller, uint32_t function)
{
	const struct call_path *paths = builder->result->paths;
	uint32_t before = caller; /* the end of what may be repeated */

	for (unsigned length = 1;
	     length <= RECURSION_CYCLE_FUNCTIONS_MAX && before != MODEL_ENTRY_INDEX_NONE;
	     length++) {
		uint32_t left = before, right = caller;
		bool same = get_call_path_function_id(builder, left) == function;

		for (unsigned i = 1; same && i < length; i++) {
			left = paths[left].caller_path_index;
			same = left != MODEL_ENTRY_INDEX_NONE &&
			       get_call_path_function_id(builder, left) ==
				       get_call_path_function_id(builder, right);
			right = paths[right].caller_path_index;
		}
		if (same)
			return before;
		before = paths[before].caller_path_index;
	}
	return MODEL_ENTRY_INDEX_NONE;
}

static uint32_t find_or_add_call_path(struct call_paths_builder *builder, uint32_t caller,
				      uint32_t frame, uint32_t program)
{
	uint32_t function = builder->session->frames[frame].function_id;
	uint64_t slot =
		splitmix64_mix(splitmix64_mix((uint64_t)caller << 32 | function) + program) &
		builder->mask;
	uint32_t path = find_call_path_without_repetition(builder, caller, function);

	if (path != MODEL_ENTRY_INDEX_NONE)
		return path;
	for (; builder->slots[slot]; slot = (slot + 1) & builder->mask) {
		const struct call_path *known = &builder->result->paths[builder->slots[slot] - 1];

		if (known->caller_path_index == caller && known->program == program &&
		    get_call_path_function_id(builder, builder->slots[slot] - 1) == function)
			return builder->slots[slot] - 1;
	}
	path = builder->result->count++;
	builder->result->paths[path] =
		(struct call_path){.caller_path_index = caller, .frame = frame, .program = program};
	builder->slots[slot] = path + 1;
	return path;
}

static int assign_program_numbers_to_processes(struct call_paths_builder *builder)
{
	struct string_table programs;
	int error = 0;

	strings_init(&programs);
	for (uint32_t i = 0; i < builder->session->process_count && error == 0; i++)
		error = strings_find_or_add(&programs, builder->session->processes[i].executable,
					    &builder->program_by_process[i]);
	strings_deinit(&programs);
	return error;
}

/* Of the C library a path has the leaf alone, and nothing of how programs and threads begin. */
static void add_node_weight_to_path(struct call_paths_builder *builder, uint32_t index,
				    uint64_t self)
{
	const struct model_calltree_node *node = &builder->session->nodes[index];
	uint32_t caller = node->parent == MODEL_ENTRY_INDEX_NONE
				  ? MODEL_ENTRY_INDEX_NONE
				  : builder->path_by_node[node->parent];
	uint32_t program = builder->program_by_process[node->process];
	bool is_c_runtime = code_origins_get(&builder->origins, node->frame) == CODE_OF_C_RUNTIME;
	uint32_t path = caller;

	if (self || !is_c_runtime)
		path = find_or_add_call_path(builder, caller, node->frame, program);
	builder->path_by_node[index] = is_c_runtime ? caller : path;
	builder->result->total += self;
	if (self)
		builder->result->paths[path].self += self;
}

static void add_node_weights_to_paths(struct call_paths_builder *builder,
				      enum view_measure_kind measure)
{
	const struct session *session = builder->session;

	for (uint32_t i = 0; i < session->node_count; i++)
		add_node_weight_to_path(
			builder, i,
			view_sum_sources_of_measure(session->nodes[i].self_weight, measure));
}

int call_paths_build(struct call_paths *paths, const struct session *session,
		     enum view_measure_kind measure)
{
	size_t count = session->node_count, capacity = 64;
	struct call_paths_builder builder = {.session = session, .result = paths};
	int error = -ENOMEM;

	while (capacity < count * 2)
		capacity *= 2;
	*paths = (struct call_paths){.paths = calloc(count + 1, sizeof(*paths->paths))};
	builder.path_by_node = calloc(count + 1, sizeof(*builder.path_by_node));
	builder.program_by_process =
		calloc((size_t)session->process_count + 1, sizeof(*builder.program_by_process));
	builder.slots = calloc(capacity, sizeof(*builder.slots));
	builder.mask = capacity - 1;
	if (paths->paths && builder.path_by_node && builder.program_by_process && builder.slots)
		error = assign_program_numbers_to_processes(&builder);
	if (error == 0)
		error = code_origins_create(session, &builder.origins);
	if (error == 0)
		add_node_weights_to_paths(&builder, measure);
	code_origins_destroy(&builder.origins);
	free(builder.path_by_node);
	free(builder.program_by_process);
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
