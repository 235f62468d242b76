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

#include "output/perfetto.h"

enum {
	DESCRIPTOR_UUID = 1,
	DESCRIPTOR_NAME = 2,
	DESCRIPTOR_PROCESS = 3,
	DESCRIPTOR_THREAD = 4,
	DESCRIPTOR_PARENT = 5,
	DESCRIPTOR_RANK = 12,
	DESCRIPTOR_MERGING = 15,
	MERGING_NONE = 2,
	DESCRIPTOR_PROCESS_ORDERING = 19,
	DESCRIPTOR_THREAD_ORDERING = 20,
	ORDERING_EXPLICIT = 1,

	THREAD_HOW_MAIN = 0,
	THREAD_HOW_OURS = 3,
};

struct process_key {
	uint32_t pid, image, index;
	uint64_t process_start;
	const char *host;
};

static int compare_keys(const void *left_key, const void *right_key)
{
	const struct process_key *left = left_key, *right = right_key;
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
int perfetto_group_processes(struct perfetto *trace)
{
	const struct session *session = trace->session;
	uint32_t count = session->process_count;
	struct process_key *keys = calloc((size_t)count + 1, sizeof(*keys));

	trace->group_of_process = calloc((size_t)count + 1, sizeof(*trace->group_of_process));
	trace->next_image = calloc((size_t)count + 1, sizeof(*trace->next_image));
	trace->is_first_image = calloc((size_t)count + 1, sizeof(*trace->is_first_image));
	if (keys == NULL || trace->group_of_process == NULL || trace->next_image == NULL ||
	    trace->is_first_image == NULL) {
		free(keys);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		keys[i] = (struct process_key){.pid = session->processes[i].pid,
					       .image = session->processes[i].image,
					       .process_start = session->processes[i].process_start,
					       .host = session->processes[i].host,
					       .index = i};
	qsort(keys, count, sizeof(*keys), compare_keys);
	for (uint32_t i = 0; i < count; i++) {
		bool same = i != 0 && keys[i].pid == keys[i - 1].pid &&
			    keys[i].process_start == keys[i - 1].process_start &&
			    strcmp(keys[i].host, keys[i - 1].host) == 0;
		trace->group_of_process[keys[i].index] =
			same ? trace->group_count - 1 : trace->group_count++;
		trace->is_first_image[keys[i].index] = !same;
		trace->next_image[keys[i].index] = MODEL_NONE;
		if (same)
			trace->next_image[keys[i - 1].index] = keys[i].index;
	}
	free(keys);
	return 0;
}

void perfetto_tracks_deinit(struct perfetto *trace)
{
	free(trace->group_of_process);
	free(trace->next_image);
	free(trace->is_first_image);
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
static void describe_place(const struct perfetto *trace, const struct model_process *process,
			   char *ret, size_t size)
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
static void describe_images(const struct perfetto *trace, uint32_t first, char *ret, size_t size)
{
	char place[96];
	const struct model_process *processes = trace->session->processes;
	uint32_t last = first, images = 1;

	while (trace->next_image[last] != MODEL_NONE) {
		last = trace->next_image[last];
		images++;
	}
	describe_place(trace, &processes[last], place, sizeof(place));
	if (images == 1)
		snprintf(ret, size, "%s%s", processes[first].name, place);
	else
		snprintf(ret, size, images == 2 ? "%s → %s%s" : "%s → … → %s%s",
			 processes[first].name, processes[last].name, place);
}

static void write_ordering(struct perfetto *trace)
{
	struct protobuf *writer = &trace->writer;

	perfetto_open_packet(trace, 0);
	protobuf_open(writer, PACKET_TRACK_DESCRIPTOR);
	protobuf_uint(writer, DESCRIPTOR_UUID, 0);
	protobuf_uint(writer, DESCRIPTOR_PROCESS_ORDERING, ORDERING_EXPLICIT);
	protobuf_uint(writer, DESCRIPTOR_THREAD_ORDERING, ORDERING_EXPLICIT);
	protobuf_close(writer);
	perfetto_close_packet(trace);
}

static void write_process(struct perfetto *trace, uint32_t index)
{
	struct protobuf *writer = &trace->writer;
	const struct model_process *process = &trace->session->processes[index];
	char name[256];

	describe_images(trace, index, name, sizeof(name));
	perfetto_open_packet(trace, process->start_ns);
	protobuf_open(writer, PACKET_TRACK_DESCRIPTOR);
	protobuf_uint(writer, DESCRIPTOR_UUID, perfetto_process_track(trace, index));
	protobuf_open(writer, DESCRIPTOR_PROCESS);
	protobuf_uint(writer, 1, process->pid);
	protobuf_string(writer, 6, name);
	protobuf_uint(writer, 7, process->start_ns);
	protobuf_close(writer);
	protobuf_uint(writer, DESCRIPTOR_RANK, index + 1);
	protobuf_close(writer);
	perfetto_close_packet(trace);
}

static uint32_t thread_rank(const struct model_thread *thread)
{
	if (thread->how == THREAD_HOW_MAIN)
		return 0;
	if (thread->how == THREAD_HOW_OURS)
		return INT32_MAX;
	return thread->internal_id < INT32_MAX ? thread->internal_id + 1 : INT32_MAX - 1;
}

void perfetto_describe_track(struct perfetto *trace, uint64_t uuid, uint64_t parent,
			     const char *name)
{
	struct protobuf *writer = &trace->writer;

	perfetto_open_packet(trace, 0);
	protobuf_open(writer, PACKET_TRACK_DESCRIPTOR);
	protobuf_uint(writer, DESCRIPTOR_UUID, uuid);
	protobuf_string(writer, DESCRIPTOR_NAME, name);
	protobuf_uint(writer, DESCRIPTOR_PARENT, parent);
	protobuf_uint(writer, DESCRIPTOR_MERGING, MERGING_NONE);
	protobuf_close(writer);
	perfetto_close_packet(trace);
}

static void write_thread(struct perfetto *trace, uint32_t index)
{
	struct protobuf *writer = &trace->writer;
	const struct model_thread *thread = &trace->session->threads[index];
	const struct model_process *process = &trace->session->processes[thread->process];

	perfetto_open_packet(trace, thread->start_ns);
	protobuf_open(writer, PACKET_TRACK_DESCRIPTOR);
	protobuf_uint(writer, DESCRIPTOR_UUID, perfetto_thread_track(trace, index));
	protobuf_uint(writer, DESCRIPTOR_PARENT, perfetto_process_track(trace, thread->process));
	protobuf_open(writer, DESCRIPTOR_THREAD);
	protobuf_uint(writer, 1, process->pid);
	protobuf_uint(writer, 2, thread->tid);
	protobuf_string(writer, 5, thread->name);
	protobuf_close(writer);
	protobuf_uint(writer, DESCRIPTOR_RANK, thread_rank(thread));
	protobuf_close(writer);
	perfetto_close_packet(trace);
}

/* Command lines and parents come from here: trace_processor ignores those of ProcessDescriptor. */
static void write_process_tree(struct perfetto *trace)
{
	struct protobuf *writer = &trace->writer;
	const struct session *session = trace->session;

	perfetto_open_packet(trace, session->start_ns);
	protobuf_open(writer, PACKET_PROCESS_TREE);
	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];
		if (trace->next_image[i] != MODEL_NONE)
			continue;
		protobuf_open(writer, 1);
		protobuf_uint(writer, 1, process->pid);
		protobuf_uint(writer, 2, process->parent_pid);
		for (uint32_t k = 0; k < process->argument_count; k++)
			protobuf_string(writer, 3, process->arguments[k]);
		protobuf_close(writer);
	}
	protobuf_close(writer);
	perfetto_close_packet(trace);
}

void perfetto_write_tracks(struct perfetto *trace)
{
	write_ordering(trace);
	for (uint32_t i = 0; i < trace->session->process_count; i++) {
		if (trace->is_first_image[i])
			write_process(trace, i);
	}
	write_process_tree(trace);
	for (uint32_t i = 0; i < trace->session->thread_count; i++)
		write_thread(trace, i);
}
