/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The call-tree profile that a process kept itself, from the parts that its PROFILE records hold.
 * They are written in place while the program runs, so nothing in them is taken on trust.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/private.h"
#include "analysis/session_private.h"

struct profile_reader {
	struct session *session;
	struct process_private *process;
	struct process_regions_data *process_regions;
	uint32_t index;
	uint32_t *model_node_by_number; /* number in the tree -> model node; MODEL_ENTRY_INDEX_NONE
					   for the root */
	size_t node_count, node_capacity;
	uint64_t left_call_count;
	size_t open_calls_offset; /* in a node; 0: it has none (before 1.8) */
	uint64_t ticks_outside_windows;
};

static int compare_parts_by_tree(const void *left, const void *right)
{
	const struct region_profile_part *a = left, *b = right;

	if (a->tree != b->tree)
		return a->tree < b->tree ? -1 : 1;
	return a->first_node < b->first_node ? -1 : a->first_node > b->first_node;
}

static double get_profile_value_sum_of_squares(const struct spool_profile_value *value)
{
	return (double)value->square_high * 18446744073709551616.0 + (double)value->square_low;
}

static void convert_profile_value(const struct profile_reader *profile,
				  const struct region_component_definition *component,
				  const struct spool_profile_value *value,
				  struct model_component_statistics *ret)
{
	double unit =
		component->scale ? (double)component->scale : profile->process->clock.ns_per_tick;

	*ret = (struct model_component_statistics){
		.sum = (double)value->sum * unit,
		.minimum = (double)value->minimum * unit,
		.maximum = (double)value->maximum * unit,
		.sum_of_squares = get_profile_value_sum_of_squares(value) * unit * unit};
}

static bool component_is_wall_clock(const struct region_component_definition *component)
{
	return strcmp(component->model.name, "wall_clock") == 0;
}

static void set_node_statistics(const struct profile_reader *profile, uint32_t node,
				const uint8_t *bytes, uint32_t count)
{
	const struct process_regions_data *regions = profile->process_regions;
	struct model_component_statistics *statistics =
		region_get_node_statistics(profile->session, node);
	uint64_t calls = session_get_regions(profile->session)->nodes[node].count;
	uint32_t stored = 0;

	for (uint32_t i = 0; i < regions->component_count; i++) {
		const struct region_component_definition *component = &regions->components[i];
		struct spool_profile_value value;

		if (component->model.kind == SPOOL_COMPONENT_RATIO)
			continue;
		if (stored < count && calls) {
			memcpy(&value, bytes + stored * sizeof(value), sizeof(value));
			convert_profile_value(profile, component, &value,
					      &statistics[component->index]);
		}
		if (component->model.kind == SPOOL_COMPONENT_COUNT)
			region_set_component_to_call_count(profile->session, node,
							   component->index);
		stored++;
	}
}

/* Open calls of a node that are known to have ended after all: `count` of them, which took `ticks`
 * together. */
static void add_ended_calls_to_node(struct profile_reader *profile, uint32_t node, uint64_t count,
				    uint64_t ticks)
{
	const struct process_regions_data *regions = profile->process_regions;
	struct model_region_node *model = &session_get_regions(profile->session)->nodes[node];
	double ns = (double)ticks * profile->process->clock.ns_per_tick, mean;

	if (!count)
		return;
	mean = ns / (double)count;
	for (uint32_t i = 0; i < regions->component_count; i++) {
		struct model_component_statistics *statistics = &region_get_node_statistics(
			profile->session, node)[regions->components[i].index];

		if (!component_is_wall_clock(&regions->components[i]))
			continue;
		if (!model->count || mean < statistics->minimum)
			statistics->minimum = mean;
		if (mean > statistics->maximum)
			statistics->maximum = mean;
		statistics->sum += ns;
		statistics->sum_of_squares += mean * ns;
	}
	model->open -= count;
	model->count += count;
	for (uint32_t i = 0; i < regions->component_count; i++) {
		if (regions->components[i].model.kind == SPOOL_COMPONENT_COUNT)
			region_set_component_to_call_count(profile->session, node,
							   regions->components[i].index);
	}
}

