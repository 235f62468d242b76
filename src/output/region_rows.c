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

struct building {
	struct region_rows *rows;
	const struct region_layout *layout;
	const struct model_regions *regions;
	struct id_map names;    /* category and name -> a region that has them */
	struct id_map children; /* parent row and such a region -> row */
	struct id_map groups;   /* process and thread -> row */
	uint32_t *name_of;      /* by region: such a region */
	uint32_t *row_of;       /* by node */
	uint32_t *inside;       /* by row: nodes of it around the one that is being added whose time
				   holds that one's; calls that have not ended have none */
};

/* ---- rows ---- */

static uint32_t add_row(struct region_rows *rows, const struct region_row *row)
{
	size_t capacity = rows->capacity ? rows->capacity * 2 : 64, values = rows->component_count;

	if (rows->count == rows->capacity) {
		struct region_row *grown = realloc(rows->rows, capacity * sizeof(*grown));
		struct region_value *grown_values;

		if (!grown)
			return MODEL_NONE;
		rows->rows = grown;
		grown_values =
			realloc(rows->values, (capacity * values + 1) * sizeof(*grown_values));
		if (!grown_values)
			return MODEL_NONE;
		rows->values = grown_values;
		rows->capacity = capacity;
	}
	rows->rows[rows->count] = *row;
	rows->rows[rows->count].depth =
		row->parent == MODEL_NONE ? 0 : rows->rows[row->parent].depth + 1;
	memset(&rows->values[rows->count * values], 0, values * sizeof(*rows->values));
	return rows->count++;
}

static uint32_t find_or_add(struct region_rows *rows, struct id_map *map, uint64_t key,
			    const struct region_row *row)
{
	uint32_t index = id_map_get(map, key);

	if (index != ID_MAP_NONE)
		return index;
	index = add_row(rows, row);
	return index == MODEL_NONE || id_map_set(map, key, index) < 0 ? MODEL_NONE : index;
}

/* The row under which a thread's outermost regions stand; *ret is MODEL_NONE where there is none
 * but the table itself. */
static int group_of(struct building *building, const struct model_region_node *node, uint32_t *ret)
{
	struct region_row row = {.parent = MODEL_NONE,
				 .process = node->process,
				 .thread = MODEL_NONE,
				 .region = MODEL_NONE};

	*ret = MODEL_NONE;
	if (!building->layout->collapse_processes) {
		*ret = find_or_add(building->rows, &building->groups,
				   (uint64_t)node->process << 32 | MODEL_NONE, &row);
		if (*ret == MODEL_NONE)
			return -ENOMEM;
	}
	if (!building->layout->threads_apart)
		return 0;
	row.parent = *ret;
	row.thread = node->thread;
	*ret = find_or_add(building->rows, &building->groups,
			   (uint64_t)node->process << 32 | node->thread, &row);
	return *ret == MODEL_NONE ? -ENOMEM : 0;
}

/* Texts are interned, so their addresses tell them apart. */
static int name_regions(struct building *building)
{
	const struct model_regions *regions = building->regions;

	building->name_of = calloc((size_t)regions->region_count + 1, sizeof(uint32_t));
	if (!building->name_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < regions->region_count; i++) {
		const struct model_region *region = &regions->regions[i];
		uint64_t key =
			id_map_mix((uintptr_t)region->category * 31) ^ (uintptr_t)region->name;
		uint32_t known = id_map_get(&building->names, key);

		if (known == ID_MAP_NONE && id_map_set(&building->names, key, known = i) < 0)
			return -ENOMEM;
		building->name_of[i] = known;
	}
	return 0;
}

/* *ret: its row, in a flat table or at the top where the node has no parent. */
static int find_row(struct building *building, const struct model_region_node *node, uint32_t *ret)
{
	struct region_row row = {.process = node->process, .thread = MODEL_NONE};
	uint64_t key;
	int result = 0;

	row.region = building->name_of[node->region];
	if (node->parent == MODEL_NONE || building->layout->flat)
		result = group_of(building, node, &row.parent);
	else
		row.parent = building->row_of[node->parent];
	if (result < 0)
		return result;
	if (building->layout->threads_apart)
		row.thread = node->thread;
	key = (uint64_t)row.parent << 32 | row.region;
	*ret = find_or_add(building->rows, &building->children, key, &row);
	return *ret == MODEL_NONE ? -ENOMEM : 0;
}

