/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Work on devices as slices: kernels by queue, copies by direction, calls and markers by thread;
 * and operations of NCCL by rank.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/gpu.h"
#include "analysis/nccl/nccl.h"
#include "output/nccl/nccl.h"
#include "output/web/timeline.h"

struct device_collector {
	struct timeline *timeline;
	const struct gpu_records_of_process *process;
	uint32_t index;             /* among processes with devices */
	uint32_t session_process;   /* or MODEL_ENTRY_INDEX_NONE */
	int64_t *name_of_string;    /* -1: not asked for yet */
	struct id_map open_markers; /* index in `markers`, by correlation */
	struct open_marker {
		uint64_t start_ns;
		int64_t name;
		uint32_t track;
		bool has_ended;
	} * markers;
	uint32_t marker_count, marker_capacity;
};

/* Names of kernels are given as in the source. */
static int64_t get_name(struct device_collector *collector, uint32_t string)
{
	struct page_writer *page = collector->timeline->page;

	if (string > collector->process->string_count)
		string = 0;
	if (collector->name_of_string[string] < 0) {
		const char *text = gpu_get_interned_string(collector->process, string);
		char *plain = gpu_demangle_name(text);
		collector->name_of_string[string] =
			page_get_string_number(page, plain != NULL ? plain : text);
		free(plain);
	}
	return collector->name_of_string[string];
}

static uint32_t find_page_thread(const struct device_collector *collector, uint32_t tid)
{
	const struct page_tree *tree = &collector->timeline->page->tree;

	for (uint32_t i = 0; i < tree->thread_count; i++) {
		if (tree->threads[i].process == collector->session_process && tid != 0 &&
		    tree->threads[i].tid == tid)
			return i;
	}
	return MODEL_ENTRY_INDEX_NONE;
}

static struct timeline_track *find_track(struct device_collector *collector,
					 enum timeline_track_kind kind, uint64_t group,
					 uint32_t *ret)
{
	struct timeline *timeline = collector->timeline;
	uint64_t key = id_map_hash_key(group) + collector->index;
	uint32_t known = timeline->track_count;
	struct timeline_track *track = timeline_find_or_add_track(timeline, kind, key, ret);
	char owner[64];

	if (track == NULL || known == timeline->track_count)
		return track;
	track->process = collector->session_process;
	snprintf(owner, sizeof(owner), "process %u", collector->process->header.pid);
	if (track->process == MODEL_ENTRY_INDEX_NONE)
		track->owner = page_get_string_number(timeline->page, owner);
	return track;
}

static const struct gpu_shape *find_shape(const struct device_collector *collector, uint32_t id)
{
	return id <= collector->process->shape_count ? collector->process->kernel_shape_by_id[id]
						     : NULL;
}

static int add_kernel(struct device_collector *collector, const struct gpu_kernel *kernel)
{
	const struct gpu_shape *shape = find_shape(collector, kernel->head.id);
	uint32_t track_index;
	struct timeline_track *track =
		find_track(collector, TIMELINE_KERNELS, kernel->queue, &track_index);
	char name[256];

	if (track == NULL)
		return -ENOMEM;
	if (track->name < 0) {
		snprintf(name, sizeof(name), "%s: queue %u",
			 gpu_get_agent_name(collector->process, shape != NULL ? shape->agent : 0),
			 (uint32_t)kernel->queue);
		track->name = page_get_string_number(collector->timeline->page, name);
	}
	return kernel->start == 0
		       ? 0
		       : timeline_add_span(collector->timeline, track_index, kernel->start,
					   kernel->start + kernel->duration,
					   get_name(collector, shape != NULL ? shape->kernel : 0));
}

static int add_copy(struct device_collector *collector, const struct gpu_copy *copy)
{
	struct page_writer *page = collector->timeline->page;
	const char *what = gpu_get_copy_work_name(copy->head.id);
	uint32_t track_index;
	struct timeline_track *track =
		find_track(collector, TIMELINE_COPIES, copy->head.id, &track_index);

	if (track == NULL)
		return -ENOMEM;
	track->name = page_get_string_number(page, what);
	return copy->start == 0 ? 0
				: timeline_add_span(collector->timeline, track_index, copy->start,
						    copy->start + copy->duration, track->name);
}

