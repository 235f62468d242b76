/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sample records to stacks to nodes: the hot loop of both passes.
 *
 * The spool codes a stack as what it shares with the previous one of the thread plus fresh frames.
 * This loop keeps the path hash of each frame (calltree.h), so that only fresh frames are hashed
 * and one lookup finds the whole stack. Budget: below 80 ns a sample with five fresh frames, once
 * the tree is in the cache.
 *
 * A record that cannot be decoded makes the rest of its span unreadable, since later samples are
 * differences to it; the bytes count as torn.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/launched.h"
#include "analysis/runtime_code.h"
#include "analysis/session_private.h"

/* Not an errno, so that no callback can mean it. */
#define SAMPLE_RECORD_DAMAGED INT_MIN

struct sample_walk_frame {
	uint64_t pc;
	uint64_t caller_path_hash; /* of the path to here, as a caller */
};

struct sample_walk_state {
	struct session *session;
	struct process_private *process;
	struct model_process *model;
	struct calltree *tree;
	bool is_first_pass;
	int (*each)(struct model_sample *sample, void *context);
	void *context;
	uint64_t from_ns, to_ns;
	uint32_t base_node_by_stack_end[16]; /* node outside the outermost frame, by spool_stack_end
					      */

	/* State of the span. */
	bool in_span, is_thread_filtered_out; /* skipped: a filter leaves this thread out */
	uint64_t time, weight;
	struct sample_walk_frame *frames;
	size_t depth, capacity;
	size_t hashed_frame_count; /* frames whose hash is known, from the outermost */
	uint32_t base_node;        /* on which the hashes build */
	uint32_t last_wall_node;   /* of the last WALL sample, for repeats */
	enum spool_stack_end last_wall_stack_end;
	struct model_sample sample;
};

