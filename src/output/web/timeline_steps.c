/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Steps of the work on devices as slices, a track a process and device.
 */
#include <errno.h>

#include "analysis/gpu/gpu.h"
#include "output/device_steps.h"
#include "output/web/timeline.h"

/* More of them are not told apart by name: each name is a string of the page. */
#define NUMBERED_STEPS_MAX 2000u

static int add_steps(struct timeline *timeline, uint32_t track,
		     const struct gpu_step_series *series)
{
	char name[48];
	int error = 0;

	for (size_t i = 0; error == 0 && i < series->count; i++) {
		const struct gpu_step *step = &series->steps[i];

		if (series->count <= NUMBERED_STEPS_MAX)
			snprintf(name, sizeof(name), "step %zu%s", i + 1,
				 step->is_slow ? " (slow)" : "");
		else
			snprintf(name, sizeof(name), "%sstep", step->is_slow ? "slow " : "");
		error = timeline_add_span(timeline, track, step->begin_ns, step->end_ns,
					  page_get_string_number(timeline->page, name));
	}
	return error;
}

static int add_series(struct timeline *timeline, const struct gpu_data *data, size_t number)
{
	const struct gpu_step_series *series = &data->steps.series[number];
	const struct gpu_records_of_process *process = &data->processes[series->process];
	char step[128], name[256];
	uint32_t index;
	struct timeline_track *track =
		timeline_find_or_add_track(timeline, TIMELINE_STEPS, number, &index);

	if (track == NULL)
		return -ENOMEM;
	device_step_format_name(step, sizeof(step), series);
	snprintf(name, sizeof(name), "%s: steps, %s", gpu_get_agent_name(process, series->agent),
		 step);
	track->name = page_get_string_number(timeline->page, name);
	track->process = gpu_find_process_in_session(timeline->page->session, process);
	snprintf(name, sizeof(name), "process %u", process->header.pid);
	if (track->process == MODEL_ENTRY_INDEX_NONE)
		track->owner = page_get_string_number(timeline->page, name);
	return add_steps(timeline, index, series);
}

int timeline_collect_steps(struct timeline *timeline)
{
	const struct gpu_data *data = session_get_gpu_data(timeline->page->session);
	int error = 0;

	for (size_t i = 0; data != NULL && error == 0 && i < data->steps.count; i++)
		error = add_series(timeline, data, i);
	return error;
}
