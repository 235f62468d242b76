/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The Perfetto trace, shared by the perfetto*.c files: state, field numbers, track numbering.
 *
 * A trace is a sequence of packets. Metadata, tracks and counters go on one packet sequence with
 * absolute CLOCK_BOOTTIME stamps; the samples of each process go on a sequence of their own, which
 * interns mappings, frames and call stacks once. Overflow samples have a second sequence a process,
 * because a sequence names one source for its StackSamples. The regions of each thread have one
 * too, see regions.h.
 *
 * Field numbers: protos/perfetto/trace/{trace_packet,interned_data}.proto and the files they
 * import, https://perfetto.dev/docs/reference/trace-packet-proto
 */
#ifndef KYMO_OUTPUT_PERFETTO_PERFETTO_H
#define KYMO_OUTPUT_PERFETTO_PERFETTO_H

#include "output/output.h"
#include "output/protobuf.h"

enum {
	TRACE_FIELD_PACKET = 1,

	PACKET_FIELD_PROCESS_TREE = 2,
	PACKET_FIELD_CLOCK_SNAPSHOT = 6,
	PACKET_FIELD_TIMESTAMP = 8,
	PACKET_FIELD_SEQUENCE_ID = 10,
	PACKET_FIELD_TRACK_EVENT = 11,
	PACKET_FIELD_INTERNED_DATA = 12,
	PACKET_FIELD_SEQUENCE_FLAGS = 13,
	PACKET_FIELD_TRACE_STATS = 35,
	PACKET_FIELD_SYSTEM_INFO = 45,
	PACKET_FIELD_COMPRESSED_PACKETS = 50,
	PACKET_FIELD_DEFAULTS = 59,
	PACKET_FIELD_TRACK_DESCRIPTOR = 60,
	PACKET_FIELD_PERF_SAMPLE = 66,
	PACKET_FIELD_TRACE_UUID = 89,
	PACKET_FIELD_CPU_FREQUENCY = 118,
	PACKET_FIELD_TRACE_ATTRIBUTES = 126,
	PACKET_FIELD_STACK_SAMPLE = 135,

	SEQUENCE_FLAG_STATE_CLEARED = 1,
	SEQUENCE_FLAG_NEEDS_STATE = 2,

	/* trusted_packet_sequence_id; 0 is not allowed. */
	SEQUENCE_ID_METADATA = 1,
	SEQUENCE_ID_FIRST_PROCESS = 2,

	TRACK_EVENT_FIELD_NAME = 23,
	TRACK_EVENT_FIELD_TYPE = 9,
	TRACK_EVENT_FIELD_TRACK_UUID = 11,
	TRACK_EVENT_FIELD_CATEGORIES = 22,
	TRACK_EVENT_FIELD_COUNTER_VALUE = 30,
	TRACK_EVENT_FIELD_DOUBLE_COUNTER = 44,
	TRACK_EVENT_FIELD_ANNOTATIONS = 4,
	TRACK_EVENT_TYPE_INSTANT = 3,
	TRACK_EVENT_TYPE_COUNTER = 4,
};

/* Which of a process's two sequences; also the index of its interning tables. */
enum perfetto_sample_stream_kind {
	PERFETTO_STREAM_TIME_SAMPLES,     /* CPU, WALL and RUNNABLE samples */
	PERFETTO_STREAM_OVERFLOW_SAMPLES, /* perf event overflows */
	PERFETTO_STREAM_COUNT
};

/* For each thing of the model: the sequence that has interned it last. Nodes, frames and modules
 * belong to one process each, so "last" is "the only one" except for synthetic frames, which are
 * interned again when they change sequence. */
struct perfetto_interning_sequence_tables {
	uint32_t *nodes, *frames, *functions, *sources, *modules;
};

/* The counters of a thread. */
struct perfetto_thread_metric_state {
	uint64_t written_time_ns, written[SPOOL_METRIC_COUNT];
	uint64_t pending_time_ns, pending[SPOOL_METRIC_COUNT]; /* read since then; 0: nothing was */
	uint32_t described;                                    /* bitmap of their tracks */
};

struct perfetto_trace {
	struct session *session;
	const struct output_options *options;
	struct problem *problem;
	struct protobuf_writer writer;

	/* tracks.c: the track group of each process. Images of one process (exec) share
	 * one, as they share the pid. */
	uint32_t *group_of_process;
	uint32_t *
		next_image_of_process; /* process index, MODEL_ENTRY_INDEX_NONE at the last image */
	bool *is_first_image_by_process;
	uint32_t group_count;

	/* interning.c */
	struct perfetto_interning_sequence_tables interning_tables[PERFETTO_STREAM_COUNT];
	uint32_t *source_path_id_of_frame; /* dense id of the frame's source path,
				      MODEL_ENTRY_INDEX_NONE without one */
	uint32_t source_path_count;
	uint32_t *path; /* frames from leaf to root, room for the deepest node */
	uint8_t *begun; /* bit per stream, by process */

	/* samples.c */
	struct perfetto_thread_metric_state *metrics; /* by thread */
	uint64_t metric_interval_ns; /* counters of a thread are not written more often */

	/* queued.c: by thread, NULL where it never waited for a CPU; ns in each piece */
	uint64_t **cpu_wait_ns_of_thread, cpu_wait_interval_ns;

	/* interpreter_states.c */
	struct perfetto_interpreter_states *interpreter_states;

	/* regions.c */
	uint64_t too_deep_region_count; /* left out, because readers close the wrong slices */
};

