/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From the tree of addresses to the tree that outputs see: nodes are (parent, frame), a frame is a
 * place in a module at an address: disassembly wants each, and views that count functions or lines
 * merge them. Inlined functions get nodes of their own. The profiler's frames are left out.
 * `session_node_by_tree_node` remembers where each address node went, for pass 2.
 */
#include "analysis/symbols/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/profiler_code.h"
#include "analysis/symbols/resolve.h"

/* Where nothing of a stack is left. */
#define ONLY_PROFILER_CODE_FRAME_NAME "[no stack: in the profiler]"

struct frames_builder {
	struct session *session;
	struct session_private *private;
	struct symbol_resolution resolution;
	struct calltree nodes;             /* address: frame, module: process */
	struct id_map frames;              /* module, place and address -> frame */
	uint32_t only_profiler_code_frame; /* MODEL_ENTRY_INDEX_NONE: not made yet */
	uint32_t
		*module_index_shift_by_process; /* by process: what the modules' indexes moved by */
	uint32_t *unknown_module_by_process;    /* by process: its "[unknown]" module, or
						   MODEL_ENTRY_INDEX_NONE */
	bool *has_runtime_code_by_process;      /* by process */
	size_t frame_capacity;
};

/* Code outside all modules is a run-time compiler's where its symbol file names some of it. */
static void mark_processes_with_jit_code(struct frames_builder *builder)
{
	const struct symbol_resolution *resolution = &builder->resolution;
	const struct calltree *tree = &builder->private->tree;

	for (uint32_t i = 0; i < tree->count; i++) {
		const struct code_location_chain *chain;

		if (tree->nodes[i].module != CALLTREE_NO_MODULE)
			continue;
		chain = &resolution->chains[resolution->chain_by_reference_number[i]];
		if (resolution->places[resolution->chain_place_indexes[chain->first]].kind ==
		    FRAME_JIT)
			builder->has_runtime_code_by_process[resolution->process_by_tree_node[i]] =
				true;
	}
}

/* Gives each process that needs it a module for addresses that lie in none. The modules of a
 * process stand together, so later ones move up. */
static int add_modules_for_unmapped_code(struct frames_builder *builder)
{
	struct session *session = builder->session;
	struct model_module *modules =
		calloc(session->module_count + session->process_count + 1, sizeof(*modules));
	uint32_t shift = 0;

	if (!modules)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->process_count; i++) {
		struct model_process *process = &session->processes[i];
		uint32_t end = process->first_module + shift + process->module_count;

		if (process->module_count)
			memcpy(&modules[process->first_module + shift],
			       &session->modules[process->first_module],
			       process->module_count * sizeof(*modules));
		process->first_module += shift;
		builder->module_index_shift_by_process[i] = shift;
		builder->unknown_module_by_process[i] = MODEL_ENTRY_INDEX_NONE;
		if (!builder->private->processes[i].has_unmapped_address)
			continue;
		modules[end] = (struct model_module){.process = i, .unloaded_ns = UINT64_MAX};
		modules[end].path = builder->has_runtime_code_by_process[i] ? "[jit]" : "[unknown]";
		modules[end].name = modules[end].path;
		builder->unknown_module_by_process[i] = end;
		process->module_count++;
		shift++;
	}
	free(session->modules);
	session->modules = modules;
	session->module_count += shift;
	builder->private->module_capacity = session->module_count;
	return 0;
}

/* ---- frames ---- */

static uint32_t find_or_add_frame(struct frames_builder *builder, uint32_t module,
				  uint32_t place_index, uint64_t relative_pc)
{
	struct session *session = builder->session;
	const struct code_location *place = &builder->resolution.places[place_index];
	/* A line of interpreted code is one place, whatever instruction of it runs. */
	uint64_t address = place->kind == FRAME_INTERPRETED ? 0 : relative_pc;
	uint64_t key = id_map_hash_key((uint64_t)module << 32 | place_index) + address;
	uint32_t frame = id_map_get(&builder->frames, key);

	if (frame != ID_MAP_NONE)
		return frame;
	frame = session->frame_count;
	if (array_reserve_one_more((void **)&session->frames, &builder->frame_capacity, frame,
				   sizeof(*session->frames)) < 0 ||
	    id_map_set(&builder->frames, key, frame) < 0)
		return MODEL_ENTRY_INDEX_NONE;
	session->frames[session->frame_count++] =
		(struct model_frame){.function = place->function,
				     .linkage_name = place->linkage_name,
				     .file = place->file,
				     .line = place->line,
				     .function_line = place->function_line,
				     .module = module,
				     .relative_pc = relative_pc,
				     .kind = place->kind,
				     .function_id = place->function_id};
	return frame;
}