static struct timeline_track *find_thread_track(struct device_collector *collector,
						enum timeline_track_kind kind, uint32_t tid,
						const char *name, uint32_t *ret)
{
	struct timeline_track *track = find_track(collector, kind, tid, ret);

	if (track != NULL && track->name < 0) {
		track->thread = find_page_thread(collector, tid);
		track->name = page_get_string_number(collector->timeline->page, name);
	}
	return track;
}

static int add_call(struct device_collector *collector, const struct gpu_call *call)
{
	uint32_t track;

	if (find_thread_track(collector, TIMELINE_CALLS, call->tid, "calls of devices", &track) ==
	    NULL)
		return -ENOMEM;
	return timeline_add_span(collector->timeline, track, call->start,
				 call->start + call->duration, get_name(collector, call->head.id));
}

/* ---- markers ---- */

static int open_marker(struct device_collector *collector, const struct gpu_marker *marker,
		       uint32_t track)
{
	if (collector->marker_count == collector->marker_capacity) {
		uint32_t capacity = collector->marker_capacity * 2 + 64;
		struct open_marker *markers =
			reallocarray(collector->markers, capacity, sizeof(*markers));
		if (markers == NULL)
			return -ENOMEM;
		collector->markers = markers;
		collector->marker_capacity = capacity;
	}
	collector->markers[collector->marker_count] = (struct open_marker){
		marker->time, get_name(collector, marker->message), track, false};
	return id_map_set(&collector->open_markers, marker->correlation, collector->marker_count++);
}

static int end_marker(struct device_collector *collector, uint32_t index, uint64_t end_ns)
{
	struct open_marker *marker =
		index < collector->marker_count ? &collector->markers[index] : NULL;

	if (marker == NULL || marker->has_ended)
		return 0;
	marker->has_ended = true;
	return timeline_add_span(collector->timeline, marker->track, marker->start_ns, end_ns,
				 marker->name);
}

static int add_marker(struct device_collector *collector, const struct gpu_marker *marker)
{
	uint32_t track;

	if (marker->head.id == GPU_MARKER_END)
		return end_marker(collector,
				  id_map_get(&collector->open_markers, marker->correlation),
				  marker->time);
	if (find_thread_track(collector, TIMELINE_MARKERS, marker->tid, "markers", &track) == NULL)
		return -ENOMEM;
	if (marker->head.id == GPU_MARKER_BEGIN)
		return open_marker(collector, marker, track);
	return timeline_add_span(collector->timeline, track, marker->time, marker->time,
				 get_name(collector, marker->message));
}

static int add_record(const struct gpu_record_head *head, void *context)
{
	switch (head->kind) {
	case GPU_RECORD_KERNEL:
		return add_kernel(context, (const void *)head);
	case GPU_RECORD_COPY:
		return add_copy(context, (const void *)head);
	case GPU_RECORD_CALL:
		return add_call(context, (const void *)head);
	case GPU_RECORD_MARKER:
		return add_marker(context, (const void *)head);
	default:
		return 0;
	}
}

static int collect_devices_of_process(struct timeline *timeline, const struct gpu_data *data,
				      uint32_t index)
{
	const struct gpu_records_of_process *process = &data->processes[index];
	struct device_collector collector = {
		.timeline = timeline,
		.process = process,
		.index = index,
		.session_process = gpu_find_process_in_session(timeline->page->session, process),
		.name_of_string = malloc(((size_t)process->string_count + 1) *
					 sizeof(*collector.name_of_string))};
	int error = collector.name_of_string == NULL ? -ENOMEM : 0;

	for (uint32_t i = 0; error == 0 && i <= process->string_count; i++)
		collector.name_of_string[i] = -1;
	if (error == 0)
		error = gpu_visit_records(process, add_record, &collector);
	for (uint32_t i = 0; error == 0 && i < collector.marker_count; i++)
		error = end_marker(&collector, i, UINT64_MAX);
	free(collector.name_of_string);
	free(collector.markers);
	id_map_deinit(&collector.open_markers);
	return error;
}

