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

#include "analysis/runtime_code.h"
#include "analysis/session_private.h"

/* Not an errno, so that no callback can mean it. */
#define SAMPLE_DAMAGED INT_MIN

struct walk_frame {
	uint64_t pc;
	uint64_t hash; /* of the path to here, as a caller */
};

struct walk {
	struct session *session;
	struct process_private *process;
	struct model_process *model;
	struct calltree *tree;
	bool first_pass;
	int (*each)(struct model_sample *sample, void *context);
	void *context;
	uint64_t from_ns, to_ns;
	uint32_t bases[16]; /* node outside the outermost frame, by spool_stack_end */

	/* Of the span. */
	bool in_span, skipped; /* skipped: a filter leaves this thread out */
	uint64_t time, weight;
	struct walk_frame *frames;
	size_t depth, capacity;
	size_t hashed;      /* frames whose hash is known, from the outermost */
	uint32_t base;      /* on which the hashes build */
	uint32_t wall_node; /* of the last WALL sample, for repeats */
	enum spool_stack_end wall_end;
	struct model_sample sample;
};

static int frames_reserve(struct walk *walk, size_t depth)
{
	size_t capacity = walk->capacity ? walk->capacity : 256;
	struct walk_frame *frames;

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

/* Reads the fresh frames over the old ones. Returns 0, -ENOMEM, or SAMPLE_DAMAGED. */
static inline int read_frames(struct walk *walk, struct spool_payload *payload)
{
	uint64_t common = spool_unsigned(payload), fresh = spool_unsigned(payload);
	struct walk_frame *frames;
	uint64_t pc;

	if (payload->bad || common > walk->depth || fresh > (uint64_t)(payload->end - payload->at))
		return SAMPLE_DAMAGED;
	if (frames_reserve(walk, (size_t)(common + fresh)) < 0)
		return -ENOMEM;
	frames = walk->frames;
	if (common < walk->depth)
		pc = frames[common].pc;
	else
		pc = common ? frames[common - 1].pc : 0;
	for (size_t i = (size_t)common; i < common + fresh; i++) {
		pc += (uint64_t)spool_signed(payload);
		frames[i].pc = pc;
	}
	walk->depth = (size_t)(common + fresh);
	if (walk->hashed > common)
		walk->hashed = (size_t)common;
	return payload->bad ? SAMPLE_DAMAGED : 0;
}

static inline void read_metrics(struct walk *walk, struct spool_payload *payload)
{
	uint64_t bitmap = spool_unsigned(payload);

	if (bitmap >> SPOOL_METRIC_COUNT) {
		payload->bad = true;
		return;
	}
	walk->sample.metric_bitmap = (uint32_t)bitmap;
	for (unsigned i = 0; i < SPOOL_METRIC_COUNT; i++) {
		if (bitmap >> i & 1)
			walk->sample.metrics[i] += spool_unsigned(payload);
	}
}

/* All but the innermost frame are return addresses, or made to look like ones (kymo/spool.h). */
static inline uint64_t caller_address(const struct walk *walk, size_t i)
{
	return (walk->frames[i].pc - 1) & ~CALLTREE_SPECIAL;
}

static inline uint64_t leaf_address(const struct walk *walk)
{
	return walk->frames[walk->depth - 1].pc & ~CALLTREE_SPECIAL;
}

static inline void identify(const struct walk *walk, struct calltree_node *node)
{
	uint64_t time_ns = walk->sample.time_ns;

	node->module = module_map_find(&walk->process->module_map, node->address, time_ns);
	if (walk->process->jitmap && runtime_code_is(walk->session, node->module))
		node->since_ns = runtime_code_since(walk->process, node->address, time_ns);
}

/* Module and code are looked up only where the address alone cannot tell which they are. */
static inline uint64_t step_hash(const struct walk *walk, uint64_t hash, uint64_t address)
{
	struct calltree_node node = {.address = address};

	if (!walk->process->by_time)
		return calltree_hash(hash, address, 0);
	identify(walk, &node);
	return calltree_hash(hash, address, node.module + node.since_ns * 0x9e3779b97f4a7c15);
}

static uint32_t add_step(struct walk *walk, uint32_t parent, uint64_t address, uint64_t hash)
{
	struct calltree_node node = {.address = address, .hash = hash, .parent = parent};

	identify(walk, &node);
	walk->process->unmapped |= node.module == MODULE_MAP_NONE;
	return calltree_add(walk->tree, &node);
}

/* Adds what the tree lacks of the stack whose callers are hashed and whose leaf has this hash. */
static uint32_t add_stack(struct walk *walk, uint64_t leaf_hash)
{
	size_t known = walk->depth - 1;
	uint32_t node = CALLTREE_NONE;

	while (known > 0 && node == CALLTREE_NONE) {
		node = calltree_find(walk->tree, walk->frames[known - 1].hash);
		known -= node == CALLTREE_NONE;
	}
	if (known == 0)
		node = walk->base;
	for (; known < walk->depth - 1 && node != CALLTREE_NONE; known++)
		node = add_step(walk, node, caller_address(walk, known), walk->frames[known].hash);
	return node == CALLTREE_NONE ? node : add_step(walk, node, leaf_address(walk), leaf_hash);
}

/* The node of the stack that was read, or CALLTREE_NONE. */
static uint32_t find_stack(struct walk *walk)
{
	struct walk_frame *frames = walk->frames;
	uint64_t base = walk->tree->nodes[walk->base].hash, hash;
	uint32_t node;

	if (walk->depth == 0)
		return walk->base;
	hash = walk->hashed ? frames[walk->hashed - 1].hash : base;
	for (size_t i = walk->hashed; i < walk->depth - 1; i++)
		frames[i].hash = hash = step_hash(walk, hash, caller_address(walk, i));
	/* The caller of the leaf may be hashed deeper than that: the leaf was a caller before. */
	if (walk->hashed >= walk->depth)
		hash = walk->depth > 1 ? frames[walk->depth - 2].hash : base;
	else
		walk->hashed = walk->depth - 1;
	hash = step_hash(walk, hash, leaf_address(walk));
	node = calltree_find(walk->tree, hash);
	return node == CALLTREE_NONE && walk->first_pass ? add_stack(walk, hash) : node;
}

/* Truncated stacks grow from a node of their own, which says so. */
static uint32_t base_node(struct walk *walk, enum spool_stack_end end)
{
	uint64_t root_hash = walk->tree->nodes[walk->process->root].hash;
	uint64_t address = CALLTREE_SPECIAL | end;
	uint32_t *base = &walk->bases[end];

	if (*base != CALLTREE_NONE)
		return *base;
	*base = walk->first_pass ? calltree_child(walk->tree, walk->process->root, address,
						  CALLTREE_TRUNCATED)
				 : calltree_find(walk->tree, calltree_hash(root_hash, address,
									   CALLTREE_TRUNCATED));
	return *base;
}

static uint32_t stack_node(struct walk *walk, enum spool_stack_end end)
{
	uint32_t base;

	if (walk->depth == 0 && end == SPOOL_STACK_COMPLETE)
		end = SPOOL_STACK_NOT_WALKED;
	base = base_node(walk, end);
	if (walk->base != base ||
	    module_map_epoch_changed(&walk->process->module_map, walk->sample.time_ns))
		walk->hashed = 0;
	walk->base = base;
	return base == CALLTREE_NONE ? base : find_stack(walk);
}

static int deliver(struct walk *walk)
{
	struct model_sample *sample = &walk->sample;

	if (sample->node == CALLTREE_NONE)
		return walk->first_pass ? -ENOMEM : 0;
	if (sample->time_ns < walk->from_ns || sample->time_ns >= walk->to_ns)
		return 0;
	return walk->each(sample, walk->context);
}

static int read_sample(struct walk *walk, struct spool_payload rest, uint8_t flags)
{
	struct spool_payload *payload = &rest;
	struct model_sample *sample = &walk->sample;
	int result;

	sample->source = flags & 3;
	sample->stack_end = flags >> 4 & 7;
	walk->time += spool_unsigned_long(payload);
	walk->weight += (uint64_t)spool_signed(payload);
	result = read_frames(walk, payload);
	if (result < 0)
		return result;
	sample->event =
		sample->source == SPOOL_SOURCE_OVERFLOW ? (uint32_t)spool_unsigned(payload) : 0;
	sample->metric_bitmap = 0;
	if (flags & 4)
		read_metrics(walk, payload);
	if (payload->bad)
		return SAMPLE_DAMAGED;
	sample->weight = walk->weight;
	sample->repeat = 0;
	sample->time_ns =
		clock_map_boottime(&walk->process->clock, walk->time << SPOOL_SAMPLE_TIME_SHIFT);
	sample->node = stack_node(walk, sample->stack_end);
	if (sample->source == SPOOL_SOURCE_WALL) {
		walk->wall_node = sample->node;
		walk->wall_end = sample->stack_end;
	}
	return deliver(walk);
}

static int read_repeat(struct walk *walk, struct spool_payload *payload)
{
	struct model_sample *sample = &walk->sample;

	walk->time += spool_unsigned(payload);
	sample->weight = spool_unsigned(payload);
	if (payload->bad || walk->wall_node == CALLTREE_NONE)
		return SAMPLE_DAMAGED;
	sample->source = SPOOL_SOURCE_WALL;
	sample->stack_end = walk->wall_end;
	sample->event = 0;
	sample->metric_bitmap = 0;
	sample->repeat = 1;
	sample->time_ns =
		clock_map_boottime(&walk->process->clock, walk->time << SPOOL_SAMPLE_TIME_SHIFT);
	sample->node = walk->wall_node;
	return deliver(walk);
}

static int start_span(struct walk *walk, struct spool_payload *payload)
{
	uint64_t internal_id = spool_unsigned(payload);
	uint64_t ticks;

	(void)spool_unsigned(payload); /* tid, used by the scan */
	ticks = spool_fixed(payload);
	if (payload->bad)
		return SAMPLE_DAMAGED;
	walk->sample.thread = id_map_get(&walk->process->threads, internal_id);
	walk->in_span = true;
	walk->skipped = walk->sample.thread == ID_MAP_NONE;
	walk->time = ticks >> SPOOL_SAMPLE_TIME_SHIFT;
	walk->weight = 0;
	memset(walk->sample.metrics, 0, sizeof(walk->sample.metrics));
	walk->depth = walk->hashed = 0;
	walk->wall_node = CALLTREE_NONE;
	return 0;
}

static int read_record(struct walk *walk, struct spool_payload *payload)
{
	if (payload->kind >= SPOOL_RECORD_SAMPLE_COMPACT) {
		if (!walk->in_span)
			return SAMPLE_DAMAGED;
		return walk->skipped ? 0 : read_sample(walk, *payload, payload->kind);
	}
	switch (payload->kind) {
	case SPOOL_RECORD_SPAN:
		return start_span(walk, payload);
	case SPOOL_RECORD_SAMPLE:
		if (!walk->in_span || payload->at == payload->end)
			return SAMPLE_DAMAGED;
		if (walk->skipped)
			return 0;
		payload->at++;
		return read_sample(walk, *payload, payload->at[-1]);
	case SPOOL_RECORD_SAMPLE_REPEAT:
		if (!walk->in_span)
			return SAMPLE_DAMAGED;
		return walk->skipped ? 0 : read_repeat(walk, payload);
	default:
		return 0;
	}
}

static int walk_chunk(struct walk *walk, struct spool_cursor *cursor)
{
	struct spool_payload payload;

	walk->in_span = false;
	walk->skipped = false;
	while (spool_next(cursor, &payload)) {
		const uint8_t *begin = payload.at;
		int result = read_record(walk, &payload);

		if (result == SAMPLE_DAMAGED) {
			walk->in_span = false;
			if (walk->first_pass)
				walk->model->torn_bytes += (uint64_t)(payload.end - begin);
		} else if (result != 0) {
			return result;
		}
	}
	return 0;
}

static void walk_init(struct walk *walk, const struct session_options *options)
{
	for (unsigned end = 0; end < 16; end++)
		walk->bases[end] = CALLTREE_NONE;
	walk->bases[SPOOL_STACK_COMPLETE] = walk->process->root;
	walk->base = CALLTREE_NONE;
	if (options->from_ns)
		walk->from_ns = walk->session->start_ns + options->from_ns;
	walk->to_ns = options->to_ns ? walk->session->start_ns + options->to_ns : UINT64_MAX;
}

int session_walk_samples(struct session *session, uint32_t process, bool first_pass,
			 int (*each)(struct model_sample *sample, void *context), void *context,
			 struct problem *problem)
{
	struct session_private *private = session_private(session);
	struct walk walk = {.session = session,
			    .process = &private->processes[process],
			    .model = &session->processes[process],
			    .tree = &private->tree,
			    .first_pass = first_pass,
			    .each = each,
			    .context = context,
			    .sample.process = process};
	struct spool_file *file = &walk.process->file;
	int result = spool_file_resume(file, problem);

	walk_init(&walk, &private->options);
	for (size_t chunk = 0; result == 0 && chunk < file->chunk_count; chunk++) {
		struct spool_cursor cursor;

		if (!file->chunks[chunk].samples)
			continue;
		result = spool_file_read(file, chunk, &cursor);
		if (result == 0)
			result = walk_chunk(&walk, &cursor);
		else if (result != -ENOMEM)
			problem_set(problem, result, "cannot read %s: %s", file->path,
				    strerror(-result));
	}
	if (result == -ENOMEM)
		session_out_of_memory(problem);
	free(walk.frames);
	spool_file_pause(file);
	return result;
}