static int find_rows(struct building *building)
{
	const struct model_regions *regions = building->regions;
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < regions->node_count; i++)
		result = find_row(building, &regions->nodes[i], &building->row_of[i]);
	return result;
}

/* ---- sums ---- */

static void add_statistics(struct model_statistics *to, bool first,
			   const struct model_statistics *from)
{
	to->sum += from->sum;
	to->sum_of_squares += from->sum_of_squares;
	if (first || from->minimum < to->minimum)
		to->minimum = from->minimum;
	if (first || from->maximum > to->maximum)
		to->maximum = from->maximum;
}

static double self_of(const struct model_regions *regions, uint32_t index, uint32_t component)
{
	const struct model_statistics *statistics = regions->statistics + component;
	double self = statistics[(size_t)index * regions->component_count].sum;

	for (uint32_t i = regions->nodes[index].first_child; i != MODEL_NONE;
	     i = regions->nodes[i].next_sibling)
		self -= statistics[(size_t)i * regions->component_count].sum;
	return self > 0 ? self : 0;
}

struct region_value region_node_value(const struct model_regions *regions, uint32_t node,
				      uint32_t component)
{
	const struct model_statistics *statistics =
		&regions->statistics[(size_t)node * regions->component_count + component];

	return (struct region_value){.calls = *statistics,
				     .inclusive = statistics->sum,
				     .self = self_of(regions, node, component)};
}

static void add_to_groups(struct region_rows *rows, const struct model_region_node *node,
			  uint32_t group, const struct model_statistics *statistics)
{
	for (; group != MODEL_NONE; group = rows->rows[group].parent) {
		rows->rows[group].count += node->count;
		rows->rows[group].open += node->open;
		for (uint32_t i = 0; i < rows->component_count; i++)
			rows->values[(size_t)group * rows->component_count + i].inclusive +=
				statistics[i].sum;
	}
}

static void add_node(struct building *building, uint32_t index)
{
	struct region_rows *rows = building->rows;
	const struct model_regions *regions = building->regions;
	const struct model_region_node *node = &regions->nodes[index];
	const struct model_statistics *statistics =
		&regions->statistics[(size_t)index * regions->component_count];
	uint32_t at = building->row_of[index];
	struct region_row *row = &rows->rows[at];

	for (uint32_t i = 0; i < rows->component_count; i++) {
		struct region_value *value = &rows->values[(size_t)at * rows->component_count + i];

		if (node->count)
			add_statistics(&value->calls, row->count == 0, &statistics[i]);
		if (!building->inside[at] || regions->components[i].kind == SPOOL_COMPONENT_COUNT)
			value->inclusive += statistics[i].sum;
		value->self += self_of(regions, index, i);
	}
	row->count += node->count;
	row->open += node->open;
	if (node->parent == MODEL_NONE)
		add_to_groups(rows, node, row->parent, statistics);
}

/* Of the components, those that events are of know of such calls. */
static void add_rest_value(const struct model_component *component,
			   const struct model_region_rest *rest, bool first,
			   struct region_value *value)
{
	if (component->kind == SPOOL_COMPONENT_COUNT) {
		double calls = (double)rest->count;

		if (rest->count)
			add_statistics(&value->calls, first,
				       &(struct model_statistics){calls, 1, 1, calls});
		value->inclusive += calls;
		value->self += calls;
	} else if (strcmp(component->name, "wall_clock") == 0) {
		if (rest->count)
			add_statistics(&value->calls, first, &rest->calls);
		value->inclusive += rest->inclusive;
		value->self += rest->self;
	}
}

/* In a flat table, calls whose paths are not told apart are in the rows of their regions, not in
 * one of their own. */
