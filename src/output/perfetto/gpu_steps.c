/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Steps of the work on devices: a track a process and device, with the parts of each step.
 */
#include "analysis/gpu/gpu.h"
#include "output/device_steps.h"
#include "output/perfetto/perfetto.h"

enum {
	/* Upper half of the numbers of our tracks, between those of gpu.c and of gpu_counts.c. */
	STEP_TRACK_UUID_BASE = 5 << 28,
	EVENT_TYPE_SLICE_BEGIN = 1,
	EVENT_TYPE_SLICE_END = 2,
	ANNOTATION_FIELD_NAME = 10,
	ANNOTATION_FIELD_UINT_VALUE = 3,
};

static void write_part_annotations(struct protobuf_writer *out, const struct gpu_step *step)
{
	char name[64];

	for (unsigned part = 0; part < GPU_STEP_PART_COUNT; part++) {
		if (step->part_ns[part] == 0)
			continue;
		snprintf(name, sizeof(name), "%s (ns)",
			 gpu_step_part_get_name((enum gpu_step_part)part));
		protobuf_open_message(out, TRACK_EVENT_FIELD_ANNOTATIONS);
		protobuf_write_string(out, ANNOTATION_FIELD_NAME, name);
		protobuf_write_uint(out, ANNOTATION_FIELD_UINT_VALUE, step->part_ns[part]);
		protobuf_close_message(out);
	}
}

static void write_step(struct perfetto_trace *trace, uint64_t track, size_t number,
		       const struct gpu_step *step)
{
	struct protobuf_writer *out = &trace->writer;
	char name[48];

	snprintf(name, sizeof(name), "step %zu%s", number, step->is_slow ? " (slow)" : "");
	perfetto_open_metadata_packet(trace, step->begin_ns);
	protobuf_open_message(out, PACKET_FIELD_TRACK_EVENT);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TYPE, EVENT_TYPE_SLICE_BEGIN);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TRACK_UUID, track);
	protobuf_write_string(out, TRACK_EVENT_FIELD_CATEGORIES, "step");
	protobuf_write_string(out, TRACK_EVENT_FIELD_NAME, name);
	write_part_annotations(out, step);
	protobuf_close_message(out);
	perfetto_close_metadata_packet(trace);
	perfetto_open_metadata_packet(trace, step->end_ns);
	protobuf_open_message(out, PACKET_FIELD_TRACK_EVENT);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TYPE, EVENT_TYPE_SLICE_END);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TRACK_UUID, track);
	protobuf_close_message(out);
	perfetto_close_metadata_packet(trace);
}

static void write_series(struct perfetto_trace *trace, const struct gpu_data *data, size_t number)
{
	const struct gpu_step_series *series = &data->steps.series[number];
	const struct gpu_records_of_process *process = &data->processes[series->process];
	uint32_t model = gpu_find_process_in_session(trace->session, process);
	uint64_t track = (uint64_t)((uint32_t)STEP_TRACK_UUID_BASE + number) << 32 | 1;
	char step[128], name[256];

	device_step_format_name(step, sizeof(step), series);
	snprintf(name, sizeof(name), "%s: steps, %s", gpu_get_agent_name(process, series->agent),
		 step);
	perfetto_write_track_descriptor(
		trace, track,
		model == MODEL_ENTRY_INDEX_NONE ? 0 : perfetto_get_process_track_uuid(trace, model),
		name);
	for (size_t i = 0; i < series->count; i++)
		write_step(trace, track, i + 1, &series->steps[i]);
}

void perfetto_write_gpu_steps(struct perfetto_trace *trace)
{
	const struct gpu_data *data = session_get_gpu_data(trace->session);

	for (size_t i = 0; data != NULL && i < data->steps.count; i++)
		write_series(trace, data, i);
}
