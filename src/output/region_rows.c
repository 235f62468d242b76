/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See region_rows.h.
 */
#include "output/region_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/id_map.h"

struct region_rows_builder {
	struct region_rows *rows;
	const struct region_table_layout_options *layout_options;
	const struct model_regions *regions;
	struct id_map names;                /* category and name -> a region that has them */
	struct id_map children;             /* parent row and such a region -> row */
	struct id_map groups;               /* process and thread -> row */
	uint32_t *representative_of_region; /* by region: such a region */
	uint32_t *row_of_node;              /* by node */
	uint32_t *inside; /* by row and component: nodes of it around the one that is being added
			     whose value holds that one's */
};

/* ---- rows ---- */

static uint32_t append_region_row(struct region_rows *rows, const struct region_row *row)
{
	size_t capacity = rows->capacity ? rows->capacity * 2 : 64, values = rows->component_count;

	if (rows->count == rows->capacity) {
		struct region_row *grown = realloc(rows->rows, capacity * sizeof(*grown));
		struct region_value *grown_values;

		if (!grown)
			return MODEL_ENTRY_INDEX_NONE;
		rows->rows = grown;
		grown_values =
			realloc(rows->values, (capacity * values + 1) * sizeof(*grown_values));
		if (!grown_values)
			return MODEL_ENTRY_INDEX_NONE;
		rows->values = grown_values;
		rows->capacity = capacity;
	}
	rows->rows[rows->count] = *row;
	rows->rows[rows->count].depth =
		row->parent == MODEL_ENTRY_INDEX_NONE ? 0 : rows->rows[row->parent].depth + 1;
	memset(&rows->values[rows->count * values], 0, values * sizeof(*rows->values));
	return rows->count++;
}

static uint32_t find_or_add_row(struct region_rows *rows, struct id_map *map, uint64_t key,
				const struct region_row *row)
{
	uint32_t index = id_map_get(map, key);

	if (index != ID_MAP_NONE)
		return index;
	index = append_region_row(rows, row);
	return index == MODEL_ENTRY_INDEX_NONE || id_map_set(map, key, index) < 0
		       ? MODEL_ENTRY_INDEX_NONE
		       : index;
}

/* The row under which a thread's outermost regions stand; *ret is MODEL_ENTRY_INDEX_NONE where
 * there is none but the table itself. */
static int find_or_add_process_or_thread_row(struct region_rows_builder *building,
					     const struct model_region_node *node, uint32_t *ret)
{
	struct region_row row = {.parent = MODEL_ENTRY_INDEX_NONE,
				 .process = node->process,
				 .thread = MODEL_ENTRY_INDEX_NONE,
				 .region = MODEL_ENTRY_INDEX_NONE};

	*ret = MODEL_ENTRY_INDEX_NONE;
	if (!building->layout_options->collapse_processes) {
		*ret = find_or_add_row(building->rows, &building->groups,
				       (uint64_t)node->process << 32 | MODEL_ENTRY_INDEX_NONE,
				       &row);
		if (*ret == MODEL_ENTRY_INDEX_NONE)
			return -ENOMEM;
	}
	if (!building->layout_options->threads_apart)
		return 0;
	row.parent = *ret;
	row.thread = node->thread;
	*ret = find_or_add_row(building->rows, &building->groups,
			       (uint64_t)node->process << 32 | node->thread, &row);
	return *ret == MODEL_ENTRY_INDEX_NONE ? -ENOMEM : 0;
}

/* Texts are interned, so their addresses distinguish them. */
static int assign_first_same_named_region(struct region_rows_builder *building)
{
	const struct model_regions *regions = building->regions;

	building->representative_of_region =
		calloc((size_t)regions->region_count + 1, sizeof(uint32_t));
	if (!building->representative_of_region)
		return -ENOMEM;
	for (uint32_t i = 0; i < regions->region_count; i++) {
		const struct model_region *region = &regions->regions[i];
		uint64_t key =
			id_map_hash_key((uintptr_t)region->category * 31) ^ (uintptr_t)region->name;
		uint32_t known = id_map_get(&building->names, key);

		if (known == ID_MAP_NONE && id_map_set(&building->names, key, known = i) < 0)
			return -ENOMEM;
		building->representative_of_region[i] = known;
	}
	return 0;
}