static int add_rests(struct building *building)
{
	struct region_rows *rows = building->rows;
	const struct model_regions *regions = building->regions;

	for (uint32_t i = 0; i < regions->rest_count; i++) {
		const struct model_region_rest *rest = &regions->rest[i];
		struct model_region_node node = {.parent = MODEL_NONE,
						 .region = rest->region,
						 .process = rest->process,
						 .thread = rest->thread};
		struct region_row *row;
		uint32_t at;

		if (find_row(building, &node, &at) < 0)
			return -ENOMEM;
		row = &rows->rows[at];
		for (uint32_t k = 0; k < rows->component_count; k++)
			add_rest_value(&regions->components[k], rest, row->count == 0,
				       &rows->values[(size_t)at * rows->component_count + k]);
		row->count += rest->count;
		row->open += rest->open;
	}
	return 0;
}

/* Down into the first child, else on to the next node of this level or of one above it. */
static uint32_t next_node(struct building *building, uint32_t index)
{
	const struct model_region_node *nodes = building->regions->nodes;

	if (nodes[index].first_child != MODEL_NONE) {
		building->inside[building->row_of[index]] += nodes[index].count > 0;
		return nodes[index].first_child;
	}
	while (nodes[index].next_sibling == MODEL_NONE) {
		index = nodes[index].parent;
		if (index == MODEL_NONE)
			return MODEL_NONE;
		building->inside[building->row_of[index]] -= nodes[index].count > 0;
	}
	return nodes[index].next_sibling;
}

static void compute_ratios(struct region_rows *rows)
{
	const struct model_component *components = rows->session->regions->components;

	for (uint32_t i = 0; i < rows->component_count; i++) {
		if (components[i].kind != SPOOL_COMPONENT_RATIO)
			continue;
		for (uint32_t row = 0; row < rows->count; row++) {
			struct region_value *values =
				rows->values + (size_t)row * rows->component_count;
			bool known = components[i].numerator != MODEL_NONE &&
				     values[components[i].denominator].inclusive > 0;

			values[i].inclusive =
				known ? 100 * values[components[i].numerator].inclusive /
						values[components[i].denominator].inclusive
				      : 0;
		}
	}
}

static int add_nodes(struct building *building)
{
	struct region_rows *rows = building->rows;

	building->inside = calloc((size_t)rows->count + 1, sizeof(*building->inside));
	if (!building->inside)
		return -ENOMEM;
	for (uint32_t i = 0; i < building->regions->node_count; i++) {
		if (building->regions->nodes[i].parent != MODEL_NONE)
			continue;
		for (uint32_t at = i; at != MODEL_NONE; at = next_node(building, at))
			add_node(building, at);
	}
	if (building->layout->flat && add_rests(building) < 0)
		return -ENOMEM;
	compute_ratios(rows);
	for (uint32_t i = rows->count; i-- > 0;) {
		struct region_row *row = &rows->rows[i];
		bool hidden = building->layout->flat && row->region != MODEL_NONE &&
			      building->regions->regions[row->region].more;

		row->alive |= row->count + row->open > 0 && !hidden;
		if (row->alive && row->parent != MODEL_NONE)
			rows->rows[row->parent].alive = true;
	}
	return 0;
}

