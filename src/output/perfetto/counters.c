/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counter tracks from the background thread's process metrics, and notices as instants on their
 * process. Times that only grow become loads in percent; other sums stay sums, which the UI can
 * show as rates. What concerns the whole host is taken from one process at a time.
 */
#include <inttypes.h>
#include <string.h>

#include "common/array.h"
#include "output/perfetto/perfetto.h"

enum {
	TRACK_DESCRIPTOR_FIELD_UUID = 1,
	TRACK_DESCRIPTOR_FIELD_NAME = 2,
	TRACK_DESCRIPTOR_FIELD_PARENT_UUID = 5,
	TRACK_DESCRIPTOR_FIELD_COUNTER = 8,
	TRACK_DESCRIPTOR_FIELD_MERGE_BEHAVIOR = 15,
	SIBLING_MERGE_BEHAVIOR_NONE = 2,
	COUNTER_UNIT_UNSPECIFIED = 0,
	COUNTER_UNIT_NS = 1,
	COUNTER_UNIT_COUNT = 2,
	COUNTER_UNIT_BYTES = 3,

	/* Global tracks; processes begin at 1 << 32. */
	HOST_LOAD_TRACK_UUID = 1,
	HOST_CPUS_MAX = 1024,
};
#define PROCESS_COUNTER_TRACK_BIT (UINT64_C(1) << 31)

enum process_counter_kind {
	COUNTER_KIND_PLAIN_VALUE, /* as it is */
	COUNTER_KIND_CPU_LOAD,    /* ns of CPU time: percent of one CPU since the last reading */
	COUNTER_KIND_HOST_BUSY,   /* with COUNTER_KIND_HOST_TOTAL of the same time: percent of all
				     CPUs */
	COUNTER_KIND_HOST_TOTAL,
};

struct process_counter_definition {
	const char *name, *unit;
	enum process_counter_kind kind;
};

static const struct process_counter_definition process_counter_definitions[] = {
	[SPOOL_PROCESS_RSS_BYTES] = {"Resident memory", "bytes", COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_PROCESS_VIRTUAL_BYTES] = {"Virtual memory", "bytes", COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_PROCESS_PEAK_RSS_BYTES] = {"Peak resident memory", "bytes",
					  COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_PROCESS_MINOR_FAULTS] = {"Minor page faults", "count", COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_PROCESS_MAJOR_FAULTS] = {"Major page faults", "count", COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_PROCESS_VOLUNTARY_SWITCHES] = {"Voluntary context switches", "count",
					      COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_PROCESS_INVOLUNTARY_SWITCHES] = {"Involuntary context switches", "count",
						COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_PROCESS_USER_NS] = {"CPU load, user", "%", COUNTER_KIND_CPU_LOAD},
	[SPOOL_PROCESS_SYSTEM_NS] = {"CPU load, system", "%", COUNTER_KIND_CPU_LOAD},
	[SPOOL_PROCESS_THREADS] = {"Threads", "count", COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_PROCESS_READ_BYTES] = {"Read from storage", "bytes", COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_PROCESS_WRITTEN_BYTES] = {"Written to storage", "bytes", COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_PROCESS_READ_CHARS] = {"Read by calls", "bytes", COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_PROCESS_WRITTEN_CHARS] = {"Written by calls", "bytes", COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_HOST_CPU_BUSY_NS] = {"Host CPU load", "%", COUNTER_KIND_HOST_BUSY},
	[SPOOL_HOST_CPU_TOTAL_NS] = {"Host CPU load", "%", COUNTER_KIND_HOST_TOTAL},
	[SPOOL_CGROUP_CPU_LIMIT] = {"CPU limit, thousandths of a CPU", "count",
				    COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_CGROUP_PERIODS] = {"CPU limit, periods", "count", COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_CGROUP_THROTTLED_PERIODS] = {"CPU limit, periods stopped", "count",
					    COUNTER_KIND_PLAIN_VALUE},
	[SPOOL_CGROUP_THROTTLED_NS] = {"CPU limit, time stopped", "ns", COUNTER_KIND_PLAIN_VALUE},
};
#define PROCESS_COUNTER_COUNT ARRAY_SIZE(process_counter_definitions)

