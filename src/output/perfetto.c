/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * trace.pftrace: everything of a session on one timeline, for ui.perfetto.dev and trace_processor.
 * Order: clocks and metadata, tracks, counters and notices, samples and regions (streamed, so
 * memory does not grow with them), losses. The parts are in perfetto_*.c; the idea is in
 * perfetto.h.
 */
#include "output/perfetto.h"

#include <errno.h>
#include <string.h>

#include "output/writers.h"

/* The trace format's recommendation for compressed bundles is below 512 KiB. */
#define FLUSH_AT (256u << 10)

void perfetto_open_packet(struct perfetto *trace, uint64_t time_ns)
{
	protobuf_open(&trace->writer, TRACE_PACKET);
	if (time_ns != 0)
		protobuf_uint(&trace->writer, PACKET_TIMESTAMP, time_ns);
	protobuf_uint(&trace->writer, PACKET_SEQUENCE_ID, SEQUENCE_METADATA);
}

void perfetto_close_packet(struct perfetto *trace)
{
	protobuf_close(&trace->writer);
}

static int write_parts(struct perfetto *trace)
{
	int error = perfetto_group_processes(trace);
	if (error == 0)
		error = perfetto_interning_init(trace);
	if (error != 0)
		return problem_set(trace->problem, error, "no memory for the Perfetto trace");
	perfetto_write_preamble(trace);
	perfetto_write_tracks(trace);
	perfetto_write_process_counters(trace);
	perfetto_write_notices(trace);
	error = perfetto_write_samples(trace);
	if (error == 0)
		error = perfetto_write_regions(trace);
	if (error == 0)
		error = perfetto_write_nccl(trace);
	if (error != 0)
		return error;
	error = perfetto_write_gpu(trace);
	if (error == 0)
		error = perfetto_write_gpu_counts(trace);
	if (error != 0)
		return problem_set(trace->problem, error, "no memory for the Perfetto trace");
	perfetto_write_losses(trace);
	error = protobuf_finish(&trace->writer);
	if (error != 0)
		return problem_set(trace->problem, error, "cannot write the Perfetto trace: %s",
				   strerror(-error));
	return 0;
}

int output_perfetto(struct session *session, const struct output_options *options, FILE *stream,
		    struct problem *problem)
{
	struct perfetto_bundle bundle = {.stream = stream};
	struct perfetto trace = {.session = session, .options = options, .problem = problem};
	int error = options->compress
			    ? protobuf_init(&trace.writer, FLUSH_AT, perfetto_bundle_sink, &bundle)
			    : protobuf_init(&trace.writer, FLUSH_AT, protobuf_file_sink, stream);
	if (error == 0)
		error = write_parts(&trace);
	else
		problem_set(problem, error, "no memory for the Perfetto trace");
	if (error == 0 && (fflush(stream) != 0 || ferror(stream))) {
		error = errno != 0 ? -errno : -EIO;
		problem_set(problem, error, "cannot write the Perfetto trace: %s",
			    strerror(-error));
	}
	perfetto_interning_deinit(&trace);
	perfetto_tracks_deinit(&trace);
	perfetto_bundle_deinit(&bundle);
	protobuf_deinit(&trace.writer);
	return error;
}