int region_rows_init(struct region_rows *rows, const struct session *session,
		     const struct region_layout *layout)
{
	struct building building = {.rows = rows, .layout = layout, .regions = session->regions};
	int result;

	*rows = (struct region_rows){.session = session,
				     .component_count = session->regions->component_count};
	building.row_of = calloc((size_t)session->regions->node_count + 1, sizeof(uint32_t));
	result = building.row_of ? name_regions(&building) : -ENOMEM;
	if (result == 0)
		result = find_rows(&building);
	if (result == 0)
		result = add_nodes(&building);
	id_map_deinit(&building.names);
	id_map_deinit(&building.children);
	id_map_deinit(&building.groups);
	free(building.name_of);
	free(building.row_of);
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

struct ordering {
	const struct region_rows *rows;
	uint32_t component;
	bool by_self;
};

static double weight_of(const struct ordering *ordering, uint32_t row)
{
	const struct region_value *value =
		region_rows_value(ordering->rows, row, ordering->component);

	switch (ordering->rows->session->regions->components[ordering->component].kind) {
	case SPOOL_COMPONENT_LEVEL:
		return value->calls.maximum;
	case SPOOL_COMPONENT_PHASE:
		return ordering->by_self ? value->self : value->inclusive;
	default:
		return value->inclusive;
	}
}

/* Processes and threads as they come, regions the heaviest first. */
static int by_parent_and_weight(const void *left, const void *right, void *context)
{
	const struct ordering *ordering = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct region_row *row_a = &ordering->rows->rows[a],
				*row_b = &ordering->rows->rows[b];

	if (row_a->parent != row_b->parent)
		return row_a->parent < row_b->parent ? -1 : 1;
	if (row_a->region != MODEL_NONE && row_b->region != MODEL_NONE) {
		double weight_a = weight_of(ordering, a), weight_b = weight_of(ordering, b);

		if (weight_a != weight_b)
			return weight_a > weight_b ? -1 : 1;
	}
	return a < b ? -1 : a > b;
}

/* Turns rows sorted by parent into reading order; `first` and `next` link siblings. */
static void read_depth_first(struct region_rows *rows, const uint32_t *first, const uint32_t *next,
			     uint32_t at)
{
	while (at != MODEL_NONE) {
		rows->order[rows->shown++] = at;
		if (first[at] != MODEL_NONE) {
			at = first[at];
			continue;
		}
		while (at != MODEL_NONE && next[at] == MODEL_NONE)
			at = rows->rows[at].parent;
		if (at != MODEL_NONE)
			at = next[at];
	}
}

static uint32_t link_siblings(const struct region_rows *rows, const uint32_t *sorted,
			      uint32_t count, uint32_t *first, uint32_t *next)
{
	uint32_t top = MODEL_NONE;

	for (uint32_t i = count; i-- > 0;) {
		uint32_t row = sorted[i], parent = rows->rows[row].parent;
		uint32_t *head = parent == MODEL_NONE ? &top : &first[parent];

		next[row] = *head;
		*head = row;
	}
	return top;
}

int region_rows_sort(struct region_rows *rows, uint32_t component, bool by_self)
{
	struct ordering ordering = {.rows = rows, .component = component, .by_self = by_self};
	size_t count = (size_t)rows->count + 1;
	uint32_t *sorted = calloc(count, sizeof(*sorted)), *first = malloc(count * sizeof(*first));
	uint32_t *next = malloc(count * sizeof(*next)), alive = 0;
	int result = -ENOMEM;

	if (!rows->order)
		rows->order = malloc(count * sizeof(*rows->order));
	if (sorted && first && next && rows->order) {
		for (uint32_t i = 0; i < rows->count; i++) {
			first[i] = MODEL_NONE;
			if (rows->rows[i].alive)
				sorted[alive++] = i;
		}
		qsort_r(sorted, alive, sizeof(*sorted), by_parent_and_weight, &ordering);
		rows->shown = 0;
		read_depth_first(rows, first, next,
				 link_siblings(rows, sorted, alive, first, next));
		result = 0;
	}
	free(sorted);
	free(first);
	free(next);
	return result;
}

/* ---- statistics ---- */

double region_mean(const struct model_statistics *statistics, uint64_t count)
{
	return count ? statistics->sum / (double)count : 0;
}

double region_deviation(const struct model_statistics *statistics, uint64_t count)
{
	double mean = region_mean(statistics, count), variance;

	if (count < 2)
		return 0;
	variance = (statistics->sum_of_squares - mean * statistics->sum) / (double)(count - 1);
	return variance > 0 ? sqrt(variance) : 0;
}

uint32_t region_wall_clock(const struct session *session)
{
	for (uint32_t i = 0; i < session->regions->component_count; i++) {
		if (strcmp(session->regions->components[i].name, "wall_clock") == 0)
			return i;
	}
	return MODEL_NONE;
}
