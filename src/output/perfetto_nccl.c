/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Slices of NCCL to lanes and packets; see perfetto_nccl.h. The processes come one after the other,
 * so memory is that of the largest one.
 */
#include "output/perfetto_nccl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "output/nccl.h"
#include "output/nccl_rows.h"

enum { TRACK_EVENT_CORRELATION = 52 };

#define OTHER_PIDS 0x40000000u /* no process of Linux has such a number */

struct nccl_writer {
	struct perfetto *trace;
	struct nccl_slices slices;
	uint32_t sequence;
	uint64_t base;    /* of the uuids of this process */
	uint64_t next;    /* uuid below it */
	uint64_t process; /* track of the process */
};

static void open_event(struct nccl_writer *writer, uint64_t time_ns, unsigned type, uint64_t track)
{
	struct protobuf *out = &writer->trace->writer;

	protobuf_open(out, TRACE_PACKET);
	protobuf_uint(out, PACKET_TIMESTAMP, time_ns ? time_ns : 1);
	protobuf_uint(out, PACKET_SEQUENCE_ID, writer->sequence);
	protobuf_open(out, PACKET_TRACK_EVENT);
	protobuf_uint(out, TRACK_EVENT_TYPE, type);
	protobuf_uint(out, TRACK_EVENT_TRACK, track);
}

static void close_event(struct nccl_writer *writer)
{
	protobuf_close(&writer->trace->writer);
	protobuf_close(&writer->trace->writer);
}

/* ---- what a slice says ---- */

static void put_number(struct protobuf *out, const char *name, uint64_t value)
{
	protobuf_open(out, TRACK_EVENT_ANNOTATIONS);
	protobuf_string(out, ANNOTATION_NAME, name);
	protobuf_uint(out, ANNOTATION_UINT, value);
	protobuf_close(out);
}

static void put_real(struct protobuf *out, const char *name, double value)
{
	protobuf_open(out, TRACK_EVENT_ANNOTATIONS);
	protobuf_string(out, ANNOTATION_NAME, name);
	protobuf_double(out, ANNOTATION_DOUBLE, value);
	protobuf_close(out);
}

static void put_text(struct protobuf *out, const char *name, const char *value)
{
	if (!*value)
		return;
	protobuf_open(out, TRACK_EVENT_ANNOTATIONS);
	protobuf_string(out, ANNOTATION_NAME, name);
	protobuf_string(out, ANNOTATION_STRING, value);
	protobuf_close(out);
}

static void put_operation(struct nccl_writer *writer, const struct nccl_slice *slice)
{
	const struct nccl_data *data = writer->slices.data;
	struct protobuf *out = &writer->trace->writer;
	uint32_t process = writer->slices.process;

	put_number(out, "sequence", slice->sequence);
	put_number(out, "size_bytes", slice->bytes);
	put_text(out, "data_type", nccl_text_of(data, process, slice->data_type));
	put_text(out, "algorithm", nccl_text_of(data, process, slice->algorithm));
	put_text(out, "protocol", nccl_text_of(data, process, slice->protocol));
	if (slice->number >= 0)
		put_number(out, "peer", (uint32_t)slice->number);
	if (slice->bus_bandwidth > 0)
		put_real(out, "bus_bandwidth_gbs", slice->bus_bandwidth);
	if (slice->waits)
		put_text(out, "state", "in flight");
}

static void put_values(struct nccl_writer *writer, const struct nccl_slice *slice)
{
	struct protobuf *out = &writer->trace->writer;

	switch (slice->kind) {
	case NCCL_SLICE_ENQUEUE:
	case NCCL_SLICE_GPU:
		put_operation(writer, slice);
		break;
	case NCCL_SLICE_CALL:
		put_number(out, "count", slice->bytes);
		put_text(out, "data_type",
			 nccl_text_of(writer->slices.data, writer->slices.process,
				      slice->data_type));
		break;
	case NCCL_SLICE_CHANNEL:
		put_number(out, "sequence", slice->sequence);
		break;
	case NCCL_SLICE_TRANSFER:
		put_number(out, "steps", slice->sequence);
		break;
	case NCCL_SLICE_STEP:
		put_number(out, "bytes", slice->bytes);
		break;
	default:
		break;
	}
}

static void name_slice(const struct nccl_data *data, const struct nccl_slice *slice, char *ret,
		       size_t size)
{
	static const char *const states[] = {"idle",    "active", "sleep",
					     "wake up", "append", "append end"};
	const char *function =
		slice->function == NCCL_NONE ? "unknown" : data->functions[slice->function].name;

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
	case NCCL_SLICE_CONTROL:
		snprintf(ret, size, "%s",
			 slice->number >= 13 && slice->number <= 18 ? states[slice->number - 13]
								    : "proxy");
		break;
	case NCCL_SLICE_OTHER:
		snprintf(ret, size, "%s", nccl_kind_name((uint8_t)slice->number));
		break;
	default:
		snprintf(ret, size, "%s", function);
	}
}