/* *ret: its row, in a flat table or at the top where the node has no parent. */
static int find_or_add_node_row(struct region_rows_builder *building,
				const struct model_region_node *node, uint32_t *ret)
{
	struct region_row row = {.process = node->process, .thread = MODEL_ENTRY_INDEX_NONE};
	uint64_t key;
	int result = 0;

	row.region = building->representative_of_region[node->region];
	if (node->parent == MODEL_ENTRY_INDEX_NONE || building->layout_options->flat)
		result = find_or_add_process_or_thread_row(building, node, &row.parent);
	else
		row.parent = building->row_of_node[node->parent];
	if (result < 0)
		return result;
	if (building->layout_options->threads_apart)
		row.thread = node->thread;
	key = (uint64_t)row.parent << 32 | row.region;
	*ret = find_or_add_row(building->rows, &building->children, key, &row);
	return *ret == MODEL_ENTRY_INDEX_NONE ? -ENOMEM : 0;
}

static int assign_rows_to_nodes(struct region_rows_builder *building)
{
	const struct model_regions *regions = building->regions;
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < regions->node_count; i++)
		result = find_or_add_node_row(building, &regions->nodes[i],
					      &building->row_of_node[i]);
	return result;
}

/* ---- sums ---- */

static void merge_statistics(struct model_component_statistics *to, bool first,
			     const struct model_component_statistics *from, bool has_calls)
{
	to->sum += from->sum;
	to->unfinished_sum += from->unfinished_sum;
	if (!has_calls)
		return;
	to->sum_of_squares += from->sum_of_squares;
	if (first || from->minimum < to->minimum)
		to->minimum = from->minimum;
	if (first || from->maximum > to->maximum)
		to->maximum = from->maximum;
}

static double compute_node_self_value(const struct model_regions *regions, uint32_t index,
				      uint32_t component)
{
	const struct model_component_statistics *statistics = regions->statistics + component;
	double self = statistics[(size_t)index * regions->component_count].sum;

	if (regions->nodes[index].self_correction != 0 &&
	    strcmp(regions->components[component].name, "wall_clock") == 0)
		self += regions->nodes[index].self_correction;

	for (uint32_t i = regions->nodes[index].first_child; i != MODEL_ENTRY_INDEX_NONE;
	     i = regions->nodes[i].next_sibling)
		self -= statistics[(size_t)i * regions->component_count].sum;
	return self > 0 ? self : 0;
}

struct region_value region_node_get_value(const struct model_regions *regions, uint32_t node,
					  uint32_t component)
{
	const struct model_component_statistics *statistics =
		&regions->statistics[(size_t)node * regions->component_count + component];

	return (struct region_value){.calls = *statistics,
				     .inclusive = statistics->sum,
				     .self = compute_node_self_value(regions, node, component)};
}

static void add_node_to_process_and_thread_rows(struct region_rows *rows,
						const struct model_region_node *node,
						uint32_t group,
						const struct model_component_statistics *statistics)
{
	for (; group != MODEL_ENTRY_INDEX_NONE; group = rows->rows[group].parent) {
		rows->rows[group].count += node->count;
		rows->rows[group].open += node->open;
		for (uint32_t i = 0; i < rows->component_count; i++)
			rows->values[(size_t)group * rows->component_count + i].inclusive +=
				statistics[i].sum;
	}
}

static uint32_t *get_enclosing_node_count(const struct region_rows_builder *building, uint32_t row,
					  uint32_t component)
{
	return &building->inside[(size_t)row * building->rows->component_count + component];
}

/* Calls that are open have real time, but no value of other components. */
static void count_node_as_enclosing(const struct region_rows_builder *building, uint32_t index,
				    int by)
{
	const struct model_regions *regions = building->regions;

	for (uint32_t i = 0; i < building->rows->component_count; i++) {
		if (regions->nodes[index].count ||
		    regions->statistics[(size_t)index * regions->component_count + i].sum > 0)
			*get_enclosing_node_count(building, building->row_of_node[index], i) +=
				(uint32_t)by;
	}
}

