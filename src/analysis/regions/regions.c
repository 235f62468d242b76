/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See regions.h: the model of regions, put together after the scan of all processes.
 */
#include "analysis/regions/regions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/calls_private.h"
#include "analysis/regions/kinds.h"
#include "analysis/regions/walk.h"

/* ---- regions ---- */

uint32_t region_add_without_id(struct session *session, const struct model_region *region)
{
	struct model_regions *regions = session_get_regions(session);
	uint32_t index = regions->region_count;

	if (index >= MODEL_ENTRY_INDEX_NONE / 2 ||
	    array_reserve_one_more((void **)&regions->regions,
				   &regions_get_array_capacities(session)->regions, index,
				   sizeof(*regions->regions)) < 0)
		return MODEL_ENTRY_INDEX_NONE;
	regions->regions[index] = *region;
	regions->region_count++;
	return index;
}

static uint32_t region_add_with_id(struct session *session, uint64_t id,
				   const struct model_region *region)
{
	struct id_map *ids = &process_get_regions(session, region->process)->ids;
	uint32_t index = region_add_without_id(session, region);

	return index == MODEL_ENTRY_INDEX_NONE || id_map_set(ids, id, index) < 0
		       ? MODEL_ENTRY_INDEX_NONE
		       : index;
}

uint32_t region_find_or_add_by_id(struct session *session, uint32_t process, uint64_t id)
{
	struct session_private *private = session_get_private(session);
	struct model_region region = {.process = process, .category = ""};
	char name[40];
	uint32_t index = id_map_get(&process_get_regions(session, process)->ids, id);

	if (index != ID_MAP_NONE)
		return index;
	snprintf(name, sizeof(name), "[region %" PRIu64 "]", id);
	region.name = arena_intern_string(&private->arena, id ? name : "(more)");
	return region.name ? region_add_with_id(session, id, &region) : MODEL_ENTRY_INDEX_NONE;
}

int region_define_by_id(struct session *session, uint64_t id, const struct model_region *region)
{
	const struct id_map *ids = &process_get_regions(session, region->process)->ids;
	uint32_t index = id_map_get(ids, id);

	if (index == ID_MAP_NONE)
		return region_add_with_id(session, id, region) == MODEL_ENTRY_INDEX_NONE ? -ENOMEM
											 : 0;
	session_get_regions(session)->regions[index] = *region;
	return 0;
}

/* ---- components ---- */

uint32_t region_find_or_add_component(struct session *session,
				      const struct model_region_component *component)
{
	struct model_regions *regions = session_get_regions(session);
	size_t *capacity = &regions_get_array_capacities(session)->components;

	for (uint32_t i = 0; i < regions->component_count; i++) {
		if (strcmp(regions->components[i].name, component->name) == 0)
			return i;
	}
	if (regions->component_count >= REGION_COMPONENTS_MAX ||
	    array_reserve_one_more((void **)&regions->components, capacity,
				   regions->component_count, sizeof(*regions->components)) < 0)
		return MODEL_ENTRY_INDEX_NONE;
	regions->components[regions->component_count] = *component;
	return regions->component_count++;
}

static const struct model_region_component wall_clock_component_definition = {
	"wall_clock",          "ns", "real time", SPOOL_COMPONENT_PHASE, MODEL_ENTRY_INDEX_NONE,
	MODEL_ENTRY_INDEX_NONE};
static const struct model_region_component trip_count_component_definition = {
	"trip_count",          "count", "calls", SPOOL_COMPONENT_COUNT, MODEL_ENTRY_INDEX_NONE,
	MODEL_ENTRY_INDEX_NONE};

static bool process_has_calls(const struct session *session, uint32_t process)
{
	return process_get_calls(session, process)->part_count > 0;
}

static bool process_has_region_events(const struct session *session, uint32_t process)
{
	return process_get_regions(session, process)->record_range_count > 0;
}

/* Whether the events tell all that the process's own profile does. */
static bool events_cover_profile_components(const struct session *session, uint32_t process)
{
	const struct process_regions_data *regions = process_get_regions(session, process);

	for (uint32_t i = 0; i < regions->component_count; i++) {
		const char *name = regions->components[i].model.name;

		if (strcmp(name, wall_clock_component_definition.name) != 0 &&
		    strcmp(name, trip_count_component_definition.name) != 0)
			return false;
	}
	return process_has_region_events(session, process) &&
	       session->processes[process].losses[SPOOL_LOSS_REGION_EVENTS] == 0;
}

