/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * trace.pftrace: everything of a session on one timeline, for ui.perfetto.dev and trace_processor.
 * Order: clocks and metadata, tracks, counters and notices, samples and regions (streamed, so
 * memory does not grow with them), losses. The parts are in perfetto_*.c; the idea is in
 * perfetto.h.
 */
#include "output/perfetto/perfetto.h"

#include <errno.h>
#include <string.h>

#include "output/output.h"

/* The trace format's recommendation for compressed bundles is below 512 KiB. */
#define FLUSH_THRESHOLD_BYTES (256u << 10)

void perfetto_open_metadata_packet(struct perfetto_trace *trace, uint64_t time_ns)
{
	protobuf_open_message(&trace->writer, TRACE_FIELD_PACKET);
	if (time_ns != 0)
		protobuf_write_uint(&trace->writer, PACKET_FIELD_TIMESTAMP, time_ns);
	protobuf_write_uint(&trace->writer, PACKET_FIELD_SEQUENCE_ID, SEQUENCE_ID_METADATA);
}

void perfetto_close_metadata_packet(struct perfetto_trace *trace)
{
	protobuf_close_message(&trace->writer);
}

static int write_trace_parts(struct perfetto_trace *trace)
{
	int error = perfetto_assign_process_track_groups(trace);
	if (error == 0)
		error = perfetto_interning_init(trace);
	if (error != 0)
		return problem_set(trace->problem, error, "no memory for the Perfetto trace");
	perfetto_write_preamble(trace);
	perfetto_write_process_thread_tracks(trace);
	perfetto_write_all_process_counters(trace);
	perfetto_write_notices(trace);
	error = perfetto_write_samples(trace);
	if (error == 0)
		error = perfetto_write_regions(trace);
	if (error == 0)
		error = perfetto_write_nccl_slices(trace);
	if (error != 0)
		return error;
	error = perfetto_write_gpu_events(trace);
	if (error == 0)
		error = perfetto_write_gpu_counters(trace);
	if (error == 0)
		perfetto_write_gpu_steps(trace);
	if (error != 0)
		return problem_set(trace->problem, error, "no memory for the Perfetto trace");
	perfetto_write_losses(trace);
	error = protobuf_finish(&trace->writer);
	if (error != 0)
		return problem_set(trace->problem, error, "cannot write the Perfetto trace: %s",
				   strerror(-error));
	return 0;
}

static int output_write_perfetto(struct session *session, const struct output_options *options,
				 FILE *stream, struct problem *problem)
{
	struct perfetto_compressed_bundle_sink bundle = {.stream = stream};
	struct perfetto_trace trace = {.session = session, .options = options, .problem = problem};
	int error = options->is_compressed
			    ? protobuf_init(&trace.writer, FLUSH_THRESHOLD_BYTES,
					    perfetto_bundle_compress_and_write, &bundle)
			    : protobuf_init(&trace.writer, FLUSH_THRESHOLD_BYTES,
					    protobuf_sink_write_to_file, stream);
	if (error == 0)
		error = write_trace_parts(&trace);
	else
		problem_set(problem, error, "no memory for the Perfetto trace");
	if (error == 0 && (fflush(stream) != 0 || ferror(stream))) {
		error = errno != 0 ? -errno : -EIO;
		problem_set(problem, error, "cannot write the Perfetto trace: %s",
			    strerror(-error));
	}
	perfetto_interning_deinit(&trace);
	perfetto_process_track_groups_deinit(&trace);
	perfetto_compressed_bundle_sink_deinit(&bundle);
	protobuf_deinit(&trace.writer);
	return error;
}

const struct output_format output_format_perfetto = {
	.name = "perfetto",
	.file_name = "trace.pftrace",
	.description = "timeline for ui.perfetto.dev: threads, samples, counters",
	.is_binary = true,
	.write = output_write_perfetto,
};
