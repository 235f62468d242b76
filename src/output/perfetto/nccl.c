/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Slices of NCCL to lanes and packets; see nccl.h. The processes come one after the other,
 * so memory is that of the largest one.
 */
#include "output/perfetto/nccl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "output/nccl/nccl.h"
#include "output/nccl/rows.h"

enum { TRACK_EVENT_FIELD_CORRELATION_ID = 52 };

#define SUBSTITUTE_PIDS_BASE 0x40000000u /* no process of Linux has such a number */

struct nccl_trace_writer {
	struct perfetto_trace *trace;
	struct nccl_slices slices;
	uint32_t sequence;
	uint64_t base;    /* of the uuids of this process */
	uint64_t next;    /* uuid below it */
	uint64_t process; /* track of the process */
};

static void open_event_packet(struct nccl_trace_writer *writer, uint64_t time_ns, unsigned type,
			      uint64_t track)
{
	struct protobuf_writer *out = &writer->trace->writer;

	protobuf_open_message(out, TRACE_FIELD_PACKET);
	protobuf_write_uint(out, PACKET_FIELD_TIMESTAMP, time_ns ? time_ns : 1);
	protobuf_write_uint(out, PACKET_FIELD_SEQUENCE_ID, writer->sequence);
	protobuf_open_message(out, PACKET_FIELD_TRACK_EVENT);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TYPE, type);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TRACK_UUID, track);
}

static void close_event_packet(struct nccl_trace_writer *writer)
{
	protobuf_close_message(&writer->trace->writer);
	protobuf_close_message(&writer->trace->writer);
}

/* ---- what a slice says ---- */

static void write_number_annotation(struct protobuf_writer *out, const char *name, uint64_t value)
{
	protobuf_open_message(out, TRACK_EVENT_FIELD_ANNOTATIONS);
	protobuf_write_string(out, ANNOTATION_FIELD_NAME, name);
	protobuf_write_uint(out, ANNOTATION_FIELD_UINT_VALUE, value);
	protobuf_close_message(out);
}

static void write_double_annotation(struct protobuf_writer *out, const char *name, double value)
{
	protobuf_open_message(out, TRACK_EVENT_FIELD_ANNOTATIONS);
	protobuf_write_string(out, ANNOTATION_FIELD_NAME, name);
	protobuf_write_double(out, ANNOTATION_FIELD_DOUBLE_VALUE, value);
	protobuf_close_message(out);
}

static void write_text_annotation(struct protobuf_writer *out, const char *name, const char *value)
{
	if (!*value)
		return;
	protobuf_open_message(out, TRACK_EVENT_FIELD_ANNOTATIONS);
	protobuf_write_string(out, ANNOTATION_FIELD_NAME, name);
	protobuf_write_string(out, ANNOTATION_FIELD_STRING_VALUE, value);
	protobuf_close_message(out);
}

static void write_operation_annotations(struct nccl_trace_writer *writer,
					const struct nccl_slice *slice)
{
	const struct nccl_data *data = writer->slices.data;
	struct protobuf_writer *out = &writer->trace->writer;
	uint32_t process = writer->slices.process;

	write_number_annotation(out, "sequence", slice->sequence);
	write_number_annotation(out, "size_bytes", slice->bytes);
	write_text_annotation(out, "data_type",
			      nccl_get_interned_name(data, process, slice->data_type));
	write_text_annotation(out, "algorithm",
			      nccl_get_interned_name(data, process, slice->algorithm));
	write_text_annotation(out, "protocol",
			      nccl_get_interned_name(data, process, slice->protocol));
	if (slice->number >= 0)
		write_number_annotation(out, "peer", (uint32_t)slice->number);
	if (slice->bus_bandwidth_gb_per_s > 0)
		write_double_annotation(out, "bus_bandwidth_gbs", slice->bus_bandwidth_gb_per_s);
	if (slice->waits)
		write_text_annotation(out, "state", "in flight");
}

static void write_slice_annotations(struct nccl_trace_writer *writer,
				    const struct nccl_slice *slice)
{
	struct protobuf_writer *out = &writer->trace->writer;

	switch (slice->kind) {
	case NCCL_SLICE_ENQUEUE:
	case NCCL_SLICE_GPU:
		write_operation_annotations(writer, slice);
		break;
	case NCCL_SLICE_CALL:
		write_number_annotation(out, "count", slice->bytes);
		write_text_annotation(out, "data_type",
				      nccl_get_interned_name(writer->slices.data,
							     writer->slices.process,
							     slice->data_type));
		break;
	case NCCL_SLICE_CHANNEL:
		write_number_annotation(out, "sequence", slice->sequence);
		break;
	case NCCL_SLICE_TRANSFER:
		write_number_annotation(out, "steps", slice->sequence);
		break;
	case NCCL_SLICE_STEP:
		write_number_annotation(out, "bytes", slice->bytes);
		break;
	default:
		break;
	}
}

