/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sums over the calling-context tree; see views.h. All are loops over the node array, which has
 * parents before children.
 */
#include "analysis/views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t view_count_program_threads(const struct session *session)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < session->thread_count; i++)
		count += session->threads[i].how != 3;
	return count;
}

enum view_measure_kind view_choose_default_measure(const struct session *session)
{
	uint64_t samples[SPOOL_SOURCE_COUNT] = {0};

	for (uint32_t i = 0; i < session->thread_count; i++) {
		for (unsigned source = 0; source < SPOOL_SOURCE_COUNT; source++)
			samples[source] += session->threads[i].samples[source];
	}
	/* Who asks for real time wants to see the waiting; CPU time is part of it. */
	if (samples[SPOOL_SOURCE_WALL] || samples[SPOOL_SOURCE_RUNNABLE])
		return VIEW_MEASURE_REAL_TIME;
	if (samples[SPOOL_SOURCE_CPU])
		return VIEW_MEASURE_CPU_TIME;
	return samples[SPOOL_SOURCE_OVERFLOW] ? VIEW_MEASURE_COUNTER_EVENTS : VIEW_MEASURE_CPU_TIME;
}

const char *view_measure_get_unit(enum view_measure_kind measure)
{
	return measure == VIEW_MEASURE_COUNTER_EVENTS ? "events" : "ns";
}

const char *view_measure_get_name(enum view_measure_kind measure)
{
	static const char *const names[] = {
		[VIEW_MEASURE_CPU_TIME] = "cpu_time",
		[VIEW_MEASURE_REAL_TIME] = "real_time",
		[VIEW_MEASURE_COUNTER_EVENTS] = "events",
		[VIEW_MEASURE_DEVICE_TIME] = "device_time",
	};
	return names[measure];
}

uint64_t view_sum_sources_of_measure(const uint64_t by_source[MODEL_SOURCE_COUNT],
				     enum view_measure_kind measure)
{
	switch (measure) {
	case VIEW_MEASURE_REAL_TIME:
		return by_source[SPOOL_SOURCE_CPU] + by_source[SPOOL_SOURCE_WALL] +
		       by_source[SPOOL_SOURCE_RUNNABLE];
	case VIEW_MEASURE_COUNTER_EVENTS:
		return by_source[SPOOL_SOURCE_OVERFLOW];
	case VIEW_MEASURE_DEVICE_TIME:
		return by_source[MODEL_SOURCE_DEVICE];
	default:
		return by_source[SPOOL_SOURCE_CPU];
	}
}

uint64_t view_get_node_self_weight(const struct model_calltree_node *node,
				   enum view_measure_kind measure)
{
	return view_sum_sources_of_measure(node->self_weight, measure);
}

int view_compute_inclusive_sums(const struct session *session, enum view_measure_kind measure,
				uint64_t **ret_weight, uint64_t **ret_samples)
{
	uint64_t *weight = calloc(session->node_count + 1, sizeof(*weight));
	uint64_t *samples = calloc(session->node_count + 1, sizeof(*samples));

	if (!weight || !samples) {
		free(weight);
		free(samples);
		return -ENOMEM;
	}
	for (uint32_t i = session->node_count; i-- > 0;) {
		const struct model_calltree_node *node = &session->nodes[i];

		weight[i] += view_sum_sources_of_measure(node->self_weight, measure);
		samples[i] += view_sum_sources_of_measure(node->self_samples, measure);
		if (node->parent != MODEL_ENTRY_INDEX_NONE) {
			weight[node->parent] += weight[i];
			samples[node->parent] += samples[i];
		}
	}
	*ret_weight = weight;
	*ret_samples = samples;
	return 0;
}

/* ---- by function ---- */

struct function_sum_walk {
	const struct session *session;
	enum view_measure_kind measure;
	struct view_flat_profile_row *functions; /* by function_id */
	uint32_t *occurrences_on_path; /* by function_id: how often on the way to the root */
	uint64_t *inclusive_weight_by_node, *inclusive_samples_by_node; /* inclusive, by node */
};

static void enter_node_and_add_its_sums(struct function_sum_walk *sums, uint32_t index)
{
	const struct model_calltree_node *node = &sums->session->nodes[index];
	uint32_t id = sums->session->frames[node->frame].function_id;
	struct view_flat_profile_row *function = &sums->functions[id];

	if (function->frame == MODEL_ENTRY_INDEX_NONE) {
		function->frame = node->frame;
		function->function_id = id;
	}
	function->self += view_sum_sources_of_measure(node->self_weight, sums->measure);
	function->self_samples += view_sum_sources_of_measure(node->self_samples, sums->measure);
	if (sums->occurrences_on_path[id]++ == 0) {
		function->inclusive += sums->inclusive_weight_by_node[index];
		function->inclusive_samples += sums->inclusive_samples_by_node[index];
	}
}