struct counter_reading {
	uint64_t time_ns, value;
};

/* What is known while the metrics of one process are walked. */
struct process_counter_writer_state {
	struct perfetto_trace *trace;
	uint64_t process_track_uuid;
	struct counter_reading last_readings[PROCESS_COUNTER_COUNT];
	struct counter_reading pending_host_busy; /* waits for the total of the same time */
	uint64_t described_counter_bits;          /* bitmap of counter tracks of this process */
	uint64_t host_metrics_from_ns;  /* host metrics before are known from another process */
	uint64_t host_metrics_until_ns; /* latest host metric of this process */
	bool is_host_track_described;
};

void perfetto_write_counter_descriptor(struct perfetto_trace *trace, uint64_t uuid, uint64_t parent,
				       const char *name, const char *unit)
{
	struct protobuf_writer *writer = &trace->writer;

	perfetto_open_metadata_packet(trace, 0);
	protobuf_open_message(writer, PACKET_FIELD_TRACK_DESCRIPTOR);
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_UUID, uuid);
	protobuf_write_string(writer, TRACK_DESCRIPTOR_FIELD_NAME, name);
	if (parent != 0)
		protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_PARENT_UUID, parent);
	/* A name that the program made up may be one of ours. */
	if (unit == NULL)
		protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_MERGE_BEHAVIOR,
				    SIBLING_MERGE_BEHAVIOR_NONE);
	protobuf_open_message(writer, TRACK_DESCRIPTOR_FIELD_COUNTER);
	if (unit == NULL)
		protobuf_write_uint(writer, 3, COUNTER_UNIT_UNSPECIFIED);
	else if (strcmp(unit, "ns") == 0)
		protobuf_write_uint(writer, 3, COUNTER_UNIT_NS);
	else if (strcmp(unit, "count") == 0)
		protobuf_write_uint(writer, 3, COUNTER_UNIT_COUNT);
	else if (strcmp(unit, "bytes") == 0)
		protobuf_write_uint(writer, 3, COUNTER_UNIT_BYTES);
	else
		protobuf_write_string(writer, 6, unit);
	protobuf_close_message(writer);
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

static void open_counter_event(struct perfetto_trace *trace, uint64_t uuid, uint64_t time_ns)
{
	perfetto_open_metadata_packet(trace, time_ns);
	protobuf_open_message(&trace->writer, PACKET_FIELD_TRACK_EVENT);
	protobuf_write_uint(&trace->writer, TRACK_EVENT_FIELD_TYPE, TRACK_EVENT_TYPE_COUNTER);
	protobuf_write_uint(&trace->writer, TRACK_EVENT_FIELD_TRACK_UUID, uuid);
}

static void close_counter_event(struct perfetto_trace *trace)
{
	protobuf_close_message(&trace->writer);
	perfetto_close_metadata_packet(trace);
}

void perfetto_write_counter_value(struct perfetto_trace *trace, uint64_t uuid, uint64_t time_ns,
				  uint64_t value)
{
	open_counter_event(trace, uuid, time_ns);
	protobuf_write_uint(&trace->writer, TRACK_EVENT_FIELD_COUNTER_VALUE, value);
	close_counter_event(trace);
}

void perfetto_write_counter_percent(struct perfetto_trace *trace, uint64_t uuid, uint64_t time_ns,
				    uint64_t part, uint64_t whole)
{
	open_counter_event(trace, uuid, time_ns);
	protobuf_write_double(&trace->writer, TRACK_EVENT_FIELD_DOUBLE_COUNTER,
			      100.0 * (double)part / (double)whole);
	close_counter_event(trace);
}

