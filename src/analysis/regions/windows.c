/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See windows.h.
 */
#include "analysis/regions/windows.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/regions/stack.h"

int region_windows_scan_record(struct process_regions_data *regions,
			       struct spool_record_payload_cursor *payload)
{
	uint64_t ticks = spool_read_fixed_u64(payload), open = spool_read_unsigned(payload);
	struct region_window *last =
		regions->window_count ? &regions->windows[regions->window_count - 1] : NULL;

	if (payload->bad || open > 1)
		return -EBADMSG;
	regions->has_windows = true;
	if (!open) {
		if (last && last->to_ns == UINT64_MAX)
			last->to_ns = ticks;
		return 0;
	}
	if (last && last->to_ns == UINT64_MAX)
		return 0;
	if (array_reserve_one_more((void **)&regions->windows, &regions->window_capacity,
				   regions->window_count, sizeof(*regions->windows)) < 0)
		return -ENOMEM;
	regions->windows[regions->window_count++] =
		(struct region_window){.from_ns = ticks, .to_ns = UINT64_MAX};
	return 0;
}

static uint64_t ticks_to_time_or_end(const struct region_event_walk_state *walk, uint64_t ticks)
{
	return ticks == UINT64_MAX ? ticks
				   : clock_map_ticks_to_boottime(&walk->process->clock, ticks);
}

/* A window of the process, less what is not asked for. */
static void add_window_within(struct region_event_walk_state *walk, uint64_t from_ns,
			      uint64_t to_ns, const struct region_window *asked)
{
	if (from_ns < asked->from_ns)
		from_ns = asked->from_ns;
	if (to_ns > asked->to_ns)
		to_ns = asked->to_ns;
	if (from_ns < to_ns)
		walk->windows[walk->window_count++] = (struct region_window){from_ns, to_ns};
}

int region_windows_init(struct region_event_walk_state *walk)
{
	const struct session_options *options = &session_get_private(walk->session)->options;
	const struct process_regions_data *regions = walk->process_regions;
	uint64_t start_ns = walk->session->start_ns;
	struct region_window asked = {.from_ns = options->from_ns ? start_ns + options->from_ns : 0,
				      .to_ns = options->to_ns ? start_ns + options->to_ns
							      : UINT64_MAX};

	walk->window_count = 0;
	walk->windows = calloc(regions->window_count + 1, sizeof(*walk->windows));
	if (!walk->windows)
		return -ENOMEM;
	if (walk->is_left_survey)
		asked = (struct region_window){.from_ns = 0, .to_ns = UINT64_MAX};
	if (!regions->has_windows || walk->is_left_survey) {
		add_window_within(walk, 0, UINT64_MAX, &asked);
		return 0;
	}
	for (size_t i = 0; i < regions->window_count; i++)
		add_window_within(walk, ticks_to_time_or_end(walk, regions->windows[i].from_ns),
				  ticks_to_time_or_end(walk, regions->windows[i].to_ns), &asked);
	return 0;
}

void region_windows_deinit(struct region_event_walk_state *walk)
{
	free(walk->windows);
	walk->windows = NULL;
}

static void take_next_window(struct region_event_walk_state *walk)
{
	bool is_left = walk->next_window < walk->window_count;

	walk->from_ns = is_left ? walk->windows[walk->next_window].from_ns : UINT64_MAX;
	walk->to_ns = is_left ? walk->windows[walk->next_window].to_ns : UINT64_MAX;
	walk->next_window += is_left;
}

void region_windows_begin_thread(struct region_event_walk_state *walk)
{
	walk->next_window = 0;
	take_next_window(walk);
	walk->in_window = walk->from_ns == 0;
}

static int enter_window(struct region_event_walk_state *walk)
{
	int result = 0;

	walk->in_window = true;
	for (size_t i = 0; result == 0 && i < walk->depth; i++) {
		if (walk->open[i].ended)
			continue;
		walk->open[i].begin_ns = walk->from_ns;
		result = region_stack_visit_implied(walk, MODEL_EVENT_REGION_BEGIN, i,
						    walk->from_ns);
		walk->open[i].was_cut = false;
	}
	return result;
}

/* What is open goes on: it stays on the stack, for the windows that follow. */
static int leave_window(struct region_event_walk_state *walk)
{
	int result = 0;

	walk->is_ended_by_data_end = true;
	for (size_t i = walk->depth; result == 0 && i-- > 0;) {
		struct region_stack_entry *entry = &walk->open[i];

		if (entry->ended)
			continue;
		result = region_stack_visit_implied(walk, MODEL_EVENT_REGION_END, i, walk->to_ns);
		entry->was_cut = true;
	}
	walk->is_ended_by_data_end = false;
	walk->in_window = false;
	walk->done = walk->next_window == walk->window_count;
	take_next_window(walk);
	return result;
}

int region_windows_advance(struct region_event_walk_state *walk, uint64_t time_ns)
{
	int result = 0;

	while (result == 0 && !walk->done) {
		if (!walk->in_window && time_ns < walk->from_ns)
			return 0;
		if (!walk->in_window)
			result = enter_window(walk);
		if (result != 0 || time_ns < walk->to_ns)
			return result;
		result = leave_window(walk);
	}
	return result;
}