/* The process's own profile knows nothing of times, so a filter by time needs the events; and
 * nothing of instrumented functions, so regions are shown inside the functions that called them
 * where events can say all that it says. */
static bool process_uses_own_profile(const struct session *session, uint32_t process)
{
	const struct process_regions_data *regions = process_get_regions(session, process);

	return regions->part_count && regions->component_count && !session->has_only_part_of_time &&
	       !(process_has_calls(session, process) &&
		 events_cover_profile_components(session, process));
}

/* Whether nodes are made of events: of all, or of calls beside the process's own profile. */
static bool process_needs_region_events(const struct session *session, uint32_t process)
{
	return process_has_calls(session, process) ||
	       (process_has_region_events(session, process) &&
		!process_uses_own_profile(session, process));
}

static int add_components_of_process_profile(struct session *session,
					     struct process_regions_data *regions)
{
	for (uint32_t i = 0; i < regions->component_count; i++) {
		struct region_component_definition *component = &regions->components[i];

		component->index = region_find_or_add_component(session, &component->model);
		if (component->index == MODEL_ENTRY_INDEX_NONE)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < regions->component_count; i++) {
		const struct region_component_definition *ratio = &regions->components[i];
		struct model_region_component *model =
			&session_get_regions(session)->components[ratio->index];
		uint64_t above = ratio->scale >> 8, below = ratio->scale & 0xff;

		if (ratio->model.kind != SPOOL_COMPONENT_RATIO ||
		    above >= regions->component_count || below >= regions->component_count)
			continue;
		model->numerator_component = regions->components[above].index;
		model->denominator_component = regions->components[below].index;
	}
	return 0;
}

static int gather_session_components(struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		struct process_regions_data *regions = process_get_regions(session, i);
		int result = 0;

		if (process_uses_own_profile(session, i))
			result = add_components_of_process_profile(session, regions);
		if (result == 0 && process_needs_region_events(session, i) &&
		    (region_find_or_add_component(session, &wall_clock_component_definition) ==
			     MODEL_ENTRY_INDEX_NONE ||
		     region_find_or_add_component(session, &trip_count_component_definition) ==
			     MODEL_ENTRY_INDEX_NONE))
			result = -ENOMEM;
		if (result < 0)
			return result;
	}
	return 0;
}

/* ---- nodes ---- */

struct model_component_statistics *region_get_node_statistics(const struct session *session,
							      uint32_t node)
{
	return &session_get_regions(session)
			->statistics[(size_t)node * session_get_regions(session)->component_count];
}

