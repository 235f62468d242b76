/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See line_costs.h.
 */
#include "output/annotate/line_costs.h"

#include <errno.h>
#include <stdlib.h>

static int find_or_add_line(struct line_costs *costs, const struct model_frame *frame,
			    uint32_t *ret)
{
	uint32_t path;

	if (strings_find_or_add(&costs->paths, frame->file, &path) != 0)
		return -ENOMEM;
	uint64_t place = (uint64_t)path << 32 | frame->line;
	*ret = id_map_get(&costs->line_of_place, place);
	if (*ret != ID_MAP_NONE)
		return 0;
	if (costs->count == costs->capacity) {
		uint32_t capacity = costs->capacity * 2 + 256;
		struct line_cost *lines = reallocarray(costs->lines, capacity, sizeof(*lines));
		if (lines == NULL)
			return -ENOMEM;
		costs->lines = lines;
		costs->capacity = capacity;
	}
	*ret = costs->count++;
	costs->lines[*ret] = (struct line_cost){.path = path, .number = frame->line};
	return id_map_set(&costs->line_of_place, place, *ret);
}

static bool is_wanted_frame(const struct line_costs *costs, const struct model_frame *frame)
{
	return costs->function_id == MODEL_ENTRY_INDEX_NONE ||
	       frame->function_id == costs->function_id;
}

static int find_lines_of_frames(struct line_costs *costs)
{
	const struct session *session = costs->session;
	int error = 0;

	costs->line_of_frame =
		malloc(((size_t)session->frame_count + 1) * sizeof(*costs->line_of_frame));
	if (costs->line_of_frame == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; error == 0 && i < session->frame_count; i++) {
		const struct model_frame *frame = &session->frames[i];
		costs->line_of_frame[i] = MODEL_ENTRY_INDEX_NONE;
		if (frame->file != NULL && frame->line != 0 && is_wanted_frame(costs, frame))
			error = find_or_add_line(costs, frame, &costs->line_of_frame[i]);
	}
	return error;
}

static void add_weights(uint64_t *sum, const uint64_t *weights)
{
	for (int i = 0; i < MODEL_SOURCE_COUNT; i++)
		sum[i] += weights[i];
}

static void add_self_of_node(struct line_costs *costs, uint32_t leaf)
{
	const struct session *session = costs->session;
	const struct model_calltree_node *node = &session->nodes[leaf];

	if (costs->function_id == MODEL_ENTRY_INDEX_NONE &&
	    session->frames[node->frame].kind == FRAME_THREAD_STATE &&
	    node->parent != MODEL_ENTRY_INDEX_NONE)
		node = &session->nodes[node->parent];
	uint32_t line = costs->line_of_frame[node->frame];
	if (line != MODEL_ENTRY_INDEX_NONE)
		add_weights(costs->lines[line].self, session->nodes[leaf].self_weight);
	else if (is_wanted_frame(costs, &session->frames[node->frame]))
		add_weights(costs->self_without_line, session->nodes[leaf].self_weight);
}

static void add_costs_of_node(struct line_costs *costs, uint32_t leaf)
{
	const struct model_calltree_node *nodes = costs->session->nodes;

	add_self_of_node(costs, leaf);
	for (uint32_t node = leaf; node != MODEL_ENTRY_INDEX_NONE; node = nodes[node].parent) {
		uint32_t line = costs->line_of_frame[nodes[node].frame];
		if (line == MODEL_ENTRY_INDEX_NONE || costs->lines[line].seen_in == leaf + 1)
			continue;
		costs->lines[line].seen_in = leaf + 1;
		add_weights(costs->lines[line].total, nodes[leaf].self_weight);
	}
}

int line_costs_init(struct line_costs *costs, const struct session *session, uint32_t function_id)
{
	*costs = (struct line_costs){.session = session, .function_id = function_id};
	strings_init(&costs->paths);
	int error = find_lines_of_frames(costs);
	for (uint32_t i = 0; error == 0 && i < session->node_count; i++) {
		uint64_t sum = 0;
		for (int k = 0; k < MODEL_SOURCE_COUNT; k++)
			sum += session->nodes[i].self_weight[k];
		if (sum != 0)
			add_costs_of_node(costs, i);
	}
	return error;
}

static int compare_lines_by_place(const void *left, const void *right)
{
	const struct line_cost *a = left, *b = right;

	if (a->path != b->path)
		return a->path < b->path ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

void line_costs_sort_by_place(struct line_costs *costs)
{
	if (costs->count != 0)
		qsort(costs->lines, costs->count, sizeof(*costs->lines), compare_lines_by_place);
}

void line_costs_deinit(struct line_costs *costs)
{
	strings_deinit(&costs->paths);
	id_map_deinit(&costs->line_of_place);
	free(costs->lines);
	free(costs->line_of_frame);
}
