/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sums by thread and node, for outputs that separate threads: one pass over the samples, then a
 * sorted array that the session keeps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frames.h"
#include "analysis/session_private.h"

struct gather {
	struct session *session;
	struct id_map index; /* thread and node -> entry */
	struct view_thread_node *entries;
	size_t count, capacity;
	uint64_t last_key; /* samples of one stack often come in a row */
	size_t last;
};

static struct view_thread_node *entry_of(struct gather *gather, uint32_t thread, uint32_t node)
{
	uint64_t key = (uint64_t)thread << 32 | node;
	uint32_t index;

	if (gather->count && key == gather->last_key)
		return &gather->entries[gather->last];
	index = id_map_get(&gather->index, key);
	if (index == ID_MAP_NONE) {
		index = (uint32_t)gather->count;
		if (array_reserve((void **)&gather->entries, &gather->capacity, gather->count,
				  sizeof(*gather->entries)) < 0 ||
		    id_map_set(&gather->index, key, index) < 0)
			return NULL;
		gather->entries[gather->count++] =
			(struct view_thread_node){.thread = thread, .node = node};
	}
	gather->last_key = key;
	gather->last = index;
	return &gather->entries[index];
}

static int gather_sample(const struct model_sample *sample, void *context)
{
	struct view_thread_node *entry = entry_of(context, sample->thread, sample->node);

	if (!entry)
		return -ENOMEM;
	entry->self_weight[sample->source] += sample->weight;
	entry->self_samples[sample->source]++;
	return 0;
}

static int gather_unsampled(struct gather *gather)
{
	struct session *session = gather->session;

	for (uint32_t i = 0; i < session->thread_count; i++) {
		uint64_t unsampled = session_unsampled_ns(session, i);
		struct view_thread_node *entry;
		uint32_t node;

		if (!unsampled)
			continue;
		node = session_unsampled_node(session, session->threads[i].process);
		if (node == MODEL_NONE)
			continue;
		entry = entry_of(gather, i, node);
		if (!entry)
			return -ENOMEM;
		entry->self_weight[SPOOL_SOURCE_CPU] += unsampled;
	}
	return 0;
}

static int by_thread_and_node(const void *left, const void *right)
{
	const struct view_thread_node *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

int view_thread_nodes(struct session *session, const struct view_thread_node **ret, size_t *count)
{
	struct session_private *private = session_private(session);
	struct gather gather = {.session = session};
	struct problem problem;
	int result;

	if (!private->thread_nodes_known) {
		result = session_each_sample(session, gather_sample, &gather, &problem);
		if (result == 0)
			result = gather_unsampled(&gather);
		id_map_deinit(&gather.index);
		if (result < 0) {
			free(gather.entries);
			return result;
		}
		if (gather.count > 1)
			qsort(gather.entries, gather.count, sizeof(*gather.entries),
			      by_thread_and_node);
		private->thread_nodes = gather.entries;
		private->thread_node_count = gather.count;
		private->thread_nodes_known = true;
	}
	*ret = private->thread_nodes;
	*count = private->thread_node_count;
	return 0;
}
