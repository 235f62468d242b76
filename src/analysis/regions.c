/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See regions.h: the model of regions, put together after the scan of all processes.
 */
#include "analysis/regions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/region_walk.h"

/* ---- regions ---- */

uint32_t region_add_anonymous(struct session *session, const struct model_region *region)
{
	struct model_regions *regions = session->regions;
	uint32_t index = regions->region_count;

	if (index >= MODEL_NONE / 2 ||
	    array_reserve((void **)&regions->regions,
			  &session_private(session)->regions_capacity.regions, index,
			  sizeof(*regions->regions)) < 0)
		return MODEL_NONE;
	regions->regions[index] = *region;
	regions->region_count++;
	return index;
}

static uint32_t region_add(struct session *session, uint64_t id, const struct model_region *region)
{
	struct id_map *ids = &session_private(session)->processes[region->process].regions.ids;
	uint32_t index = region_add_anonymous(session, region);

	return index == MODEL_NONE || id_map_set(ids, id, index) < 0 ? MODEL_NONE : index;
}

uint32_t region_index(struct session *session, uint32_t process, uint64_t id)
{
	struct session_private *private = session_private(session);
	struct model_region region = {.process = process, .category = ""};
	char name[40];
	uint32_t index = id_map_get(&private->processes[process].regions.ids, id);

	if (index != ID_MAP_NONE)
		return index;
	snprintf(name, sizeof(name), "[region %" PRIu64 "]", id);
	region.name = arena_intern(&private->arena, id ? name : "(more)");
	return region.name ? region_add(session, id, &region) : MODEL_NONE;
}

int region_define(struct session *session, uint64_t id, const struct model_region *region)
{
	const struct id_map *ids =
		&session_private(session)->processes[region->process].regions.ids;
	uint32_t index = id_map_get(ids, id);

	if (index == ID_MAP_NONE)
		return region_add(session, id, region) == MODEL_NONE ? -ENOMEM : 0;
	session->regions->regions[index] = *region;
	return 0;
}

/* ---- components ---- */

uint32_t region_component_add(struct session *session, const struct model_component *component)
{
	struct model_regions *regions = session->regions;
	size_t *capacity = &session_private(session)->regions_capacity.components;

	for (uint32_t i = 0; i < regions->component_count; i++) {
		if (strcmp(regions->components[i].name, component->name) == 0)
			return i;
	}
	if (regions->component_count >= REGION_COMPONENTS_MAX ||
	    array_reserve((void **)&regions->components, capacity, regions->component_count,
			  sizeof(*regions->components)) < 0)
		return MODEL_NONE;
	regions->components[regions->component_count] = *component;
	return regions->component_count++;
}

static const struct model_component wall_clock = {"wall_clock",          "ns",       "real time",
						  SPOOL_COMPONENT_PHASE, MODEL_NONE, MODEL_NONE};
static const struct model_component trip_count = {"trip_count",          "count",    "calls",
						  SPOOL_COMPONENT_COUNT, MODEL_NONE, MODEL_NONE};

static bool has_calls(const struct session *session, uint32_t process)
{
	return session_private(session)->processes[process].calls.part_count > 0;
}

static bool has_events(const struct session *session, uint32_t process)
{
	return session_private(session)->processes[process].regions.span_count > 0;
}

/* Whether the events tell all that the process's own profile does. */
static bool events_tell_all(const struct session *session, uint32_t process)
{
	const struct process_regions *regions =
		&session_private(session)->processes[process].regions;

	for (uint32_t i = 0; i < regions->component_count; i++) {
		const char *name = regions->components[i].model.name;

		if (strcmp(name, wall_clock.name) != 0 && strcmp(name, trip_count.name) != 0)
			return false;
	}
	return has_events(session, process) &&
	       session->processes[process].losses[SPOOL_LOSS_REGION_EVENTS] == 0;
}

/* The process's own profile knows nothing of times, so a filter by time needs the events; and
 * nothing of instrumented functions, so regions are shown inside the functions that called them
 * where events can say all that it says. */
static bool has_profile(const struct session *session, uint32_t process)
{
	const struct process_regions *regions =
		&session_private(session)->processes[process].regions;

	return regions->part_count && regions->component_count && !session->part_of_time &&
	       !(has_calls(session, process) && events_tell_all(session, process));
}

/* Whether nodes are made of events: of all, or of calls beside the process's own profile. */
static bool reads_events(const struct session *session, uint32_t process)
{
	return has_calls(session, process) ||
	       (has_events(session, process) && !has_profile(session, process));
}

static int add_components(struct session *session, struct process_regions *regions)
{
	for (uint32_t i = 0; i < regions->component_count; i++) {
		struct region_component *component = &regions->components[i];

		component->index = region_component_add(session, &component->model);
		if (component->index == MODEL_NONE)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < regions->component_count; i++) {
		const struct region_component *ratio = &regions->components[i];
		struct model_component *model = &session->regions->components[ratio->index];
		uint64_t above = ratio->scale >> 8, below = ratio->scale & 0xff;

		if (ratio->model.kind != SPOOL_COMPONENT_RATIO ||
		    above >= regions->component_count || below >= regions->component_count)
			continue;
		model->numerator = regions->components[above].index;
		model->denominator = regions->components[below].index;
	}
	return 0;
}

static int gather_components(struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		struct process_regions *regions = &session_private(session)->processes[i].regions;
		int result = 0;

		if (has_profile(session, i))
			result = add_components(session, regions);
		if (result == 0 && reads_events(session, i) &&
		    (region_component_add(session, &wall_clock) == MODEL_NONE ||
		     region_component_add(session, &trip_count) == MODEL_NONE))
			result = -ENOMEM;
		if (result < 0)
			return result;
	}
	return 0;
}

