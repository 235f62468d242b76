/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The call-tree profile that a process kept itself, from the parts that its PROFILE records hold.
 * They are written in place while the program runs, so nothing in them is taken on trust.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/session_private.h"

struct profile {
	struct session *session;
	struct process_private *process;
	uint32_t index;
	uint32_t *nodes; /* number in the tree -> model node; MODEL_NONE for the root */
	size_t node_count, node_capacity;
	uint32_t stored; /* values of a node */
};

static int by_tree(const void *left, const void *right)
{
	const struct region_part *a = left, *b = right;

	if (a->tree != b->tree)
		return a->tree < b->tree ? -1 : 1;
	return a->first_node < b->first_node ? -1 : a->first_node > b->first_node;
}

static double square_of(const struct spool_profile_value *value)
{
	return (double)value->square_high * 18446744073709551616.0 + (double)value->square_low;
}

static void take_value(const struct profile *profile, const struct region_component *component,
		       const struct spool_profile_value *value, struct model_statistics *ret)
{
	double unit =
		component->scale ? (double)component->scale : profile->process->clock.ns_per_tick;

	*ret = (struct model_statistics){.sum = (double)value->sum * unit,
					 .minimum = (double)value->minimum * unit,
					 .maximum = (double)value->maximum * unit,
					 .sum_of_squares = square_of(value) * unit * unit};
}

static void take_values(const struct profile *profile, uint32_t node, const uint8_t *bytes,
			uint32_t count)
{
	const struct process_regions *regions = &profile->process->regions;
	struct model_statistics *statistics = region_statistics(profile->session, node);
	uint64_t calls = profile->session->regions->nodes[node].count;
	uint32_t stored = 0;

	for (uint32_t i = 0; i < regions->component_count; i++) {
		const struct region_component *component = &regions->components[i];
		struct spool_profile_value value;

		if (component->model.kind == SPOOL_COMPONENT_RATIO)
			continue;
		if (stored < count && calls) {
			memcpy(&value, bytes + stored * sizeof(value), sizeof(value));
			take_value(profile, component, &value, &statistics[component->index]);
		}
		if (component->model.kind == SPOOL_COMPONENT_COUNT)
			region_count_calls(profile->session, node, component->index);
		stored++;
	}
}

static int take_node(struct profile *profile, const struct region_part *part, const uint8_t *bytes,
		     uint32_t values)
{
	struct model_region_node node = {.process = profile->index, .thread = part->thread};
	struct spool_profile_node from;
	uint32_t index = MODEL_NONE;

	memcpy(&from, bytes, sizeof(from));
	if (array_reserve((void **)&profile->nodes, &profile->node_capacity, profile->node_count,
			  sizeof(*profile->nodes)) < 0)
		return -ENOMEM;
	if (profile->node_count > 0) {
		if (from.parent >= profile->node_count)
			return -EBADMSG;
		node.parent = profile->nodes[from.parent];
		node.region = region_index(profile->session, profile->index, from.region);
		node.count = from.count;
		node.open = from.open;
		if (node.region == MODEL_NONE)
			return -ENOMEM;
		index = region_node_add(profile->session, &node);
		if (index == MODEL_NONE)
			return -ENOMEM;
		take_values(profile, index, bytes + sizeof(from), values);
	}
	profile->nodes[profile->node_count++] = index;
	return 0;
}

static int take_nodes(struct profile *profile, const struct region_part *part,
		      const struct spool_cursor *cursor)
{
	struct spool_profile_part head;
	size_t size = (size_t)(cursor->end - cursor->at), node_size, count;
	uint32_t values;
	int result = 0;

	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, cursor->at, sizeof(head));
	node_size = head.node_size;
	if (node_size < sizeof(struct spool_profile_node) || head.tree != part->tree ||
	    head.first_node != profile->node_count)
		return -EBADMSG;
	count = (size - sizeof(head)) / node_size;
	if (count > head.node_count)
		count = head.node_count;
	values = (uint32_t)((node_size - sizeof(struct spool_profile_node)) /
			    sizeof(struct spool_profile_value));
	if (values > head.components)
		values = head.components;
	for (size_t i = 0; result == 0 && i < count; i++)
		result =
			take_node(profile, part, cursor->at + sizeof(head) + i * node_size, values);
	return result;
}

static int read_parts(struct profile *profile, struct problem *problem)
{
	const struct process_regions *regions = &profile->process->regions;
	struct model_process *model = &profile->session->processes[profile->index];
	struct spool_file *file = &profile->process->file;
	int result = 0;

	for (size_t i = 0; result == 0 && i < regions->part_count; i++) {
		const struct region_part *part = &regions->parts[i];
		struct spool_cursor cursor;

		if (i == 0 || part->tree != part[-1].tree)
			profile->node_count = 0;
		result = spool_file_read_part(file, part->chunk, part->from, part->size, &cursor);
		if (result == 0)
			result = take_nodes(profile, part, &cursor);
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

int region_profile_read(struct session *session, uint32_t process, struct problem *problem)
{
	struct profile profile = {.session = session,
				  .process = &session_private(session)->processes[process],
				  .index = process};
	struct process_regions *regions = &profile.process->regions;
	int result = spool_file_resume(&profile.process->file, problem);

	if (regions->part_count > 1)
		qsort(regions->parts, regions->part_count, sizeof(*regions->parts), by_tree);
	if (result == 0)
		result = read_parts(&profile, problem);
	spool_file_pause(&profile.process->file);
	free(profile.nodes);
	return result == -ENOMEM ? session_out_of_memory(problem) : result;
}