/* ---- tracks ---- */

static uint64_t group_of(struct nccl_writer *writer, uint32_t member)
{
	struct nccl_slices *slices = &writer->slices;
	const struct nccl_data *data = slices->data;
	uint64_t *group = &slices->groups[member - data->processes[slices->process].first_member];
	char name[160];

	if (!*group) {
		*group = writer->base | writer->next++;
		snprintf(name, sizeof(name), "NCCL %s, rank %d",
			 nccl_team_label(data, data->members[member].team).text,
			 data->members[member].rank);
		perfetto_describe_track(writer->trace, *group, writer->process, name);
	}
	return *group;
}

static void name_track(const struct nccl_track *track, char *ret, size_t size)
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
	case NCCL_SLICE_CONTROL:
		snprintf(ret, size, "proxy thread %u", track->number);
		break;
	default:
		snprintf(ret, size, "%s", nccl_kind_name((uint8_t)track->number));
	}
}

static struct nccl_lane *add_lane(struct nccl_writer *writer, struct nccl_track *track)
{
	uint64_t parent =
		track->member == NCCL_NONE ? writer->process : group_of(writer, track->member);
	struct nccl_lane *lane;
	char name[96];

	if (array_reserve((void **)&track->lanes, &track->lane_capacity, track->lane_count,
			  sizeof(*track->lanes)) < 0)
		return NULL;
	lane = &track->lanes[track->lane_count++];
	*lane = (struct nccl_lane){.uuid = writer->base | writer->next++};
	name_track(track, name, sizeof(name));
	perfetto_describe_track(writer->trace, lane->uuid, parent, name);
	return lane;
}

static void end_until(struct nccl_writer *writer, struct nccl_lane *lane, uint64_t time_ns)
{
	while (lane->depth && lane->ends[lane->depth - 1] <= time_ns) {
		uint64_t end = lane->ends[--lane->depth];

		if (end == NCCL_SLICE_OPEN)
			continue;
		open_event(writer, end, TRACK_EVENT_SLICE_END, lane->uuid);
		close_event(writer);
	}
}

/* The first lane in which the slice is nested in what is open there. */
static struct nccl_lane *find_lane(struct nccl_writer *writer, struct nccl_track *track,
				   const struct nccl_slice *slice)
{
	for (size_t i = 0; i < track->lane_count; i++) {
		struct nccl_lane *lane = &track->lanes[i];

		end_until(writer, lane, slice->start_ns);
		if (!lane->depth || (track->nests && lane->depth < 64 &&
				     slice->end_ns <= lane->ends[lane->depth - 1]))
			return lane;
	}
	return add_lane(writer, track);
}

/* ---- one process ---- */

static int write_slice(struct nccl_writer *writer, const struct nccl_slice *slice)
{
	struct protobuf *out = &writer->trace->writer;
	struct nccl_lane *lane = find_lane(writer, &writer->slices.tracks[slice->track], slice);
	char name[128];

	if (!lane || array_reserve((void **)&lane->ends, &lane->capacity, lane->depth,
				   sizeof(*lane->ends)) < 0)
		return -ENOMEM;
	lane->ends[lane->depth++] = slice->end_ns;
	name_slice(writer->slices.data, slice, name, sizeof(name));
	open_event(writer, slice->start_ns, TRACK_EVENT_SLICE_BEGIN, lane->uuid);
	protobuf_string(out, TRACK_EVENT_CATEGORIES, "nccl");
	protobuf_string(out, TRACK_EVENT_NAME, name);
	put_values(writer, slice);
	if (slice->flow)
		protobuf_fixed64(out, TRACK_EVENT_FLOWS, slice->flow);
	if (slice->correlation)
		protobuf_uint(out, TRACK_EVENT_CORRELATION, slice->correlation);
	close_event(writer);
	return 0;
}

static void end_all(struct nccl_writer *writer)
{
	struct nccl_slices *slices = &writer->slices;

	for (size_t i = 0; i < slices->track_count; i++) {
		for (size_t k = 0; k < slices->tracks[i].lane_count; k++)
			end_until(writer, &slices->tracks[i].lanes[k], NCCL_SLICE_OPEN);
	}
}

/* The process's track, if its samples or regions are here as well; else 0. */
static uint64_t find_process(const struct perfetto *trace, const struct nccl_process *process)
{
	const struct session *session = trace->session;

	for (uint32_t i = 0; i < session->process_count; i++) {
		if (session->processes[i].pid == process->file.header.pid &&
		    session->processes[i].process_start == process->file.header.process_start)
			return perfetto_process_track(trace, i);
	}
	return 0;
}

/* Numbers of processes come again on other hosts. */
static uint32_t shown_pid(const struct nccl_data *data, uint32_t index)
{
	uint32_t pid = data->processes[index].file.header.pid;

	for (uint32_t i = 0; i < index; i++) {
		if (data->processes[i].file.header.pid == pid)
			return OTHER_PIDS + index;
	}
	return pid;
}