/* ---- nodes ---- */

struct model_statistics *region_statistics(const struct session *session, uint32_t node)
{
	return &session->regions->statistics[(size_t)node * session->regions->component_count];
}

static int nodes_grow(struct session *session)
{
	struct model_regions *regions = session->regions;
	size_t *capacity = &session_private(session)->regions_capacity.nodes;
	size_t wanted = *capacity ? *capacity * 2 : 64, values = regions->component_count;
	struct model_region_node *nodes;
	struct model_statistics *statistics;

	if (wanted > MODEL_NONE / 2)
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

uint32_t region_node_add(struct session *session, const struct model_region_node *node)
{
	struct model_regions *regions = session->regions;
	uint32_t index = regions->node_count;

	if (index >= session_private(session)->regions_capacity.nodes && nodes_grow(session) < 0)
		return MODEL_NONE;
	regions->nodes[index] = *node;
	regions->node_count++;
	memset(region_statistics(session, index), 0,
	       regions->component_count * sizeof(*regions->statistics));
	return index;
}

void region_count_calls(struct session *session, uint32_t node, uint32_t component)
{
	double calls = (double)session->regions->nodes[node].count, one = calls > 0;

	region_statistics(session, node)[component] = (struct model_statistics){
		.sum = calls, .minimum = one, .maximum = one, .sum_of_squares = calls};
}

/* Children in the order of their indexes. */
static void link_nodes(struct model_regions *regions)
{
	for (uint32_t i = 0; i < regions->node_count; i++) {
		struct model_region_node *node = &regions->nodes[i];

		node->first_child = node->next_sibling = MODEL_NONE;
		node->depth =
			node->parent == MODEL_NONE ? 0 : regions->nodes[node->parent].depth + 1;
	}
	for (uint32_t i = regions->node_count; i-- > 0;) {
		struct model_region_node *node = &regions->nodes[i];

		if (node->parent == MODEL_NONE)
			continue;
		node->next_sibling = regions->nodes[node->parent].first_child;
		regions->nodes[node->parent].first_child = i;
	}
}

static void compute_ratios(struct session *session)
{
	const struct model_regions *regions = session->regions;

	for (uint32_t i = 0; i < regions->component_count; i++) {
		const struct model_component *ratio = &regions->components[i];

		if (ratio->kind != SPOOL_COMPONENT_RATIO || ratio->numerator == MODEL_NONE)
			continue;
		for (uint32_t node = 0; node < regions->node_count; node++) {
			struct model_statistics *values = region_statistics(session, node);
			double whole = values[ratio->denominator].sum;

			values[i].sum = whole > 0 ? 100 * values[ratio->numerator].sum / whole : 0;
		}
	}
}

static int read_process(struct session *session, uint32_t process, struct problem *problem)
{
	const struct process_regions *regions =
		&session_private(session)->processes[process].regions;
	uint64_t counted = session->processes[process].losses[SPOOL_LOSS_REGION_UNBALANCED];
	uint64_t unbalanced = 0;
	int result = 0;

	if (has_profile(session, process)) {
		session->regions->from_process = true;
		result = region_profile_read(session, process, problem);
	}
	if (result == 0 && reads_events(session, process)) {
		struct region_tree tree = {.process = process,
					   .wall = region_component_add(session, &wall_clock),
					   .trips = region_component_add(session, &trip_count),
					   .calls_only = has_profile(session, process)};

		result = region_tree_read(session, &tree, problem);
		unbalanced = tree.unbalanced;
	}
	if (result == 0 && session->part_of_time && !has_events(session, process) &&
	    regions->part_count && regions->component_count) {
		result = session_note(session,
				      "the profile of process %u has no times and is left out; "
				      "it can be shown without --from and --to",
				      session->processes[process].pid);
	}
	session->regions->unbalanced += counted > unbalanced ? counted : unbalanced;
	return result;
}

int session_read_regions(struct session *session, struct problem *problem)
{
	int result = gather_components(session);

	if (result < 0)
		return session_out_of_memory(problem);
	for (uint32_t i = 0; result == 0 && i < session->process_count; i++)
		result = read_process(session, i, problem);
	link_nodes(session->regions);
	compute_ratios(session);
	return result;
}

/* ---- events ---- */

struct event_visit {
	int (*each)(const struct model_event *event, void *context);
	void *context;
};

static int visit_event(struct region_walk *walk, void *context)
{
	const struct event_visit *visit = context;

	return visit->each(&walk->event, visit->context);
}

int session_each_region_event(struct session *session,
			      int (*each)(const struct model_event *, void *), void *context,
			      struct problem *problem)
{
	struct event_visit event_visit = {.each = each, .context = context};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < session->process_count; i++) {
		struct region_walk walk = {.visit = visit_event, .context = &event_visit};

		result = region_walk_process(&walk, session, i, problem);
	}
	return result;
}

/* ---- life ---- */

void process_regions_deinit(struct process_regions *regions)
{
	id_map_deinit(&regions->ids);
	free(regions->small_ids);
	free(regions->spans);
	free(regions->parts);
	free(regions->components);
}

void session_free_regions(struct session *session)
{
	if (!session->regions)
		return;
	free(session->regions->regions);
	free(session->regions->components);
	free(session->regions->nodes);
	free(session->regions->rest);
	free(session->regions->statistics);
}