static void format_slice_name(const struct nccl_data *data, const struct nccl_slice *slice,
			      char *ret, size_t size)
{
	static const char *const states[] = {"idle",    "active", "sleep",
					     "wake up", "append", "append end"};
	const char *function = slice->function == NCCL_INDEX_NONE
				       ? "unknown"
				       : data->functions[slice->function].name;

	switch (slice->kind) {
	case NCCL_SLICE_GROUP_CALL:
		snprintf(ret, size, "group call");
		break;
	case NCCL_SLICE_CALL:
		snprintf(ret, size, "nccl%s", function);
		break;
	case NCCL_SLICE_LAUNCH:
		snprintf(ret, size, "kernel launch");
		break;
	case NCCL_SLICE_GROUP:
		snprintf(ret, size, "enqueue group");
		break;
	case NCCL_SLICE_ENQUEUE:
		snprintf(ret, size, "enqueue %s", function);
		break;
	case NCCL_SLICE_TRANSFER:
		snprintf(ret, size, slice->sends ? "send to rank %d" : "receive from rank %d",
			 slice->number);
		break;
	case NCCL_SLICE_STEP:
		snprintf(ret, size, "step %d", slice->number);
		break;
	case NCCL_SLICE_PROXY_CONTROL:
		snprintf(ret, size, "%s",
			 slice->number >= 13 && slice->number <= 18 ? states[slice->number - 13]
								    : "proxy");
		break;
	case NCCL_SLICE_OTHER:
		snprintf(ret, size, "%s", nccl_get_event_kind_name((uint8_t)slice->number));
		break;
	default:
		snprintf(ret, size, "%s", function);
	}
}

/* ---- tracks ---- */

static uint64_t find_or_describe_rank_group_track(struct nccl_trace_writer *writer, uint32_t member)
{
	struct nccl_slices *slices = &writer->slices;
	const struct nccl_data *data = slices->data;
	uint64_t *group =
		&slices->group_uuid_of_member[member -
					      data->processes[slices->process].first_member_index];
	char name[160];

	if (!*group) {
		*group = writer->base | writer->next++;
		snprintf(name, sizeof(name), "NCCL %s, rank %d",
			 nccl_format_communicator_label(data, data->members[member].communicator)
				 .text,
			 data->members[member].rank);
		perfetto_write_track_descriptor(writer->trace, *group, writer->process, name);
	}
	return *group;
}

static void format_track_name(const struct nccl_track *track, char *ret, size_t size)
{
	switch (track->kind) {
	case NCCL_SLICE_CALL:
		snprintf(ret, size, "NCCL calls of thread %u", track->number);
		break;
	case NCCL_SLICE_GPU:
		snprintf(ret, size, "operations on the GPU");
		break;
	case NCCL_SLICE_CHANNEL:
		snprintf(ret, size, "GPU channel %u", track->number);
		break;
	case NCCL_SLICE_TRANSFER:
		snprintf(ret, size, "network channel %u", track->number);
		break;
	case NCCL_SLICE_STEP:
		snprintf(ret, size, "network steps, %s", track->number ? "sent" : "received");
		break;
	case NCCL_SLICE_PROXY_CONTROL:
		snprintf(ret, size, "proxy thread %u", track->number);
		break;
	default:
		snprintf(ret, size, "%s", nccl_get_event_kind_name((uint8_t)track->number));
	}
}

static struct nccl_track_lane *add_and_describe_lane(struct nccl_trace_writer *writer,
						     struct nccl_track *track)
{
	uint64_t parent = track->member_index == NCCL_INDEX_NONE
				  ? writer->process
				  : find_or_describe_rank_group_track(writer, track->member_index);
	struct nccl_track_lane *lane;
	char name[96];

	if (array_reserve_one_more((void **)&track->lanes, &track->lane_capacity, track->lane_count,
				   sizeof(*track->lanes)) < 0)
		return NULL;
	lane = &track->lanes[track->lane_count++];
	*lane = (struct nccl_track_lane){.track_uuid = writer->base | writer->next++};
	format_track_name(track, name, sizeof(name));
	perfetto_write_track_descriptor(writer->trace, lane->track_uuid, parent, name);
	return lane;
}

