/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Process and thread tracks: who ran, under which name, in which order. Processes stand in the
 * order of their start, threads with the main one first, kymo's own last.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "output/perfetto/perfetto.h"

enum {
	TRACK_DESCRIPTOR_FIELD_UUID = 1,
	TRACK_DESCRIPTOR_FIELD_NAME = 2,
	TRACK_DESCRIPTOR_FIELD_PROCESS = 3,
	TRACK_DESCRIPTOR_FIELD_THREAD = 4,
	TRACK_DESCRIPTOR_FIELD_PARENT_UUID = 5,
	TRACK_DESCRIPTOR_FIELD_ORDER_RANK = 12,
	TRACK_DESCRIPTOR_FIELD_MERGE_BEHAVIOR = 15,
	SIBLING_MERGE_BEHAVIOR_NONE = 2,
	TRACK_DESCRIPTOR_FIELD_PROCESS_ORDERING = 19,
	TRACK_DESCRIPTOR_FIELD_THREAD_ORDERING = 20,
	TRACK_ORDERING_EXPLICIT = 1,

	THREAD_ORIGIN_MAIN = 0,
	THREAD_ORIGIN_KYMO = 3,
};

struct process_sort_key {
	uint32_t pid, image, index;
	uint64_t process_start;
	const char *host;
};

static int compare_processes_by_host_and_pid(const void *left_key, const void *right_key)
{
	const struct process_sort_key *left = left_key, *right = right_key;
	int order = strcmp(left->host, right->host);

	if (order != 0)
		return order;
	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	if (left->process_start != right->process_start)
		return left->process_start < right->process_start ? -1 : 1;
	return left->image < right->image ? -1 : left->image > right->image;
}

/* Images with the same pid and start time are one process to the kernel and to Perfetto. */
int perfetto_assign_process_track_groups(struct perfetto_trace *trace)
{
	const struct session *session = trace->session;
	uint32_t count = session->process_count;
	struct process_sort_key *keys = calloc((size_t)count + 1, sizeof(*keys));

	trace->group_of_process = calloc((size_t)count + 1, sizeof(*trace->group_of_process));
	trace->next_image_of_process =
		calloc((size_t)count + 1, sizeof(*trace->next_image_of_process));
	trace->is_first_image_by_process =
		calloc((size_t)count + 1, sizeof(*trace->is_first_image_by_process));
	if (keys == NULL || trace->group_of_process == NULL ||
	    trace->next_image_of_process == NULL || trace->is_first_image_by_process == NULL) {
		free(keys);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		keys[i] = (struct process_sort_key){.pid = session->processes[i].pid,
						    .image = session->processes[i].image,
						    .process_start =
							    session->processes[i].process_start,
						    .host = session->processes[i].host,
						    .index = i};
	qsort(keys, count, sizeof(*keys), compare_processes_by_host_and_pid);
	for (uint32_t i = 0; i < count; i++) {
		bool same = i != 0 && keys[i].pid == keys[i - 1].pid &&
			    keys[i].process_start == keys[i - 1].process_start &&
			    strcmp(keys[i].host, keys[i - 1].host) == 0;
		trace->group_of_process[keys[i].index] =
			same ? trace->group_count - 1 : trace->group_count++;
		trace->is_first_image_by_process[keys[i].index] = !same;
		trace->next_image_of_process[keys[i].index] = MODEL_ENTRY_INDEX_NONE;
		if (same)
			trace->next_image_of_process[keys[i - 1].index] = keys[i].index;
	}
	free(keys);
	return 0;
}

void perfetto_process_track_groups_deinit(struct perfetto_trace *trace)
{
	free(trace->group_of_process);
	free(trace->next_image_of_process);
	free(trace->is_first_image_by_process);
}

static bool has_several_hosts(const struct session *session)
{
	for (uint32_t i = 1; i < session->process_count; i++) {
		if (strcmp(session->processes[i].host, session->processes[0].host) != 0)
			return true;
	}
	return false;
}

/* " [rank 3]", with the host where there are several. */
static void format_rank_and_host(const struct perfetto_trace *trace,
				 const struct model_process *process, char *ret, size_t size)
{
	const char *host = has_several_hosts(trace->session) ? process->host : NULL;

	ret[0] = '\0';
	if (process->rank_count != 0 && host != NULL)
		snprintf(ret, size, " [rank %u on %s]", process->rank, host);
	else if (process->rank_count != 0)
		snprintf(ret, size, " [rank %u]", process->rank);
	else if (host != NULL)
		snprintf(ret, size, " [%s]", host);
}

/* "sh", or for a process that changed its image "sh → make"; long chains lose their middle. */
static void format_process_images(const struct perfetto_trace *trace, uint32_t first, char *ret,
				  size_t size)
{
	char place[96];
	const struct model_process *processes = trace->session->processes;
	uint32_t last = first, images = 1;

	while (trace->next_image_of_process[last] != MODEL_ENTRY_INDEX_NONE) {
		last = trace->next_image_of_process[last];
		images++;
	}
	format_rank_and_host(trace, &processes[last], place, sizeof(place));
	if (images == 1)
		snprintf(ret, size, "%s%s", processes[first].name, place);
	else
		snprintf(ret, size, images == 2 ? "%s → %s%s" : "%s → … → %s%s",
			 processes[first].name, processes[last].name, place);
}

static void write_explicit_track_ordering_packet(struct perfetto_trace *trace)
{
	struct protobuf_writer *writer = &trace->writer;

	perfetto_open_metadata_packet(trace, 0);
	protobuf_open_message(writer, PACKET_FIELD_TRACK_DESCRIPTOR);
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_UUID, 0);
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_PROCESS_ORDERING,
			    TRACK_ORDERING_EXPLICIT);
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_THREAD_ORDERING,
			    TRACK_ORDERING_EXPLICIT);
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

