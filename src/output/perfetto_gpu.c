/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What ran on devices, as tracks of the process that gave the work: one a queue for kernels, one a
 * direction for copies, one a thread for calls of the runtime and one for markers, counters for
 * readings of the devices. An arrow leads from a call to each kernel and copy that it started.
 *
 * Slices of a track must lie inside each other or apart. Where a device runs kernels of a queue
 * side by side, a second track of the same name takes what does not fit, and so on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu.h"
#include "output/perfetto.h"

enum {
	INTERNED_EVENT_NAMES = 2,
	TRACK_EVENT_NAME_IID = 10,
	TRACK_EVENT_FLOWS = 47,
	TRACK_EVENT_FLOWS_END = 48,
	EVENT_BEGIN = 1,
	EVENT_END = 2,
	ANNOTATION_NAME = 10,
	ANNOTATION_UINT = 3,
	ANNOTATION_STRING = 6,

	DEPTH_MAX = 32,
	LANES_MAX = 256,
	TRACK_OF_DEVICES = 1 << 30, /* upper half of the numbers of our tracks */
};

/* What is a track to itself, but for lanes. */
enum group_kind { GROUP_KERNELS, GROUP_COPIES, GROUP_CALLS, GROUP_MARKERS };
static const char *const categories[] = {"kernel", "copy", "device call", "marker"};

struct slice {
	enum group_kind kind;
	uint64_t group; /* queue, direction or thread */
	uint64_t start, end;
	const struct gpu_record_head *record;
};

struct lane {
	uint64_t track;
	uint64_t ends[DEPTH_MAX];
	unsigned depth;
};

struct gpu_writer {
	struct perfetto *trace;
	const struct gpu_process *process;
	uint32_t index;  /* of the process among those with devices */
	uint32_t model;  /* the process in the session, or MODEL_NONE */
	uint64_t tracks; /* made so far */
	uint8_t *named;  /* strings that are interned */
	bool has_begun;
	struct slice *slices;
	size_t count, room;
	struct lane lanes[LANES_MAX];
	unsigned lane_count;
	uint64_t metric_tracks[GPU_METRIC_COUNT][64];
};

/* ---- collecting ---- */

static int add_slice(struct gpu_writer *writer, enum group_kind kind, uint64_t group,
		     uint64_t start, uint64_t duration, const struct gpu_record_head *record)
{
	if (writer->count == writer->room) {
		size_t room = writer->room != 0 ? writer->room * 2 : 4096;
		struct slice *larger = realloc(writer->slices, room * sizeof(*larger));

		if (larger == NULL)
			return -ENOMEM;
		writer->slices = larger;
		writer->room = room;
	}
	writer->slices[writer->count++] =
		(struct slice){kind, group, start, start + duration, record};
	return 0;
}

/* Begin and end of a range have the same correlation; ends come later. */
static int end_marker(struct gpu_writer *writer, const struct gpu_marker *marker)
{
	for (size_t i = writer->count; i-- > 0;) {
		const struct gpu_marker *begin = (const void *)writer->slices[i].record;

		if (writer->slices[i].kind == GROUP_MARKERS && begin->head.id == GPU_MARKER_BEGIN &&
		    begin->correlation == marker->correlation &&
		    writer->slices[i].end == UINT64_MAX) {
			writer->slices[i].end = marker->time;
			break;
		}
	}
	return 0;
}

static int add_marker(struct gpu_writer *writer, const struct gpu_marker *marker)
{
	int result;

	if (marker->head.id == GPU_MARKER_END)
		return end_marker(writer, marker);
	result = add_slice(writer, GROUP_MARKERS, marker->tid, marker->time, 0, &marker->head);
	if (result == 0 && marker->head.id == GPU_MARKER_BEGIN)
		writer->slices[writer->count - 1].end = UINT64_MAX;
	return result;
}

static int collect(const struct gpu_record_head *head, void *context)
{
	struct gpu_writer *writer = context;
	const struct gpu_kernel *kernel = (const void *)head;
	const struct gpu_copy *copy = (const void *)head;
	const struct gpu_call *call = (const void *)head;

	switch (head->kind) {
	case GPU_RECORD_KERNEL:
		return kernel->start == 0 ? 0
					  : add_slice(writer, GROUP_KERNELS, kernel->queue,
						      kernel->start, kernel->duration, head);
	case GPU_RECORD_COPY:
		return copy->start == 0 ? 0
					: add_slice(writer, GROUP_COPIES, head->id, copy->start,
						    copy->duration, head);
	case GPU_RECORD_CALL:
		return add_slice(writer, GROUP_CALLS, call->tid, call->start, call->duration, head);
	case GPU_RECORD_MARKER:
		return add_marker(writer, (const void *)head);
	default:
		return 0;
	}
}

