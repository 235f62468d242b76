/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters on the timeline: a track for each counter of kernels, which has the launch's value while
 * it runs and zero in between, and one for each counter of a device, which has a reading's value
 * over its interval. Instances are added up.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/gpu/counts.h"
#include "output/gpu_names.h"
#include "output/perfetto/perfetto.h"

/* Upper half of the numbers of our tracks; those of gpu.c end below. */
enum { COUNTER_TRACK_UUID_BASE = 3 << 29 };

struct gpu_counters_writer {
	struct perfetto_trace *trace;
	const struct gpu_records_of_process *process;
	uint32_t index; /* of the process */
	uint64_t parent_track_uuid;
	uint8_t *described; /* by counter: bit 0 of kernels, bit 1 of the device */
	uint64_t *ends;     /* of the counter's last reading */
};

static uint64_t find_or_describe_counter_track(struct gpu_counters_writer *writer,
					       const struct gpu_counter_measurement *count)
{
	const struct gpu_counter *counter = count->counter;
	const struct gpu_records_of_process *process = writer->process;
	bool of_device = count->kernel == NULL;
	uint64_t track = (uint64_t)((uint32_t)COUNTER_TRACK_UUID_BASE + writer->index) << 32 |
			 ((uint64_t)counter->head.id << 1 | of_device);
	char name[256];

	if (writer->described[counter->head.id] & 1u << of_device)
		return track;
	writer->described[counter->head.id] |= (uint8_t)(1u << of_device);
	snprintf(name, sizeof(name), "%s of %s%s", gpu_get_interned_string(process, counter->name),
		 of_device ? "" : "kernels on ", gpu_get_agent_name(process, counter->agent));
	perfetto_write_counter_descriptor(writer->trace, track, writer->parent_track_uuid, name,
					  NULL);
	return track;
}

static void write_counter_value(struct perfetto_trace *trace, uint64_t track, uint64_t time_ns,
				double value)
{
	struct protobuf_writer *out = &trace->writer;

	if (!isfinite(value))
		return;
	perfetto_open_metadata_packet(trace, time_ns);
	protobuf_open_message(out, PACKET_FIELD_TRACK_EVENT);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TYPE, TRACK_EVENT_TYPE_COUNTER);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TRACK_UUID, track);
	protobuf_write_double(out, TRACK_EVENT_FIELD_DOUBLE_COUNTER, value);
	protobuf_close_message(out);
	perfetto_close_metadata_packet(trace);
}

static int write_counter_of_launch_or_reading(const struct gpu_counter_measurement *count,
					      void *context)
{
	struct gpu_counters_writer *writer = context;
	uint64_t track = find_or_describe_counter_track(writer, count);
	uint64_t *end = &writer->ends[count->counter->head.id];

	if (count->kernel != NULL) {
		write_counter_value(writer->trace, track, count->start, count->total);
		write_counter_value(writer->trace, track, count->end, 0);
		return 0;
	}
	/* Values since the start of it all stand where they were read. */
	write_counter_value(writer->trace, track, count->start < *end ? count->end : count->start,
			    count->total);
	*end = count->end;
	return 0;
}

int perfetto_write_gpu_counters(struct perfetto_trace *trace)
{
	const struct gpu_data *data = session_get_gpu_data(trace->session);
	int result = 0;

	for (size_t i = 0; data != NULL && result == 0 && i < data->process_count; i++) {
		const struct gpu_records_of_process *process = &data->processes[i];
		uint32_t model = gpu_find_process_in_session(trace->session, process);
		struct gpu_counters_writer writer = {.trace = trace, .process = process};

		writer.index = (uint32_t)i;
		writer.parent_track_uuid = model != MODEL_ENTRY_INDEX_NONE
						   ? perfetto_get_process_track_uuid(trace, model)
						   : 0;
		writer.described = calloc((size_t)process->counter_count + 1, 1);
		writer.ends = calloc((size_t)process->counter_count + 1, sizeof(*writer.ends));
		result = writer.described != NULL && writer.ends != NULL
				 ? gpu_visit_counter_measurements(
					   process, write_counter_of_launch_or_reading, &writer)
				 : -ENOMEM;
		free(writer.described);
		free(writer.ends);
	}
	return result;
}