static void write_host_load(struct process_counter_writer_state *walk,
			    const struct model_metric_sample *sample)
{
	struct counter_reading *total = &walk->last_readings[SPOOL_HOST_CPU_TOTAL_NS];
	struct counter_reading *busy = &walk->last_readings[SPOOL_HOST_CPU_BUSY_NS];

	if (walk->pending_host_busy.time_ns != sample->time_ns)
		return;
	if (total->time_ns != 0 && sample->value > total->value &&
	    walk->pending_host_busy.value >= busy->value) {
		if (!walk->is_host_track_described)
			perfetto_write_counter_descriptor(walk->trace, HOST_LOAD_TRACK_UUID, 0,
							  "Host CPU load", "%");
		walk->is_host_track_described = true;
		perfetto_write_counter_percent(walk->trace, HOST_LOAD_TRACK_UUID, sample->time_ns,
					       walk->pending_host_busy.value - busy->value,
					       sample->value - total->value);
	}
	*busy = walk->pending_host_busy;
	*total = (struct counter_reading){sample->time_ns, sample->value};
}

static void write_cpu_frequency(struct perfetto_trace *trace,
				const struct model_metric_sample *sample)
{
	perfetto_open_metadata_packet(trace, sample->time_ns);
	protobuf_open_message(&trace->writer, PACKET_FIELD_CPU_FREQUENCY);
	protobuf_write_uint(&trace->writer, 1, sample->metric - SPOOL_HOST_CPU_FREQUENCY_KHZ);
	protobuf_write_uint(&trace->writer, 2, sample->value * 1000);
	protobuf_close_message(&trace->writer);
	perfetto_close_metadata_packet(trace);
}

/* True if it was a metric of the host. */
static bool write_metric_if_of_host(struct process_counter_writer_state *walk,
				    const struct model_metric_sample *sample)
{
	bool is_frequency = sample->metric >= SPOOL_HOST_CPU_FREQUENCY_KHZ &&
			    sample->metric < SPOOL_HOST_CPU_FREQUENCY_KHZ + HOST_CPUS_MAX;

	if (!is_frequency && sample->metric != SPOOL_HOST_CPU_BUSY_NS &&
	    sample->metric != SPOOL_HOST_CPU_TOTAL_NS)
		return false;
	if (sample->time_ns > walk->host_metrics_until_ns)
		walk->host_metrics_until_ns = sample->time_ns;
	if (sample->time_ns <= walk->host_metrics_from_ns)
		return true;
	if (is_frequency)
		write_cpu_frequency(walk->trace, sample);
	else if (sample->metric == SPOOL_HOST_CPU_BUSY_NS)
		walk->pending_host_busy = (struct counter_reading){sample->time_ns, sample->value};
	else
		write_host_load(walk, sample);
	return true;
}

static void write_process_metric(struct process_counter_writer_state *walk,
				 const struct model_metric_sample *sample)
{
	if (sample->metric >= PROCESS_COUNTER_COUNT ||
	    process_counter_definitions[sample->metric].name == NULL)
		return;
	const struct process_counter_definition *counter =
		&process_counter_definitions[sample->metric];
	struct counter_reading *last = &walk->last_readings[sample->metric];
	uint64_t track = walk->process_track_uuid | PROCESS_COUNTER_TRACK_BIT | sample->metric;

	if ((walk->described_counter_bits & UINT64_C(1) << sample->metric) == 0) {
		walk->described_counter_bits |= UINT64_C(1) << sample->metric;
		perfetto_write_counter_descriptor(walk->trace, track, walk->process_track_uuid,
						  counter->name, counter->unit);
	}
	/* A counter keeps its value until the next one. */
	if (counter->kind == COUNTER_KIND_PLAIN_VALUE && last->time_ns != 0 &&
	    last->value == sample->value)
		return;
	if (counter->kind == COUNTER_KIND_PLAIN_VALUE)
		perfetto_write_counter_value(walk->trace, track, sample->time_ns, sample->value);
	else if (last->time_ns != 0 && sample->time_ns > last->time_ns &&
		 sample->value >= last->value)
		perfetto_write_counter_percent(walk->trace, track, sample->time_ns,
					       sample->value - last->value,
					       sample->time_ns - last->time_ns);
	*last = (struct counter_reading){sample->time_ns, sample->value};
}