static void write_process_track_descriptor(struct perfetto_trace *trace, uint32_t index)
{
	struct protobuf_writer *writer = &trace->writer;
	const struct model_process *process = &trace->session->processes[index];
	char name[256];

	format_process_images(trace, index, name, sizeof(name));
	perfetto_open_metadata_packet(trace, process->start_ns);
	protobuf_open_message(writer, PACKET_FIELD_TRACK_DESCRIPTOR);
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_UUID,
			    perfetto_get_process_track_uuid(trace, index));
	protobuf_open_message(writer, TRACK_DESCRIPTOR_FIELD_PROCESS);
	protobuf_write_uint(writer, 1, process->pid);
	protobuf_write_string(writer, 6, name);
	protobuf_write_uint(writer, 7, process->start_ns);
	protobuf_close_message(writer);
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_ORDER_RANK, index + 1);
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

static uint32_t get_thread_sort_rank(const struct model_thread *thread)
{
	if (thread->how == THREAD_ORIGIN_MAIN)
		return 0;
	if (thread->how == THREAD_ORIGIN_KYMO)
		return INT32_MAX;
	return thread->internal_id < INT32_MAX ? thread->internal_id + 1 : INT32_MAX - 1;
}

void perfetto_write_track_descriptor(struct perfetto_trace *trace, uint64_t uuid, uint64_t parent,
				     const char *name)
{
	struct protobuf_writer *writer = &trace->writer;

	perfetto_open_metadata_packet(trace, 0);
	protobuf_open_message(writer, PACKET_FIELD_TRACK_DESCRIPTOR);
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_UUID, uuid);
	protobuf_write_string(writer, TRACK_DESCRIPTOR_FIELD_NAME, name);
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_PARENT_UUID, parent);
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_MERGE_BEHAVIOR,
			    SIBLING_MERGE_BEHAVIOR_NONE);
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

static void write_thread_track_descriptor(struct perfetto_trace *trace, uint32_t index)
{
	struct protobuf_writer *writer = &trace->writer;
	const struct model_thread *thread = &trace->session->threads[index];
	const struct model_process *process = &trace->session->processes[thread->process];

	perfetto_open_metadata_packet(trace, thread->start_ns);
	protobuf_open_message(writer, PACKET_FIELD_TRACK_DESCRIPTOR);
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_UUID,
			    perfetto_get_thread_track_uuid(trace, index));
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_PARENT_UUID,
			    perfetto_get_process_track_uuid(trace, thread->process));
	protobuf_open_message(writer, TRACK_DESCRIPTOR_FIELD_THREAD);
	protobuf_write_uint(writer, 1, process->pid);
	protobuf_write_uint(writer, 2, thread->tid);
	protobuf_write_string(writer, 5, thread->name);
	protobuf_close_message(writer);
	protobuf_write_uint(writer, TRACK_DESCRIPTOR_FIELD_ORDER_RANK,
			    get_thread_sort_rank(thread));
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

/* Command lines and parents come from here: trace_processor ignores those of ProcessDescriptor. */
static void write_process_tree(struct perfetto_trace *trace)
{
	struct protobuf_writer *writer = &trace->writer;
	const struct session *session = trace->session;

	perfetto_open_metadata_packet(trace, session->start_ns);
	protobuf_open_message(writer, PACKET_FIELD_PROCESS_TREE);
	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];
		if (trace->next_image_of_process[i] != MODEL_ENTRY_INDEX_NONE)
			continue;
		protobuf_open_message(writer, 1);
		protobuf_write_uint(writer, 1, process->pid);
		protobuf_write_uint(writer, 2, process->parent_pid);
		for (uint32_t k = 0; k < process->argument_count; k++)
			protobuf_write_string(writer, 3, process->arguments[k]);
		protobuf_close_message(writer);
	}
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

void perfetto_write_process_thread_tracks(struct perfetto_trace *trace)
{
	write_explicit_track_ordering_packet(trace);
	for (uint32_t i = 0; i < trace->session->process_count; i++) {
		if (trace->is_first_image_by_process[i])
			write_process_track_descriptor(trace, i);
	}
	write_process_tree(trace);
	for (uint32_t i = 0; i < trace->session->thread_count; i++)
		write_thread_track_descriptor(trace, i);
}
