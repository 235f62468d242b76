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

#include "analysis/gpu/gpu.h"
#include "analysis/id_map.h"
#include "output/device_lines.h"
#include "output/perfetto/perfetto.h"

enum {
	INTERNED_DATA_FIELD_EVENT_NAMES = 2,
	INTERNED_DATA_FIELD_ANNOTATION_STRINGS = 29,
	GPU_TRACK_EVENT_FIELD_NAME_IID = 10,
	GPU_TRACK_EVENT_FIELD_FLOWS = 47,
	GPU_TRACK_EVENT_FIELD_TERMINATING_FLOWS = 48,
	EVENT_TYPE_SLICE_BEGIN = 1,
	EVENT_TYPE_SLICE_END = 2,
	GPU_ANNOTATION_FIELD_NAME = 10,
	GPU_ANNOTATION_FIELD_UINT_VALUE = 3,
	GPU_ANNOTATION_FIELD_STRING_VALUE = 6,
	GPU_ANNOTATION_FIELD_STRING_IID = 17,

	LANE_SLICE_DEPTH_MAX = 32,
	TRACK_LANES_MAX = 256,
	DEVICE_TRACK_UUID_BASE = 1 << 30, /* upper half of the numbers of our tracks */
};

/* What is a track to itself, but for lanes. */
enum gpu_track_kind { TRACK_KIND_KERNELS, TRACK_KIND_COPIES, TRACK_KIND_CALLS, TRACK_KIND_MARKERS };
static const char *const slice_category_names[] = {"kernel", "copy", "device call", "marker"};

struct gpu_slice {
	enum gpu_track_kind kind;
	uint64_t group; /* queue, direction or thread */
	uint64_t start, end;
	const struct gpu_record_head *record;
};

struct gpu_track_lane {
	uint64_t track_uuid;
	uint64_t ends[LANE_SLICE_DEPTH_MAX];
	unsigned depth;
};

struct gpu_trace_writer {
	struct perfetto_trace *trace;
	const struct gpu_records_of_process *process;
	uint32_t index;        /* of the process among those with devices */
	uint32_t model;        /* the process in the session, or MODEL_ENTRY_INDEX_NONE */
	uint64_t track_count;  /* made so far */
	uint8_t *named;        /* strings that are interned */
	uint8_t *named_frames; /* frames that are, as who launched */
	bool has_begun_packet_sequence;
	struct gpu_slice *slices;
	size_t slice_count, slice_capacity;
	struct id_map begun_marker_slices; /* by correlation */
	struct gpu_track_lane lanes[TRACK_LANES_MAX];
	unsigned lane_count;
	uint64_t metric_track_uuids[GPU_METRIC_COUNT][64];
};

/* ---- collecting ---- */

static int append_gpu_slice(struct gpu_trace_writer *writer, enum gpu_track_kind kind,
			    uint64_t group, uint64_t start, uint64_t duration,
			    const struct gpu_record_head *record)
{
	if (writer->slice_count == writer->slice_capacity) {
		size_t room = writer->slice_capacity != 0 ? writer->slice_capacity * 2 : 4096;
		struct gpu_slice *larger = realloc(writer->slices, room * sizeof(*larger));

		if (larger == NULL)
			return -ENOMEM;
		writer->slices = larger;
		writer->slice_capacity = room;
	}
	writer->slices[writer->slice_count++] =
		(struct gpu_slice){kind, group, start, start + duration, record};
	return 0;
}

/* Begin and end of a range have the same correlation; ends come later. */
static void set_marker_slice_end(struct gpu_trace_writer *writer, const struct gpu_marker *marker)
{
	uint32_t begin = id_map_get(&writer->begun_marker_slices, marker->correlation);

	if (begin != ID_MAP_NONE && writer->slices[begin].end == UINT64_MAX)
		writer->slices[begin].end = marker->time;
}