/* Ranges that nobody ended last as long as anything. */
static void close_markers(struct gpu_writer *writer)
{
	uint64_t last = writer->trace->session->end_ns;

	for (size_t i = 0; i < writer->count; i++) {
		if (writer->slices[i].end != UINT64_MAX && writer->slices[i].end > last)
			last = writer->slices[i].end;
	}
	for (size_t i = 0; i < writer->count; i++) {
		if (writer->slices[i].end == UINT64_MAX)
			writer->slices[i].end = last;
	}
}

static int compare_slices(const void *left, const void *right)
{
	const struct slice *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end > b->end ? -1 : a->end < b->end;
}

/* ---- tracks ---- */

static uint64_t parent_track(const struct gpu_writer *writer, const struct slice *slice)
{
	const struct session *session = writer->trace->session;

	if (writer->model == MODEL_NONE)
		return 0;
	for (uint32_t i = 0; i < session->thread_count; i++) {
		if ((slice->kind == GROUP_CALLS || slice->kind == GROUP_MARKERS) &&
		    session->threads[i].process == writer->model &&
		    session->threads[i].tid == slice->group)
			return perfetto_thread_track(writer->trace, i);
	}
	return perfetto_process_track(writer->trace, writer->model);
}

static void name_track(const struct gpu_writer *writer, const struct slice *slice, char *name,
		       size_t size)
{
	const struct gpu_process *process = writer->process;
	const struct gpu_kernel *kernel = (const void *)slice->record;
	uint32_t shape = slice->record->id;

	switch (slice->kind) {
	case GROUP_KERNELS:
		snprintf(name, size, "%s: queue %llu",
			 gpu_agent_name(process, shape <= process->shape_count &&
								 process->shapes[shape] != NULL
							 ? process->shapes[shape]->agent
							 : 0),
			 (unsigned long long)(kernel->queue & UINT32_MAX));
		break;
	case GROUP_COPIES:
		if (slice->group == GPU_DIRECTION_FILL)
			snprintf(name, size, "fills");
		else
			snprintf(name, size, "copies %s",
				 gpu_direction_name((uint32_t)slice->group));
		break;
	case GROUP_CALLS:
		snprintf(name, size, "calls of devices");
		break;
	case GROUP_MARKERS:
		snprintf(name, size, "markers");
		break;
	}
}

static uint64_t new_track(struct gpu_writer *writer)
{
	return (uint64_t)(TRACK_OF_DEVICES + writer->index) << 32 | ++writer->tracks;
}

/* A lane in which the slice lies inside what is open, or behind it. */
static struct lane *find_lane(struct gpu_writer *writer, const struct slice *slice)
{
	struct lane *lane;
	char name[256];

	for (unsigned i = 0; i < writer->lane_count; i++) {
		lane = &writer->lanes[i];
		while (lane->depth != 0 && lane->ends[lane->depth - 1] <= slice->start)
			lane->depth--;
		if (lane->depth < DEPTH_MAX &&
		    (lane->depth == 0 || slice->end <= lane->ends[lane->depth - 1]))
			return lane;
	}
	if (writer->lane_count == LANES_MAX)
		return NULL;
	lane = &writer->lanes[writer->lane_count++];
	lane->depth = 0;
	lane->track = new_track(writer);
	name_track(writer, slice, name, sizeof(name));
	perfetto_describe_track(writer->trace, lane->track, parent_track(writer, slice), name);
	return lane;
}

/* ---- events ---- */

static void open_event(struct gpu_writer *writer, uint64_t time_ns)
{
	struct protobuf *out = &writer->trace->writer;
	const struct session *session = writer->trace->session;

	protobuf_open(out, TRACE_PACKET);
	protobuf_uint(out, PACKET_TIMESTAMP, time_ns);
	protobuf_uint(out, PACKET_SEQUENCE_ID,
		      perfetto_sequence(session->process_count, 0) + session->thread_count + 1 +
			      writer->index);
	protobuf_uint(out, PACKET_SEQUENCE_FLAGS,
		      writer->has_begun ? SEQUENCE_NEEDS_STATE
					: SEQUENCE_STATE_CLEARED | SEQUENCE_NEEDS_STATE);
	writer->has_begun = true;
}