static uint32_t find_or_add_synthetic_frame(struct frames_builder *builder,
					    const struct calltree_node *node)
{
	struct arena *arena = &builder->private->arena;
	struct code_location place = {.kind = FRAME_SYNTHETIC};
	char name[64] = SESSION_UNSAMPLED_TIME_FRAME_NAME;
	const char *shown = name;
	uint32_t index;

	if (node->module == CALLTREE_MODULE_SIGNAL_BLOCKED)
		snprintf(name, sizeof(name), SESSION_SIGNALS_BLOCKED_FRAME_NAME);
	if (node->module == CALLTREE_MODULE_TRUNCATED_STACK)
		snprintf(name, sizeof(name), "[%s]",
			 spool_stack_end_get_text((enum spool_stack_end)(node->address & 15)));
	if (node->module == CALLTREE_MODULE_NO_STACK)
		snprintf(name, sizeof(name), "[no stack: %s]",
			 spool_no_stack_get_reason_text((enum spool_no_stack)(
				 node->address & ~CALLTREE_SPECIAL_ADDRESS_BIT)));
	if (node->module == CALLTREE_MODULE_WAITS_FOR_CPU) {
		place.kind = FRAME_THREAD_STATE;
		snprintf(name, sizeof(name), "%s", MODEL_WAITS_FOR_CPU_FRAME_NAME);
	}
	if (!calltree_module_is_special(node->module))
		snprintf(name, sizeof(name), ONLY_PROFILER_CODE_FRAME_NAME);
	if (node->module == CALLTREE_MODULE_DEVICE_WORK)
		place.kind = FRAME_DEVICE_WORK;
	if (node->module == CALLTREE_MODULE_DEVICE_WORK ||
	    node->module == CALLTREE_MODULE_NO_LAUNCH)
		shown = (const char *)(uintptr_t)(node->address & ~CALLTREE_SPECIAL_ADDRESS_BIT);
	place.function = arena_intern_string(arena, shown);
	if (!place.function)
		return MODEL_ENTRY_INDEX_NONE;
	index = resolution_find_or_add_location(&builder->resolution, place, NULL);
	return index == MODEL_ENTRY_INDEX_NONE
		       ? MODEL_ENTRY_INDEX_NONE
		       : find_or_add_frame(builder, MODEL_ENTRY_INDEX_NONE, index, 0);
}

/* ---- nodes ---- */

static uint32_t compute_session_module_index(const struct frames_builder *builder, uint32_t process,
					     uint32_t module)
{
	if (module == CALLTREE_MODULE_INTERPRETED)
		return MODEL_ENTRY_INDEX_NONE;
	return module == CALLTREE_NO_MODULE
		       ? builder->unknown_module_by_process[process]
		       : module + builder->module_index_shift_by_process[process];
}

static void add_leaf_samples_to_module(struct frames_builder *builder, uint32_t module,
				       uint32_t node, enum model_frame_kind kind)
{
	struct model_module *it;
	uint64_t samples = 0;

	if (module == MODEL_ENTRY_INDEX_NONE)
		return;
	for (unsigned source = 0; source < SPOOL_SOURCE_COUNT; source++)
		samples += builder->private->tree.sums[source][node].samples;
	it = &builder->session->modules[module];
	it->samples_total += samples;
	if (kind == FRAME_UNRESOLVED)
		it->samples_unresolved += samples;
}

/* A stub through which `python3 -X perf` leads each call, so that its frame has a name: the
 * function itself stands there as well. */