/* Track uuids: the process group in the upper half; below, threads have 16 slots each (0 the thread
 * itself, 1 + n its counter n, 15 its waiting for a CPU), process counters have the top bit set.
 * Below the top bit, bit 30 is set in tracks of what threads do about Python's global lock. Tracks
 * of regions are numbered as they come, with 0 in the upper half. Small numbers are short.
 */
#define PERFETTO_CPU_WAIT_TRACK_OFFSET 15
_Static_assert(1 + SPOOL_METRIC_COUNT <= PERFETTO_CPU_WAIT_TRACK_OFFSET,
	       "slots of a thread's counters");

static inline uint64_t perfetto_get_process_track_uuid(const struct perfetto_trace *trace,
						       uint32_t process)
{
	return (uint64_t)(trace->group_of_process[process] + 1) << 32;
}

static inline uint64_t perfetto_get_thread_track_uuid(const struct perfetto_trace *trace,
						      uint32_t thread)
{
	uint32_t process = trace->session->threads[thread].process;
	return perfetto_get_process_track_uuid(trace, process) | ((uint64_t)thread + 1) << 4;
}

static inline uint32_t perfetto_get_sample_sequence_id(uint32_t process,
						       enum perfetto_sample_stream_kind stream)
{
	return SEQUENCE_ID_FIRST_PROCESS + process * PERFETTO_STREAM_COUNT + stream;
}

/* A packet on the metadata sequence; time_ns 0: without a timestamp. */
void perfetto_open_metadata_packet(struct perfetto_trace *trace, uint64_t time_ns);
void perfetto_close_metadata_packet(struct perfetto_trace *trace);

/* metadata.c */
void perfetto_write_preamble(struct perfetto_trace *trace);
void perfetto_write_losses(struct perfetto_trace *trace);

/* tracks.c; 0 or -ENOMEM */
int perfetto_assign_process_track_groups(struct perfetto_trace *trace);
void perfetto_process_track_groups_deinit(struct perfetto_trace *trace);
void perfetto_write_process_thread_tracks(struct perfetto_trace *trace);
/* A track for slices that shares its place with no other of the same name. */
void perfetto_write_track_descriptor(struct perfetto_trace *trace, uint64_t uuid, uint64_t parent,
				     const char *name);

/* counters.c */
void perfetto_write_all_process_counters(struct perfetto_trace *trace);
void perfetto_write_notices(struct perfetto_trace *trace);
/* `unit` as users read it: "bytes", "ns" and "count" get Perfetto's own units; NULL for none. */
void perfetto_write_counter_descriptor(struct perfetto_trace *trace, uint64_t uuid, uint64_t parent,
				       const char *name, const char *unit);
void perfetto_write_counter_value(struct perfetto_trace *trace, uint64_t uuid, uint64_t time_ns,
				  uint64_t value);

/* A share in percent. */
void perfetto_write_counter_percent(struct perfetto_trace *trace, uint64_t uuid, uint64_t time_ns,
				    uint64_t part, uint64_t whole);

/* queued.c; 0 or -ENOMEM */
int perfetto_cpu_wait_init(struct perfetto_trace *trace);
void perfetto_cpu_wait_deinit(struct perfetto_trace *trace);
int perfetto_cpu_wait_add_sample(struct perfetto_trace *trace, const struct model_sample *sample);
void perfetto_cpu_wait_write_counters(struct perfetto_trace *trace);

/* interpreter_states.c; 0 or -ENOMEM */
int perfetto_interpreter_states_init(struct perfetto_trace *trace);
void perfetto_interpreter_states_deinit(struct perfetto_trace *trace);
int perfetto_interpreter_states_add_sample(struct perfetto_trace *trace,
					   const struct model_sample *sample);
void perfetto_interpreter_states_write_slices(struct perfetto_trace *trace);

/* interning.c */
int perfetto_interning_init(struct perfetto_trace *trace); /* 0 or -ENOMEM */
void perfetto_interning_deinit(struct perfetto_trace *trace);
void perfetto_write_interned_stack(struct perfetto_trace *trace, uint32_t process,
				   enum perfetto_sample_stream_kind stream, uint32_t node);

/* samples.c; 0 or negative errno */
int perfetto_write_samples(struct perfetto_trace *trace);

/* regions.c; 0 or negative errno */
int perfetto_write_regions(struct perfetto_trace *trace);

/* nccl.c; 0 or negative errno */
int perfetto_write_nccl_slices(struct perfetto_trace *trace);
/* gpu.c; 0 or -ENOMEM */
int perfetto_write_gpu_events(struct perfetto_trace *trace);
/* The process in the session that the file is of, or MODEL_ENTRY_INDEX_NONE. */
struct gpu_records_of_process;
/* gpu_counts.c; 0 or -ENOMEM */
int perfetto_write_gpu_counters(struct perfetto_trace *trace);
/* Steps of the work on devices. Errors are kept by the writer. */
void perfetto_write_gpu_steps(struct perfetto_trace *trace);

/* bundle.c: a sink that packs packets into zlib-compressed bundles on the way to `stream`.
 */
struct perfetto_compressed_bundle_sink {
	FILE *stream;
	uint8_t *compressed_buffer;
	size_t capacity;
};
int perfetto_bundle_compress_and_write(void *context, const uint8_t *bytes, size_t size);
void perfetto_compressed_bundle_sink_deinit(struct perfetto_compressed_bundle_sink *bundle);

#endif
