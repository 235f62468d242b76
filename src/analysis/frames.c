/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From the tree of addresses to the tree that outputs see: nodes are (parent, frame), a frame is a
 * place in a module. Addresses of one source line become one node, inlined functions get nodes of
 * their own. `leaves` remembers where each address node went, for pass 2.
 */
#include "analysis/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/resolve.h"

struct builder {
	struct session *session;
	struct session_private *private;
	struct resolution resolution;
	struct calltree nodes;  /* address: frame, module: process */
	struct id_map frames;   /* module and place -> frame */
	uint32_t *module_shift; /* by process: what the modules' indexes moved by */
	uint32_t *unmapped;     /* by process: its "[unknown]" module, or MODEL_NONE */
	bool *runtime_code;     /* by process */
	size_t frame_capacity;
};

uint64_t session_unsampled_ns(const struct session *session, uint32_t index)
{
	const struct session_options *options = &session_private(session)->options;
	const struct model_thread *thread = &session->threads[index];
	const struct model_process *process = &session->processes[thread->process];

	if (options->from_ns || options->to_ns || thread->how == 3 ||
	    thread->cpu_ns <= thread->covered_ns ||
	    (process->cpu_source == SPOOL_CPU_SOURCE_NONE && process->cpu_covered_ns == 0))
		return 0;
	return thread->cpu_ns - thread->covered_ns;
}

uint32_t session_unsampled_node(const struct session *session, uint32_t process)
{
	const struct session_private *private = session_private(session);
	uint32_t node = private->processes[process].unsampled;

	return node == CALLTREE_NONE || !private->leaves ? MODEL_NONE : private->leaves[node];
}

static int add_unsampled(struct session *session)
{
	struct session_private *private = session_private(session);

	for (uint32_t i = 0; i < session->thread_count; i++) {
		struct process_private *process = &private->processes[session->threads[i].process];
		uint64_t unsampled = session_unsampled_ns(session, i);

		if (!unsampled)
			continue;
		process->unsampled = calltree_child(&private->tree, process->root, CALLTREE_SPECIAL,
						    CALLTREE_UNSAMPLED);
		if (process->unsampled == CALLTREE_NONE)
			return -ENOMEM;
		private->tree.sums[SPOOL_SOURCE_CPU][process->unsampled].weight += unsampled;
	}
	return 0;
}

/* Code outside all modules is a run-time compiler's where its symbol file names some of it. */
static void find_runtime_code(struct builder *builder)
{
	const struct resolution *resolution = &builder->resolution;
	const struct calltree *tree = &builder->private->tree;

	for (uint32_t i = 0; i < tree->count; i++) {
		const struct place_chain *chain;

		if (tree->nodes[i].module != CALLTREE_NO_MODULE)
			continue;
		chain = &resolution->chains[resolution->chain_of[i]];
		if (resolution->places[resolution->chain_places[chain->first]].kind == FRAME_JIT)
			builder->runtime_code[resolution->process_of[i]] = true;
	}
}

/* Gives each process that needs it a module for addresses that lie in none. The modules of a
 * process stand together, so later ones move up. */
static int add_unmapped_modules(struct builder *builder)
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
		builder->module_shift[i] = shift;
		builder->unmapped[i] = MODEL_NONE;
		if (!builder->private->processes[i].unmapped)
			continue;
		modules[end] = (struct model_module){.process = i, .unloaded_ns = UINT64_MAX};
		modules[end].path = builder->runtime_code[i] ? "[jit]" : "[unknown]";
		modules[end].name = modules[end].path;
		builder->unmapped[i] = end;
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

