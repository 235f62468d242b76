/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sums by thread and node, for outputs that separate threads: one pass over the samples, then a
 * sorted array that the session keeps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/session_private.h"
#include "analysis/unsampled.h"

struct thread_nodes_summing_state {
	struct session *session;
	struct id_map index; /* thread and node -> entry */
	struct view_thread_node_row *entries;
	size_t count, capacity;
	uint64_t last_key; /* samples of one stack often come in a row */
	size_t last_entry_index;
};

static struct view_thread_node_row *
find_or_add_thread_node(struct thread_nodes_summing_state *gather, uint32_t thread, uint32_t node)
{
	uint64_t key = (uint64_t)thread << 32 | node;
	uint32_t index;

	if (gather->count && key == gather->last_key)
		return &gather->entries[gather->last_entry_index];
	index = id_map_get(&gather->index, key);
	if (index == ID_MAP_NONE) {
		index = (uint32_t)gather->count;
		if (array_reserve_one_more((void **)&gather->entries, &gather->capacity,
					   gather->count, sizeof(*gather->entries)) < 0 ||
		    id_map_set(&gather->index, key, index) < 0)
			return NULL;
		gather->entries[gather->count++] =
			(struct view_thread_node_row){.thread = thread, .node = node};
	}
	gather->last_key = key;
	gather->last_entry_index = index;
	return &gather->entries[index];
}

static int add_sample_to_thread_node(const struct model_sample *sample, void *context)
{
	struct view_thread_node_row *entry =
		find_or_add_thread_node(context, sample->thread, sample->node);

	if (!entry)
		return -ENOMEM;
	entry->self_weight[sample->source] += sample->weight;
	entry->self_samples[sample->source] += !sample->blocked;
	return 0;
}

static int add_unsampled_time(struct thread_nodes_summing_state *gather)
{
	struct session *session = gather->session;

	for (uint32_t i = 0; i < session->thread_count; i++) {
		uint64_t unsampled = session_get_thread_unsampled_ns(session, i);
		struct view_thread_node_row *entry;
		uint32_t node;

		if (!unsampled)
			continue;
		node = session_get_unsampled_node(session, session->threads[i].process);
		if (node == MODEL_ENTRY_INDEX_NONE)
			continue;
		entry = find_or_add_thread_node(gather, i, node);
		if (!entry)
			return -ENOMEM;
		entry->self_weight[SPOOL_SOURCE_CPU] += unsampled;
	}
	return 0;
}

static int add_launched_work(struct thread_nodes_summing_state *gather)
{
	const struct session_private *private = session_get_private(gather->session);

	for (size_t i = 0; private->session_node_by_tree_node && i < private->launched_count; i++) {
		const struct launched_thread_work *work = &private->launched[i];
		struct view_thread_node_row *entry = find_or_add_thread_node(
			gather, work->thread, private->session_node_by_tree_node[work->node]);

		if (!entry)
			return -ENOMEM;
		entry->self_weight[MODEL_SOURCE_DEVICE] += work->ns;
		entry->self_samples[MODEL_SOURCE_DEVICE] += work->count;
	}
	return 0;
}

static int compare_by_thread_and_node(const void *left, const void *right)
{
	const struct view_thread_node_row *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

int view_sum_by_thread_and_node(struct session *session, const struct view_thread_node_row **ret,
				size_t *count)
{
	struct session_private *private = session_get_private(session);
	struct thread_nodes_summing_state gather = {.session = session};
	struct problem problem;
	int result;

	if (!private->thread_nodes_known) {
		result = session_visit_samples(session, add_sample_to_thread_node, &gather,
					       &problem);
		if (result == 0)
			result = add_unsampled_time(&gather);
		if (result == 0)
			result = add_launched_work(&gather);
		id_map_deinit(&gather.index);
		if (result < 0) {
			free(gather.entries);
			return result;
		}
		if (gather.count > 1)
			qsort(gather.entries, gather.count, sizeof(*gather.entries),
			      compare_by_thread_and_node);
		private->thread_nodes = gather.entries;
		private->thread_node_count = gather.count;
		private->thread_nodes_known = true;
	}
	*ret = private->thread_nodes;
	*count = private->thread_node_count;
	return 0;
}
