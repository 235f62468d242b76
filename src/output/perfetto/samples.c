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

#include "output/perfetto/perfetto.h"

enum {
	/* No sample packet comes near this, so its length always fits one byte. */
	SAMPLE_PACKET_BYTES_MAX = 120,
	PERF_SAMPLE_MODE_USER = 2,
	/* A thread's counters keep this many points at most, no more than 100 a second, only those
	 * at which they changed, and the last. */
	THREAD_METRIC_POINTS_MAX = 2000,
};
#define METRIC_INTERVAL_NS_LEAST UINT64_C(10000000)

/* Profiling.StackUnwindError of perfetto's profile_packet.proto. */
static const uint8_t unwind_error_by_stack_end[16] = {
	[SPOOL_STACK_NO_TABLE] = 3,    [SPOOL_STACK_BAD_READ] = 2, [SPOOL_STACK_BAD_CFA] = 7,
	[SPOOL_STACK_UNSUPPORTED] = 4, [SPOOL_STACK_DEPTH] = 6,    [SPOOL_STACK_BAD_PC] = 5,
};

static uint8_t *encode_text_field(uint8_t *at, unsigned field, const char *text)
{
	size_t size = strlen(text);

	at = protobuf_encode_varint(at, (uint64_t)field << 3 | PROTOBUF_WIRE_LENGTH_DELIMITED);
	at = protobuf_encode_varint(at, size);
	memcpy(at, text, size);
	return at + size;
}

static uint8_t *encode_perf_sample(uint8_t *at, const struct model_process *process,
				   const struct model_thread *thread,
				   const struct model_sample *sample)
{
	at = protobuf_encode_uint_field(at, 2, process->pid);
	at = protobuf_encode_uint_field(at, 3, thread->tid);
	at = protobuf_encode_uint_field(at, 4, (uint64_t)sample->node + 1);
	at = protobuf_encode_uint_field(at, 5, PERF_SAMPLE_MODE_USER);
	if (unwind_error_by_stack_end[sample->stack_end_reason & 15] != 0)
		at = protobuf_encode_uint_field(
			at, 16, unwind_error_by_stack_end[sample->stack_end_reason & 15]);
	return at;
}

static uint8_t *encode_stack_sample(uint8_t *at, const struct model_process *process,
				    const struct model_thread *thread,
				    const struct model_sample *sample)
{
	uint8_t *length;

	at = protobuf_encode_varint(at, 1 << 3 | PROTOBUF_WIRE_LENGTH_DELIMITED);
	length = at++;
	at = protobuf_encode_uint_field(at, 2, process->pid);
	at = protobuf_encode_uint_field(at, 3, thread->tid);
	*length = (uint8_t)(at - length - 1);
	at = protobuf_encode_uint_field(at, 6, (uint64_t)sample->node + 1);
	if (sample->stack_end_reason != SPOOL_STACK_COMPLETE)
		at = encode_text_field(at, 7, spool_stack_end_get_name(sample->stack_end_reason));
	if (sample->source == SPOOL_SOURCE_WALL)
		at = protobuf_encode_uint_field(at, 10, 1);
	else if (sample->source == SPOOL_SOURCE_RUNNABLE)
		at = protobuf_encode_uint_field(at, 10, 2);
	return protobuf_encode_uint_field(at, 11, sample->weight);
}

static void write_sample_packet(struct perfetto_trace *trace, const struct model_sample *sample,
				uint32_t sequence)
{
	struct protobuf_writer *writer = &trace->writer;
	const struct model_process *process = &trace->session->processes[sample->process];
	const struct model_thread *thread = &trace->session->threads[sample->thread];
	bool is_cpu = sample->source == SPOOL_SOURCE_CPU;

	if (!protobuf_reserve_bytes(writer, SAMPLE_PACKET_BYTES_MAX))
		return;
	uint8_t *at = writer->bytes + writer->used;
	*at++ = TRACE_FIELD_PACKET << 3 | PROTOBUF_WIRE_LENGTH_DELIMITED;
	uint8_t *packet_length = at++;
	at = protobuf_encode_uint_field(at, PACKET_FIELD_TIMESTAMP, sample->time_ns);
	at = protobuf_encode_uint_field(at, PACKET_FIELD_SEQUENCE_ID, sequence);
	at = protobuf_encode_uint_field(at, PACKET_FIELD_SEQUENCE_FLAGS, SEQUENCE_FLAG_NEEDS_STATE);
	at = protobuf_encode_varint(
		at, (is_cpu ? PACKET_FIELD_PERF_SAMPLE : PACKET_FIELD_STACK_SAMPLE) << 3 |
			    PROTOBUF_WIRE_LENGTH_DELIMITED);
	uint8_t *sample_length = at++;
	at = is_cpu ? encode_perf_sample(at, process, thread, sample)
		    : encode_stack_sample(at, process, thread, sample);
	*sample_length = (uint8_t)(at - sample_length - 1);
	*packet_length = (uint8_t)(at - packet_length - 1);
	protobuf_commit_bytes(writer, at);
}

struct metric_track_label_entry {
	const char *name, *unit;
};

static const struct metric_track_label_entry metric_track_label_table[SPOOL_METRIC_COUNT] = {
	[SPOOL_METRIC_THREAD_CPU_NS] = {"CPU time", "ns"},
	[SPOOL_METRIC_PEAK_RSS_BYTES] = {"Peak RSS of the process", "bytes"},
	[SPOOL_METRIC_MINOR_FAULTS] = {"Minor page faults", "count"},
	[SPOOL_METRIC_MAJOR_FAULTS] = {"Major page faults", "count"},
	[SPOOL_METRIC_VOLUNTARY_SWITCHES] = {"Voluntary context switches", "count"},
	[SPOOL_METRIC_INVOLUNTARY_SWITCHES] = {"Involuntary context switches", "count"},
};

