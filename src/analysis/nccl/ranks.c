/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ranks of the job. NCCL counts ranks in each communicator; people count them in the job. A
 * launcher's variables say which one a process is, unless the process holds several ranks (one for
 * each of its GPUs), or several processes were told the same. Then the widest communicator says it,
 * if every process is in it. In a process of several ranks the GPU tells which of them is in a
 * smaller communicator. What none of these says is not known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/private.h"

#define JOB_RANKS_LISTED_MAX (1u << 20) /* a job of more ranks has no list of missing ones */

/* ---- what there is ---- */

/* How many ranks of one communicator each process has, at most; and the widest communicator that
 * every process with communicators is in. */
static int count_ranks_of_processes(struct nccl_data *data)
{
	uint32_t *here = calloc((size_t)data->process_count + 1, sizeof(*here));
	uint32_t with_communicators = 0;

	if (!here)
		return -ENOMEM;
	for (uint32_t i = 0; i < data->process_count; i++)
		with_communicators += data->processes[i].member_count != 0;
	for (uint32_t i = 0; i < data->communicator_count; i++) {
		const struct nccl_communicator *communicator = &data->communicators[i];
		const struct nccl_communicator *widest =
			data->widest_communicator == NCCL_INDEX_NONE
				? NULL
				: &data->communicators[data->widest_communicator];
		uint32_t processes = 0;

		for (uint32_t k = 0; k < communicator->member_count; k++) {
			uint32_t process = data->members[communicator->members[k]].process;

			processes += !here[process]++;
			if (here[process] > data->processes[process].ranks_in_process)
				data->processes[process].ranks_in_process = here[process];
		}
		for (uint32_t k = 0; k < communicator->member_count; k++)
			here[data->members[communicator->members[k]].process] = 0;
		if (processes == with_communicators && communicator->rank_count > 1 &&
		    (!widest || communicator->rank_count > widest->rank_count))
			data->widest_communicator = i;
	}
	free(here);
	return 0;
}

struct told_rank {
	int32_t rank;
	uint64_t start_ns, end_ns; /* CLOCK_REALTIME, that hosts have in common */
};