static int add_or_end_marker_slice(struct gpu_trace_writer *writer, const struct gpu_marker *marker)
{
	int result;

	if (marker->head.id == GPU_MARKER_END) {
		set_marker_slice_end(writer, marker);
		return 0;
	}
	result = append_gpu_slice(writer, TRACK_KIND_MARKERS, marker->tid, marker->time, 0,
				  &marker->head);
	if (result != 0 || marker->head.id != GPU_MARKER_BEGIN || writer->slice_count > ID_MAP_NONE)
		return result;
	writer->slices[writer->slice_count - 1].end = UINT64_MAX;
	return id_map_set(&writer->begun_marker_slices, marker->correlation,
			  (uint32_t)(writer->slice_count - 1));
}

static int append_slice_of_record(const struct gpu_record_head *head, void *context)
{
	struct gpu_trace_writer *writer = context;
	const struct gpu_kernel *kernel = (const void *)head;
	const struct gpu_copy *copy = (const void *)head;
	const struct gpu_call *call = (const void *)head;

	switch (head->kind) {
	case GPU_RECORD_KERNEL:
		return kernel->start == 0
			       ? 0
			       : append_gpu_slice(writer, TRACK_KIND_KERNELS, kernel->queue,
						  kernel->start, kernel->duration, head);
	case GPU_RECORD_COPY:
		return copy->start == 0 ? 0
					: append_gpu_slice(writer, TRACK_KIND_COPIES, head->id,
							   copy->start, copy->duration, head);
	case GPU_RECORD_CALL:
		return append_gpu_slice(writer, TRACK_KIND_CALLS, call->tid, call->start,
					call->duration, head);
	case GPU_RECORD_MARKER:
		return add_or_end_marker_slice(writer, (const void *)head);
	default:
		return 0;
	}
}

/* Ranges that nobody ended last as long as anything. */
static void set_ends_of_unended_markers(struct gpu_trace_writer *writer)
{
	uint64_t last = writer->trace->session->end_ns;

	for (size_t i = 0; i < writer->slice_count; i++) {
		if (writer->slices[i].end != UINT64_MAX && writer->slices[i].end > last)
			last = writer->slices[i].end;
	}
	for (size_t i = 0; i < writer->slice_count; i++) {
		if (writer->slices[i].end == UINT64_MAX)
			writer->slices[i].end = last;
	}
}

static int compare_slices_by_track_and_start(const void *left, const void *right)
{
	const struct gpu_slice *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end > b->end ? -1 : a->end < b->end;
}

/* ---- tracks ---- */

static uint64_t get_slice_parent_track_uuid(const struct gpu_trace_writer *writer,
					    const struct gpu_slice *slice)
{
	const struct session *session = writer->trace->session;

	if (writer->model == MODEL_ENTRY_INDEX_NONE)
		return 0;
	for (uint32_t i = 0; i < session->thread_count; i++) {
		if ((slice->kind == TRACK_KIND_CALLS || slice->kind == TRACK_KIND_MARKERS) &&
		    session->threads[i].process == writer->model &&
		    session->threads[i].tid == slice->group)
			return perfetto_get_thread_track_uuid(writer->trace, i);
	}
	return perfetto_get_process_track_uuid(writer->trace, writer->model);
}

static void format_track_name(const struct gpu_trace_writer *writer, const struct gpu_slice *slice,
			      char *name, size_t size)
{
	const struct gpu_records_of_process *process = writer->process;
	const struct gpu_kernel *kernel = (const void *)slice->record;
	uint32_t shape = slice->record->id;

	switch (slice->kind) {
	case TRACK_KIND_KERNELS:
		snprintf(name, size, "%s: queue %llu",
			 gpu_get_agent_name(
				 process, shape <= process->shape_count &&
							  process->kernel_shape_by_id[shape] != NULL
						  ? process->kernel_shape_by_id[shape]->agent
						  : 0),
			 (unsigned long long)(kernel->queue & UINT32_MAX));
		break;
	case TRACK_KIND_COPIES:
		if (slice->group == GPU_DIRECTION_FILL)
			snprintf(name, size, "fills");
		else
			snprintf(name, size, "copies %s",
				 gpu_get_copy_direction_name((uint32_t)slice->group));
		break;
	case TRACK_KIND_CALLS:
		snprintf(name, size, "calls of devices");
		break;
	case TRACK_KIND_MARKERS:
		snprintf(name, size, "markers");
		break;
	}
}

