/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which communicators of which processes are one communicator. NCCL's hash is the same on all
 * ranks, but may come again when a communicator is made again: the n-th of a hash and rank in its
 * process belongs with the n-th of the others.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/nccl_private.h"

static uint64_t team_key(uint64_t hash, uint64_t occurrence)
{
	return id_map_mix(hash) + occurrence * UINT64_C(0x9e3779b97f4a7c15);
}

static int find_team(struct nccl_data *data, uint64_t key, const struct nccl_member *member,
		     uint32_t occurrence, uint32_t *ret)
{
	struct nccl_private *private = nccl_private(data);

	*ret = id_map_get(&private->teams, key);
	if (*ret != ID_MAP_NONE)
		return 0;
	if (array_reserve((void **)&data->teams, &private->team_capacity, data->team_count,
			  sizeof(*data->teams)) < 0 ||
	    id_map_set(&private->teams, key, data->team_count) < 0)
		return -ENOMEM;
	*ret = data->team_count++;
	data->teams[*ret] = (struct nccl_team){
		.hash = member->record.hash, .occurrence = occurrence, .name = ""};
	return 0;
}

/* How many of the process's communicators with this hash and rank were made before. */
static int count_occurrence(struct id_map *seen, const struct nccl_member *member, uint32_t *ret)
{
	uint64_t key = id_map_mix(member->record.hash) ^
		       id_map_mix(((uint64_t)member->process << 32) + (uint32_t)member->rank);
	uint32_t before = id_map_get(seen, key);

	*ret = before == ID_MAP_NONE ? 0 : before;
	return id_map_set(seen, key, *ret + 1);
}

static int assign(struct nccl_data *data)
{
	struct id_map seen = {0};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->member_count; i++) {
		struct nccl_member *member = &data->members[i];
		uint32_t occurrence = 0;
		uint64_t key;

		/* Without a hash nobody knows who belongs to it. */
		if (member->record.hash) {
			result = count_occurrence(&seen, member, &occurrence);
			key = team_key(member->record.hash, occurrence);
		} else {
			key = team_key(i, UINT32_MAX);
		}
		if (result == 0)
			result = find_team(data, key, member, occurrence, &member->team);
		if (result == 0)
			data->teams[member->team].member_count++;
	}
	id_map_deinit(&seen);
	return result;
}

static int by_rank(const void *left, const void *right, void *context)
{
	const struct nccl_data *data = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	int32_t first = data->members[a].rank, second = data->members[b].rank;

	if (first != second)
		return first < second ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* What some rank knows, all know. Where none does, there are as many as were seen, at least. */
static void settle_ranks(struct nccl_data *data, struct nccl_team *team)
{
	uint32_t seen = team->member_count;

	team->ranks_inferred = true;
	for (uint32_t i = 0; i < team->member_count; i++) {
		const struct nccl_member *member = &data->members[team->members[i]];

		if (member->ranks && !member->ranks_inferred)
			team->ranks_inferred = false;
		if (member->ranks > team->ranks)
			team->ranks = member->ranks;
		if (member->rank >= 0 && (uint32_t)member->rank >= seen)
			seen = (uint32_t)member->rank + 1;
		if (!*team->name)
			team->name = member->name;
	}
	if (team->ranks < seen && (team->ranks_inferred || !team->ranks)) {
		team->ranks = seen;
		team->ranks_inferred = true;
	}
	if (team->ranks_inferred && team->ranks < 2)
		team->ranks = 0; /* nothing was seen of others yet */
	for (uint32_t i = 0; i < team->member_count; i++) {
		struct nccl_member *member = &data->members[team->members[i]];

		member->ranks = team->ranks;
		member->ranks_inferred = team->ranks_inferred;
	}
}

int nccl_make_teams(struct nccl_data *data)
{
	if (assign(data) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < data->team_count; i++) {
		struct nccl_team *team = &data->teams[i];

		team->members = calloc(team->member_count, sizeof(*team->members));
		if (!team->members)
			return -ENOMEM;
		team->member_count = 0;
	}
	for (uint32_t i = 0; i < data->member_count; i++) {
		struct nccl_team *team = &data->teams[data->members[i].team];

		team->members[team->member_count++] = i;
	}
	for (uint32_t i = 0; i < data->team_count; i++) {
		struct nccl_team *team = &data->teams[i];

		qsort_r(team->members, team->member_count, sizeof(*team->members), by_rank, data);
		settle_ranks(data, team);
	}
	return 0;
}
