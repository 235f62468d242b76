/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counter tracks from the background thread's process metrics, and notices as instants on their
 * process. Times that only grow become loads in percent; other sums stay sums, which the UI can
 * show as rates. What concerns the whole host is taken from one process at a time.
 */
#include <inttypes.h>
#include <string.h>

#include "output/perfetto.h"

enum {
	DESCRIPTOR_UUID = 1,
	DESCRIPTOR_NAME = 2,
	DESCRIPTOR_PARENT = 5,
	DESCRIPTOR_COUNTER = 8,
	DESCRIPTOR_MERGING = 15,
	MERGING_NONE = 2,
	COUNTER_UNIT_UNSPECIFIED = 0,
	COUNTER_UNIT_NS = 1,
	COUNTER_UNIT_COUNT = 2,
	COUNTER_UNIT_BYTES = 3,

	/* Global tracks; processes begin at 1 << 32. */
	TRACK_HOST_LOAD = 1,
	HOST_CPU_MAX = 1024,
};
#define PROCESS_COUNTER_BIT (UINT64_C(1) << 31)

enum counter_kind {
	COUNTER_VALUE,     /* as it is */
	COUNTER_LOAD,      /* ns of CPU time: percent of one CPU since the last reading */
	COUNTER_HOST_BUSY, /* with COUNTER_HOST_TOTAL of the same time: percent of all CPUs */
	COUNTER_HOST_TOTAL,
};

struct process_counter {
	const char *name, *unit;
	enum counter_kind kind;
};

static const struct process_counter process_counters[] = {
	[SPOOL_PROCESS_RSS_BYTES] = {"Resident memory", "bytes", COUNTER_VALUE},
	[SPOOL_PROCESS_VIRTUAL_BYTES] = {"Virtual memory", "bytes", COUNTER_VALUE},
	[SPOOL_PROCESS_PEAK_RSS_BYTES] = {"Peak resident memory", "bytes", COUNTER_VALUE},
	[SPOOL_PROCESS_MINOR_FAULTS] = {"Minor page faults", "count", COUNTER_VALUE},
	[SPOOL_PROCESS_MAJOR_FAULTS] = {"Major page faults", "count", COUNTER_VALUE},
	[SPOOL_PROCESS_VOLUNTARY_SWITCHES] = {"Voluntary context switches", "count", COUNTER_VALUE},
	[SPOOL_PROCESS_INVOLUNTARY_SWITCHES] = {"Involuntary context switches", "count",
						COUNTER_VALUE},
	[SPOOL_PROCESS_USER_NS] = {"CPU load, user", "%", COUNTER_LOAD},
	[SPOOL_PROCESS_SYSTEM_NS] = {"CPU load, system", "%", COUNTER_LOAD},
	[SPOOL_PROCESS_THREADS] = {"Threads", "count", COUNTER_VALUE},
	[SPOOL_PROCESS_READ_BYTES] = {"Read from storage", "bytes", COUNTER_VALUE},
	[SPOOL_PROCESS_WRITTEN_BYTES] = {"Written to storage", "bytes", COUNTER_VALUE},
	[SPOOL_PROCESS_READ_CHARS] = {"Read by calls", "bytes", COUNTER_VALUE},
	[SPOOL_PROCESS_WRITTEN_CHARS] = {"Written by calls", "bytes", COUNTER_VALUE},
	[SPOOL_HOST_CPU_BUSY_NS] = {"Host CPU load", "%", COUNTER_HOST_BUSY},
	[SPOOL_HOST_CPU_TOTAL_NS] = {"Host CPU load", "%", COUNTER_HOST_TOTAL},
};
#define PROCESS_COUNTER_COUNT (sizeof(process_counters) / sizeof(*process_counters))

struct reading {
	uint64_t time_ns, value;
};

/* What is known while the metrics of one process are walked. */
struct counter_walk {
	struct perfetto *trace;
	uint64_t process_track;
	struct reading last[PROCESS_COUNTER_COUNT];
	struct reading host_busy; /* waits for the total of the same time */
	uint64_t described;       /* bitmap of counter tracks of this process */
	uint64_t host_from_ns;    /* host metrics before are known from another process */
	uint64_t host_until_ns;   /* latest host metric of this process */
	bool host_described;
};

