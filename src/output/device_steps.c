/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See device_steps.h.
 */
#include "output/device_steps.h"

#include <stdio.h>

#include "common/cleanup.h"
#include "output/device_lines.h"

static void format_demangled(char *buffer, size_t size, const char *before, const char *name)
{
	_cleanup_(cleanup_free) char *demangled = gpu_demangle_name(name);

	snprintf(buffer, size, "%s%s", before, demangled ? demangled : name);
}

void device_step_format_name(char *buffer, size_t size, const struct gpu_step_series *series)
{
	if (series->source == GPU_STEPS_BY_LAUNCHES)
		format_demangled(buffer, size, "", series->name);
	else
		snprintf(buffer, size, "%s", series->name);
}

static void format_idle(char *buffer, size_t size, const struct session *session,
			const struct gpu_records_of_process *process, uint32_t launch_path)
{
	uint32_t node = gpu_find_node_of_launch_path(
		session, gpu_find_process_in_session(session, process), launch_path);
	uint32_t frame =
		node == MODEL_ENTRY_INDEX_NONE ? node : device_find_launching_frame(session, node);
	char line[400];

	if (frame == MODEL_ENTRY_INDEX_NONE) {
		snprintf(buffer, size, "idle before launches without a call path");
		return;
	}
	device_format_launching_frame(line, sizeof(line), session, frame);
	snprintf(buffer, size, "idle before launches from %s", line);
}

void device_step_format_difference(char *buffer, size_t size, const struct session *session,
				   const struct gpu_data *data,
				   const struct gpu_step_series *series,
				   const struct gpu_step_difference *difference)
{
	const struct gpu_records_of_process *process = &data->processes[series->process];

	switch (difference->kind) {
	case GPU_STEP_DIFFERENCE_KERNEL:
		format_demangled(buffer, size, "kernel ",
				 gpu_get_interned_string(process, difference->id));
		break;
	case GPU_STEP_DIFFERENCE_COPY:
		snprintf(buffer, size, "%s", gpu_get_copy_work_name(difference->id));
		break;
	case GPU_STEP_DIFFERENCE_IDLE:
		format_idle(buffer, size, session, process, difference->id);
		break;
	}
}
