/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One packet a sample, streamed. CPU samples are PerfSamples, which every version of Perfetto
 * shows; waiting and overflow samples are StackSamples, which carry a weight (v58 on, skipped by
 * older ones). Per-sample metrics become counters of the thread, thinned out.
 *
 * Budget: a packet whose stack is known is about 15 varints put into reserved room, no call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/perfetto.h"

enum {
	/* No sample packet comes near this, so its length always fits one byte. */
	SAMPLE_PACKET_MAX = 120,
	PERF_SAMPLE_MODE_USER = 2,
	/* A thread's counters keep this many points at most, no more than 100 a second, only those
	 * at which they changed, and the last. */
	METRIC_POINTS = 2000,
};
#define METRIC_INTERVAL_MIN_NS UINT64_C(10000000)

/* Profiling.StackUnwindError of perfetto's profile_packet.proto. */
static const uint8_t unwind_errors[16] = {
	[SPOOL_STACK_NO_TABLE] = 3,    [SPOOL_STACK_BAD_READ] = 2, [SPOOL_STACK_BAD_CFA] = 7,
	[SPOOL_STACK_UNSUPPORTED] = 4, [SPOOL_STACK_DEPTH] = 6,    [SPOOL_STACK_BAD_PC] = 5,
};

static uint8_t *put_text(uint8_t *at, unsigned field, const char *text)
{
	size_t size = strlen(text);

	at = protobuf_put_varint(at, (uint64_t)field << 3 | PROTOBUF_LENGTH);
	at = protobuf_put_varint(at, size);
	memcpy(at, text, size);
	return at + size;
}

static uint8_t *put_perf_sample(uint8_t *at, const struct model_process *process,
				const struct model_thread *thread,
				const struct model_sample *sample)
{
	at = protobuf_put_uint(at, 2, process->pid);
	at = protobuf_put_uint(at, 3, thread->tid);
	at = protobuf_put_uint(at, 4, (uint64_t)sample->node + 1);
	at = protobuf_put_uint(at, 5, PERF_SAMPLE_MODE_USER);
	if (unwind_errors[sample->stack_end & 15] != 0)
		at = protobuf_put_uint(at, 16, unwind_errors[sample->stack_end & 15]);
	return at;
}

static uint8_t *put_stack_sample(uint8_t *at, const struct model_process *process,
				 const struct model_thread *thread,
				 const struct model_sample *sample)
{
	uint8_t *length;

	at = protobuf_put_varint(at, 1 << 3 | PROTOBUF_LENGTH);
	length = at++;
	at = protobuf_put_uint(at, 2, process->pid);
	at = protobuf_put_uint(at, 3, thread->tid);
	*length = (uint8_t)(at - length - 1);
	at = protobuf_put_uint(at, 6, (uint64_t)sample->node + 1);
	if (sample->stack_end != SPOOL_STACK_COMPLETE)
		at = put_text(at, 7, spool_stack_end_name(sample->stack_end));
	if (sample->source == SPOOL_SOURCE_WALL)
		at = protobuf_put_uint(at, 10, 1);
	else if (sample->source == SPOOL_SOURCE_RUNNABLE)
		at = protobuf_put_uint(at, 10, 2);
	return protobuf_put_uint(at, 11, sample->weight);
}