static uint64_t allocate_track_uuid(struct gpu_trace_writer *writer)
{
	return (uint64_t)(DEVICE_TRACK_UUID_BASE + writer->index) << 32 | ++writer->track_count;
}

/* A lane in which the slice lies inside what is open, or behind it. */
static struct gpu_track_lane *find_or_add_lane(struct gpu_trace_writer *writer,
					       const struct gpu_slice *slice)
{
	struct gpu_track_lane *lane;
	char name[256];

	for (unsigned i = 0; i < writer->lane_count; i++) {
		lane = &writer->lanes[i];
		while (lane->depth != 0 && lane->ends[lane->depth - 1] <= slice->start)
			lane->depth--;
		if (lane->depth < LANE_SLICE_DEPTH_MAX &&
		    (lane->depth == 0 || slice->end <= lane->ends[lane->depth - 1]))
			return lane;
	}
	if (writer->lane_count == TRACK_LANES_MAX)
		return NULL;
	lane = &writer->lanes[writer->lane_count++];
	lane->depth = 0;
	lane->track_uuid = allocate_track_uuid(writer);
	format_track_name(writer, slice, name, sizeof(name));
	perfetto_write_track_descriptor(writer->trace, lane->track_uuid,
					get_slice_parent_track_uuid(writer, slice), name);
	return lane;
}

/* ---- events ---- */

static void open_event_packet(struct gpu_trace_writer *writer, uint64_t time_ns)
{
	struct protobuf_writer *out = &writer->trace->writer;
	const struct session *session = writer->trace->session;

	protobuf_open_message(out, TRACE_FIELD_PACKET);
	protobuf_write_uint(out, PACKET_FIELD_TIMESTAMP, time_ns);
	protobuf_write_uint(out, PACKET_FIELD_SEQUENCE_ID,
			    perfetto_get_sample_sequence_id(session->process_count, 0) +
				    session->thread_count + 1 + writer->index);
	protobuf_write_uint(out, PACKET_FIELD_SEQUENCE_FLAGS,
			    writer->has_begun_packet_sequence
				    ? SEQUENCE_FLAG_NEEDS_STATE
				    : SEQUENCE_FLAG_STATE_CLEARED | SEQUENCE_FLAG_NEEDS_STATE);
	writer->has_begun_packet_sequence = true;
}

static void write_event_name_entry(struct gpu_trace_writer *writer, uint32_t string)
{
	struct protobuf_writer *out = &writer->trace->writer;
	const char *text = gpu_get_interned_string(writer->process, string);
	char *plain = gpu_demangle_name(text);

	writer->named[string] = 1;
	protobuf_open_message(out, INTERNED_DATA_FIELD_EVENT_NAMES);
	protobuf_write_uint(out, 1, string + 1u);
	protobuf_write_string(out, 2, plain != NULL ? plain : text);
	protobuf_close_message(out);
	free(plain);
}

static void write_launching_frame_entry(struct gpu_trace_writer *writer, uint32_t frame)
{
	struct protobuf_writer *out = &writer->trace->writer;
	char text[512];

	writer->named_frames[frame] = 1;
	device_format_launching_frame(text, sizeof(text), writer->trace->session, frame);
	protobuf_open_message(out, INTERNED_DATA_FIELD_ANNOTATION_STRINGS);
	protobuf_write_uint(out, 1, frame + 1u);
	protobuf_write_string(out, 2, text);
	protobuf_close_message(out);
}

