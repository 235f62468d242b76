/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The Perfetto trace, shared by the perfetto*.c files: state, field numbers, track numbering.
 *
 * A trace is a sequence of packets. Metadata, tracks and counters go on one packet sequence with
 * absolute CLOCK_BOOTTIME stamps; the samples of each process go on a sequence of their own, which
 * interns mappings, frames and call stacks once. Overflow samples have a second sequence a process,
 * because a sequence names one source for its StackSamples. The regions of each thread have one
 * too, see perfetto_regions.h.
 *
 * Field numbers: protos/perfetto/trace/{trace_packet,interned_data}.proto and the files they
 * import, https://perfetto.dev/docs/reference/trace-packet-proto
 */
#ifndef KYMO_OUTPUT_PERFETTO_H
#define KYMO_OUTPUT_PERFETTO_H

#include "output/output.h"
#include "output/protobuf.h"

enum {
	TRACE_PACKET = 1,

	PACKET_PROCESS_TREE = 2,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACE_STATS = 35,
	PACKET_SYSTEM_INFO = 45,
	PACKET_COMPRESSED_PACKETS = 50,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_PERF_SAMPLE = 66,
	PACKET_TRACE_UUID = 89,
	PACKET_CPU_FREQUENCY = 118,
	PACKET_TRACE_ATTRIBUTES = 126,
	PACKET_STACK_SAMPLE = 135,

	SEQUENCE_STATE_CLEARED = 1,
	SEQUENCE_NEEDS_STATE = 2,

	/* trusted_packet_sequence_id; 0 is not allowed. */
	SEQUENCE_METADATA = 1,
	SEQUENCE_FIRST_PROCESS = 2,

	TRACK_EVENT_NAME = 23,
	TRACK_EVENT_TYPE = 9,
	TRACK_EVENT_TRACK = 11,
	TRACK_EVENT_CATEGORIES = 22,
	TRACK_EVENT_COUNTER = 30,
	TRACK_EVENT_DOUBLE_COUNTER = 44,
	TRACK_EVENT_ANNOTATIONS = 4,
	TRACK_EVENT_INSTANT = 3,
	TRACK_EVENT_COUNTER_TYPE = 4,
};

/* Which of a process's two sequences; also the index of its interning tables. */
enum perfetto_stream {
	PERFETTO_STREAM_TIME,     /* CPU, WALL and RUNNABLE samples */
	PERFETTO_STREAM_OVERFLOW, /* perf event overflows */
	PERFETTO_STREAM_COUNT
};

/* For each thing of the model: the sequence that has interned it last. Nodes, frames and modules
 * belong to one process each, so "last" is "the only one" except for synthetic frames, which are
 * interned again when they change sequence. */
struct perfetto_interned {
	uint32_t *nodes, *frames, *functions, *sources, *modules;
};

/* The counters of a thread. */
struct perfetto_metrics {
	uint64_t written_ns, written[SPOOL_METRIC_COUNT];
	uint64_t pending_ns, pending[SPOOL_METRIC_COUNT]; /* read since then; 0: nothing was */
	uint32_t described;                               /* bitmap of their tracks */
};

struct perfetto {
	struct session *session;
	const struct output_options *options;
	struct problem *problem;
	struct protobuf writer;

	/* perfetto_tracks.c: the track group of each process. Images of one process (exec) share
	 * one, as they share the pid. */
	uint32_t *group_of_process;
	uint32_t *next_image; /* process index, MODEL_NONE at the last image */
	bool *is_first_image;
	uint32_t group_count;

	/* perfetto_interning.c */
	struct perfetto_interned interned[PERFETTO_STREAM_COUNT];
	uint32_t *source_of_frame; /* dense id of the frame's source path, MODEL_NONE without one */
	uint32_t source_count;
	uint32_t *path; /* frames from leaf to root, room for the deepest node */
	uint8_t *begun; /* bit per stream, by process */

