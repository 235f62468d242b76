/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which operations of a process have GPU times that are proven their own (nccl_order.h): one
 * communicator after the other, since their order is what proves it. While one is looked at its
 * operations take 56 bytes each; what stays is a bit for each place that a record can have, one in
 * 2048 of the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl_order.h"
#include "analysis/nccl_private.h"

/* Before 2.28 NCCL tells of no launch, and of an operation when it has been launched. */
#define LAUNCH_NS  100000
#define LAUNCH_API 5

struct proof {
	struct nccl_data *data;
	struct nccl_process *process;
	uint32_t communicator, api;
	struct nccl_stamp *stamps;
	size_t count, capacity;
};

static uint64_t place_of(const struct nccl_operation *operation)
{
	return NCCL_ID_OFFSET(operation->id) / sizeof(*operation);
}

bool nccl_has_gpu_times(const struct nccl_operation *operation)
{
	return operation->channels_started &&
	       operation->channels_started == operation->channels_stopped && operation->gpu_start &&
	       operation->gpu_stop >= operation->gpu_start;
}

bool nccl_is_proven(const struct nccl_process *process, const struct nccl_operation *operation)
{
	uint64_t place = place_of(operation);

	return place / 8 < process->proven_size && process->proven[place / 8] >> place % 8 & 1;
}

/* ---- one communicator ---- */

/* What replays of a graph run is told by the host before its kernel; which launch, by nobody. */
static uint64_t launched_ns(const struct proof *proof, const struct nccl_operation *operation)
{
	uint64_t start = nccl_own_time(proof->process, operation->start);

	if (operation->launch)
		return nccl_own_time(proof->process, operation->launch);
	if (proof->api >= LAUNCH_API)
		return start;
	return start > LAUNCH_NS ? start - LAUNCH_NS : 0;
}

static int take_stamp(const void *record, void *context)
{
	struct proof *proof = context;
	const struct nccl_operation *operation = record;
	struct nccl_stamp stamp = {.ordinal = operation->ordinal,
				   .place = (uint32_t)place_of(operation)};
	uint32_t member = id_map_get(&proof->process->members, operation->communicator);

	if (operation->communicator != proof->communicator || member == ID_MAP_NONE)
		return 0;
	stamp.launched_ns = launched_ns(proof, operation);
	if (operation->last >= operation->start)
		stamp.read_ns = nccl_own_time(proof->process, operation->last);
	if (operation->launch && !(operation->flags & NCCL_OPERATION_GRAPH))
		stamp.flags |= NCCL_STAMP_ORDERED;
	if (operation->flags & NCCL_OPERATION_BATCHED)
		stamp.flags |= NCCL_STAMP_BATCHED;
	if (nccl_has_gpu_times(operation)) {
		const struct nccl_member *of = &proof->data->members[member];

		stamp.flags |= NCCL_STAMP_TIMED;
		stamp.start_ns = nccl_gpu_ns(proof->data, of, operation->gpu_start);
		stamp.stop_ns = nccl_gpu_ns(proof->data, of, operation->gpu_stop);
	}
	if (array_reserve((void **)&proof->stamps, &proof->capacity, proof->count,
			  sizeof(*proof->stamps)) < 0)
		return -ENOMEM;
	proof->stamps[proof->count++] = stamp;
	return 0;
}

static void keep_proven(const struct proof *proof)
{
	for (size_t i = 0; i < proof->count; i++) {
		uint32_t place = proof->stamps[i].place;

		if ((proof->stamps[i].flags & NCCL_STAMP_PROVEN) &&
		    place / 8 < proof->process->proven_size)
			proof->process->proven[place / 8] |= (uint8_t)(1u << place % 8);
	}
}

/* Chunks [from, to) are of the communicator. */
static int prove(struct proof *proof, const struct nccl_chunk *const *from,
		 const struct nccl_chunk *const *to)
{
	uint32_t member = id_map_get(&proof->process->members, (*from)->communicator);
	int result = 0;

	if (member == ID_MAP_NONE)
		return 0;
	proof->communicator = (*from)->communicator;
	proof->api = proof->data->members[member].record.api;
	proof->count = 0;
	for (; result == 0 && from < to; from++)
		result = nccl_chunk_each(&proof->process->file, *from, take_stamp, proof);
	if (result < 0)
		return result;
	nccl_order_decide(proof->stamps, proof->count,
			  proof->data->members[member].record.operations);
	keep_proven(proof);
	return 0;
}

/* ---- all of a process ---- */

static int by_communicator(const void *left, const void *right)
{
	const struct nccl_chunk *a = *(const struct nccl_chunk *const *)left;
	const struct nccl_chunk *b = *(const struct nccl_chunk *const *)right;

	if (a->communicator != b->communicator)
		return a->communicator < b->communicator ? -1 : 1;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int prove_all(struct proof *proof, const struct nccl_chunk **chunks, size_t count)
{
	size_t from = 0, to;
	int result = 0;

	if (count > 1)
		qsort(chunks, count, sizeof(void *), by_communicator);
	for (; result == 0 && from < count; from = to) {
		for (to = from + 1; to < count; to++) {
			if (chunks[to]->communicator != chunks[from]->communicator)
				break;
		}
		result = prove(proof, &chunks[from], &chunks[to]);
	}
	return result;
}

int nccl_prove(struct nccl_data *data, struct nccl_process *process)
{
	struct proof proof = {.data = data, .process = process};
	struct nccl_file *file = &process->file;
	const struct nccl_chunk **chunks = malloc((file->chunk_count + 1) * sizeof(void *));
	size_t count = 0, size = (size_t)(file->size / sizeof(struct nccl_operation) / 8 + 1);
	int result = -ENOMEM;

	for (size_t i = 0; chunks && i < file->chunk_count; i++) {
		if (file->chunks[i].kind == NCCL_CHUNK_OPERATIONS)
			chunks[count++] = &file->chunks[i];
	}
	process->proven = count ? calloc(size, 1) : NULL;
	process->proven_size = process->proven ? size : 0;
	if (chunks && (!count || process->proven))
		result = prove_all(&proof, chunks, count);
	free(chunks);
	free(proof.stamps);
	return result;
}