void perfetto_describe_counter(struct perfetto *trace, uint64_t uuid, uint64_t parent,
			       const char *name, const char *unit)
{
	struct protobuf *writer = &trace->writer;

	perfetto_open_packet(trace, 0);
	protobuf_open(writer, PACKET_TRACK_DESCRIPTOR);
	protobuf_uint(writer, DESCRIPTOR_UUID, uuid);
	protobuf_string(writer, DESCRIPTOR_NAME, name);
	if (parent != 0)
		protobuf_uint(writer, DESCRIPTOR_PARENT, parent);
	/* A name that the program made up may be one of ours. */
	if (unit == NULL)
		protobuf_uint(writer, DESCRIPTOR_MERGING, MERGING_NONE);
	protobuf_open(writer, DESCRIPTOR_COUNTER);
	if (unit == NULL)
		protobuf_uint(writer, 3, COUNTER_UNIT_UNSPECIFIED);
	else if (strcmp(unit, "ns") == 0)
		protobuf_uint(writer, 3, COUNTER_UNIT_NS);
	else if (strcmp(unit, "count") == 0)
		protobuf_uint(writer, 3, COUNTER_UNIT_COUNT);
	else if (strcmp(unit, "bytes") == 0)
		protobuf_uint(writer, 3, COUNTER_UNIT_BYTES);
	else
		protobuf_string(writer, 6, unit);
	protobuf_close(writer);
	protobuf_close(writer);
	perfetto_close_packet(trace);
}

static void open_counter_event(struct perfetto *trace, uint64_t uuid, uint64_t time_ns)
{
	perfetto_open_packet(trace, time_ns);
	protobuf_open(&trace->writer, PACKET_TRACK_EVENT);
	protobuf_uint(&trace->writer, TRACK_EVENT_TYPE, TRACK_EVENT_COUNTER_TYPE);
	protobuf_uint(&trace->writer, TRACK_EVENT_TRACK, uuid);
}

static void close_counter_event(struct perfetto *trace)
{
	protobuf_close(&trace->writer);
	perfetto_close_packet(trace);
}

void perfetto_write_counter(struct perfetto *trace, uint64_t uuid, uint64_t time_ns, uint64_t value)
{
	open_counter_event(trace, uuid, time_ns);
	protobuf_uint(&trace->writer, TRACK_EVENT_COUNTER, value);
	close_counter_event(trace);
}

static void write_percent(struct perfetto *trace, uint64_t uuid, uint64_t time_ns, uint64_t part,
			  uint64_t whole)
{
	open_counter_event(trace, uuid, time_ns);
	protobuf_double(&trace->writer, TRACK_EVENT_DOUBLE_COUNTER,
			100.0 * (double)part / (double)whole);
	close_counter_event(trace);
}

static void write_host_load(struct counter_walk *walk, const struct model_metric_sample *sample)
{
	struct reading *total = &walk->last[SPOOL_HOST_CPU_TOTAL_NS];
	struct reading *busy = &walk->last[SPOOL_HOST_CPU_BUSY_NS];

	if (walk->host_busy.time_ns != sample->time_ns)
		return;
	if (total->time_ns != 0 && sample->value > total->value &&
	    walk->host_busy.value >= busy->value) {
		if (!walk->host_described)
			perfetto_describe_counter(walk->trace, TRACK_HOST_LOAD, 0, "Host CPU load",
						  "%");
		walk->host_described = true;
		write_percent(walk->trace, TRACK_HOST_LOAD, sample->time_ns,
			      walk->host_busy.value - busy->value, sample->value - total->value);
	}
	*busy = walk->host_busy;
	*total = (struct reading){sample->time_ns, sample->value};
}

static void write_cpu_frequency(struct perfetto *trace, const struct model_metric_sample *sample)
{
	perfetto_open_packet(trace, sample->time_ns);
	protobuf_open(&trace->writer, PACKET_CPU_FREQUENCY);
	protobuf_uint(&trace->writer, 1, sample->metric - SPOOL_HOST_CPU_FREQUENCY_KHZ);
	protobuf_uint(&trace->writer, 2, sample->value * 1000);
	protobuf_close(&trace->writer);
	perfetto_close_packet(trace);
}