	/* perfetto_samples.c */
	struct perfetto_metrics *metrics; /* by thread */
	uint64_t metric_interval_ns;      /* counters of a thread are not written more often */

	/* perfetto_regions.c */
	uint64_t regions_too_deep; /* left out, because readers close the wrong slices */
};

/* Track uuids: the process group in the upper half; below, threads have 16 slots each (0 the thread
 * itself, 1 + n its counter n), process counters have the top bit set. Tracks of regions are
 * numbered as they come, with 0 in the upper half. Small numbers are short. */
static inline uint64_t perfetto_process_track(const struct perfetto *trace, uint32_t process)
{
	return (uint64_t)(trace->group_of_process[process] + 1) << 32;
}

static inline uint64_t perfetto_thread_track(const struct perfetto *trace, uint32_t thread)
{
	uint32_t process = trace->session->threads[thread].process;
	return perfetto_process_track(trace, process) | ((uint64_t)thread + 1) << 4;
}

static inline uint32_t perfetto_sequence(uint32_t process, enum perfetto_stream stream)
{
	return SEQUENCE_FIRST_PROCESS + process * PERFETTO_STREAM_COUNT + stream;
}

/* A packet on the metadata sequence; time_ns 0: without a timestamp. */
void perfetto_open_packet(struct perfetto *trace, uint64_t time_ns);
void perfetto_close_packet(struct perfetto *trace);

/* perfetto_metadata.c */
void perfetto_write_preamble(struct perfetto *trace);
void perfetto_write_losses(struct perfetto *trace);

/* perfetto_tracks.c; 0 or -ENOMEM */
int perfetto_group_processes(struct perfetto *trace);
void perfetto_tracks_deinit(struct perfetto *trace);
void perfetto_write_tracks(struct perfetto *trace);
/* A track for slices that shares its place with no other of the same name. */
void perfetto_describe_track(struct perfetto *trace, uint64_t uuid, uint64_t parent,
			     const char *name);

/* perfetto_counters.c */
void perfetto_write_process_counters(struct perfetto *trace);
void perfetto_write_notices(struct perfetto *trace);
/* `unit` as users read it: "bytes", "ns" and "count" get Perfetto's own units; NULL for none. */
void perfetto_describe_counter(struct perfetto *trace, uint64_t uuid, uint64_t parent,
			       const char *name, const char *unit);
void perfetto_write_counter(struct perfetto *trace, uint64_t uuid, uint64_t time_ns,
			    uint64_t value);

/* perfetto_interning.c */
int perfetto_interning_init(struct perfetto *trace); /* 0 or -ENOMEM */
void perfetto_interning_deinit(struct perfetto *trace);
void perfetto_intern_stack(struct perfetto *trace, uint32_t process, enum perfetto_stream stream,
			   uint32_t node);

/* perfetto_samples.c; 0 or negative errno */
int perfetto_write_samples(struct perfetto *trace);

/* perfetto_regions.c; 0 or negative errno */
int perfetto_write_regions(struct perfetto *trace);

/* perfetto_nccl.c; 0 or negative errno */
int perfetto_write_nccl(struct perfetto *trace);
/* perfetto_gpu.c; 0 or -ENOMEM */
int perfetto_write_gpu(struct perfetto *trace);
/* The process in the session that the file is of, or MODEL_NONE. */
struct gpu_process;
uint32_t perfetto_gpu_model(const struct session *session, const struct gpu_process *process);
/* perfetto_gpu_counts.c; 0 or -ENOMEM */
int perfetto_write_gpu_counts(struct perfetto *trace);

/* perfetto_bundle.c: a sink that packs packets into zlib-compressed bundles on the way to `stream`.
 */
struct perfetto_bundle {
	FILE *stream;
	uint8_t *compressed;
	size_t capacity;
};
int perfetto_bundle_sink(void *context, const uint8_t *bytes, size_t size);
void perfetto_bundle_deinit(struct perfetto_bundle *bundle);

#endif