static void remove_node_from_path(struct function_sum_walk *sums, uint32_t index)
{
	sums->occurrences_on_path[sums->session->frames[sums->session->nodes[index].frame]
					  .function_id]--;
}

/* Depth first without a stack: back up along parents. */
static void add_sums_of_tree_depth_first(struct function_sum_walk *sums, uint32_t root)
{
	const struct model_calltree_node *nodes = sums->session->nodes;
	uint32_t at = root;

	enter_node_and_add_its_sums(sums, at);
	for (;;) {
		if (nodes[at].first_child != MODEL_ENTRY_INDEX_NONE) {
			at = nodes[at].first_child;
			enter_node_and_add_its_sums(sums, at);
			continue;
		}
		while (at != root && nodes[at].next_sibling == MODEL_ENTRY_INDEX_NONE) {
			remove_node_from_path(sums, at);
			at = nodes[at].parent;
		}
		remove_node_from_path(sums, at);
		if (at == root)
			return;
		at = nodes[at].next_sibling;
		enter_node_and_add_its_sums(sums, at);
	}
}

static int compare_functions_by_self_weight(const void *left, const void *right)
{
	const struct view_flat_profile_row *a = left, *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->inclusive != b->inclusive)
		return a->inclusive > b->inclusive ? -1 : 1;
	return a->function_id < b->function_id ? -1 : a->function_id > b->function_id;
}

static size_t drop_functions_without_weight(struct view_flat_profile_row *functions, uint32_t count)
{
	size_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (functions[i].frame != MODEL_ENTRY_INDEX_NONE &&
		    (functions[i].inclusive || functions[i].inclusive_samples))
			functions[kept++] = functions[i];
	}
	return kept;
}

int view_build_flat_profile(const struct session *session, enum view_measure_kind measure,
			    struct view_flat_profile_row **ret, size_t *count)
{
	struct function_sum_walk sums = {.session = session, .measure = measure};
	int result = view_compute_inclusive_sums(session, measure, &sums.inclusive_weight_by_node,
						 &sums.inclusive_samples_by_node);

	if (result < 0)
		return result;
	sums.functions = calloc(session->function_count + 1, sizeof(*sums.functions));
	sums.occurrences_on_path =
		calloc(session->function_count + 1, sizeof(*sums.occurrences_on_path));
	if (sums.functions && sums.occurrences_on_path) {
		for (uint32_t i = 0; i < session->function_count; i++)
			sums.functions[i].frame = MODEL_ENTRY_INDEX_NONE;
		for (uint32_t i = 0; i < session->node_count; i++) {
			if (session->nodes[i].parent == MODEL_ENTRY_INDEX_NONE)
				add_sums_of_tree_depth_first(&sums, i);
		}
		*count = drop_functions_without_weight(sums.functions, session->function_count);
		if (*count > 1)
			qsort(sums.functions, *count, sizeof(*sums.functions),
			      compare_functions_by_self_weight);
		*ret = sums.functions;
		sums.functions = NULL;
	} else {
		result = -ENOMEM;
	}
	free(sums.functions);
	free(sums.occurrences_on_path);
	free(sums.inclusive_weight_by_node);
	free(sums.inclusive_samples_by_node);
	return result;
}

/* ---- by path ---- */

struct weighted_node {
	uint64_t weight;
	uint32_t node;
};

static int compare_nodes_by_weight(const void *left, const void *right)
{
	const struct weighted_node *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

int view_list_heaviest_paths(const struct session *session, enum view_measure_kind measure,
			     size_t at_most, uint32_t **ret, size_t *count)
{
	struct weighted_node *nodes = calloc(session->node_count + 1, sizeof(*nodes));
	uint32_t *paths;
	size_t found = 0;

	if (!nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->node_count; i++) {
		uint64_t weight =
			view_sum_sources_of_measure(session->nodes[i].self_weight, measure);

		if (weight)
			nodes[found++] = (struct weighted_node){weight, i};
	}
	if (found > 1)
		qsort(nodes, found, sizeof(*nodes), compare_nodes_by_weight);
	if (at_most && found > at_most)
		found = at_most;
	paths = calloc(found + 1, sizeof(*paths));
	if (paths) {
		for (size_t i = 0; i < found; i++)
			paths[i] = nodes[i].node;
		*ret = paths;
		*count = found;
	}
	free(nodes);
	return paths ? 0 : -ENOMEM;
}