static void add_node_to_row(struct region_rows_builder *building, uint32_t index)
{
	struct region_rows *rows = building->rows;
	const struct model_regions *regions = building->regions;
	const struct model_region_node *node = &regions->nodes[index];
	const struct model_component_statistics *statistics =
		&regions->statistics[(size_t)index * regions->component_count];
	uint32_t at = building->row_of_node[index];
	struct region_row *row = &rows->rows[at];

	for (uint32_t i = 0; i < rows->component_count; i++) {
		struct region_value *value = &rows->values[(size_t)at * rows->component_count + i];

		merge_statistics(&value->calls, row->count == 0, &statistics[i], node->count > 0);
		if (!*get_enclosing_node_count(building, at, i) ||
		    regions->components[i].kind == SPOOL_COMPONENT_COUNT)
			value->inclusive += statistics[i].sum;
		value->self += compute_node_self_value(regions, index, i);
	}
	row->count += node->count;
	row->open += node->open;
	if (node->parent == MODEL_ENTRY_INDEX_NONE)
		add_node_to_process_and_thread_rows(rows, node, row->parent, statistics);
}

/* Only components that count events know of such calls. */
static void add_pathless_calls_to_row_value(const struct model_region_component *component,
					    const struct model_region_dropped_sum *rest, bool first,
					    struct region_value *value)
{
	if (component->kind == SPOOL_COMPONENT_COUNT) {
		double calls = (double)rest->count;

		if (rest->count)
			merge_statistics(
				&value->calls, first,
				&(struct model_component_statistics){.sum = calls,
								     .minimum = 1,
								     .maximum = 1,
								     .sum_of_squares = calls},
				true);
		value->inclusive += calls;
		value->self += calls;
	} else if (strcmp(component->name, "wall_clock") == 0) {
		merge_statistics(&value->calls, first, &rest->calls, rest->count > 0);
		value->inclusive += rest->inclusive;
		value->self += rest->self;
	}
}

/* In a flat table, calls whose paths are not distinguished are in the rows of their regions, not in
 * one of their own. */
static int add_pathless_calls(struct region_rows_builder *building)
{
	struct region_rows *rows = building->rows;
	const struct model_regions *regions = building->regions;

	for (uint32_t i = 0; i < regions->dropped_sum_count; i++) {
		const struct model_region_dropped_sum *rest = &regions->dropped_sums[i];
		struct model_region_node node = {.parent = MODEL_ENTRY_INDEX_NONE,
						 .region = rest->region,
						 .process = rest->process,
						 .thread = rest->thread};
		struct region_row *row;
		uint32_t at;

		if (find_or_add_node_row(building, &node, &at) < 0)
			return -ENOMEM;
		row = &rows->rows[at];
		for (uint32_t k = 0; k < rows->component_count; k++)
			add_pathless_calls_to_row_value(
				&regions->components[k], rest, row->count == 0,
				&rows->values[(size_t)at * rows->component_count + k]);
		row->count += rest->count;
		row->open += rest->open;
	}
	return 0;
}

/* Down into the first child, else on to the next node of this level or of one above it. */
static uint32_t advance_to_next_node_in_preorder(struct region_rows_builder *building,
						 uint32_t index)
{
	const struct model_region_node *nodes = building->regions->nodes;

	if (nodes[index].first_child != MODEL_ENTRY_INDEX_NONE) {
		count_node_as_enclosing(building, index, 1);
		return nodes[index].first_child;
	}
	while (nodes[index].next_sibling == MODEL_ENTRY_INDEX_NONE) {
		index = nodes[index].parent;
		if (index == MODEL_ENTRY_INDEX_NONE)
			return MODEL_ENTRY_INDEX_NONE;
		count_node_as_enclosing(building, index, -1);
	}
	return nodes[index].next_sibling;
}