/* string, launching frame: MODEL_ENTRY_INDEX_NONE: the slice has none. */
static void write_interned_data(struct gpu_trace_writer *writer, uint32_t string, uint32_t frame)
{
	struct protobuf_writer *out = &writer->trace->writer;
	bool new_string = string != MODEL_ENTRY_INDEX_NONE && !writer->named[string];
	bool new_frame = frame != MODEL_ENTRY_INDEX_NONE && !writer->named_frames[frame];

	if (!new_string && !new_frame)
		return;
	protobuf_open_message(out, PACKET_FIELD_INTERNED_DATA);
	if (new_string)
		write_event_name_entry(writer, string);
	if (new_frame)
		write_launching_frame_entry(writer, frame);
	protobuf_close_message(out);
}

static uint32_t find_launching_frame_of_slice(const struct gpu_trace_writer *writer,
					      const struct gpu_slice *slice)
{
	const struct session *session = writer->trace->session;
	uint32_t launch_path = 0, node;

	if (slice->kind == TRACK_KIND_KERNELS)
		launch_path = ((const struct gpu_kernel *)(const void *)slice->record)->launch_path;
	else if (slice->kind == TRACK_KIND_COPIES)
		launch_path = ((const struct gpu_copy *)(const void *)slice->record)->launch_path;
	node = gpu_find_node_of_launch_path(session, writer->model, launch_path);
	return node == MODEL_ENTRY_INDEX_NONE ? node : device_find_launching_frame(session, node);
}

static void write_launching_frame_annotation(struct protobuf_writer *out, uint32_t frame)
{
	if (frame == MODEL_ENTRY_INDEX_NONE)
		return;
	protobuf_open_message(out, TRACK_EVENT_FIELD_ANNOTATIONS);
	protobuf_write_string(out, GPU_ANNOTATION_FIELD_NAME, "launched by");
	protobuf_write_uint(out, GPU_ANNOTATION_FIELD_STRING_IID, frame + 1u);
	protobuf_close_message(out);
}

static void write_number_annotation(struct protobuf_writer *out, const char *name, uint64_t value)
{
	protobuf_open_message(out, TRACK_EVENT_FIELD_ANNOTATIONS);
	protobuf_write_string(out, GPU_ANNOTATION_FIELD_NAME, name);
	protobuf_write_uint(out, GPU_ANNOTATION_FIELD_UINT_VALUE, value);
	protobuf_close_message(out);
}

static void write_text_annotation(struct protobuf_writer *out, const char *name, const char *text)
{
	protobuf_open_message(out, TRACK_EVENT_FIELD_ANNOTATIONS);
	protobuf_write_string(out, GPU_ANNOTATION_FIELD_NAME, name);
	protobuf_write_string(out, GPU_ANNOTATION_FIELD_STRING_VALUE, text);
	protobuf_close_message(out);
}

static void write_launch_shape_annotations(struct gpu_trace_writer *writer, uint32_t id)
{
	const struct gpu_records_of_process *process = writer->process;
	struct protobuf_writer *out = &writer->trace->writer;
	const struct gpu_shape *shape =
		id <= process->shape_count ? process->kernel_shape_by_id[id] : NULL;
	char text[64];

	if (shape == NULL)
		return;
	snprintf(text, sizeof(text), "%u x %u x %u", shape->grid[0], shape->grid[1],
		 shape->grid[2]);
	write_text_annotation(out, "threads", text);
	snprintf(text, sizeof(text), "%u x %u x %u", shape->group[0], shape->group[1],
		 shape->group[2]);
	write_text_annotation(out, "group", text);
	if (shape->group_bytes != 0)
		write_number_annotation(out, "shared bytes", shape->group_bytes);
	if (shape->private_bytes != 0)
		write_number_annotation(out, "private bytes", shape->private_bytes);
}

static void write_copy_annotations(struct protobuf_writer *out, const struct gpu_copy *copy)
{
	char text[32];

	write_number_annotation(out, "bytes", copy->bytes);
	if (copy->duration == 0)
		return;
	snprintf(text, sizeof(text), "%.2f GB/s", (double)copy->bytes / (double)copy->duration);
	write_text_annotation(out, "bandwidth", text);
}