/* True if it was a metric of the host. */
static bool write_host_metric(struct counter_walk *walk, const struct model_metric_sample *sample)
{
	bool is_frequency = sample->metric >= SPOOL_HOST_CPU_FREQUENCY_KHZ &&
			    sample->metric < SPOOL_HOST_CPU_FREQUENCY_KHZ + HOST_CPU_MAX;

	if (!is_frequency && sample->metric != SPOOL_HOST_CPU_BUSY_NS &&
	    sample->metric != SPOOL_HOST_CPU_TOTAL_NS)
		return false;
	if (sample->time_ns > walk->host_until_ns)
		walk->host_until_ns = sample->time_ns;
	if (sample->time_ns <= walk->host_from_ns)
		return true;
	if (is_frequency)
		write_cpu_frequency(walk->trace, sample);
	else if (sample->metric == SPOOL_HOST_CPU_BUSY_NS)
		walk->host_busy = (struct reading){sample->time_ns, sample->value};
	else
		write_host_load(walk, sample);
	return true;
}

static void write_process_metric(struct counter_walk *walk,
				 const struct model_metric_sample *sample)
{
	if (sample->metric >= PROCESS_COUNTER_COUNT ||
	    process_counters[sample->metric].name == NULL)
		return;
	const struct process_counter *counter = &process_counters[sample->metric];
	struct reading *last = &walk->last[sample->metric];
	uint64_t track = walk->process_track | PROCESS_COUNTER_BIT | sample->metric;

	if ((walk->described & UINT64_C(1) << sample->metric) == 0) {
		walk->described |= UINT64_C(1) << sample->metric;
		perfetto_describe_counter(walk->trace, track, walk->process_track, counter->name,
					  counter->unit);
	}
	/* A counter keeps its value until the next one. */
	if (counter->kind == COUNTER_VALUE && last->time_ns != 0 && last->value == sample->value)
		return;
	if (counter->kind == COUNTER_VALUE)
		perfetto_write_counter(walk->trace, track, sample->time_ns, sample->value);
	else if (last->time_ns != 0 && sample->time_ns > last->time_ns &&
		 sample->value >= last->value)
		write_percent(walk->trace, track, sample->time_ns, sample->value - last->value,
			      sample->time_ns - last->time_ns);
	*last = (struct reading){sample->time_ns, sample->value};
}

void perfetto_write_process_counters(struct perfetto *trace)
{
	const struct session *session = trace->session;
	uint64_t host_known_until_ns = 0;
	bool host_described = false;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];
		struct counter_walk walk = {.trace = trace,
					    .process_track = perfetto_process_track(trace, i),
					    .host_from_ns = host_known_until_ns,
					    .host_described = host_described};
		for (size_t k = 0; k < process->metric_count; k++) {
			if (!write_host_metric(&walk, &process->metrics[k]))
				write_process_metric(&walk, &process->metrics[k]);
		}
		if (walk.host_until_ns > host_known_until_ns)
			host_known_until_ns = walk.host_until_ns;
		host_described = walk.host_described;
	}
}

static const char *notice_name(enum spool_notice kind)
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
	}
	return "kymo: notice";
}

static void write_notice(struct perfetto *trace, uint32_t process,
			 const struct model_notice *notice)
{
	struct protobuf *writer = &trace->writer;

	perfetto_open_packet(trace, notice->time_ns);
	protobuf_open(writer, PACKET_TRACK_EVENT);
	protobuf_uint(writer, TRACK_EVENT_TYPE, TRACK_EVENT_INSTANT);
	protobuf_uint(writer, TRACK_EVENT_TRACK, perfetto_process_track(trace, process));
	protobuf_string(writer, TRACK_EVENT_CATEGORIES, "kymo");
	protobuf_string(writer, TRACK_EVENT_NAME, notice_name(notice->kind));
	protobuf_open(writer, TRACK_EVENT_ANNOTATIONS);
	protobuf_string(writer, 10, "text");
	protobuf_string(writer, 6, notice->text);
	protobuf_close(writer);
	protobuf_open(writer, TRACK_EVENT_ANNOTATIONS);
	protobuf_string(writer, 10, "argument");
	protobuf_uint(writer, 3, notice->argument);
	protobuf_close(writer);
	protobuf_close(writer);
	perfetto_close_packet(trace);
}

void perfetto_write_notices(struct perfetto *trace)
{
	const struct session *session = trace->session;

	for (uint32_t i = 0; i < session->process_count; i++) {
		for (size_t k = 0; k < session->processes[i].notice_count; k++)
			write_notice(trace, i, &session->processes[i].notices[k]);
	}
}