void perfetto_write_all_process_counters(struct perfetto_trace *trace)
{
	const struct session *session = trace->session;
	uint64_t host_known_until_ns = 0;
	bool host_described = false;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];
		struct process_counter_writer_state walk = {
			.trace = trace,
			.process_track_uuid = perfetto_get_process_track_uuid(trace, i),
			.host_metrics_from_ns = host_known_until_ns,
			.is_host_track_described = host_described};
		for (size_t k = 0; k < process->metric_count; k++) {
			if (!write_metric_if_of_host(&walk, &process->metrics[k]))
				write_process_metric(&walk, &process->metrics[k]);
		}
		if (walk.host_metrics_until_ns > host_known_until_ns)
			host_known_until_ns = walk.host_metrics_until_ns;
		host_described = walk.is_host_track_described;
	}
}

static const char *get_notice_event_name(enum spool_notice kind)
{
	switch (kind) {
	case SPOOL_NOTICE_SOURCE:
		return "kymo: sampling source";
	case SPOOL_NOTICE_FALLBACK:
		return "kymo: fall-back";
	case SPOOL_NOTICE_THROTTLE:
		return "kymo: rate lowered";
	case SPOOL_NOTICE_WINDOW:
		return "kymo: time window";
	case SPOOL_NOTICE_DISABLED:
		return "kymo: collector disabled";
	case SPOOL_NOTICE_EXEC:
		return "kymo: exec";
	case SPOOL_NOTICE_LOW_COVERAGE:
		return "kymo: low coverage";
	case SPOOL_NOTICE_CONFLICT:
		return "kymo: signal conflict";
	case SPOOL_NOTICE_NOT_FOLLOWED:
		return "kymo: child not profiled";
	case SPOOL_NOTICE_SOURCE_CHANGED:
		return "kymo: CPU timer for a thread that changes context often";
	case SPOOL_NOTICE_SWITCH_COST:
		return "kymo: perf events cost much at changes of context";
	}
	return "kymo: notice";
}

static void write_notice_instant(struct perfetto_trace *trace, uint32_t process,
				 const struct model_notice *notice)
{
	struct protobuf_writer *writer = &trace->writer;

	perfetto_open_metadata_packet(trace, notice->time_ns);
	protobuf_open_message(writer, PACKET_FIELD_TRACK_EVENT);
	protobuf_write_uint(writer, TRACK_EVENT_FIELD_TYPE, TRACK_EVENT_TYPE_INSTANT);
	protobuf_write_uint(writer, TRACK_EVENT_FIELD_TRACK_UUID,
			    perfetto_get_process_track_uuid(trace, process));
	protobuf_write_string(writer, TRACK_EVENT_FIELD_CATEGORIES, "kymo");
	protobuf_write_string(writer, TRACK_EVENT_FIELD_NAME, get_notice_event_name(notice->kind));
	protobuf_open_message(writer, TRACK_EVENT_FIELD_ANNOTATIONS);
	protobuf_write_string(writer, 10, "text");
	protobuf_write_string(writer, 6, notice->text);
	protobuf_close_message(writer);
	protobuf_open_message(writer, TRACK_EVENT_FIELD_ANNOTATIONS);
	protobuf_write_string(writer, 10, "argument");
	protobuf_write_uint(writer, 3, notice->argument);
	protobuf_close_message(writer);
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

void perfetto_write_notices(struct perfetto_trace *trace)
{
	const struct session *session = trace->session;

	for (uint32_t i = 0; i < session->process_count; i++) {
		for (size_t k = 0; k < session->processes[i].notice_count; k++)
			write_notice_instant(trace, i, &session->processes[i].notices[k]);
	}
}