/* The string that names the slice; copies have none. */
static uint32_t get_slice_name_string_id(const struct gpu_trace_writer *writer,
					 const struct gpu_slice *slice)
{
	const struct gpu_records_of_process *process = writer->process;
	uint32_t id = slice->record->id, string = 0;

	if (slice->kind == TRACK_KIND_CALLS)
		string = id;
	else if (slice->kind == TRACK_KIND_MARKERS)
		string = ((const struct gpu_marker *)(const void *)slice->record)->message;
	else if (slice->kind == TRACK_KIND_KERNELS && id <= process->shape_count &&
		 process->kernel_shape_by_id[id] != NULL)
		string = process->kernel_shape_by_id[id]->kernel;
	return string <= process->string_count ? string : 0;
}

/* 0: no arrow. Numbers of other processes are others. */
static uint64_t make_slice_flow_id(const struct gpu_trace_writer *writer,
				   const struct gpu_slice *slice)
{
	uint64_t correlation = 0;

	if (slice->kind == TRACK_KIND_KERNELS)
		correlation = ((const struct gpu_kernel *)(const void *)slice->record)->correlation;
	else if (slice->kind == TRACK_KIND_COPIES)
		correlation = ((const struct gpu_copy *)(const void *)slice->record)->correlation;
	else if (slice->kind == TRACK_KIND_CALLS)
		correlation = ((const struct gpu_call *)(const void *)slice->record)->correlation;
	return correlation == 0 ? 0 : ((uint64_t)writer->index + 1) << 48 | correlation;
}

static void write_slice_begin(struct gpu_trace_writer *writer, const struct gpu_slice *slice,
			      uint64_t track)
{
	struct protobuf_writer *out = &writer->trace->writer;
	uint32_t name = get_slice_name_string_id(writer, slice);
	uint32_t frame = find_launching_frame_of_slice(writer, slice);
	uint64_t flow = make_slice_flow_id(writer, slice);
	bool is_mark = slice->kind == TRACK_KIND_MARKERS && slice->record->id == GPU_MARKER_MARK;

	open_event_packet(writer, slice->start);
	write_interned_data(
		writer, slice->kind == TRACK_KIND_COPIES ? MODEL_ENTRY_INDEX_NONE : name, frame);
	protobuf_open_message(out, PACKET_FIELD_TRACK_EVENT);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TYPE,
			    is_mark ? TRACK_EVENT_TYPE_INSTANT : EVENT_TYPE_SLICE_BEGIN);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TRACK_UUID, track);
	protobuf_write_string(out, TRACK_EVENT_FIELD_CATEGORIES, slice_category_names[slice->kind]);
	if (slice->kind == TRACK_KIND_COPIES)
		protobuf_write_string(out, TRACK_EVENT_FIELD_NAME,
				      gpu_get_copy_direction_name(slice->record->id));
	else
		protobuf_write_uint(out, GPU_TRACK_EVENT_FIELD_NAME_IID, name + 1u);
	if (flow != 0)
		protobuf_write_fixed64(out,
				       slice->kind == TRACK_KIND_CALLS
					       ? GPU_TRACK_EVENT_FIELD_FLOWS
					       : GPU_TRACK_EVENT_FIELD_TERMINATING_FLOWS,
				       flow);
	if (slice->kind == TRACK_KIND_KERNELS)
		write_launch_shape_annotations(writer, slice->record->id);
	else if (slice->kind == TRACK_KIND_COPIES)
		write_copy_annotations(out, (const void *)slice->record);
	write_launching_frame_annotation(out, frame);
	protobuf_close_message(out);
	protobuf_close_message(out);
}

static void write_slice_end(struct gpu_trace_writer *writer, uint64_t time_ns, uint64_t track)
{
	struct protobuf_writer *out = &writer->trace->writer;

	open_event_packet(writer, time_ns);
	protobuf_open_message(out, PACKET_FIELD_TRACK_EVENT);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TYPE, EVENT_TYPE_SLICE_END);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TRACK_UUID, track);
	protobuf_close_message(out);
	protobuf_close_message(out);
}