static void write_metric_track_descriptor(struct perfetto_trace *trace, uint32_t thread,
					  unsigned metric)
{
	struct metric_track_label_entry counter = metric_track_label_table[metric];
	uint64_t track = perfetto_get_thread_track_uuid(trace, thread);
	char name[48];

	if (counter.name == NULL) {
		snprintf(name, sizeof(name), "Hardware counter %u",
			 metric - (unsigned)SPOOL_METRIC_COUNTER0);
		counter = (struct metric_track_label_entry){name, "count"};
	}
	perfetto_write_counter_descriptor(trace, track + 1 + metric, track, counter.name,
					  counter.unit);
}

/* What changed since the last point, which may lie further back than the last reading. */
static void write_changed_metrics(struct perfetto_trace *trace, uint32_t thread, uint64_t time_ns,
				  const uint64_t *values)
{
	struct perfetto_thread_metric_state *metrics = &trace->metrics[thread];
	uint64_t track = perfetto_get_thread_track_uuid(trace, thread);

	metrics->written_time_ns = time_ns;
	metrics->pending_time_ns = 0;
	for (unsigned metric = 0; metric < SPOOL_METRIC_COUNT; metric++) {
		if (metrics->written[metric] == values[metric])
			continue;
		metrics->written[metric] = values[metric];
		if ((metrics->described & 1u << metric) == 0) {
			metrics->described |= 1u << metric;
			write_metric_track_descriptor(trace, thread, metric);
		}
		perfetto_write_counter_value(trace, track + 1 + metric, time_ns, values[metric]);
	}
}

static void write_or_defer_metrics(struct perfetto_trace *trace, const struct model_sample *sample)
{
	struct perfetto_thread_metric_state *metrics = &trace->metrics[sample->thread];
	uint64_t last = metrics->written_time_ns;
	uint64_t passed = sample->time_ns > last ? sample->time_ns - last : last - sample->time_ns;

	if (passed >= trace->metric_interval_ns) {
		write_changed_metrics(trace, sample->thread, sample->time_ns, sample->metrics);
		return;
	}
	metrics->pending_time_ns = sample->time_ns;
	memcpy(metrics->pending, sample->metrics, sizeof(metrics->pending));
}

/* A thread's last values are its sums. */
static void write_deferred_metrics(struct perfetto_trace *trace)
{
	for (uint32_t thread = 0; thread < trace->session->thread_count; thread++) {
		const struct perfetto_thread_metric_state *metrics = &trace->metrics[thread];
		uint64_t values[SPOOL_METRIC_COUNT];

		if (metrics->pending_time_ns == 0)
			continue;
		memcpy(values, metrics->pending, sizeof(values));
		write_changed_metrics(trace, thread, metrics->pending_time_ns, values);
	}
}

static int write_sample_and_metrics(const struct model_sample *sample, void *context)
{
	struct perfetto_trace *trace = context;
	enum perfetto_sample_stream_kind stream = sample->source == SPOOL_SOURCE_OVERFLOW
							  ? PERFETTO_STREAM_OVERFLOW_SAMPLES
							  : PERFETTO_STREAM_TIME_SAMPLES;
	uint32_t sequence = perfetto_get_sample_sequence_id(sample->process, stream);

	if (trace->interning_tables[stream].nodes[sample->node] != sequence)
		perfetto_write_interned_stack(trace, sample->process, stream, sample->node);
	write_sample_packet(trace, sample, sequence);
	if (sample->metric_bitmap != 0)
		write_or_defer_metrics(trace, sample);
	if (sample->source == SPOOL_SOURCE_RUNNABLE &&
	    perfetto_cpu_wait_add_sample(trace, sample) < 0)
		return -ENOMEM;
	if (perfetto_interpreter_states_add_sample(trace, sample) < 0)
		return -ENOMEM;
	return trace->writer.error;
}

int perfetto_write_samples(struct perfetto_trace *trace)
{
	const struct session *session = trace->session;
	uint64_t length =
		session->end_ns > session->start_ns ? session->end_ns - session->start_ns : 0;

	trace->metric_interval_ns = length / THREAD_METRIC_POINTS_MAX > METRIC_INTERVAL_NS_LEAST
					    ? length / THREAD_METRIC_POINTS_MAX
					    : METRIC_INTERVAL_NS_LEAST;
	trace->metrics = calloc((size_t)session->thread_count + 1, sizeof(*trace->metrics));
	int error = -ENOMEM;
	if (trace->metrics == NULL || perfetto_cpu_wait_init(trace) < 0 ||
	    perfetto_interpreter_states_init(trace) < 0)
		problem_set(trace->problem, error, "no memory for the Perfetto trace");
	else
		error = session_visit_samples(trace->session, write_sample_and_metrics, trace,
					      trace->problem);
	if (error == 0)
		write_deferred_metrics(trace);
	if (error == 0)
		perfetto_cpu_wait_write_counters(trace);
	if (error == 0)
		perfetto_interpreter_states_write_slices(trace);
	perfetto_cpu_wait_deinit(trace);
	perfetto_interpreter_states_deinit(trace);
	if (trace->writer.error != 0)
		error = problem_set(trace->problem, trace->writer.error,
				    "cannot write the Perfetto trace: %s",
				    strerror(-trace->writer.error));
	free(trace->metrics);
	return error;
}