static int grow_node_arrays(struct session *session)
{
	struct model_regions *regions = session_get_regions(session);
	size_t *capacity = &regions_get_array_capacities(session)->nodes;
	size_t wanted = *capacity ? *capacity * 2 : 64, values = regions->component_count;
	struct model_region_node *nodes;
	struct model_component_statistics *statistics;

	if (wanted > MODEL_ENTRY_INDEX_NONE / 2)
		return -ENOMEM;
	nodes = realloc(regions->nodes, wanted * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	regions->nodes = nodes;
	statistics = realloc(regions->statistics, (wanted * values + 1) * sizeof(*statistics));
	if (!statistics)
		return -ENOMEM;
	regions->statistics = statistics;
	*capacity = wanted;
	return 0;
}

uint32_t region_add_node(struct session *session, const struct model_region_node *node)
{
	struct model_regions *regions = session_get_regions(session);
	uint32_t index = regions->node_count;

	if (index >= regions_get_array_capacities(session)->nodes && grow_node_arrays(session) < 0)
		return MODEL_ENTRY_INDEX_NONE;
	regions->nodes[index] = *node;
	regions->node_count++;
	memset(region_get_node_statistics(session, index), 0,
	       regions->component_count * sizeof(*regions->statistics));
	return index;
}

void region_set_component_to_call_count(struct session *session, uint32_t node, uint32_t component)
{
	double calls = (double)session_get_regions(session)->nodes[node].count, one = calls > 0;

	region_get_node_statistics(session, node)[component] = (struct model_component_statistics){
		.sum = calls, .minimum = one, .maximum = one, .sum_of_squares = calls};
}

/* Children in the order of their indexes. */
static void link_children_and_set_depths(struct model_regions *regions)
{
	for (uint32_t i = 0; i < regions->node_count; i++) {
		struct model_region_node *node = &regions->nodes[i];

		node->first_child = node->next_sibling = MODEL_ENTRY_INDEX_NONE;
		node->depth = node->parent == MODEL_ENTRY_INDEX_NONE
				      ? 0
				      : regions->nodes[node->parent].depth + 1;
	}
	for (uint32_t i = regions->node_count; i-- > 0;) {
		struct model_region_node *node = &regions->nodes[i];

		if (node->parent == MODEL_ENTRY_INDEX_NONE)
			continue;
		node->next_sibling = regions->nodes[node->parent].first_child;
		regions->nodes[node->parent].first_child = i;
	}
}

static void compute_ratio_components(struct session *session)
{
	const struct model_regions *regions = session_get_regions(session);

	for (uint32_t i = 0; i < regions->component_count; i++) {
		const struct model_region_component *ratio = &regions->components[i];

		if (ratio->kind != SPOOL_COMPONENT_RATIO ||
		    ratio->numerator_component == MODEL_ENTRY_INDEX_NONE)
			continue;
		for (uint32_t node = 0; node < regions->node_count; node++) {
			struct model_component_statistics *values =
				region_get_node_statistics(session, node);
			double whole = values[ratio->denominator_component].sum;

			values[i].sum =
				whole > 0 ? 100 * values[ratio->numerator_component].sum / whole
					  : 0;
		}
	}
}

static int build_region_trees_of_process(struct session *session, uint32_t process,
					 struct problem *problem)
{
	const struct process_regions_data *regions = process_get_regions(session, process);
	uint64_t counted = session->processes[process].losses[SPOOL_LOSS_REGION_UNBALANCED];
	uint64_t unbalanced = 0;
	int result = 0;

	if (process_uses_own_profile(session, process)) {
		session_get_regions(session)->was_aggregated_in_process = true;
		result = region_read_profile_nodes(session, process, &unbalanced, problem);
	}
	if (result == 0 && process_needs_region_events(session, process)) {
		struct region_tree_arguments tree = {
			.process = process,
			.wall_clock_component = region_find_or_add_component(
				session, &wall_clock_component_definition),
			.trip_count_component = region_find_or_add_component(
				session, &trip_count_component_definition),
			.calls_only = process_uses_own_profile(session, process)};

		result = region_build_tree_from_events(session, &tree, problem);
		unbalanced += tree.unbalanced_region_count;
	}
	if (result == 0 && session->has_only_part_of_time &&
	    !process_has_region_events(session, process) && regions->part_count &&
	    regions->component_count) {
		result = session_add_problem_line(
			session,
			"the profile of process %u has no times and is left out; it "
			"is shown without --from and --to",
			session->processes[process].pid);
	}
	session_get_regions(session)->unbalanced_region_count +=
		counted > unbalanced ? counted : unbalanced;
	return result;
}

int regions_kind_build_trees(struct session *session, struct problem *problem)
{
	int result = gather_session_components(session);

	if (result < 0)
		return session_set_out_of_memory_problem(problem);
	for (uint32_t i = 0; result == 0 && i < session->process_count; i++)
		result = build_region_trees_of_process(session, i, problem);
	link_children_and_set_depths(session_get_regions(session));
	compute_ratio_components(session);
	return result;
}

/* ---- events ---- */

struct event_visit_context {
	int (*each)(const struct model_region_event *event, void *context);
	void *context;
};

static int visit_region_event(struct region_event_walk_state *walk, void *context)
{
	const struct event_visit_context *visit = context;

	return visit->each(&walk->event, visit->context);
}

int session_visit_region_events(struct session *session,
				int (*each)(const struct model_region_event *, void *),
				void *context, struct problem *problem)
{
	struct event_visit_context event_visit_context = {.each = each, .context = context};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < session->process_count; i++) {
		struct region_event_walk_state walk = {.visit = visit_region_event,
						       .context = &event_visit_context};

		result = region_walk_process_events(&walk, session, i, problem);
	}
	return result;
}

/* ---- life ---- */

static void regions_of_process_deinit(struct process_regions_data *regions)
{
	id_map_deinit(&regions->ids);
	free(regions->index_by_small_id);
	free(regions->record_ranges);
	free(regions->parts);
	free(regions->components);
	free(regions->scan.used);
	free(regions->windows);
	free(regions->left_region_ended);
}

void regions_kind_free_data_of_session(struct session *session)
{
	struct model_regions *regions = session_get_regions(session);

	for (uint32_t i = 0; i < session->process_count; i++)
		regions_of_process_deinit(process_get_regions(session, i));
	free(regions->regions);
	free(regions->components);
	free(regions->nodes);
	free(regions->dropped_sums);
	free(regions->statistics);
}