static int reserve_frames(struct sample_walk_state *walk, size_t depth)
{
	size_t capacity = walk->capacity ? walk->capacity : 256;
	struct sample_walk_frame *frames;

	if (depth <= walk->capacity)
		return 0;
	while (capacity < depth)
		capacity *= 2;
	frames = realloc(walk->frames, capacity * sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	walk->frames = frames;
	walk->capacity = capacity;
	return 0;
}

/* Reads the fresh frames over the old ones. Returns 0, -ENOMEM, or SAMPLE_RECORD_DAMAGED. */
static inline int read_stack_frames(struct sample_walk_state *walk,
				    struct spool_record_payload_cursor *payload)
{
	uint64_t common = spool_read_unsigned(payload), fresh = spool_read_unsigned(payload);
	struct sample_walk_frame *frames;
	uint64_t pc;

	if (payload->bad || common > walk->depth || fresh > (uint64_t)(payload->end - payload->at))
		return SAMPLE_RECORD_DAMAGED;
	if (reserve_frames(walk, (size_t)(common + fresh)) < 0)
		return -ENOMEM;
	frames = walk->frames;
	if (common < walk->depth)
		pc = frames[common].pc;
	else
		pc = common ? frames[common - 1].pc : 0;
	for (size_t i = (size_t)common; i < common + fresh; i++) {
		pc += (uint64_t)spool_read_signed(payload);
		frames[i].pc = pc;
	}
	walk->depth = (size_t)(common + fresh);
	if (walk->hashed_frame_count > common)
		walk->hashed_frame_count = (size_t)common;
	return payload->bad ? SAMPLE_RECORD_DAMAGED : 0;
}

static inline void read_sample_metrics(struct sample_walk_state *walk,
				       struct spool_record_payload_cursor *payload)
{
	uint64_t bitmap = spool_read_unsigned(payload);

	if (bitmap >> SPOOL_METRIC_COUNT) {
		payload->bad = true;
		return;
	}
	walk->sample.metric_bitmap = (uint32_t)bitmap;
	for (unsigned i = 0; i < SPOOL_METRIC_COUNT; i++) {
		if (bitmap >> i & 1)
			walk->sample.metrics[i] += spool_read_unsigned(payload);
	}
}

/* States that a later version has are none that we know. */
static inline enum spool_interpreter_state
read_interpreter_state(struct spool_record_payload_cursor *payload)
{
	uint64_t state = payload->at < payload->end ? spool_read_unsigned(payload) : 0;

	return state < SPOOL_INTERPRETER_STATE_COUNT ? (enum spool_interpreter_state)state
						     : SPOOL_INTERPRETER_STATE_NONE;
}

/* All but the innermost frame are return addresses, or made to look like ones (kymo/spool.h). */
static inline uint64_t compute_call_site_address(const struct sample_walk_state *walk, size_t i)
{
	uint64_t pc = walk->frames[i].pc;

	return (pc - !spool_frame_is_interpreted(pc)) & ~CALLTREE_SPECIAL_ADDRESS_BIT;
}

static inline uint64_t get_leaf_address(const struct sample_walk_state *walk)
{
	return walk->frames[walk->depth - 1].pc & ~CALLTREE_SPECIAL_ADDRESS_BIT;
}

static inline void set_node_module_and_code_time(const struct sample_walk_state *walk,
						 struct calltree_node *node)
{
	uint64_t time_ns = walk->sample.time_ns;

	if (spool_frame_is_interpreted(node->address)) {
		node->module = CALLTREE_MODULE_INTERPRETED;
		return;
	}
	node->module = module_map_find_module(&walk->process->module_map, node->address, time_ns);
	if (walk->process->jitmap && module_is_jit_code_or_none(walk->session, node->module))
		node->since_ns =
			runtime_code_find_code_creation_ns(walk->process, node->address, time_ns);
}

/* Module and code are looked up only where the address alone cannot tell which they are. */
static inline uint64_t hash_stack_step(const struct sample_walk_state *walk, uint64_t hash,
				       uint64_t address)
{
	struct calltree_node node = {.address = address};

	if (!walk->process->code_depends_on_time)
		return calltree_hash_path_step(hash, address, 0);
	set_node_module_and_code_time(walk, &node);
	return calltree_hash_path_step(hash, address,
				       node.module + node.since_ns * 0x9e3779b97f4a7c15);
}

static uint32_t add_child_node(struct sample_walk_state *walk, uint32_t parent, uint64_t address,
			       uint64_t hash)
{
	struct calltree_node node = {.address = address, .hash = hash, .parent = parent};

	set_node_module_and_code_time(walk, &node);
	walk->process->has_unmapped_address |= node.module == MODULE_MAP_NO_MODULE;
	return calltree_add_node(walk->tree, &node);
}

/* Adds what the tree lacks of the stack whose callers are hashed and whose leaf has this hash. */
static uint32_t add_stack_to_tree(struct sample_walk_state *walk, uint64_t leaf_hash)
{
	size_t known = walk->depth - 1;
	uint32_t node = CALLTREE_NO_NODE;

	while (known > 0 && node == CALLTREE_NO_NODE) {
		node = calltree_find_by_path_hash(walk->tree,
						  walk->frames[known - 1].caller_path_hash);
		known -= node == CALLTREE_NO_NODE;
	}
	if (known == 0)
		node = walk->base_node;
	for (; known < walk->depth - 1 && node != CALLTREE_NO_NODE; known++)
		node = add_child_node(walk, node, compute_call_site_address(walk, known),
				      walk->frames[known].caller_path_hash);
	return node == CALLTREE_NO_NODE
		       ? node
		       : add_child_node(walk, node, get_leaf_address(walk), leaf_hash);
}

/* The node of the stack that was read, or CALLTREE_NO_NODE. */
static uint32_t find_or_add_stack_in_tree(struct sample_walk_state *walk)
{
	struct sample_walk_frame *frames = walk->frames;
	uint64_t base = walk->tree->nodes[walk->base_node].hash, hash;
	uint32_t node;

	if (walk->depth == 0)
		return walk->base_node;
	hash = walk->hashed_frame_count ? frames[walk->hashed_frame_count - 1].caller_path_hash
					: base;
	for (size_t i = walk->hashed_frame_count; i < walk->depth - 1; i++)
		frames[i].caller_path_hash = hash =
			hash_stack_step(walk, hash, compute_call_site_address(walk, i));
	/* The caller of the leaf may be hashed deeper than that: the leaf was a caller before. */
	if (walk->hashed_frame_count >= walk->depth)
		hash = walk->depth > 1 ? frames[walk->depth - 2].caller_path_hash : base;
	else
		walk->hashed_frame_count = walk->depth - 1;
	hash = hash_stack_step(walk, hash, get_leaf_address(walk));
	node = calltree_find_by_path_hash(walk->tree, hash);
	return node == CALLTREE_NO_NODE && walk->is_first_pass ? add_stack_to_tree(walk, hash)
							       : node;
}

/* A child of `parent` that stands for no code. */
static uint32_t find_or_add_special_child(struct sample_walk_state *walk, uint32_t parent,
					  uint64_t what, uint32_t module)
{
	uint64_t address = CALLTREE_SPECIAL_ADDRESS_BIT | what;

	if (parent == CALLTREE_NO_NODE)
		return CALLTREE_NO_NODE;
	return walk->is_first_pass
		       ? calltree_find_or_add_child(walk->tree, parent, address, module)
		       : calltree_find_by_path_hash(
				 walk->tree, calltree_hash_path_step(walk->tree->nodes[parent].hash,
								     address, module));
}

/* Truncated stacks grow from a node of their own, which says so. */
static uint32_t find_or_add_node_of_stack_end(struct sample_walk_state *walk,
					      enum spool_stack_end end)
{
	uint32_t *base = &walk->base_node_by_stack_end[end];

	if (*base == CALLTREE_NO_NODE)
		*base = find_or_add_special_child(walk, walk->process->root, end,
						  CALLTREE_MODULE_TRUNCATED_STACK);
	return *base;
}

static uint32_t find_or_add_sample_node(struct sample_walk_state *walk, enum spool_stack_end end)
{
	uint32_t base;

	if (end == SPOOL_STACK_NOT_WALKED && walk->depth == 1 &&
	    walk->frames[0].pc < SPOOL_NO_STACK_LIMIT)
		return find_or_add_special_child(walk, walk->process->root, walk->frames[0].pc,
						 CALLTREE_MODULE_NO_STACK);

	if (walk->depth == 0 && end == SPOOL_STACK_COMPLETE)
		end = SPOOL_STACK_NOT_WALKED;
	base = find_or_add_node_of_stack_end(walk, end);
	if (walk->base_node != base ||
	    module_map_move_to_epoch_of_time(&walk->process->module_map, walk->sample.time_ns))
		walk->hashed_frame_count = 0;
	walk->base_node = base;
	return base == CALLTREE_NO_NODE ? base : find_or_add_stack_in_tree(walk);
}

static int pass_sample_in_window_to_callback(struct sample_walk_state *walk)
{
	struct model_sample *sample = &walk->sample;

	if (sample->node == CALLTREE_NO_NODE)
		return walk->is_first_pass ? -ENOMEM : 0;
	if (sample->time_ns < walk->from_ns || sample->time_ns >= walk->to_ns)
		return 0;
	return walk->each(sample, walk->context);
}

static int read_sample(struct sample_walk_state *walk, struct spool_record_payload_cursor rest,
		       uint8_t flags)
{
	struct spool_record_payload_cursor *payload = &rest;
	struct model_sample *sample = &walk->sample;
	int result;

	sample->source = flags & 3;
	sample->stack_end_reason = flags >> 4 & 7;
	walk->time += spool_read_multibyte_unsigned(payload);
	walk->weight += (uint64_t)spool_read_signed(payload);
	result = read_stack_frames(walk, payload);
	if (result < 0)
		return result;
	sample->event = sample->source == SPOOL_SOURCE_OVERFLOW
				? (uint32_t)spool_read_unsigned(payload)
				: 0;
	sample->metric_bitmap = 0;
	if (flags & 4)
		read_sample_metrics(walk, payload);
	sample->interpreter_state = read_interpreter_state(payload);
	if (payload->bad)
		return SAMPLE_RECORD_DAMAGED;
	sample->weight = walk->weight;
	sample->is_repeat = 0;
	sample->time_ns = clock_map_ticks_to_boottime(&walk->process->clock,
						      walk->time << SPOOL_SAMPLE_TIME_SHIFT);
	sample->blocked = walk->depth == 0 && sample->source == SPOOL_SOURCE_CPU &&
			  sample->stack_end_reason == SPOOL_STACK_COMPLETE;
	sample->node = sample->blocked ? find_or_add_special_child(walk, walk->process->root, 0,
								   CALLTREE_MODULE_SIGNAL_BLOCKED)
				       : find_or_add_sample_node(walk, sample->stack_end_reason);
	if (sample->source == SPOOL_SOURCE_WALL) {
		walk->last_wall_node = sample->node;
		walk->last_wall_stack_end = sample->stack_end_reason;
	} else if (sample->source == SPOOL_SOURCE_RUNNABLE) {
		sample->node = find_or_add_special_child(walk, sample->node, 0,
							 CALLTREE_MODULE_WAITS_FOR_CPU);
	}
	return pass_sample_in_window_to_callback(walk);
}

static int read_repeated_sample(struct sample_walk_state *walk,
				struct spool_record_payload_cursor *payload)
{
	struct model_sample *sample = &walk->sample;

	walk->time += spool_read_unsigned(payload);
	sample->weight = spool_read_unsigned(payload);
	if (payload->bad || walk->last_wall_node == CALLTREE_NO_NODE)
		return SAMPLE_RECORD_DAMAGED;
	sample->source = SPOOL_SOURCE_WALL;
	sample->stack_end_reason = walk->last_wall_stack_end;
	sample->event = 0;
	sample->metric_bitmap = 0;
	sample->interpreter_state = SPOOL_INTERPRETER_STATE_NONE;
	sample->blocked = false;
	sample->is_repeat = 1;
	sample->time_ns = clock_map_ticks_to_boottime(&walk->process->clock,
						      walk->time << SPOOL_SAMPLE_TIME_SHIFT);
	sample->node = walk->last_wall_node;
	return pass_sample_in_window_to_callback(walk);
}

static int read_sample_span_header(struct sample_walk_state *walk,
				   struct spool_record_payload_cursor *payload)
{
	uint64_t internal_id = spool_read_unsigned(payload);
	uint64_t ticks;

	(void)spool_read_unsigned(payload); /* tid, used by the scan */
	ticks = spool_read_fixed_u64(payload);
	if (payload->bad)
		return SAMPLE_RECORD_DAMAGED;
	walk->sample.thread = id_map_get(&walk->process->threads, internal_id);
	walk->in_span = true;
	walk->is_thread_filtered_out = walk->sample.thread == ID_MAP_NONE;
	walk->time = ticks >> SPOOL_SAMPLE_TIME_SHIFT;
	walk->weight = 0;
	memset(walk->sample.metrics, 0, sizeof(walk->sample.metrics));
	walk->depth = walk->hashed_frame_count = 0;
	walk->last_wall_node = CALLTREE_NO_NODE;
	return 0;
}

static int read_sample_record(struct sample_walk_state *walk,
			      struct spool_record_payload_cursor *payload)
{
	if (payload->kind >= SPOOL_RECORD_SAMPLE_COMPACT) {
		if (!walk->in_span)
			return SAMPLE_RECORD_DAMAGED;
		return walk->is_thread_filtered_out ? 0
						    : read_sample(walk, *payload, payload->kind);
	}
	switch (payload->kind) {
	case SPOOL_RECORD_SPAN:
		return read_sample_span_header(walk, payload);
	case SPOOL_RECORD_SAMPLE:
		if (!walk->in_span || payload->at == payload->end)
			return SAMPLE_RECORD_DAMAGED;
		if (walk->is_thread_filtered_out)
			return 0;
		payload->at++;
		return read_sample(walk, *payload, payload->at[-1]);
	case SPOOL_RECORD_SAMPLE_REPEAT:
		if (!walk->in_span)
			return SAMPLE_RECORD_DAMAGED;
		return walk->is_thread_filtered_out ? 0 : read_repeated_sample(walk, payload);
	default:
		return 0;
	}
}

static int walk_chunk_samples(struct sample_walk_state *walk,
			      struct spool_chunk_record_cursor *cursor)
{
	struct spool_record_payload_cursor payload;

	walk->in_span = false;
	walk->is_thread_filtered_out = false;
	while (spool_read_next_record(cursor, &payload)) {
		const uint8_t *begin = payload.at;
		int result = read_sample_record(walk, &payload);

		if (result == SAMPLE_RECORD_DAMAGED) {
			walk->in_span = false;
			if (walk->is_first_pass)
				walk->model->torn_bytes += (uint64_t)(payload.end - begin);
		} else if (result != 0) {
			return result;
		}
	}
	return 0;
}

static void sample_walk_init(struct sample_walk_state *walk, const struct session_options *options)
{
	for (unsigned end = 0; end < 16; end++)
		walk->base_node_by_stack_end[end] = CALLTREE_NO_NODE;
	walk->base_node_by_stack_end[SPOOL_STACK_COMPLETE] = walk->process->root;
	walk->base_node = CALLTREE_NO_NODE;
	if (options->from_ns)
		walk->from_ns = walk->session->start_ns + options->from_ns;
	walk->to_ns = options->to_ns ? walk->session->start_ns + options->to_ns : UINT64_MAX;
}

int session_walk_process_samples(struct session *session, uint32_t process, bool first_pass,
				 int (*each)(struct model_sample *sample, void *context),
				 void *context, struct problem *problem)
{
	struct session_private *private = session_get_private(session);
	struct sample_walk_state walk = {.session = session,
					 .process = &private->processes[process],
					 .model = &session->processes[process],
					 .tree = &private->tree,
					 .is_first_pass = first_pass,
					 .each = each,
					 .context = context,
					 .sample.process = process};
	struct spool_file *file = &walk.process->file;
	int result = spool_file_reopen(file, problem);

	sample_walk_init(&walk, &private->options);
	for (size_t chunk = 0; result == 0 && chunk < file->chunk_count; chunk++) {
		struct spool_chunk_record_cursor cursor;

		if (!file->chunks[chunk].samples)
			continue;
		result = spool_file_read_chunk(file, chunk, &cursor);
		if (result == 0)
			result = walk_chunk_samples(&walk, &cursor);
		else if (result != -ENOMEM)
			problem_set(problem, result, "cannot read %s: %s", file->path,
				    strerror(-result));
	}
	if (result == -ENOMEM)
		session_set_out_of_memory_problem(problem);
	free(walk.frames);
	spool_file_close_temporarily(file);
	return result;
}

/* ---- stacks of launches ---- */

/* All frames are callers, also the innermost. */
uint32_t launched_find_or_add_stack(struct session *session, uint32_t process,
				    const struct launch_stack *stack)
{
	struct session_private *private = session_get_private(session);
	struct sample_walk_state walk = {.session = session,
					 .process = &private->processes[process],
					 .model = &session->processes[process],
					 .tree = &private->tree,
					 .is_first_pass = true,
					 .sample = {.process = process, .time_ns = stack->time_ns}};
	uint32_t node = CALLTREE_NO_NODE;

	sample_walk_init(&walk, &private->options);
	if (reserve_frames(&walk, (size_t)stack->count + 1) == 0) {
		for (uint32_t i = 0; i < stack->count; i++)
			walk.frames[i].pc = stack->frames[stack->count - 1 - i];
		if (stack->count && !spool_frame_is_interpreted(stack->frames[0]))
			walk.frames[stack->count - 1].pc--;
		walk.depth = stack->count;
		node = find_or_add_sample_node(&walk, stack->end);
	}
	free(walk.frames);
	return node;
}

/* ---- pass 2 ---- */

struct sample_visit_context {
	const uint32_t *session_node_by_tree_node;
	int (*each)(const struct model_sample *sample, void *context);
	void *context;
};

static int visit_sample_with_model_node(struct model_sample *sample, void *context)
{
	struct sample_visit_context *visit = context;

	sample->node = visit->session_node_by_tree_node
			       ? visit->session_node_by_tree_node[sample->node]
			       : MODEL_ENTRY_INDEX_NONE;
	return visit->each(sample, visit->context);
}

int session_visit_samples(struct session *session, int (*each)(const struct model_sample *, void *),
			  void *context, struct problem *problem)
{
	struct sample_visit_context visit = {
		.session_node_by_tree_node =
			session_get_private(session)->session_node_by_tree_node,
		.each = each,
		.context = context};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < session->process_count; i++)
		result = session_walk_process_samples(
			session, i, false, visit_sample_with_model_node, &visit, problem);
	return result;
}