/* The clock of the profile stands still there. */
static uint64_t compute_ticks_outside_windows(const struct profile_reader *profile)
{
	const struct process_regions_data *regions = profile->process_regions;
	uint64_t inside = 0, start = profile->process->file.header.start_ticks,
		 end = profile->process->end_ticks;

	if (!regions->has_windows)
		return 0;
	for (size_t i = 0; i < regions->window_count; i++) {
		const struct region_window *window = &regions->windows[i];
		uint64_t to = window->to_ns < end ? window->to_ns : end;

		inside += to > window->from_ns ? to - window->from_ns : 0;
	}
	return end > start + inside ? end - start - inside : 0;
}

/* What calls took that did not begin or end in the data, in the component that is real time. */
static void add_unfinished_time_to_node(struct profile_reader *profile, uint32_t node,
					uint64_t ticks)
{
	const struct process_regions_data *regions = profile->process_regions;
	struct model_component_statistics *statistics =
		region_get_node_statistics(profile->session, node);
	double ns = (double)ticks * profile->process->clock.ns_per_tick;

	for (uint32_t i = 0; i < regions->component_count; i++) {
		if (!component_is_wall_clock(&regions->components[i]))
			continue;
		statistics[regions->components[i].index].sum += ns;
		statistics[regions->components[i].index].unfinished_sum += ns;
	}
}

/* Calls of instrumented functions end with the process where that called exit(); the walk of a
 * trace has the same rule (walk.c). */
static bool calls_end_with_process(const struct profile_reader *profile,
				   const struct model_region_node *node)
{
	return profile->session->processes[profile->index].state == SPOOL_STATE_EXITED &&
	       session_get_regions(profile->session)->regions[node->region].kind ==
		       SPOOL_REGION_FUNCTION;
}

/* What calls that are open took so far. `bytes`: behind the node's values. Written while the
 * program ran, so what cannot be is left out. */
static void add_open_calls_to_node_statistics(struct profile_reader *profile, uint32_t node,
					      const uint8_t *bytes)
{
	const struct spool_file_header *header = &profile->process->file.header;
	uint64_t open = session_get_regions(profile->session)->nodes[node].open, end, ticks, most;
	struct spool_profile_open calls;
	struct model_region_node *model;

	memcpy(&calls, bytes, sizeof(calls));
	end = profile->process->end_ticks;
	if (calls.stopped > open || calls.left > open - calls.stopped || end < header->start_ticks)
		return;
	profile->left_call_count += calls.left;
	add_ended_calls_to_node(profile, node, calls.left, calls.left_ticks);
	model = &session_get_regions(profile->session)->nodes[node];
	model->self_correction =
		(double)(int64_t)calls.self_ticks * profile->process->clock.ns_per_tick;
	end -= profile->ticks_outside_windows;
	open -= calls.stopped + calls.left;
	ticks = open * end - calls.begin_ticks_sum;
	most = open * (end - header->start_ticks);
	if (open > UINT32_MAX || (ticks > most && ticks - most > header->start_ticks / 2)) {
		ticks = 0;
	} else if (ticks > most) {
		/* A forked child has the calls that were open at the fork: they count where they
		 * began. */
		ticks = most;
		model->open -= calls_end_with_process(profile, model) ? open : 0;
	} else if (calls_end_with_process(profile, model)) {
		add_ended_calls_to_node(profile, node, open, ticks);
		ticks = 0;
	}
	add_unfinished_time_to_node(profile, node, ticks + calls.stopped_ticks);
}