static bool is_stub_of_interpreted_function(const struct frames_builder *builder,
					    const struct code_location_chain *chain)
{
	const struct code_location *place =
		&builder->resolution.places[builder->resolution.chain_place_indexes[chain->first]];

	return place->kind == FRAME_JIT && !strncmp(place->function, "py::", 4) &&
	       builder->resolution.chain_by_interpreted_frame.count;
}

static bool is_profiler_code(const struct frames_builder *builder, uint32_t module,
			     const struct code_location_chain *chain)
{
	const struct code_location *place =
		&builder->resolution.places[builder->resolution.chain_place_indexes[chain->first]];

	return module == MODEL_ENTRY_INDEX_NONE
		       ? place->kind == FRAME_INTERPRETED &&
				 source_file_is_profiler_module(place->file)
		       : module_is_profiler_library(&builder->session->modules[module]);
}

/* A root that stands for the profiler's code alone has no callees. */
static bool is_node_of_profiler_code(const struct frames_builder *builder, uint32_t node)
{
	return node != CALLTREE_NO_NODE &&
	       builder->nodes.nodes[node].address == builder->only_profiler_code_frame;
}

/* The caller stands for the profiler's code; where there is none, a frame that says so. */
static int build_profiler_code_node(struct frames_builder *builder, uint32_t index, uint32_t caller,
				    uint32_t *ret)
{
	uint32_t process = builder->resolution.process_by_tree_node[index], frame;

	*ret = caller;
	if (caller != CALLTREE_NO_NODE)
		return 0;
	frame = find_or_add_synthetic_frame(builder, &builder->private->tree.nodes[index]);
	if (frame == MODEL_ENTRY_INDEX_NONE)
		return -ENOMEM;
	builder->only_profiler_code_frame = frame;
	*ret = calltree_find_or_add_child(&builder->nodes, CALLTREE_NO_NODE, frame, process);
	return *ret == CALLTREE_NO_NODE ? -ENOMEM : 0;
}

static int build_synthetic_node(struct frames_builder *builder, uint32_t index, uint32_t caller,
				uint32_t *ret)
{
	uint32_t frame = find_or_add_synthetic_frame(builder, &builder->private->tree.nodes[index]);

	if (frame == MODEL_ENTRY_INDEX_NONE)
		return -ENOMEM;
	*ret = calltree_find_or_add_child(&builder->nodes, caller, frame,
					  builder->resolution.process_by_tree_node[index]);
	return *ret == CALLTREE_NO_NODE ? -ENOMEM : 0;
}

static int build_code_node(struct frames_builder *builder, uint32_t index, uint32_t caller,
			   uint32_t *ret)
{
	const struct symbol_resolution *resolution = &builder->resolution;
	const struct code_location_chain *chain =
		&resolution->chains[resolution->chain_by_reference_number[index]];
	uint32_t process = resolution->process_by_tree_node[index];
	uint32_t module = compute_session_module_index(builder, process,
						       builder->private->tree.nodes[index].module);

	if (is_node_of_profiler_code(builder, caller))
		caller = CALLTREE_NO_NODE;
	*ret = caller;
	if (caller != CALLTREE_NO_NODE && is_stub_of_interpreted_function(builder, chain))
		return 0;
	if (is_profiler_code(builder, module, chain))
		return build_profiler_code_node(builder, index, caller, ret);
	for (uint32_t i = chain->count; i-- > 0;) {
		uint32_t place = resolution->chain_place_indexes[chain->first + i];
		uint32_t frame = find_or_add_frame(builder, module, place, chain->relative_pc);

		if (frame == MODEL_ENTRY_INDEX_NONE)
			return -ENOMEM;
		*ret = calltree_find_or_add_child(&builder->nodes, *ret, frame, process);
		if (*ret == CALLTREE_NO_NODE)
			return -ENOMEM;
	}
	add_leaf_samples_to_module(
		builder, module, index,
		resolution->places[resolution->chain_place_indexes[chain->first]].kind);
	return 0;
}