static void end_slices_until(struct nccl_trace_writer *writer, struct nccl_track_lane *lane,
			     uint64_t time_ns)
{
	while (lane->depth && lane->slice_ends_ns[lane->depth - 1] <= time_ns) {
		uint64_t end = lane->slice_ends_ns[--lane->depth];

		if (end == NCCL_SLICE_NOT_ENDED_NS)
			continue;
		open_event_packet(writer, end, TRACK_EVENT_TYPE_SLICE_END, lane->track_uuid);
		close_event_packet(writer);
	}
}

/* The first lane in which the slice is nested in what is open there. */
static struct nccl_track_lane *find_or_add_lane(struct nccl_trace_writer *writer,
						struct nccl_track *track,
						const struct nccl_slice *slice)
{
	for (size_t i = 0; i < track->lane_count; i++) {
		struct nccl_track_lane *lane = &track->lanes[i];

		end_slices_until(writer, lane, slice->start_ns);
		if (!lane->depth || (track->may_nest_slices && lane->depth < 64 &&
				     slice->end_ns <= lane->slice_ends_ns[lane->depth - 1]))
			return lane;
	}
	return add_and_describe_lane(writer, track);
}

/* ---- one process ---- */

static int write_nccl_slice_begin(struct nccl_trace_writer *writer, const struct nccl_slice *slice)
{
	struct protobuf_writer *out = &writer->trace->writer;
	struct nccl_track_lane *lane =
		find_or_add_lane(writer, &writer->slices.tracks[slice->track], slice);
	char name[128];

	if (!lane || array_reserve_one_more((void **)&lane->slice_ends_ns, &lane->capacity,
					    lane->depth, sizeof(*lane->slice_ends_ns)) < 0)
		return -ENOMEM;
	lane->slice_ends_ns[lane->depth++] = slice->end_ns;
	format_slice_name(writer->slices.data, slice, name, sizeof(name));
	open_event_packet(writer, slice->start_ns, TRACK_EVENT_TYPE_SLICE_BEGIN, lane->track_uuid);
	protobuf_write_string(out, TRACK_EVENT_FIELD_CATEGORIES, "nccl");
	protobuf_write_string(out, TRACK_EVENT_FIELD_NAME, name);
	write_slice_annotations(writer, slice);
	if (slice->flow)
		protobuf_write_fixed64(out, TRACK_EVENT_FIELD_FLOWS, slice->flow);
	if (slice->correlation)
		protobuf_write_uint(out, TRACK_EVENT_FIELD_CORRELATION_ID, slice->correlation);
	close_event_packet(writer);
	return 0;
}

static void end_all_slices(struct nccl_trace_writer *writer)
{
	struct nccl_slices *slices = &writer->slices;

	for (size_t i = 0; i < slices->track_count; i++) {
		for (size_t k = 0; k < slices->tracks[i].lane_count; k++)
			end_slices_until(writer, &slices->tracks[i].lanes[k],
					 NCCL_SLICE_NOT_ENDED_NS);
	}
}

/* The process's track, if its samples or regions are here as well; else 0. */
static uint64_t find_process_track_uuid(const struct perfetto_trace *trace,
					const struct nccl_process *process)
{
	const struct session *session = trace->session;

	for (uint32_t i = 0; i < session->process_count; i++) {
		if (session->processes[i].pid == process->file.header.pid &&
		    session->processes[i].process_start == process->file.header.process_start)
			return perfetto_get_process_track_uuid(trace, i);
	}
	return 0;
}

/* Numbers of processes come again on other hosts. */
static uint32_t make_pid_unique_over_hosts(const struct nccl_data *data, uint32_t index)
{
	uint32_t pid = data->processes[index].file.header.pid;

	for (uint32_t i = 0; i < index; i++) {
		if (data->processes[i].file.header.pid == pid)
			return SUBSTITUTE_PIDS_BASE + index;
	}
	return pid;
}

static void write_process_track_descriptor(struct nccl_trace_writer *writer)
{
	const struct nccl_data *data = writer->slices.data;
	const struct nccl_process *process = &data->processes[writer->slices.process];
	const char *slash = strrchr(process->file.header.program, '/');
	struct protobuf_writer *out = &writer->trace->writer;
	char name[512];

	snprintf(name, sizeof(name), "%s [rank %d on %s, pid %u]",
		 slash ? slash + 1 : process->file.header.program, process->rank,
		 process->file.header.host, process->file.header.pid);
	writer->process = writer->base;
	perfetto_open_metadata_packet(writer->trace, 0);
	protobuf_open_message(out, PACKET_FIELD_TRACK_DESCRIPTOR);
	protobuf_write_uint(out, 1, writer->process);
	protobuf_open_message(out, 3);
	protobuf_write_uint(out, 1, make_pid_unique_over_hosts(data, writer->slices.process));
	protobuf_write_string(out, 6, name);
	protobuf_close_message(out);
	protobuf_write_uint(out, 12,
			    writer->trace->session->process_count + 1 + writer->slices.process);
	protobuf_close_message(out);
	perfetto_close_metadata_packet(writer->trace);
}