static void write_sample(struct perfetto *trace, const struct model_sample *sample,
			 uint32_t sequence)
{
	struct protobuf *writer = &trace->writer;
	const struct model_process *process = &trace->session->processes[sample->process];
	const struct model_thread *thread = &trace->session->threads[sample->thread];
	bool is_cpu = sample->source == SPOOL_SOURCE_CPU;

	if (!protobuf_room(writer, SAMPLE_PACKET_MAX))
		return;
	uint8_t *at = writer->bytes + writer->used;
	*at++ = TRACE_PACKET << 3 | PROTOBUF_LENGTH;
	uint8_t *packet_length = at++;
	at = protobuf_put_uint(at, PACKET_TIMESTAMP, sample->time_ns);
	at = protobuf_put_uint(at, PACKET_SEQUENCE_ID, sequence);
	at = protobuf_put_uint(at, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
	at = protobuf_put_varint(at, (is_cpu ? PACKET_PERF_SAMPLE : PACKET_STACK_SAMPLE) << 3 |
					     PROTOBUF_LENGTH);
	uint8_t *sample_length = at++;
	at = is_cpu ? put_perf_sample(at, process, thread, sample)
		    : put_stack_sample(at, process, thread, sample);
	*sample_length = (uint8_t)(at - sample_length - 1);
	*packet_length = (uint8_t)(at - packet_length - 1);
	protobuf_commit(writer, at);
}

struct metric_counter {
	const char *name, *unit;
};

static const struct metric_counter metric_counters[SPOOL_METRIC_COUNT] = {
	[SPOOL_METRIC_THREAD_CPU_NS] = {"CPU time", "ns"},
	[SPOOL_METRIC_PEAK_RSS_BYTES] = {"Peak RSS of the process", "bytes"},
	[SPOOL_METRIC_MINOR_FAULTS] = {"Minor page faults", "count"},
	[SPOOL_METRIC_MAJOR_FAULTS] = {"Major page faults", "count"},
	[SPOOL_METRIC_VOLUNTARY_SWITCHES] = {"Voluntary context switches", "count"},
	[SPOOL_METRIC_INVOLUNTARY_SWITCHES] = {"Involuntary context switches", "count"},
};

static void describe_metric(struct perfetto *trace, uint32_t thread, unsigned metric)
{
	struct metric_counter counter = metric_counters[metric];
	uint64_t track = perfetto_thread_track(trace, thread);
	char name[48];

	if (counter.name == NULL) {
		snprintf(name, sizeof(name), "Hardware counter %u",
			 metric - (unsigned)SPOOL_METRIC_COUNTER0);
		counter = (struct metric_counter){name, "count"};
	}
	perfetto_describe_counter(trace, track + 1 + metric, track, counter.name, counter.unit);
}

/* What changed since the last point, which may lie further back than the last reading. */
static void write_point(struct perfetto *trace, uint32_t thread, uint64_t time_ns,
			const uint64_t *values)
{
	struct perfetto_metrics *metrics = &trace->metrics[thread];
	uint64_t track = perfetto_thread_track(trace, thread);

	metrics->written_ns = time_ns;
	metrics->pending_ns = 0;
	for (unsigned metric = 0; metric < SPOOL_METRIC_COUNT; metric++) {
		if (metrics->written[metric] == values[metric])
			continue;
		metrics->written[metric] = values[metric];
		if ((metrics->described & 1u << metric) == 0) {
			metrics->described |= 1u << metric;
			describe_metric(trace, thread, metric);
		}
		perfetto_write_counter(trace, track + 1 + metric, time_ns, values[metric]);
	}
}

static void write_metrics(struct perfetto *trace, const struct model_sample *sample)
{
	struct perfetto_metrics *metrics = &trace->metrics[sample->thread];
	uint64_t last = metrics->written_ns;
	uint64_t passed = sample->time_ns > last ? sample->time_ns - last : last - sample->time_ns;

	if (passed >= trace->metric_interval_ns) {
		write_point(trace, sample->thread, sample->time_ns, sample->metrics);
		return;
	}
	metrics->pending_ns = sample->time_ns;
	memcpy(metrics->pending, sample->metrics, sizeof(metrics->pending));
}

/* A thread's last values are its sums. */
static void write_last_points(struct perfetto *trace)
{
	for (uint32_t thread = 0; thread < trace->session->thread_count; thread++) {
		const struct perfetto_metrics *metrics = &trace->metrics[thread];
		uint64_t values[SPOOL_METRIC_COUNT];

		if (metrics->pending_ns == 0)
			continue;
		memcpy(values, metrics->pending, sizeof(values));
		write_point(trace, thread, metrics->pending_ns, values);
	}
}

static int each_sample(const struct model_sample *sample, void *context)
{
	struct perfetto *trace = context;
	enum perfetto_stream stream = sample->source == SPOOL_SOURCE_OVERFLOW
					      ? PERFETTO_STREAM_OVERFLOW
					      : PERFETTO_STREAM_TIME;
	uint32_t sequence = perfetto_sequence(sample->process, stream);

	if (trace->interned[stream].nodes[sample->node] != sequence)
		perfetto_intern_stack(trace, sample->process, stream, sample->node);
	write_sample(trace, sample, sequence);
	if (sample->metric_bitmap != 0)
		write_metrics(trace, sample);
	return trace->writer.error;
}

int perfetto_write_samples(struct perfetto *trace)
{
	const struct session *session = trace->session;
	uint64_t length =
		session->end_ns > session->start_ns ? session->end_ns - session->start_ns : 0;

	trace->metric_interval_ns = length / METRIC_POINTS > METRIC_INTERVAL_MIN_NS
					    ? length / METRIC_POINTS
					    : METRIC_INTERVAL_MIN_NS;
	trace->metrics = calloc((size_t)session->thread_count + 1, sizeof(*trace->metrics));
	int error = -ENOMEM;
	if (trace->metrics == NULL)
		problem_set(trace->problem, error, "no memory for the Perfetto trace");
	else
		error = session_each_sample(trace->session, each_sample, trace, trace->problem);
	if (error == 0)
		write_last_points(trace);
	if (trace->writer.error != 0)
		error = problem_set(trace->problem, trace->writer.error,
				    "cannot write the Perfetto trace: %s",
				    strerror(-trace->writer.error));
	free(trace->metrics);
	return error;
}
