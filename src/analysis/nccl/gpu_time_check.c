/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which operations of a process have GPU times that are proven their own (order.h): one
 * communicator after the other, since their order is what proves it. While one is looked at its
 * operations take 56 bytes each; what stays is a bit for each place that a record can have, one in
 * 2048 of the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/order.h"
#include "analysis/nccl/private.h"

/* Before 2.28 NCCL tells of no launch, and of an operation when it has been launched. */
#define ASSUMED_LAUNCH_DURATION_NS      100000
#define LAUNCH_EVENTS_API_VERSION_LEAST 5

struct gpu_time_checker_state {
	struct nccl_data *data;
	struct nccl_process *process;
	uint32_t communicator, profiler_api_version;
	struct nccl_operation_stamps *operation_stamps;
	size_t count, capacity;
};

static uint64_t compute_operation_record_index(const struct nccl_operation *operation)
{
	return NCCL_ID_OFFSET(operation->id) / sizeof(*operation);
}

bool nccl_operation_has_gpu_times(const struct nccl_operation *operation)
{
	return operation->channels_started &&
	       operation->channels_started == operation->channels_stopped && operation->gpu_start &&
	       operation->gpu_stop >= operation->gpu_start;
}

bool nccl_operation_gpu_times_are_proven(const struct nccl_process *process,
					 const struct nccl_operation *operation)
{
	uint64_t place = compute_operation_record_index(operation);

	return place / 8 < process->proven_gpu_times_bitmap_bytes &&
	       process->proven_gpu_times_bitmap[place / 8] >> place % 8 & 1;
}

/* ---- one communicator ---- */

/* The host reports what replays of a graph run before its kernel; nobody reports which launch. */
static uint64_t find_operation_launch_ns(const struct gpu_time_checker_state *check,
					 const struct nccl_operation *operation)
{
	uint64_t start = nccl_ticks_to_host_time(check->process, operation->start);

	if (operation->launch)
		return nccl_ticks_to_host_time(check->process, operation->launch);
	if (check->profiler_api_version >= LAUNCH_EVENTS_API_VERSION_LEAST)
		return start;
	return start > ASSUMED_LAUNCH_DURATION_NS ? start - ASSUMED_LAUNCH_DURATION_NS : 0;
}

static int collect_stamps_of_operation(const void *record, void *context)
{
	struct gpu_time_checker_state *check = context;
	const struct nccl_operation *operation = record;
	struct nccl_operation_stamps stamp = {
		.ordinal = operation->ordinal,
		.place = (uint32_t)compute_operation_record_index(operation)};
	uint32_t member = id_map_get(&check->process->members, operation->communicator);

	if (operation->communicator != check->communicator || member == ID_MAP_NONE)
		return 0;
	stamp.host_launched_ns = find_operation_launch_ns(check, operation);
	if (operation->last >= operation->start)
		stamp.host_read_ns = nccl_ticks_to_host_time(check->process, operation->last);
	if (operation->launch && !(operation->flags & NCCL_OPERATION_GRAPH))
		stamp.flags |= NCCL_STAMP_LAUNCH_KNOWN;
	if (operation->flags & NCCL_OPERATION_BATCHED)
		stamp.flags |= NCCL_STAMP_BATCHED;
	if (nccl_operation_has_gpu_times(operation)) {
		const struct nccl_communicator_rank *of = &check->data->members[member];

		stamp.flags |= NCCL_STAMP_HAS_GPU_TIMES;
		stamp.gpu_start_ns =
			nccl_gpu_stamp_to_gpu_ns(check->data, of, operation->gpu_start);
		stamp.gpu_stop_ns = nccl_gpu_stamp_to_gpu_ns(check->data, of, operation->gpu_stop);
	}
	if (array_reserve_one_more((void **)&check->operation_stamps, &check->capacity,
				   check->count, sizeof(*check->operation_stamps)) < 0)
		return -ENOMEM;
	check->operation_stamps[check->count++] = stamp;
	return 0;
}

static void mark_operations_with_proven_gpu_times(const struct gpu_time_checker_state *check)
{
	for (size_t i = 0; i < check->count; i++) {
		uint32_t place = check->operation_stamps[i].place;

		if ((check->operation_stamps[i].flags & NCCL_STAMP_PROVEN) &&
		    place / 8 < check->process->proven_gpu_times_bitmap_bytes)
			check->process->proven_gpu_times_bitmap[place / 8] |=
				(uint8_t)(1u << place % 8);
	}
}

/* Chunks [from, to) are of the communicator. */
static int mark_proven_gpu_times_of_communicator(struct gpu_time_checker_state *check,
						 const struct nccl_chunk_location *const *from,
						 const struct nccl_chunk_location *const *to)
{
	uint32_t member = id_map_get(&check->process->members, (*from)->communicator);
	int result = 0;

	if (member == ID_MAP_NONE)
		return 0;
	check->communicator = (*from)->communicator;
	check->profiler_api_version = check->data->members[member].record.api;
	check->count = 0;
	for (; result == 0 && from < to; from++)
		result = nccl_chunk_visit_records(&check->process->file, *from,
						  collect_stamps_of_operation, check);
	if (result < 0)
		return result;
	nccl_mark_proven_stamps(check->operation_stamps, check->count,
				check->data->members[member].record.operations);
	mark_operations_with_proven_gpu_times(check);
	return 0;
}

/* ---- all of a process ---- */

static int compare_chunks_by_communicator(const void *left, const void *right)
{
	const struct nccl_chunk_location *a = *(const struct nccl_chunk_location *const *)left;
	const struct nccl_chunk_location *b = *(const struct nccl_chunk_location *const *)right;

	if (a->communicator != b->communicator)
		return a->communicator < b->communicator ? -1 : 1;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int mark_proven_gpu_times_of_all_communicators(struct gpu_time_checker_state *check,
						      const struct nccl_chunk_location **chunks,
						      size_t count)
{
	size_t from = 0, to;
	int result = 0;

	if (count > 1)
		qsort(chunks, count, sizeof(void *), compare_chunks_by_communicator);
	for (; result == 0 && from < count; from = to) {
		for (to = from + 1; to < count; to++) {
			if (chunks[to]->communicator != chunks[from]->communicator)
				break;
		}
		result = mark_proven_gpu_times_of_communicator(check, &chunks[from], &chunks[to]);
	}
	return result;
}

int nccl_mark_proven_gpu_times(struct nccl_data *data, struct nccl_process *process)
{
	struct gpu_time_checker_state check = {.data = data, .process = process};
	struct nccl_file *file = &process->file;
	const struct nccl_chunk_location **chunks =
		malloc((file->chunk_count + 1) * sizeof(void *));
	size_t count = 0, size = (size_t)(file->size / sizeof(struct nccl_operation) / 8 + 1);
	int result = -ENOMEM;

	for (size_t i = 0; chunks && i < file->chunk_count; i++) {
		if (file->chunks[i].kind == NCCL_CHUNK_OPERATIONS)
			chunks[count++] = &file->chunks[i];
	}
	process->proven_gpu_times_bitmap = count ? calloc(size, 1) : NULL;
	process->proven_gpu_times_bitmap_bytes = process->proven_gpu_times_bitmap ? size : 0;
	if (chunks && (!count || process->proven_gpu_times_bitmap))
		result = mark_proven_gpu_times_of_all_communicators(&check, chunks, count);
	free(chunks);
	free(check.operation_stamps);
	return result;
}
