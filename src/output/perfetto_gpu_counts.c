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

#include "analysis/gpu_counts.h"
#include "output/gpu_names.h"
#include "output/perfetto.h"

/* Upper half of the numbers of our tracks; those of perfetto_gpu.c end below. */
enum { TRACK_OF_COUNTERS = 3 << 29 };

struct counters_writer {
	struct perfetto *trace;
	const struct gpu_process *process;
	uint32_t index; /* of the process */
	uint64_t parent;
	uint8_t *described; /* by counter: bit 0 of kernels, bit 1 of the device */
	uint64_t *ends;     /* of the counter's last reading */
};

static uint64_t track_of(struct counters_writer *writer, const struct gpu_count *count)
{
	const struct gpu_counter *counter = count->counter;
	const struct gpu_process *process = writer->process;
	bool of_device = count->kernel == NULL;
	uint64_t track = (uint64_t)((uint32_t)TRACK_OF_COUNTERS + writer->index) << 32 |
			 ((uint64_t)counter->head.id << 1 | of_device);
	char name[256];

	if (writer->described[counter->head.id] & 1u << of_device)
		return track;
	writer->described[counter->head.id] |= (uint8_t)(1u << of_device);
	snprintf(name, sizeof(name), "%s of %s%s", gpu_string(process, counter->name),
		 of_device ? "" : "kernels on ", gpu_agent_name(process, counter->agent));
	perfetto_describe_counter(writer->trace, track, writer->parent, name, NULL);
	return track;
}

static void write_value(struct perfetto *trace, uint64_t track, uint64_t time_ns, double value)
{
	struct protobuf *out = &trace->writer;

	if (!isfinite(value))
		return;
	perfetto_open_packet(trace, time_ns);
	protobuf_open(out, PACKET_TRACK_EVENT);
	protobuf_uint(out, TRACK_EVENT_TYPE, TRACK_EVENT_COUNTER_TYPE);
	protobuf_uint(out, TRACK_EVENT_TRACK, track);
	protobuf_double(out, TRACK_EVENT_DOUBLE_COUNTER, value);
	protobuf_close(out);
	perfetto_close_packet(trace);
}

static int write_count(const struct gpu_count *count, void *context)
{
	struct counters_writer *writer = context;
	uint64_t track = track_of(writer, count);
	uint64_t *end = &writer->ends[count->counter->head.id];

	if (count->kernel != NULL) {
		write_value(writer->trace, track, count->start, count->total);
		write_value(writer->trace, track, count->end, 0);
		return 0;
	}
	/* Values since the start of it all stand where they were read. */
	write_value(writer->trace, track, count->start < *end ? count->end : count->start,
		    count->total);
	*end = count->end;
	return 0;
}

int perfetto_write_gpu_counts(struct perfetto *trace)
{
	const struct gpu_data *data = trace->session->gpu;
	int result = 0;

	for (size_t i = 0; data != NULL && result == 0 && i < data->process_count; i++) {
		const struct gpu_process *process = &data->processes[i];
		uint32_t model = perfetto_gpu_model(trace->session, process);
		struct counters_writer writer = {.trace = trace, .process = process};

		writer.index = (uint32_t)i;
		writer.parent = model != MODEL_NONE ? perfetto_process_track(trace, model) : 0;
		writer.described = calloc((size_t)process->counter_count + 1, 1);
		writer.ends = calloc((size_t)process->counter_count + 1, sizeof(*writer.ends));
		result = writer.described != NULL && writer.ends != NULL
				 ? gpu_each_count(process, write_count, &writer)
				 : -ENOMEM;
		free(writer.described);
		free(writer.ends);
	}
	return result;
}
