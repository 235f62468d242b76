/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See interpreted_lines.h.
 */
#include "output/interpreted_lines.h"

#include <errno.h>
#include <stdlib.h>

static void add_node_to_its_lines(const struct session *session, enum view_measure_kind measure,
				  uint32_t node, struct interpreted_line *lines,
				  uint32_t *last_node)
{
	uint64_t weight = view_get_node_self_weight(&session->nodes[node], measure);
	uint64_t samples = view_sum_sources_of_measure(session->nodes[node].self_samples, measure);
	bool is_innermost = true;

	if (!weight && !samples)
		return;
	for (uint32_t at = node; at != MODEL_ENTRY_INDEX_NONE; at = session->nodes[at].parent) {
		uint32_t frame = session->nodes[at].frame;

		if (frame == MODEL_ENTRY_INDEX_NONE ||
		    session->frames[frame].kind != FRAME_INTERPRETED)
			continue;
		if (is_innermost) {
			lines[frame].own += weight;
			lines[frame].own_samples += samples;
		}
		is_innermost = false;
		if (last_node[frame] == node + 1)
			continue; /* recursion */
		last_node[frame] = node + 1;
		lines[frame].inclusive += weight;
		lines[frame].inclusive_samples += samples;
	}
}

static int compare_lines_by_own_weight(const void *left, const void *right)
{
	const struct interpreted_line *a = left, *b = right;

	if (a->own != b->own)
		return a->own > b->own ? -1 : 1;
	if (a->inclusive != b->inclusive)
		return a->inclusive > b->inclusive ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

int interpreted_lines_build(const struct session *session, enum view_measure_kind measure,
			    struct interpreted_line **ret, size_t *ret_count)
{
	size_t capacity = (size_t)session->frame_count + 1, count = 0;
	struct interpreted_line *lines = calloc(capacity, sizeof(*lines));
	uint32_t *last_node = calloc(capacity, sizeof(*last_node));

	if (!lines || !last_node) {
		free(lines);
		free(last_node);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < session->frame_count; i++)
		lines[i].frame = i;
	for (uint32_t i = 0; i < session->node_count; i++)
		add_node_to_its_lines(session, measure, i, lines, last_node);
	for (uint32_t i = 0; i < session->frame_count; i++) {
		if (lines[i].inclusive)
			lines[count++] = lines[i];
	}
	qsort(lines, count, sizeof(*lines), compare_lines_by_own_weight);
	free(last_node);
	*ret = lines;
	*ret_count = count;
	return 0;
}
