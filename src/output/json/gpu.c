/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include "output/json/gpu.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/gpu/gpu.h"
#include "output/device_idle.h"
#include "output/device_lines.h"
#include "output/device_steps.h"

static void json_put_kernels(struct json_writer *json, const struct gpu_data *data)
{
	json_array_begin(json, "kernels");
	for (size_t i = 0; i < data->kernel_count; i++) {
		const struct gpu_kernel_row *row = &data->kernels[i];

		json_object_begin(json, NULL);
		json_put_text(json, "name", row->name);
		json_put_text(json, "device", row->agent_name);
		json_put_count(json, "count", row->count);
		json_put_count(json, "total_ns", row->total_ns);
		json_put_count(json, "minimum_ns", row->minimum_ns);
		json_put_count(json, "maximum_ns", row->maximum_ns);
		json_put_count(json, "incomplete", row->incomplete);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_copies(struct json_writer *json, const struct gpu_data *data)
{
	json_array_begin(json, "copies");
	for (unsigned i = 0; i < GPU_DIRECTION_COUNT; i++) {
		const struct gpu_copy_direction_sums *row = &data->copy_sums_by_direction[i];

		if (row->count == 0)
			continue;
		json_object_begin(json, NULL);
		json_put_text(json, "direction", gpu_get_copy_direction_name(i));
		json_put_count(json, "count", row->count);
		json_put_count(json, "bytes", row->bytes);
		json_put_count(json, "total_ns", row->total_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_work(struct json_writer *json, const char *name,
			  const struct gpu_work_sums *work)
{
	json_object_begin(json, name);
	json_put_count(json, "kernels", work->kernels);
	json_put_count(json, "copies", work->copies);
	json_put_count(json, "device_ns", work->ns);
	json_object_end(json);
}

/* In the order in which they were met: `parent` is the position of an earlier one. */
static void json_put_ranges(struct json_writer *json, const struct gpu_ranges *ranges)
{
	json_array_begin(json, "ranges");
	for (size_t i = 0; i < ranges->count; i++) {
		const struct gpu_range_row *row = &ranges->rows[i];

		json_object_begin(json, NULL);
		json_put_text(json, "name", row->name);
		if (row->parent != GPU_RANGE_NONE)
			json_put_count(json, "parent", row->parent);
		json_put_count(json, "count", row->count);
		json_put_count(json, "not_ended", row->open);
		json_put_count(json, "host_ns", row->host_ns);
		json_put_work(json, "own", &row->own);
		json_put_work(json, "from_other_threads", &row->from_other_threads);
		json_put_work(json, "total", &row->total);
		json_object_end(json);
	}
	json_array_end(json);
	json_put_work(json, "outside_ranges", &ranges->outside);
	json_put_work(json, "launch_not_recorded", &ranges->unknown_launches);
	json_put_count(json, "ranges_left_out", ranges->unnamed_count);
}

static void json_put_gpu_losses(struct json_writer *json, const struct gpu_data *data)
{
	json_array_begin(json, "missing");
	for (unsigned i = 0; i < GPU_LOSS_COUNT; i++) {
		if (data->losses[i] == 0 || gpu_get_loss_text(i) == NULL)
			continue;
		json_object_begin(json, NULL);
		json_put_count(json, "count", data->losses[i]);
		json_put_text(json, "what", gpu_get_loss_text(i));
		json_object_end(json);
	}
	json_array_end(json);
	json_put_count(json, "unreadable_bytes", data->torn_bytes);
	json_array_begin(json, "problems");
	for (size_t i = 0; i < data->problem_count; i++)
		json_put_text(json, NULL, data->problems[i]);
	json_array_end(json);
}

static void json_put_path_gap(struct json_writer *json, const char *what,
			      const struct gpu_work_sums *work)
{
	if (work->kernels + work->copies == 0)
		return;
	json_object_begin(json, NULL);
	json_put_text(json, "what", what);
	json_put_count(json, "kernels", work->kernels);
	json_put_count(json, "copies", work->copies);
	json_put_count(json, "device_ns", work->ns);
	json_object_end(json);
}

static void json_put_device_lines(struct json_writer *json, const struct session *session,
				  const struct device_lines *lines)
{
	json_array_begin(json, "lines");
	for (size_t i = 0; i < lines->line_count; i++) {
		const struct device_line *line = &lines->lines[i];
		const struct model_frame *frame = &session->frames[line->frame];

		json_object_begin(json, NULL);
		json_put_count(json, "frame", line->frame);
		json_put_text(json, "function", frame->function);
		json_put_text(json, "file", frame->file);
		json_put_count(json, "line", frame->line);
		json_put_count(json, "work", line->own_count);
		json_put_count(json, "self_ns", line->own_ns);
		json_put_count(json, "inclusive_ns", line->inclusive_ns);
		json_object_end(json);
	}
	json_array_end(json);
	json_array_begin(json, "modules");
	for (size_t i = 0; i < lines->module_count; i++) {
		json_object_begin(json, NULL);
		json_put_text(json, "name", lines->modules[i].name);
		json_put_count(json, "work", lines->modules[i].count);
		json_put_count(json, "device_ns", lines->modules[i].ns);
		json_object_end(json);
	}
	json_array_end(json);
}

/* The paths themselves are nodes of the call tree: those with device_ns. */
static int json_put_launch_paths(struct json_writer *json, const struct session *session,
				 const struct gpu_launch_path_sums *paths)
{
	struct device_lines lines;
	int result;

	if (!paths->is_recorded)
		return 0;
	result = device_lines_build(&lines, session);
	if (result == 0) {
		json_object_begin(json, "paths");
		json_put_work(json, "all", &paths->all);
		json_put_work(json, "complete", &paths->complete);
		json_array_begin(json, "incomplete");
		for (unsigned i = 0; i < SPOOL_STACK_END_COUNT; i++)
			json_put_path_gap(json, spool_stack_end_get_text((enum spool_stack_end)i),
					  &paths->cut[i]);
		json_array_end(json);
		json_array_begin(json, "missing");
		for (unsigned i = 0; i < GPU_PATH_GAP_COUNT; i++)
			json_put_path_gap(json, gpu_path_gap_get_text((enum gpu_path_gap)i),
					  &paths->gaps[i]);
		json_array_end(json);
		json_put_device_lines(json, session, &lines);
		json_object_end(json);
	}
	device_lines_deinit(&lines);
	return result;
}

static int json_put_idle_time(struct json_writer *json, const struct session *session,
			      const struct gpu_data *data)
{
	struct device_idle_line *lines;
	size_t count;

	if (device_idle_build_lines(session, data, &lines, &count) < 0)
		return -ENOMEM;
	json_object_begin(json, "idle");
	json_put_count(json, "span_ns", data->idle.span_ns);
	json_put_count(json, "busy_ns", data->idle.busy_ns);
	json_put_count(json, "idle_ns", data->idle.idle_ns);
	json_put_count(json, "before_launch_ns", data->idle.before_launch_ns);
	json_put_count(json, "launch_not_recorded_ns", data->idle.unknown_launch_ns);
	json_array_begin(json, "lines");
	for (size_t i = 0; i < count; i++) {
		const struct model_frame *frame = lines[i].frame == MODEL_ENTRY_INDEX_NONE
							  ? NULL
							  : &session->frames[lines[i].frame];

		json_object_begin(json, NULL);
		json_put_text(json, "function", frame != NULL ? frame->function : NULL);
		json_put_text(json, "file", frame != NULL ? frame->file : NULL);
		json_put_count(json, "line", frame != NULL ? frame->line : 0);
		json_put_count(json, "gaps", lines[i].gaps);
		json_put_count(json, "idle_ns", lines[i].ns);
		json_put_count(json, "before_launch_ns", lines[i].before_launch_ns);
		json_put_count(json, "longest_ns", lines[i].longest_ns);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
	free(lines);
	return 0;
}

static void json_put_step_parts(struct json_writer *json, const uint64_t *part_ns)
{
	static const char *const names[GPU_STEP_PART_COUNT] = {
		[GPU_STEP_COMPUTING] = "computing_ns",
		[GPU_STEP_COMMUNICATION] = "exposed_communication_ns",
		[GPU_STEP_COPIES] = "exposed_copies_ns",
		[GPU_STEP_LATE_LAUNCH] = "idle_before_launch_ns",
		[GPU_STEP_QUEUED] = "idle_after_launch_ns",
	};

	for (unsigned part = 0; part < GPU_STEP_PART_COUNT; part++)
		json_put_count(json, names[part], part_ns[part]);
}

struct step_difference_context {
	struct json_writer *json;
	const struct session *session;
	const struct gpu_data *data;
	const struct gpu_step_series *series;
};

static void json_put_step_difference(const struct step_difference_context *context,
				     const struct gpu_step_difference *difference)
{
	char name[512];

	device_step_format_difference(name, sizeof(name), context->session, context->data,
				      context->series, difference);
	json_put_text(context->json, "what", name);
	json_put_count(context->json, "slow_ns", (uint64_t)difference->slow_ns);
	json_put_count(context->json, "other_ns", (uint64_t)difference->other_ns);
}

static void json_put_step_differences(const struct step_difference_context *context)
{
	const struct gpu_step_series *series = context->series;
	struct json_writer *json = context->json;

	json_array_begin(json, "slow_steps_have_more");
	for (size_t i = 0; i < series->difference_count; i++) {
		json_object_begin(json, NULL);
		json_put_step_difference(context, &series->differences[i]);
		json_object_end(json);
	}
	json_array_end(json);
	json_array_begin(json, "slowest");
	for (size_t i = 0; i < series->slowest_count; i++) {
		const struct gpu_step_explanation *explanation = &series->slowest[i];

		json_object_begin(json, NULL);
		json_put_count(json, "step", explanation->step + 1); /* as in all outputs */
		if (explanation->is_explained)
			json_put_step_difference(context, &explanation->difference);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_step_series(struct json_writer *json, const struct session *session,
				 const struct gpu_data *data, const struct gpu_step_series *series)
{
	const struct gpu_records_of_process *process = &data->processes[series->process];
	char name[512];

	device_step_format_name(name, sizeof(name), series);
	json_object_begin(json, NULL);
	json_put_count(json, "pid", process->header.pid);
	json_put_text(json, "device", gpu_get_agent_name(process, series->agent));
	json_put_text(json, "found_by",
		      series->source == GPU_STEPS_BY_RANGE ? "range" : "launches");
	json_put_text(json, "name", name);
	json_put_count(json, "count", series->count);
	json_put_boolean(json, "first_is_left_out", series->starts_slowly);
	json_put_count(json, "slow", series->slow_count);
	json_put_count(json, "median_ns", series->median_ns);
	json_put_step_parts(json, series->part_ns);
	json_put_step_differences(
		&(const struct step_difference_context){json, session, data, series});
	json_array_begin(json, "steps");
	for (size_t i = 0; i < series->count; i++) {
		const struct gpu_step *step = &series->steps[i];

		json_object_begin(json, NULL);
		json_put_count(json, "begin_ns", step->begin_ns);
		json_put_count(json, "ns", step->end_ns - step->begin_ns);
		json_put_count(json, "work", step->work_count);
		json_put_step_parts(json, step->part_ns);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void json_put_steps(struct json_writer *json, const struct session *session,
			   const struct gpu_data *data)
{
	json_array_begin(json, "steps");
	for (size_t i = 0; i < data->steps.count; i++)
		json_put_step_series(json, session, data, &data->steps.series[i]);
	json_array_end(json);
}

int json_put_gpu_sums(struct json_writer *json, const struct session *session)
{
	const struct gpu_data *data = session_get_gpu_data(session);

	int result;

	if (data == NULL)
		return 0;
	json_object_begin(json, "devices");
	json_put_kernels(json, data);
	json_put_copies(json, data);
	json_put_ranges(json, &data->ranges);
	result = json_put_launch_paths(json, session, &data->launch_paths);
	if (result == 0)
		result = json_put_idle_time(json, session, data);
	json_put_steps(json, session, data);
	json_put_count(json, "calls", data->call_record_count);
	json_put_gpu_losses(json, data);
	json_object_end(json);
	return result;
}
