/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See left_regions.h.
 */
#include "analysis/regions/left_regions.h"

#include <errno.h>

#include "analysis/regions/stack.h"

/* Numbers are those of the survey, as both read the same records in the same order. */
static int number_left_region(struct region_event_walk_state *walk,
			      struct region_stack_entry *entry)
{
	struct process_regions_data *regions =
		process_get_regions(walk->session, walk->event.process);
	size_t number = walk->left_count++;

	entry->left_number = (uint32_t)number + 1;
	if (!walk->is_left_survey)
		return 0;
	if (number >= UINT32_MAX - 1 ||
	    array_reserve_one_more((void **)&regions->left_region_ended,
				   &regions->left_region_capacity, number,
				   sizeof(*regions->left_region_ended)) < 0)
		return -ENOMEM;
	regions->left_region_ended[number] = 0;
	regions->left_region_count = number + 1;
	return 0;
}

static bool left_region_has_own_end(const struct region_event_walk_state *walk,
				    const struct region_stack_entry *entry)
{
	const struct process_regions_data *regions = walk->process_regions;

	return walk->is_left_survey || entry->left_number > regions->left_region_count ||
	       regions->left_region_ended[entry->left_number - 1];
}

/* Those that end are the ones that began in the ending region or in one that ends with it: *ret is
 * the position of the innermost of them. */
static int find_lost_regions(struct region_event_walk_state *walk, size_t position, size_t *ret)
{
	bool goes_on = false;
	int result = 0;

	*ret = position;
	for (size_t i = position + 1; result == 0 && i < walk->depth; i++) {
		struct region_stack_entry *entry = &walk->open[i];

		if (entry->function || entry->ended)
			continue;
		if (!entry->left_number)
			result = number_left_region(walk, entry);
		goes_on = goes_on || left_region_has_own_end(walk, entry);
		if (!goes_on)
			*ret = i;
	}
	return result;
}

int left_regions_end_lost_ones(struct region_event_walk_state *walk, size_t position,
			       uint64_t time_ns)
{
	size_t innermost;
	int result = find_lost_regions(walk, position, &innermost);

	for (size_t i = innermost; result == 0 && i > position; i--) {
		struct region_stack_entry *entry = &walk->open[i];

		if (entry->function || entry->ended)
			continue;
		walk->unbalanced_region_count++;
		if (walk->in_window)
			result = region_stack_visit_implied(walk, MODEL_EVENT_REGION_END, i,
							    time_ns);
		walk->open[i].ended = true;
	}
	return result;
}

int left_regions_forget(struct region_event_walk_state *walk, uint32_t region)
{
	for (size_t i = 0; i < walk->depth; i++) {
		if (walk->open[i].left_number && walk->open[i].region == region)
			return region_stack_end_entry_without_record(walk, i, walk->last_ns);
	}
	return 0;
}

static int visit_nothing(struct region_event_walk_state *walk, void *context)
{
	(void)walk;
	(void)context;
	return 0;
}

int left_regions_survey_process(struct session *session, uint32_t process, struct problem *problem)
{
	struct process_regions_data *regions = process_get_regions(session, process);
	struct region_event_walk_state walk = {.visit = visit_nothing, .is_left_survey = true};

	if (!regions->has_left_regions || regions->knows_left_regions)
		return 0;
	regions->knows_left_regions = true;
	return region_walk_process_events(&walk, session, process, problem);
}