static int add_profile_node(struct profile_reader *profile, const struct region_profile_part *part,
			    const uint8_t *bytes, uint32_t values)
{
	struct model_region_node node = {.process = profile->index, .thread = part->thread};
	struct spool_profile_node from;
	uint32_t index = MODEL_ENTRY_INDEX_NONE;

	memcpy(&from, bytes, sizeof(from));
	if (array_reserve_one_more((void **)&profile->model_node_by_number, &profile->node_capacity,
				   profile->node_count, sizeof(*profile->model_node_by_number)) < 0)
		return -ENOMEM;
	if (profile->node_count > 0) {
		if (from.parent >= profile->node_count)
			return -EBADMSG;
		node.parent = profile->model_node_by_number[from.parent];
		node.region =
			region_find_or_add_by_id(profile->session, profile->index, from.region);
		node.count = from.count;
		node.open = from.open;
		if (node.region == MODEL_ENTRY_INDEX_NONE)
			return -ENOMEM;
		index = region_add_node(profile->session, &node);
		if (index == MODEL_ENTRY_INDEX_NONE)
			return -ENOMEM;
		set_node_statistics(profile, index, bytes + sizeof(from), values);
		if (profile->open_calls_offset)
			add_open_calls_to_node_statistics(profile, index,
							  bytes + profile->open_calls_offset);
	}
	profile->model_node_by_number[profile->node_count++] = index;
	return 0;
}

static int add_profile_nodes(struct profile_reader *profile, const struct region_profile_part *part,
			     const struct spool_chunk_record_cursor *cursor)
{
	struct spool_profile_part head;
	size_t size = (size_t)(cursor->end - cursor->at), node_size, count;
	uint32_t values;
	int result = 0;

	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, cursor->at, sizeof(head));
	node_size = head.node_size;
	if (head.components > REGION_COMPONENTS_MAX ||
	    node_size < sizeof(struct spool_profile_node) +
				head.components * sizeof(struct spool_profile_value) ||
	    head.tree != part->tree || head.first_node != profile->node_count)
		return -EBADMSG;
	count = (size - sizeof(head)) / node_size;
	if (count > head.node_count)
		count = head.node_count;
	values = head.components;
	profile->open_calls_offset = sizeof(struct spool_profile_node) +
				     (size_t)values * sizeof(struct spool_profile_value);
	if (node_size - profile->open_calls_offset < sizeof(struct spool_profile_open))
		profile->open_calls_offset = 0;
	for (size_t i = 0; result == 0 && i < count; i++)
		result = add_profile_node(profile, part, cursor->at + sizeof(head) + i * node_size,
					  values);
	return result;
}

static int read_profile_parts(struct profile_reader *profile, struct problem *problem)
{
	const struct process_regions_data *regions = profile->process_regions;
	struct model_process *model = &profile->session->processes[profile->index];
	struct spool_file *file = &profile->process->file;
	int result = 0;

	profile->ticks_outside_windows = compute_ticks_outside_windows(profile);
	for (size_t i = 0; result == 0 && i < regions->part_count; i++) {
		const struct region_profile_part *part = &regions->parts[i];
		struct spool_chunk_record_cursor cursor;

		if (i == 0 || part->tree != part[-1].tree)
			profile->node_count = 0;
		result = spool_file_read_chunk_part(file, part->chunk, part->from, part->size,
						    &cursor);
		if (result == 0)
			result = add_profile_nodes(profile, part, &cursor);
		else if (result != -ENOMEM)
			problem_set(problem, result, "cannot read %s: %s", file->path,
				    strerror(-result));
		if (result == -EBADMSG) {
			model->torn_bytes += part->size;
			result = 0;
		}
	}
	return result;
}

int region_read_profile_nodes(struct session *session, uint32_t process,
			      uint64_t *ret_left_call_count, struct problem *problem)
{
	struct profile_reader profile = {.session = session,
					 .process =
						 &session_get_private(session)->processes[process],
					 .process_regions = process_get_regions(session, process),
					 .index = process};
	struct process_regions_data *regions = profile.process_regions;
	int result = spool_file_reopen(&profile.process->file, problem);

	if (regions->part_count > 1)
		qsort(regions->parts, regions->part_count, sizeof(*regions->parts),
		      compare_parts_by_tree);
	if (result == 0)
		result = read_profile_parts(&profile, problem);
	spool_file_close_temporarily(&profile.process->file);
	free(profile.model_node_by_number);
	*ret_left_call_count = profile.left_call_count;
	return result == -ENOMEM ? session_set_out_of_memory_problem(problem) : result;
}