static void intern_name(struct gpu_writer *writer, uint32_t string)
{
	struct protobuf *out = &writer->trace->writer;
	const char *text = gpu_string(writer->process, string);
	char *plain;

	if (writer->named[string])
		return;
	writer->named[string] = 1;
	plain = gpu_demangled(text);
	protobuf_open(out, PACKET_INTERNED_DATA);
	protobuf_open(out, INTERNED_EVENT_NAMES);
	protobuf_uint(out, 1, string + 1u);
	protobuf_string(out, 2, plain != NULL ? plain : text);
	protobuf_close(out);
	protobuf_close(out);
	free(plain);
}

static void annotate(struct protobuf *out, const char *name, uint64_t value)
{
	protobuf_open(out, TRACK_EVENT_ANNOTATIONS);
	protobuf_string(out, ANNOTATION_NAME, name);
	protobuf_uint(out, ANNOTATION_UINT, value);
	protobuf_close(out);
}

static void annotate_text(struct protobuf *out, const char *name, const char *text)
{
	protobuf_open(out, TRACK_EVENT_ANNOTATIONS);
	protobuf_string(out, ANNOTATION_NAME, name);
	protobuf_string(out, ANNOTATION_STRING, text);
	protobuf_close(out);
}

static void annotate_shape(struct gpu_writer *writer, uint32_t id)
{
	const struct gpu_process *process = writer->process;
	struct protobuf *out = &writer->trace->writer;
	const struct gpu_shape *shape = id <= process->shape_count ? process->shapes[id] : NULL;
	char text[64];

	if (shape == NULL)
		return;
	snprintf(text, sizeof(text), "%u x %u x %u", shape->grid[0], shape->grid[1],
		 shape->grid[2]);
	annotate_text(out, "threads", text);
	snprintf(text, sizeof(text), "%u x %u x %u", shape->group[0], shape->group[1],
		 shape->group[2]);
	annotate_text(out, "group", text);
	if (shape->group_bytes != 0)
		annotate(out, "shared bytes", shape->group_bytes);
	if (shape->private_bytes != 0)
		annotate(out, "private bytes", shape->private_bytes);
}

static void annotate_copy(struct protobuf *out, const struct gpu_copy *copy)
{
	char text[32];

	annotate(out, "bytes", copy->bytes);
	if (copy->duration == 0)
		return;
	snprintf(text, sizeof(text), "%.2f GB/s", (double)copy->bytes / (double)copy->duration);
	annotate_text(out, "bandwidth", text);
}

/* The string that names the slice; copies have none. */
static uint32_t name_of(const struct gpu_writer *writer, const struct slice *slice)
{
	const struct gpu_process *process = writer->process;
	uint32_t id = slice->record->id, string = 0;

	if (slice->kind == GROUP_CALLS)
		string = id;
	else if (slice->kind == GROUP_MARKERS)
		string = ((const struct gpu_marker *)(const void *)slice->record)->message;
	else if (slice->kind == GROUP_KERNELS && id <= process->shape_count &&
		 process->shapes[id] != NULL)
		string = process->shapes[id]->kernel;
	return string <= process->string_count ? string : 0;
}

/* 0: no arrow. Numbers of other processes are others. */
static uint64_t flow_of(const struct gpu_writer *writer, const struct slice *slice)
{
	uint64_t correlation = 0;

	if (slice->kind == GROUP_KERNELS)
		correlation = ((const struct gpu_kernel *)(const void *)slice->record)->correlation;
	else if (slice->kind == GROUP_COPIES)
		correlation = ((const struct gpu_copy *)(const void *)slice->record)->correlation;
	else if (slice->kind == GROUP_CALLS)
		correlation = ((const struct gpu_call *)(const void *)slice->record)->correlation;
	return correlation == 0 ? 0 : ((uint64_t)writer->index + 1) << 48 | correlation;
}

static void write_begin(struct gpu_writer *writer, const struct slice *slice, uint64_t track)
{
	struct protobuf *out = &writer->trace->writer;
	uint32_t name = name_of(writer, slice);
	uint64_t flow = flow_of(writer, slice);
	bool is_mark = slice->kind == GROUP_MARKERS && slice->record->id == GPU_MARKER_MARK;

	open_event(writer, slice->start);
	if (slice->kind != GROUP_COPIES)
		intern_name(writer, name);
	protobuf_open(out, PACKET_TRACK_EVENT);
	protobuf_uint(out, TRACK_EVENT_TYPE, is_mark ? TRACK_EVENT_INSTANT : EVENT_BEGIN);
	protobuf_uint(out, TRACK_EVENT_TRACK, track);
	protobuf_string(out, TRACK_EVENT_CATEGORIES, categories[slice->kind]);
	if (slice->kind == GROUP_COPIES)
		protobuf_string(out, TRACK_EVENT_NAME, gpu_direction_name(slice->record->id));
	else
		protobuf_uint(out, TRACK_EVENT_NAME_IID, name + 1u);
	if (flow != 0)
		protobuf_fixed64(
			out, slice->kind == GROUP_CALLS ? TRACK_EVENT_FLOWS : TRACK_EVENT_FLOWS_END,
			flow);
	if (slice->kind == GROUP_KERNELS)
		annotate_shape(writer, slice->record->id);
	else if (slice->kind == GROUP_COPIES)
		annotate_copy(out, (const void *)slice->record);
	protobuf_close(out);
	protobuf_close(out);
}