static void describe_process(struct nccl_writer *writer)
{
	const struct nccl_data *data = writer->slices.data;
	const struct nccl_process *process = &data->processes[writer->slices.process];
	const char *slash = strrchr(process->file.header.program, '/');
	struct protobuf *out = &writer->trace->writer;
	char name[512];

	snprintf(name, sizeof(name), "%s [rank %d on %s, pid %u]",
		 slash ? slash + 1 : process->file.header.program, process->rank,
		 process->file.header.host, process->file.header.pid);
	writer->process = writer->base;
	perfetto_open_packet(writer->trace, 0);
	protobuf_open(out, PACKET_TRACK_DESCRIPTOR);
	protobuf_uint(out, 1, writer->process);
	protobuf_open(out, 3);
	protobuf_uint(out, 1, shown_pid(data, writer->slices.process));
	protobuf_string(out, 6, name);
	protobuf_close(out);
	protobuf_uint(out, 12, writer->trace->session->process_count + 1 + writer->slices.process);
	protobuf_close(out);
	perfetto_close_packet(writer->trace);
}

static void begin_sequence(struct nccl_writer *writer)
{
	struct protobuf *out = &writer->trace->writer;

	protobuf_open(out, TRACE_PACKET);
	protobuf_uint(out, PACKET_SEQUENCE_ID, writer->sequence);
	protobuf_uint(out, PACKET_SEQUENCE_FLAGS, SEQUENCE_STATE_CLEARED);
	protobuf_close(out);
}

static int write_process(struct perfetto *trace, uint32_t process)
{
	const struct session *session = trace->session;
	struct nccl_writer writer = {
		.trace = trace,
		.slices = {.data = session->nccl, .process = process},
		.base = (uint64_t)(trace->group_count + 1 + process) << 32,
		.next = 1,
		.sequence = perfetto_sequence(session->process_count, 0) + session->thread_count +
			    1 + process,
	};
	int result = nccl_slices_collect(&writer.slices, trace->problem);

	if (result == 0) {
		begin_sequence(&writer);
		writer.process = find_process(trace, &session->nccl->processes[process]);
		if (!writer.process)
			describe_process(&writer);
	}
	for (size_t i = 0; result == 0 && i < writer.slices.count; i++) {
		result = write_slice(&writer, &writer.slices.slices[i]);
		if (result < 0)
			problem_set(trace->problem, result, "no memory for the Perfetto trace");
	}
	if (result == 0)
		end_all(&writer);
	nccl_slices_deinit(&writer.slices);
	return result;
}

/* ---- the whole ---- */

static void put_attribute(struct protobuf *out, const char *key, uint64_t value)
{
	protobuf_open(out, 1);
	protobuf_string(out, 1, key);
	protobuf_uint(out, 2, value);
	protobuf_close(out);
}

static uint64_t worst_error(const struct nccl_data *data)
{
	uint64_t worst = 0;

	for (uint32_t i = 0; i < data->member_count; i++) {
		if (data->members[i].worst_gpu_error_ns != UINT64_MAX &&
		    data->members[i].worst_gpu_error_ns > worst)
			worst = data->members[i].worst_gpu_error_ns;
	}
	return worst;
}

static void write_attributes(struct perfetto *trace, const struct nccl_data *data)
{
	struct protobuf *out = &trace->writer;
	char key[96];

	perfetto_open_packet(trace, 0);
	protobuf_open(out, PACKET_TRACE_ATTRIBUTES);
	put_attribute(out, "kymo.nccl.gpu_clock_error_ns", worst_error(data));
	put_attribute(out, "kymo.nccl.unreadable_files", data->unreadable_files);
	for (uint32_t i = 1; i < data->host_count; i++) {
		struct nccl_offset offset = nccl_align_at(&data->align, i, data->start_ns);

		snprintf(key, sizeof(key), "kymo.nccl.clock_error_ns.%.60s", data->hosts[i].name);
		if (offset.error_ns != UINT64_MAX)
			put_attribute(out, key, offset.error_ns);
	}
	for (unsigned i = 0; i < NCCL_LOSS_COUNT; i++) {
		uint64_t count = nccl_loss_sum(data, (enum nccl_loss)i);

		if (!count || !nccl_loss_name((enum nccl_loss)i))
			continue;
		snprintf(key, sizeof(key), "kymo.nccl.loss.%s", nccl_loss_name((enum nccl_loss)i));
		put_attribute(out, key, count);
	}
	protobuf_close(out);
	perfetto_close_packet(trace);
}

int perfetto_write_nccl(struct perfetto *trace)
{
	const struct nccl_data *data = trace->session->nccl;
	int result = 0;

	if (!data)
		return 0;
	write_attributes(trace, data);
	for (uint32_t i = 0; result == 0 && i < data->process_count; i++)
		result = write_process(trace, i);
	return result;
}