static int compare_told_ranks(const void *left, const void *right)
{
	const struct told_rank *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* Two that lived at the same time cannot be one rank: the variable counts something else (nodes,
 * say). One after the other they are a rank that was started again. */
static int launcher_tells_ranks_apart(struct nccl_data *data, bool *ret)
{
	struct told_rank *told = calloc((size_t)data->process_count + 1, sizeof(*told));
	size_t count = 0;

	if (!told)
		return -ENOMEM;
	for (uint32_t i = 0; i < data->process_count; i++) {
		struct nccl_process *process = &data->processes[i];
		uint64_t offset = (uint64_t)data->hosts[process->host].realtime_minus_boottime_ns;

		if (process->file.header.world_rank < 0)
			continue;
		told[count++] = (struct told_rank){
			process->file.header.world_rank,
			nccl_ticks_to_host_time(process, process->start_ticks) + offset,
			nccl_ticks_to_host_time(process, process->last_ticks) + offset};
	}
	*ret = count > 0;
	qsort(told, count, sizeof(*told), compare_told_ranks);
	for (size_t i = 1; i < count; i++) {
		if (told[i].rank == told[i - 1].rank && told[i].start_ns <= told[i - 1].end_ns)
			*ret = false;
	}
	free(told);
	return 0;
}

/* ---- who is who ---- */

/* The rank in the widest communicator of the process's member for the same GPU; of its only one,
 * where it has one. */
static int32_t find_rank_in_widest_communicator(const struct nccl_data *data,
						const struct nccl_communicator_rank *member)
{
	const struct nccl_process *process = &data->processes[member->process];
	const char *device = member->record.device_address;

	if (data->widest_communicator == NCCL_INDEX_NONE)
		return -1;
	if (member->communicator == data->widest_communicator)
		return member->rank;
	for (uint32_t i = 0; i < process->member_count; i++) {
		const struct nccl_communicator_rank *other =
			&data->members[process->first_member_index + i];

		if (other->communicator != data->widest_communicator)
			continue;
		if (process->ranks_in_process < 2)
			return other->rank;
		if (*device && !strncmp(device, other->record.device_address,
					sizeof(other->record.device_address)))
			return other->rank;
	}
	return -1;
}

static void set_job_ranks(struct nccl_data *data, bool by_launcher)
{
	for (uint32_t i = 0; i < data->process_count; i++) {
		struct nccl_process *process = &data->processes[i];

		process->rank = by_launcher && process->ranks_in_process < 2
					? process->file.header.world_rank
					: -1;
		if (process->rank < 0)
			process->rank = -1;
	}
	for (uint32_t i = 0; i < data->member_count; i++) {
		struct nccl_communicator_rank *member = &data->members[i];
		struct nccl_process *process = &data->processes[member->process];

		if (process->ranks_in_process < 2 && process->rank >= 0) {
			member->job_rank = process->rank;
			continue;
		}
		member->job_rank = find_rank_in_widest_communicator(data, member);
		if (process->ranks_in_process < 2)
			process->rank = member->job_rank;
	}
}

/* Of a process of several ranks the launcher counted the process, not its ranks. */
static void set_job_size(struct nccl_data *data, bool by_launcher)
{
	const struct nccl_communicator *widest =
		data->widest_communicator == NCCL_INDEX_NONE
			? NULL
			: &data->communicators[data->widest_communicator];
	bool several = false;

	for (uint32_t i = 0; i < data->process_count; i++) {
		int32_t size = data->processes[i].file.header.world_size;

		several |= data->processes[i].ranks_in_process > 1;
		if (by_launcher && size > 0 && (uint32_t)size > data->job_size)
			data->job_size = (uint32_t)size;
	}
	if (several)
		data->job_size = 0;
	if (!data->job_size && widest && !widest->is_rank_count_inferred)
		data->job_size = widest->rank_count;
	data->job_ranks_basis = by_launcher && !several ? NCCL_JOB_RANKS_BY_LAUNCHER
				: widest                ? NCCL_JOB_RANKS_BY_COMMUNICATOR
							: NCCL_JOB_RANKS_UNKNOWN;
}

/* ---- the list ---- */

static uint64_t hash_job_rank_key(const struct nccl_data *data, uint32_t index)
{
	const struct nccl_communicator_rank *member = &data->members[index];
	uint64_t key = id_map_hash_key((uint64_t)member->process + 1);

	if (data->processes[member->process].ranks_in_process < 2)
		return key;
	if (member->job_rank >= 0)
		return key ^ id_map_hash_key((uint64_t)1 << 32 | (uint32_t)member->job_rank);
	/* Nobody knows which other member is the same rank of the job. */
	return key ^ id_map_hash_key((uint64_t)2 << 32 | index);
}

static int add_job_rank(struct nccl_data *data, uint32_t process, uint32_t member, int32_t rank)
{
	struct nccl_private *private = nccl_get_private(data);

	if (array_reserve_one_more((void **)&data->job_ranks, &private->job_rank_capacity,
				   data->job_rank_count, sizeof(*data->job_ranks)) < 0)
		return -ENOMEM;
	data->job_ranks[data->job_rank_count++] = (struct nccl_job_rank){process, member, rank};
	return 0;
}

static int list_job_ranks(struct nccl_data *data)
{
	struct id_map known = {0};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->member_count; i++) {
		struct nccl_communicator_rank *member = &data->members[i];
		uint64_t key = hash_job_rank_key(data, i);

		member->job_rank_index = id_map_get(&known, key);
		if (member->job_rank_index != ID_MAP_NONE)
			continue;
		member->job_rank_index = data->job_rank_count;
		result = id_map_set(&known, key, data->job_rank_count);
		if (result == 0)
			result = add_job_rank(data, member->process, i, member->job_rank);
	}
	for (uint32_t i = 0; result == 0 && i < data->process_count; i++) {
		if (!data->processes[i].member_count)
			result = add_job_rank(data, i, NCCL_INDEX_NONE, data->processes[i].rank);
	}
	id_map_deinit(&known);
	return result;
}

static int list_missing_job_ranks(struct nccl_data *data)
{
	uint32_t size = data->job_size <= JOB_RANKS_LISTED_MAX ? data->job_size : 0;
	bool *present = calloc((size_t)size + 1, sizeof(*present));

	data->missing_job_ranks = calloc((size_t)size + 1, sizeof(*data->missing_job_ranks));
	if (!present || !data->missing_job_ranks) {
		free(present);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < data->job_rank_count; i++) {
		if (data->job_ranks[i].rank >= 0 && (uint32_t)data->job_ranks[i].rank < size)
			present[data->job_ranks[i].rank] = true;
	}
	for (uint32_t rank = 0; rank < size; rank++) {
		if (!present[rank])
			data->missing_job_ranks[data->missing_job_rank_count++] = (int32_t)rank;
	}
	free(present);
	return 0;
}

int nccl_identify_job_ranks(struct nccl_data *data)
{
	bool by_launcher;

	data->widest_communicator = NCCL_INDEX_NONE;
	if (count_ranks_of_processes(data) < 0 ||
	    launcher_tells_ranks_apart(data, &by_launcher) < 0)
		return -ENOMEM;
	set_job_ranks(data, by_launcher);
	set_job_size(data, by_launcher);
	return list_job_ranks(data) < 0 || list_missing_job_ranks(data) < 0 ? -ENOMEM : 0;
}