static void write_nccl_sequence_begin(struct nccl_trace_writer *writer)
{
	struct protobuf_writer *out = &writer->trace->writer;

	protobuf_open_message(out, TRACE_FIELD_PACKET);
	protobuf_write_uint(out, PACKET_FIELD_SEQUENCE_ID, writer->sequence);
	protobuf_write_uint(out, PACKET_FIELD_SEQUENCE_FLAGS, SEQUENCE_FLAG_STATE_CLEARED);
	protobuf_close_message(out);
}

static int write_nccl_slices_of_process(struct perfetto_trace *trace, uint32_t process)
{
	const struct session *session = trace->session;
	struct nccl_trace_writer writer = {
		.trace = trace,
		.slices = {.data = session_get_nccl_data(session), .process = process},
		.base = (uint64_t)(trace->group_count + 1 + process) << 32,
		.next = 1,
		.sequence = perfetto_get_sample_sequence_id(session->process_count, 0) +
			    session->thread_count + 1 + process,
	};
	int result = nccl_slices_collect(&writer.slices, trace->problem);

	if (result == 0) {
		write_nccl_sequence_begin(&writer);
		writer.process = find_process_track_uuid(
			trace, &session_get_nccl_data(session)->processes[process]);
		if (!writer.process)
			write_process_track_descriptor(&writer);
	}
	for (size_t i = 0; result == 0 && i < writer.slices.count; i++) {
		result = write_nccl_slice_begin(&writer, &writer.slices.slices[i]);
		if (result < 0)
			problem_set(trace->problem, result, "no memory for the Perfetto trace");
	}
	if (result == 0)
		end_all_slices(&writer);
	nccl_slices_deinit(&writer.slices);
	return result;
}

/* ---- the whole ---- */

static void write_number_attribute(struct protobuf_writer *out, const char *key, uint64_t value)
{
	protobuf_open_message(out, 1);
	protobuf_write_string(out, 1, key);
	protobuf_write_uint(out, 2, value);
	protobuf_close_message(out);
}

static uint64_t get_worst_gpu_clock_error_ns(const struct nccl_data *data)
{
	uint64_t worst = 0;

	for (uint32_t i = 0; i < data->member_count; i++) {
		if (data->members[i].worst_gpu_clock_error_ns != UINT64_MAX &&
		    data->members[i].worst_gpu_clock_error_ns > worst)
			worst = data->members[i].worst_gpu_clock_error_ns;
	}
	return worst;
}

static void write_nccl_trace_attributes(struct perfetto_trace *trace, const struct nccl_data *data)
{
	struct protobuf_writer *out = &trace->writer;
	char key[96];

	perfetto_open_metadata_packet(trace, 0);
	protobuf_open_message(out, PACKET_FIELD_TRACE_ATTRIBUTES);
	write_number_attribute(out, "kymo.nccl.gpu_clock_error_ns",
			       get_worst_gpu_clock_error_ns(data));
	write_number_attribute(out, "kymo.nccl.unreadable_files", data->unreadable_files);
	for (uint32_t i = 1; i < data->host_count; i++) {
		struct nccl_host_clock_offset offset =
			nccl_align_get_offset_at_time(&data->clock_alignment, i, data->start_ns);

		snprintf(key, sizeof(key), "kymo.nccl.clock_error_ns.%.60s", data->hosts[i].name);
		if (offset.error_ns != UINT64_MAX)
			write_number_attribute(out, key, offset.error_ns);
	}
	for (unsigned i = 0; i < NCCL_LOSS_COUNT; i++) {
		uint64_t count = nccl_sum_one_loss_of_all_processes(data, (enum nccl_loss)i);

		if (!count || !nccl_get_loss_name((enum nccl_loss)i))
			continue;
		snprintf(key, sizeof(key), "kymo.nccl.loss.%s",
			 nccl_get_loss_name((enum nccl_loss)i));
		write_number_attribute(out, key, count);
	}
	protobuf_close_message(out);
	perfetto_close_metadata_packet(trace);
}

int perfetto_write_nccl_slices(struct perfetto_trace *trace)
{
	const struct nccl_data *data = session_get_nccl_data(trace->session);
	int result = 0;

	if (!data)
		return 0;
	write_nccl_trace_attributes(trace, data);
	for (uint32_t i = 0; result == 0 && i < data->process_count; i++)
		result = write_nccl_slices_of_process(trace, i);
	return result;
}