static int build_model_nodes(struct frames_builder *builder)
{
	struct session_private *private = builder->private;

	private->session_node_by_tree_node =
		calloc(private->tree.count + 1, sizeof(*private->session_node_by_tree_node));
	if (!private->session_node_by_tree_node)
		return -ENOMEM;
	for (uint32_t i = 0; i < private->tree.count; i++) {
		if (private->tree.nodes[i].module == CALLTREE_MODULE_PROCESS_ROOT) {
			private->session_node_by_tree_node[i] = CALLTREE_NO_NODE;
			continue;
		}
		uint32_t *node = &private->session_node_by_tree_node[i];
		uint32_t caller = private->session_node_by_tree_node[private->tree.nodes[i].parent];

		if ((builder->resolution.chain_by_reference_number[i] == MODEL_ENTRY_INDEX_NONE
			     ? build_synthetic_node
			     : build_code_node)(builder, i, caller, node) < 0)
			return -ENOMEM;
		for (unsigned source = 0; source < MODEL_SOURCE_COUNT; source++) {
			const struct calltree_node_self_sums *from = &private->tree.sums[source][i];
			struct calltree_node_self_sums *to = &builder->nodes.sums[source][*node];

			to->samples += from->samples;
			to->weight += from->weight;
		}
	}
	return 0;
}

static int copy_nodes_to_session(struct frames_builder *builder)
{
	struct session *session = builder->session;
	const struct calltree *tree = &builder->nodes;

	session->nodes = calloc(tree->count + 1, sizeof(*session->nodes));
	if (!session->nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->count; i++) {
		const struct calltree_node *from = &tree->nodes[i];
		struct model_calltree_node *node = &session->nodes[i];

		*node = (struct model_calltree_node){.parent = from->parent,
						     .frame = (uint32_t)from->address,
						     .process = from->module,
						     .first_child = MODEL_ENTRY_INDEX_NONE,
						     .next_sibling = MODEL_ENTRY_INDEX_NONE};
		for (unsigned source = 0; source < MODEL_SOURCE_COUNT; source++) {
			node->self_samples[source] = tree->sums[source][i].samples;
			node->self_weight[source] = tree->sums[source][i].weight;
		}
		if (node->parent != MODEL_ENTRY_INDEX_NONE) {
			struct model_calltree_node *parent = &session->nodes[node->parent];

			node->depth = parent->depth + 1;
			node->next_sibling = parent->first_child;
			parent->first_child = i;
		}
	}
	session->node_count = tree->count;
	session->function_count = builder->resolution.function_count;
	return 0;
}

static int build_frames_and_nodes(struct frames_builder *builder)
{
	size_t count = (size_t)builder->session->process_count + 1;

	builder->module_index_shift_by_process =
		calloc(count, sizeof(*builder->module_index_shift_by_process));
	builder->unknown_module_by_process =
		calloc(count, sizeof(*builder->unknown_module_by_process));
	builder->has_runtime_code_by_process =
		calloc(count, sizeof(*builder->has_runtime_code_by_process));
	if (!builder->module_index_shift_by_process || !builder->unknown_module_by_process ||
	    !builder->has_runtime_code_by_process)
		return -ENOMEM;
	mark_processes_with_jit_code(builder);
	if (add_modules_for_unmapped_code(builder) < 0 || build_model_nodes(builder) < 0)
		return -ENOMEM;
	return copy_nodes_to_session(builder);
}

int build_session_frames_and_nodes(struct session *session, struct problem *problem)
{
	struct frames_builder builder = {.session = session,
					 .private = session_get_private(session),
					 .only_profiler_code_frame = MODEL_ENTRY_INDEX_NONE};
	int result;

	result = resolution_resolve_session(&builder.resolution, session, problem);
	if (result < 0)
		return result;
	result = resolution_pass_names_to_data_kinds(&builder.resolution);
	if (result == 0)
		result = build_frames_and_nodes(&builder);
	resolution_deinit(&builder.resolution);
	calltree_deinit(&builder.nodes);
	id_map_deinit(&builder.frames);
	free(builder.module_index_shift_by_process);
	free(builder.unknown_module_by_process);
	free(builder.has_runtime_code_by_process);
	if (result < 0)
		return session_set_out_of_memory_problem(problem);
	calltree_free_sums(&builder.private->tree); /* they are in the nodes now */
	return 0;
}