static void write_end(struct gpu_writer *writer, uint64_t time_ns, uint64_t track)
{
	struct protobuf *out = &writer->trace->writer;

	open_event(writer, time_ns);
	protobuf_open(out, PACKET_TRACK_EVENT);
	protobuf_uint(out, TRACK_EVENT_TYPE, EVENT_END);
	protobuf_uint(out, TRACK_EVENT_TRACK, track);
	protobuf_close(out);
	protobuf_close(out);
}

static void write_slice(struct gpu_writer *writer, const struct slice *slice)
{
	struct lane *lane = find_lane(writer, slice);

	if (lane == NULL)
		return;
	write_begin(writer, slice, lane->track);
	if (slice->kind == GROUP_MARKERS && slice->record->id == GPU_MARKER_MARK)
		return;
	lane->ends[lane->depth++] = slice->end;
	write_end(writer, slice->end, lane->track);
}

static void write_slices(struct gpu_writer *writer)
{
	close_markers(writer);
	qsort(writer->slices, writer->count, sizeof(*writer->slices), compare_slices);
	for (size_t i = 0; i < writer->count; i++) {
		const struct slice *slice = &writer->slices[i];

		if (i == 0 || slice->kind != slice[-1].kind || slice->group != slice[-1].group)
			writer->lane_count = 0;
		write_slice(writer, slice);
	}
}

/* ---- readings ---- */

static int write_metric(const struct gpu_record_head *head, void *context)
{
	struct gpu_writer *writer = context;
	struct protobuf *out = &writer->trace->writer;
	const struct gpu_metric *metric = (const void *)head;
	char name[96];
	uint64_t *track;

	if (head->kind != GPU_RECORD_METRIC || gpu_metric_name(head->id) == NULL ||
	    metric->device >= 64)
		return 0;
	track = &writer->metric_tracks[head->id][metric->device];
	if (*track == 0) {
		*track = new_track(writer);
		snprintf(name, sizeof(name), "GPU %u %s (%s)", metric->device,
			 gpu_metric_name(head->id), gpu_metric_unit(head->id));
		perfetto_describe_counter(
			writer->trace, *track,
			writer->model == MODEL_NONE
				? 0
				: perfetto_process_track(writer->trace, writer->model),
			name, NULL);
	}
	perfetto_open_packet(writer->trace, metric->time);
	protobuf_open(out, PACKET_TRACK_EVENT);
	protobuf_uint(out, TRACK_EVENT_TYPE, TRACK_EVENT_COUNTER_TYPE);
	protobuf_uint(out, TRACK_EVENT_TRACK, *track);
	protobuf_double(out, TRACK_EVENT_DOUBLE_COUNTER, metric->value);
	protobuf_close(out);
	perfetto_close_packet(writer->trace);
	return 0;
}

/* ---- all ---- */

/* The image of the process that was running when the file was begun. */
uint32_t perfetto_gpu_model(const struct session *session, const struct gpu_process *process)
{
	uint32_t found = MODEL_NONE;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *model = &session->processes[i];

		if (model->pid == process->header.pid &&
		    model->process_start == process->header.process_start &&
		    (found == MODEL_NONE || model->start_ns <= process->header.start_boottime_ns))
			found = i;
	}
	return found;
}

int perfetto_write_gpu(struct perfetto *trace)
{
	const struct gpu_data *data = trace->session->gpu;
	struct gpu_writer *writer;
	int error = 0;

	for (size_t i = 0; data != NULL && error == 0 && i < data->process_count; i++) {
		const struct gpu_process *process = &data->processes[i];

		writer = calloc(1, sizeof(*writer));
		if (writer == NULL)
			return -ENOMEM;
		writer->trace = trace;
		writer->process = process;
		writer->index = (uint32_t)i;
		writer->model = perfetto_gpu_model(trace->session, process);
		writer->named = calloc((size_t)process->string_count + 1, 1);
		error = writer->named != NULL ? gpu_each(process, collect, writer) : -ENOMEM;
		if (error == 0) {
			write_slices(writer);
			gpu_each(process, write_metric, writer);
		}
		free(writer->slices);
		free(writer->named);
		free(writer);
	}
	return error;
}