int timeline_collect_devices(struct timeline *timeline)
{
	const struct gpu_data *data = session_get_gpu_data(timeline->page->session);
	int error = 0;

	for (uint32_t i = 0; data != NULL && error == 0 && i < data->process_count; i++)
		error = collect_devices_of_process(timeline, data, i);
	return error;
}

/* ---- NCCL ---- */

struct nccl_collector {
	struct timeline *timeline;
	struct nccl_data *data;
	uint32_t process, session_process;
};

static struct timeline_track *find_nccl_track(struct nccl_collector *collector,
					      enum timeline_track_kind kind, uint64_t key,
					      uint32_t *ret)
{
	struct timeline *timeline = collector->timeline;
	struct timeline_track *track = timeline_find_or_add_track(timeline, kind, key, ret);
	char owner[96];

	if (track == NULL || track->name >= 0)
		return track;
	track->process = collector->session_process;
	snprintf(owner, sizeof(owner), "process %u",
		 collector->data->processes[collector->process].file.header.pid);
	if (track->process == MODEL_ENTRY_INDEX_NONE)
		track->owner = page_get_string_number(timeline->page, owner);
	return track;
}

static int add_nccl_enqueue(struct nccl_collector *collector,
			    const struct nccl_operation_view *view, const char *function)
{
	struct page_writer *page = collector->timeline->page;
	uint32_t index;
	struct timeline_track *track =
		find_nccl_track(collector, TIMELINE_NCCL_ENQUEUE,
				(uint64_t)collector->process << 32 | view->record->thread, &index);
	char name[160];

	if (track == NULL)
		return -ENOMEM;
	snprintf(name, sizeof(name), "NCCL calls of thread %u", view->record->thread);
	track->name = page_get_string_number(page, name);
	snprintf(name, sizeof(name), "enqueue %s", function);
	return timeline_add_span(collector->timeline, index, view->enqueue_begin_ns,
				 view->enqueue_end_ns != 0 ? view->enqueue_end_ns : UINT64_MAX,
				 page_get_string_number(page, name));
}

static int add_nccl_operation(const struct nccl_operation_view *view, void *context)
{
	struct nccl_collector *collector = context;
	struct nccl_data *data = collector->data;
	struct page_writer *page = collector->timeline->page;
	const struct nccl_communicator_rank *member = &data->members[view->member];
	const char *function = view->function == NCCL_INDEX_NONE
				       ? "unknown"
				       : data->functions[view->function].name;
	char name[192];
	uint32_t index;
	int error = add_nccl_enqueue(collector, view, function);

	if (error != 0 || !view->is_begin_known || (!view->is_waiting && view->duration_ns == 0))
		return error;
	struct timeline_track *track =
		find_nccl_track(collector, TIMELINE_NCCL, view->member, &index);
	if (track == NULL)
		return -ENOMEM;
	snprintf(name, sizeof(name), "NCCL %s, rank %d",
		 nccl_format_communicator_label(data, member->communicator).text, member->rank);
	track->name = page_get_string_number(page, name);
	return timeline_add_span(collector->timeline, index, view->begin_ns,
				 view->is_waiting ? UINT64_MAX : view->begin_ns + view->duration_ns,
				 page_get_string_number(page, function));
}

static uint32_t find_session_process(const struct session *session,
				     const struct nccl_process *process)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		if (session->processes[i].pid == process->file.header.pid &&
		    session->processes[i].process_start == process->file.header.process_start)
			return i;
	}
	return MODEL_ENTRY_INDEX_NONE;
}

int timeline_collect_nccl(struct timeline *timeline)
{
	struct session *session = timeline->page->session;
	struct nccl_data *data = session_get_nccl_data(session);
	int error = 0;

	for (uint32_t i = 0; data != NULL && error == 0 && i < data->process_count; i++) {
		struct nccl_collector collector = {
			timeline, data, i, find_session_process(session, &data->processes[i])};
		error = nccl_visit_operations_of_process(data, i, add_nccl_operation, &collector,
							 timeline->page->problem);
	}
	return error;
}