static void write_gpu_slice(struct gpu_trace_writer *writer, const struct gpu_slice *slice)
{
	struct gpu_track_lane *lane = find_or_add_lane(writer, slice);

	if (lane == NULL)
		return;
	write_slice_begin(writer, slice, lane->track_uuid);
	if (slice->kind == TRACK_KIND_MARKERS && slice->record->id == GPU_MARKER_MARK)
		return;
	lane->ends[lane->depth++] = slice->end;
	write_slice_end(writer, slice->end, lane->track_uuid);
}

static void write_gpu_slices(struct gpu_trace_writer *writer)
{
	set_ends_of_unended_markers(writer);
	qsort(writer->slices, writer->slice_count, sizeof(*writer->slices),
	      compare_slices_by_track_and_start);
	for (size_t i = 0; i < writer->slice_count; i++) {
		const struct gpu_slice *slice = &writer->slices[i];

		if (i == 0 || slice->kind != slice[-1].kind || slice->group != slice[-1].group)
			writer->lane_count = 0;
		write_gpu_slice(writer, slice);
	}
}

/* ---- readings ---- */

static int write_device_metric(const struct gpu_record_head *head, void *context)
{
	struct gpu_trace_writer *writer = context;
	struct protobuf_writer *out = &writer->trace->writer;
	const struct gpu_metric *metric = (const void *)head;
	char name[96];
	uint64_t *track;

	if (head->kind != GPU_RECORD_METRIC || gpu_get_metric_name(head->id) == NULL ||
	    metric->device >= 64)
		return 0;
	track = &writer->metric_track_uuids[head->id][metric->device];
	if (*track == 0) {
		*track = allocate_track_uuid(writer);
		snprintf(name, sizeof(name), "GPU %u %s (%s)", metric->device,
			 gpu_get_metric_name(head->id), gpu_get_metric_unit(head->id));
		perfetto_write_counter_descriptor(
			writer->trace, *track,
			writer->model == MODEL_ENTRY_INDEX_NONE
				? 0
				: perfetto_get_process_track_uuid(writer->trace, writer->model),
			name, NULL);
	}
	perfetto_open_metadata_packet(writer->trace, metric->time);
	protobuf_open_message(out, PACKET_FIELD_TRACK_EVENT);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TYPE, TRACK_EVENT_TYPE_COUNTER);
	protobuf_write_uint(out, TRACK_EVENT_FIELD_TRACK_UUID, *track);
	protobuf_write_double(out, TRACK_EVENT_FIELD_DOUBLE_COUNTER, metric->value);
	protobuf_close_message(out);
	perfetto_close_metadata_packet(writer->trace);
	return 0;
}

/* ---- all ---- */

int perfetto_write_gpu_events(struct perfetto_trace *trace)
{
	const struct gpu_data *data = session_get_gpu_data(trace->session);
	struct gpu_trace_writer *writer;
	int error = 0;

	for (size_t i = 0; data != NULL && error == 0 && i < data->process_count; i++) {
		const struct gpu_records_of_process *process = &data->processes[i];

		writer = calloc(1, sizeof(*writer));
		if (writer == NULL)
			return -ENOMEM;
		writer->trace = trace;
		writer->process = process;
		writer->index = (uint32_t)i;
		writer->model = gpu_find_process_in_session(trace->session, process);
		writer->named = calloc((size_t)process->string_count + 1, 1);
		writer->named_frames = calloc((size_t)trace->session->frame_count + 1, 1);
		error = writer->named != NULL && writer->named_frames != NULL
				? gpu_visit_records(process, append_slice_of_record, writer)
				: -ENOMEM;
		if (error == 0) {
			write_gpu_slices(writer);
			gpu_visit_records(process, write_device_metric, writer);
		}
		free(writer->slices);
		id_map_deinit(&writer->begun_marker_slices);
		free(writer->named);
		free(writer->named_frames);
		free(writer);
	}
	return error;
}