static void compute_ratio_components(struct region_rows *rows)
{
	const struct model_region_component *components =
		session_get_regions(rows->session)->components;

	for (uint32_t i = 0; i < rows->component_count; i++) {
		if (components[i].kind != SPOOL_COMPONENT_RATIO)
			continue;
		for (uint32_t row = 0; row < rows->count; row++) {
			struct region_value *values =
				rows->values + (size_t)row * rows->component_count;
			bool known = components[i].numerator_component != MODEL_ENTRY_INDEX_NONE &&
				     values[components[i].denominator_component].inclusive > 0;

			values[i].inclusive =
				known ? 100 * values[components[i].numerator_component].inclusive /
						values[components[i].denominator_component]
							.inclusive
				      : 0;
		}
	}
}

/* A function that a forked child was in from its start on has time and no call. */
static bool row_has_calls_or_time(const struct region_rows *rows, uint32_t row)
{
	if (rows->rows[row].count + rows->rows[row].open)
		return true;
	for (uint32_t i = 0; i < rows->component_count; i++) {
		if (region_rows_get_value(rows, row, i)->calls.unfinished_sum > 0)
			return true;
	}
	return false;
}

static int add_all_nodes_to_rows(struct region_rows_builder *building)
{
	struct region_rows *rows = building->rows;

	building->inside =
		calloc((size_t)rows->count * rows->component_count + 1, sizeof(*building->inside));
	if (!building->inside)
		return -ENOMEM;
	for (uint32_t i = 0; i < building->regions->node_count; i++) {
		if (building->regions->nodes[i].parent != MODEL_ENTRY_INDEX_NONE)
			continue;
		for (uint32_t at = i; at != MODEL_ENTRY_INDEX_NONE;
		     at = advance_to_next_node_in_preorder(building, at))
			add_node_to_row(building, at);
	}
	if (building->layout_options->flat && add_pathless_calls(building) < 0)
		return -ENOMEM;
	compute_ratio_components(rows);
	for (uint32_t i = rows->count; i-- > 0;) {
		struct region_row *row = &rows->rows[i];
		bool hidden = building->layout_options->flat &&
			      row->region != MODEL_ENTRY_INDEX_NONE &&
			      building->regions->regions[row->region].stands_for_dropped_paths;

		row->has_calls_in_subtree |= row_has_calls_or_time(rows, i) && !hidden;
		if (row->has_calls_in_subtree && row->parent != MODEL_ENTRY_INDEX_NONE)
			rows->rows[row->parent].has_calls_in_subtree = true;
	}
	return 0;
}

int region_rows_build(struct region_rows *rows, const struct session *session,
		      const struct region_table_layout_options *layout)
{
	struct region_rows_builder building = {
		.rows = rows, .layout_options = layout, .regions = session_get_regions(session)};
	int result;

	*rows = (struct region_rows){.session = session,
				     .component_count =
					     session_get_regions(session)->component_count};
	building.row_of_node =
		calloc((size_t)session_get_regions(session)->node_count + 1, sizeof(uint32_t));
	result = building.row_of_node ? assign_first_same_named_region(&building) : -ENOMEM;
	if (result == 0)
		result = assign_rows_to_nodes(&building);
	if (result == 0)
		result = add_all_nodes_to_rows(&building);
	id_map_deinit(&building.names);
	id_map_deinit(&building.children);
	id_map_deinit(&building.groups);
	free(building.representative_of_region);
	free(building.row_of_node);
	free(building.inside);
	return result;
}

void region_rows_deinit(struct region_rows *rows)
{
	free(rows->rows);
	free(rows->values);
	free(rows->order);
}

/* ---- order ---- */

struct row_sort_context {
	const struct region_rows *rows;
	uint32_t component_index;
	bool is_sorted_by_self;
};

static double get_row_sort_weight(const struct row_sort_context *ordering, uint32_t row)
{
	const struct region_value *value =
		region_rows_get_value(ordering->rows, row, ordering->component_index);

	switch (session_get_regions(ordering->rows->session)
			->components[ordering->component_index]
			.kind) {
	case SPOOL_COMPONENT_LEVEL:
		return value->calls.maximum;
	case SPOOL_COMPONENT_PHASE:
		return ordering->is_sorted_by_self ? value->self : value->inclusive;
	default:
		return value->inclusive;
	}
}