static uint32_t frame_of(struct builder *builder, uint32_t module, uint32_t place_index,
			 uint64_t relative_pc)
{
	struct session *session = builder->session;
	const struct place *place = &builder->resolution.places[place_index];
	uint64_t key = (uint64_t)module << 32 | place_index;
	uint32_t frame = id_map_get(&builder->frames, key);

	if (frame != ID_MAP_NONE)
		return frame;
	frame = session->frame_count;
	if (array_reserve((void **)&session->frames, &builder->frame_capacity, frame,
			  sizeof(*session->frames)) < 0 ||
	    id_map_set(&builder->frames, key, frame) < 0)
		return MODEL_NONE;
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

static uint32_t synthetic_frame(struct builder *builder, const struct calltree_node *node)
{
	struct arena *arena = &builder->private->arena;
	struct place place = {.kind = FRAME_SYNTHETIC};
	char name[64] = "[unsampled]";
	uint32_t index;

	if (node->module == CALLTREE_TRUNCATED)
		snprintf(name, sizeof(name), "[truncated: %s]",
			 spool_stack_end_name((enum spool_stack_end)(node->address & 15)));
	place.function = arena_intern(arena, name);
	if (!place.function)
		return MODEL_NONE;
	index = resolution_place(&builder->resolution, place, NULL);
	return index == MODEL_NONE ? MODEL_NONE : frame_of(builder, MODEL_NONE, index, 0);
}

/* ---- nodes ---- */

static uint32_t module_of(const struct builder *builder, uint32_t process, uint32_t module)
{
	return module == CALLTREE_NO_MODULE ? builder->unmapped[process]
					    : module + builder->module_shift[process];
}

static void count_leaf(struct builder *builder, uint32_t module, uint32_t node,
		       enum model_frame_kind kind)
{
	struct model_module *it;
	uint64_t samples = 0;

	if (module == MODEL_NONE)
		return;
	for (unsigned source = 0; source < SPOOL_SOURCE_COUNT; source++)
		samples += builder->private->tree.sums[source][node].samples;
	it = &builder->session->modules[module];
	it->samples_total += samples;
	if (kind == FRAME_UNRESOLVED)
		it->samples_unresolved += samples;
}

/* The node of one address node, or MODEL_NONE when out of memory. */
static uint32_t build_node(struct builder *builder, uint32_t index)
{
	const struct resolution *resolution = &builder->resolution;
	const struct calltree_node *node = &builder->private->tree.nodes[index];
	const struct place_chain *chain;
	uint32_t process = resolution->process_of[index], module;
	uint32_t at = builder->private->leaves[node->parent];

	if (resolution->chain_of[index] == MODEL_NONE) {
		uint32_t frame = synthetic_frame(builder, node);

		return frame == MODEL_NONE ? MODEL_NONE
					   : calltree_child(&builder->nodes, at, frame, process);
	}
	chain = &resolution->chains[resolution->chain_of[index]];
	module = module_of(builder, process, node->module);
	for (uint32_t i = chain->count; i-- > 0;) {
		uint32_t place = resolution->chain_places[chain->first + i];
		uint32_t frame = frame_of(builder, module, place, chain->relative_pc);

		if (frame == MODEL_NONE)
			return MODEL_NONE;
		at = calltree_child(&builder->nodes, at, frame, process);
		if (at == CALLTREE_NONE)
			return MODEL_NONE;
	}
	count_leaf(builder, module, index,
		   resolution->places[resolution->chain_places[chain->first]].kind);
	return at;
}

static int build_nodes(struct builder *builder)
{
	struct session_private *private = builder->private;

	private->leaves = calloc(private->tree.count + 1, sizeof(*private->leaves));
	if (!private->leaves)
		return -ENOMEM;
	for (uint32_t i = 0; i < private->tree.count; i++) {
		if (private->tree.nodes[i].module == CALLTREE_PROCESS) {
			private->leaves[i] = CALLTREE_NONE;
			continue;
		}
		private->leaves[i] = build_node(builder, i);
		if (private->leaves[i] == MODEL_NONE)
			return -ENOMEM;
		for (unsigned source = 0; source < SPOOL_SOURCE_COUNT; source++) {
			const struct calltree_sum *from = &private->tree.sums[source][i];
			struct calltree_sum *to = &builder->nodes.sums[source][private->leaves[i]];

			to->samples += from->samples;
			to->weight += from->weight;
		}
	}
	return 0;
}

static int publish_nodes(struct builder *builder)
{
	struct session *session = builder->session;
	const struct calltree *tree = &builder->nodes;

	session->nodes = calloc(tree->count + 1, sizeof(*session->nodes));
	if (!session->nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->count; i++) {
		const struct calltree_node *from = &tree->nodes[i];
		struct model_node *node = &session->nodes[i];

		*node = (struct model_node){.parent = from->parent,
					    .frame = (uint32_t)from->address,
					    .process = from->module,
					    .first_child = MODEL_NONE,
					    .next_sibling = MODEL_NONE};
		for (unsigned source = 0; source < SPOOL_SOURCE_COUNT; source++) {
			node->self_samples[source] = tree->sums[source][i].samples;
			node->self_weight[source] = tree->sums[source][i].weight;
		}
		if (node->parent != MODEL_NONE) {
			struct model_node *parent = &session->nodes[node->parent];

			node->depth = parent->depth + 1;
			node->next_sibling = parent->first_child;
			parent->first_child = i;
		}
	}
	session->node_count = tree->count;
	session->function_count = builder->resolution.function_count;
	return 0;
}

static int build(struct builder *builder)
{
	size_t count = (size_t)builder->session->process_count + 1;

	builder->module_shift = calloc(count, sizeof(*builder->module_shift));
	builder->unmapped = calloc(count, sizeof(*builder->unmapped));
	builder->runtime_code = calloc(count, sizeof(*builder->runtime_code));
	if (!builder->module_shift || !builder->unmapped || !builder->runtime_code)
		return -ENOMEM;
	find_runtime_code(builder);
	if (add_unmapped_modules(builder) < 0 || build_nodes(builder) < 0)
		return -ENOMEM;
	return publish_nodes(builder);
}

int session_symbolize(struct session *session, struct problem *problem)
{
	struct builder builder = {.session = session, .private = session_private(session)};
	int result;

	if (builder.private->leaves)
		return 0;
	if (add_unsampled(session) < 0)
		return session_out_of_memory(problem);
	result = resolution_init(&builder.resolution, session, problem);
	if (result < 0)
		return result;
	result = resolution_name_regions(&builder.resolution);
	if (result == 0)
		result = resolution_name_sites(&builder.resolution);
	if (result == 0)
		result = build(&builder);
	resolution_deinit(&builder.resolution);
	calltree_deinit(&builder.nodes);
	id_map_deinit(&builder.frames);
	free(builder.module_shift);
	free(builder.unmapped);
	free(builder.runtime_code);
	if (result < 0)
		return session_out_of_memory(problem);
	calltree_drop_sums(&builder.private->tree); /* they are in the nodes now */
	return 0;
}
