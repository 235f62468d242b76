/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which communicators of which processes are one communicator. NCCL's hash is the same on all
 * ranks, but may come again when a communicator is made again: the n-th of a hash and rank in its
 * process belongs with the n-th of the others.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/nccl/private.h"

static uint64_t hash_communicator_key(uint64_t hash, uint64_t occurrence)
{
	return id_map_hash_key(hash) + occurrence * UINT64_C(0x9e3779b97f4a7c15);
}

static int find_or_add_communicator(struct nccl_data *data, uint64_t key,
				    const struct nccl_communicator_rank *member,
				    uint32_t occurrence, uint32_t *ret)
{
	struct nccl_private *private = nccl_get_private(data);

	*ret = id_map_get(&private->communicator_index_by_key, key);
	if (*ret != ID_MAP_NONE)
		return 0;
	if (array_reserve_one_more((void **)&data->communicators, &private->communicator_capacity,
				   data->communicator_count, sizeof(*data->communicators)) < 0 ||
	    id_map_set(&private->communicator_index_by_key, key, data->communicator_count) < 0)
		return -ENOMEM;
	*ret = data->communicator_count++;
	data->communicators[*ret] = (struct nccl_communicator){
		.hash = member->record.hash, .same_hash_index = occurrence, .name = ""};
	return 0;
}

/* How many of the process's communicators with this hash and rank were made before. */
static int count_earlier_same_hash_communicators(struct id_map *seen,
						 const struct nccl_communicator_rank *member,
						 uint32_t *ret)
{
	uint64_t key = id_map_hash_key(member->record.hash) ^
		       id_map_hash_key(((uint64_t)member->process << 32) + (uint32_t)member->rank);
	uint32_t before = id_map_get(seen, key);

	*ret = before == ID_MAP_NONE ? 0 : before;
	return id_map_set(seen, key, *ret + 1);
}

static int assign_ranks_to_communicators(struct nccl_data *data)
{
	struct id_map seen = {0};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->member_count; i++) {
		struct nccl_communicator_rank *member = &data->members[i];
		uint32_t occurrence = 0;
		uint64_t key;

		/* Without a hash nobody knows who belongs to it. */
		if (member->record.hash) {
			result = count_earlier_same_hash_communicators(&seen, member, &occurrence);
			key = hash_communicator_key(member->record.hash, occurrence);
		} else {
			key = hash_communicator_key(i, UINT32_MAX);
		}
		if (result == 0)
			result = find_or_add_communicator(data, key, member, occurrence,
							  &member->communicator);
		if (result == 0)
			data->communicators[member->communicator].member_count++;
	}
	id_map_deinit(&seen);
	return result;
}

static int compare_members_by_rank(const void *left, const void *right, void *context)
{
	const struct nccl_data *data = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	int32_t first = data->members[a].rank, second = data->members[b].rank;

	if (first != second)
		return first < second ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* What some rank knows, all know. Where none does, there are as many as were seen, at least. */
static void infer_rank_count(struct nccl_data *data, struct nccl_communicator *communicator)
{
	uint32_t seen = communicator->member_count;

	communicator->is_rank_count_inferred = true;
	for (uint32_t i = 0; i < communicator->member_count; i++) {
		const struct nccl_communicator_rank *member =
			&data->members[communicator->members[i]];

		if (member->rank_count && !member->is_rank_count_inferred)
			communicator->is_rank_count_inferred = false;
		if (member->rank_count > communicator->rank_count)
			communicator->rank_count = member->rank_count;
		if (member->rank >= 0 && (uint32_t)member->rank >= seen)
			seen = (uint32_t)member->rank + 1;
		if (!*communicator->name)
			communicator->name = member->name;
	}
	if (communicator->rank_count < seen &&
	    (communicator->is_rank_count_inferred || !communicator->rank_count)) {
		communicator->rank_count = seen;
		communicator->is_rank_count_inferred = true;
	}
	if (communicator->is_rank_count_inferred && communicator->rank_count < 2)
		communicator->rank_count = 0; /* nothing was seen of others yet */
	for (uint32_t i = 0; i < communicator->member_count; i++) {
		struct nccl_communicator_rank *member = &data->members[communicator->members[i]];

		member->rank_count = communicator->rank_count;
		member->is_rank_count_inferred = communicator->is_rank_count_inferred;
	}
}

/* A rank that was started again may be there twice. */
static void count_missing_ranks(const struct nccl_data *data,
				struct nccl_communicator *communicator)
{
	uint32_t present = 0;
	int32_t before = -1;

	for (uint32_t i = 0; i < communicator->member_count; i++) {
		int32_t rank = data->members[communicator->members[i]].rank;

		present += rank < 0 || rank != before;
		before = rank;
	}
	communicator->missing_rank_count =
		communicator->rank_count > present ? communicator->rank_count - present : 0;
}

int nccl_group_ranks_by_communicator(struct nccl_data *data)
{
	if (assign_ranks_to_communicators(data) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < data->communicator_count; i++) {
		struct nccl_communicator *communicator = &data->communicators[i];

		communicator->members =
			calloc(communicator->member_count, sizeof(*communicator->members));
		if (!communicator->members)
			return -ENOMEM;
		communicator->member_count = 0;
	}
	for (uint32_t i = 0; i < data->member_count; i++) {
		struct nccl_communicator *communicator =
			&data->communicators[data->members[i].communicator];

		communicator->members[communicator->member_count++] = i;
	}
	for (uint32_t i = 0; i < data->communicator_count; i++) {
		struct nccl_communicator *communicator = &data->communicators[i];

		qsort_r(communicator->members, communicator->member_count,
			sizeof(*communicator->members), compare_members_by_rank, data);
		for (uint32_t k = 0; k < communicator->member_count; k++)
			data->members[communicator->members[k]].place_in_communicator = k;
		infer_rank_count(data, communicator);
		count_missing_ranks(data, communicator);
	}
	return 0;
}

uint32_t nccl_find_member_of_rank(const struct nccl_data *data, uint32_t communicator, int32_t rank)
{
	const struct nccl_communicator *of = &data->communicators[communicator];
	uint32_t low = 0, high = of->member_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (data->members[of->members[middle]].rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < of->member_count && data->members[of->members[low]].rank == rank
		       ? of->members[low]
		       : NCCL_INDEX_NONE;
}