/* Processes and threads as they come, regions the heaviest first. */
static int compare_rows_by_parent_and_weight(const void *left, const void *right, void *context)
{
	const struct row_sort_context *ordering = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct region_row *row_a = &ordering->rows->rows[a],
				*row_b = &ordering->rows->rows[b];

	if (row_a->parent != row_b->parent)
		return row_a->parent < row_b->parent ? -1 : 1;
	if (row_a->region != MODEL_ENTRY_INDEX_NONE && row_b->region != MODEL_ENTRY_INDEX_NONE) {
		double weight_a = get_row_sort_weight(ordering, a),
		       weight_b = get_row_sort_weight(ordering, b);

		if (weight_a != weight_b)
			return weight_a > weight_b ? -1 : 1;
	}
	return a < b ? -1 : a > b;
}

/* Turns rows sorted by parent into reading order; `first` and `next` link siblings. */
static void list_rows_depth_first(struct region_rows *rows, const uint32_t *first,
				  const uint32_t *next, uint32_t at)
{
	while (at != MODEL_ENTRY_INDEX_NONE) {
		rows->order[rows->shown++] = at;
		if (first[at] != MODEL_ENTRY_INDEX_NONE) {
			at = first[at];
			continue;
		}
		while (at != MODEL_ENTRY_INDEX_NONE && next[at] == MODEL_ENTRY_INDEX_NONE)
			at = rows->rows[at].parent;
		if (at != MODEL_ENTRY_INDEX_NONE)
			at = next[at];
	}
}

static uint32_t link_sorted_siblings(const struct region_rows *rows, const uint32_t *sorted,
				     uint32_t count, uint32_t *first, uint32_t *next)
{
	uint32_t top = MODEL_ENTRY_INDEX_NONE;

	for (uint32_t i = count; i-- > 0;) {
		uint32_t row = sorted[i], parent = rows->rows[row].parent;
		uint32_t *head = parent == MODEL_ENTRY_INDEX_NONE ? &top : &first[parent];

		next[row] = *head;
		*head = row;
	}
	return top;
}

int region_rows_set_reading_order(struct region_rows *rows, uint32_t component, bool by_self)
{
	struct row_sort_context ordering = {
		.rows = rows, .component_index = component, .is_sorted_by_self = by_self};
	size_t count = (size_t)rows->count + 1;
	uint32_t *sorted = calloc(count, sizeof(*sorted)), *first = malloc(count * sizeof(*first));
	uint32_t *next = malloc(count * sizeof(*next)), alive = 0;
	int result = -ENOMEM;

	if (!rows->order)
		rows->order = malloc(count * sizeof(*rows->order));
	if (sorted && first && next && rows->order) {
		for (uint32_t i = 0; i < rows->count; i++) {
			first[i] = MODEL_ENTRY_INDEX_NONE;
			if (rows->rows[i].has_calls_in_subtree)
				sorted[alive++] = i;
		}
		qsort_r(sorted, alive, sizeof(*sorted), compare_rows_by_parent_and_weight,
			&ordering);
		rows->shown = 0;
		list_rows_depth_first(rows, first, next,
				      link_sorted_siblings(rows, sorted, alive, first, next));
		result = 0;
	}
	free(sorted);
	free(first);
	free(next);
	return result;
}

/* ---- statistics ---- */

double statistics_get_mean(const struct model_component_statistics *statistics, uint64_t count)
{
	return count ? (statistics->sum - statistics->unfinished_sum) / (double)count : 0;
}

double statistics_get_standard_deviation(const struct model_component_statistics *statistics,
					 uint64_t count)
{
	double mean = statistics_get_mean(statistics, count), variance;

	if (count < 2)
		return 0;
	variance = (statistics->sum_of_squares -
		    mean * (statistics->sum - statistics->unfinished_sum)) /
		   (double)(count - 1);
	return variance > 0 ? sqrt(variance) : 0;
}

uint32_t regions_find_wall_clock_component(const struct session *session)
{
	for (uint32_t i = 0; i < session_get_regions(session)->component_count; i++) {
		if (strcmp(session_get_regions(session)->components[i].name, "wall_clock") == 0)
			return i;
	}
	return MODEL_ENTRY_INDEX_NONE;
}
