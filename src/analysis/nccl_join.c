/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Collectives over ranks; see nccl_join.h.
 */
#include "analysis/nccl_join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl_links.h"
#include "analysis/nccl_private.h"

#define PROBLEMS_MAX 4096
/* Differences of begins below this are how GPUs schedule, not somebody who is late. */
#define LATE_LEAST_NS 1000

const char *nccl_lateness_name(enum nccl_lateness lateness)
{
	static const char *const names[] = {"unknown", "clock", "duration"};

	return names[lateness];
}

/* ---- the table ---- */

static size_t slot_of(const struct nccl_joined *joined, uint32_t team, uint32_t function,
		      uint64_t sequence)
{
	uint64_t hash = id_map_mix(((uint64_t)team << 32 | function) + 1) ^ id_map_mix(~sequence);

	return (size_t)id_map_mix(hash) & (joined->slot_count - 1);
}

static int grow_slots(struct nccl_joined *joined)
{
	size_t count = joined->slot_count ? joined->slot_count * 2 : 1024;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(joined->slots);
	joined->slots = slots;
	joined->slot_count = count;
	for (uint32_t i = 0; i < joined->count; i++) {
		struct nccl_collective *collective = &joined->collectives[i];
		size_t slot = slot_of(joined, collective->team, collective->function,
				      collective->sequence);

		collective->next = slots[slot];
		slots[slot] = i + 1;
	}
	return 0;
}

static struct nccl_collective *find(const struct nccl_joined *joined, uint32_t team,
				    uint32_t function, uint64_t sequence)
{
	uint32_t at =
		joined->slot_count ? joined->slots[slot_of(joined, team, function, sequence)] : 0;

	while (at) {
		struct nccl_collective *collective = &joined->collectives[at - 1];

		if (collective->team == team && collective->function == function &&
		    collective->sequence == sequence)
			return collective;
		at = collective->next;
	}
	return NULL;
}

static struct nccl_collective *find_or_add(struct nccl_joined *joined, uint32_t team,
					   uint32_t function, uint64_t sequence)
{
	struct nccl_collective *found = find(joined, team, function, sequence);
	size_t slot;

	if (found)
		return found;
	if ((joined->count >= joined->slot_count && grow_slots(joined) < 0) ||
	    joined->count >= UINT32_MAX - 1 ||
	    array_reserve((void **)&joined->collectives, &joined->capacity, joined->count,
			  sizeof(*joined->collectives)) < 0)
		return NULL;
	slot = slot_of(joined, team, function, sequence);
	found = &joined->collectives[joined->count];
	*found = (struct nccl_collective){.team = team,
					  .function = function,
					  .sequence = sequence,
					  .described_member = NCCL_NONE,
					  .different_member = NCCL_NONE,
					  .problem = NCCL_NONE,
					  .next = joined->slots[slot]};
	joined->slots[slot] = (uint32_t)++joined->count;
	return found;
}

/* ---- the first pass ---- */

struct join {
	struct nccl_data *data;
	struct nccl_joined *joined;
};

static bool takes_part(const struct nccl_data *data, const struct nccl_view *view)
{
	return view->record->kind != NCCL_KIND_P2P &&
	       data->teams[data->members[view->member].team].member_count > 1;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/* What all ranks must agree on, besides the number of bytes. */
static uint64_t type_hash(const struct nccl_data *data, const struct nccl_view *view)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) + (uint32_t)view->record->root;

	return hash_text(hash, nccl_text_of(data, view->process, view->record->data_type));
}

static void compare_description(const struct nccl_data *data, struct nccl_collective *collective,
				const struct nccl_view *view)
{
	uint64_t hash = type_hash(data, view);

	if (collective->described_member == NCCL_NONE) {
		collective->described_member = view->member;
		collective->bytes = view->record->bytes;
		collective->size_bytes = view->size_known ? view->size_bytes : 0;
		collective->type_hash = hash;
	} else if (collective->bytes != view->record->bytes || collective->type_hash != hash) {
		collective->different_member = view->member;
	}
}

static void add_begin(struct nccl_data *data, struct nccl_collective *collective,
		      const struct nccl_view *view)
{
	struct nccl_offset offset =
		nccl_align_at(&data->align, data->processes[view->process].host, view->begin_ns);
	uint64_t error = view->begin_error_ns;

	if (error != UINT64_MAX)
		error = offset.error_ns == UINT64_MAX ? UINT64_MAX : error + offset.error_ns;
	if (error > collective->error_ns)
		collective->error_ns = error;
	if (!collective->first_ns || view->begin_ns < collective->first_ns) {
		collective->first_ns = view->begin_ns;
		collective->first_member = view->member;
	}
	if (view->begin_ns > collective->last_ns) {
		collective->last_ns = view->begin_ns;
		collective->last_member = view->member;
	}
	if (view->end_ns > collective->end_ns)
		collective->end_ns = view->end_ns;
}

static void add_duration(struct nccl_collective *collective, const struct nccl_view *view)
{
	if (!collective->timed || view->duration_ns < collective->shortest_ns) {
		collective->shortest_ns = view->duration_ns;
		collective->shortest_member = view->member;
	}
	if (!collective->timed || view->duration_ns > collective->longest_ns) {
		collective->longest_ns = view->duration_ns;
		collective->longest_member = view->member;
	}
	collective->sum_ns += view->duration_ns;
	collective->timed++;
}

static bool has_own_duration(const struct nccl_view *view)
{
	return nccl_timing_is_own(view->timing);
}

static int join_operation(const struct nccl_view *view, void *context)
{
	struct join *join = context;
	struct nccl_collective *collective;

	if (!takes_part(join->data, view))
		return 0;
	collective = find_or_add(join->joined, join->data->members[view->member].team,
				 view->function, view->record->sequence);
	if (!collective)
		return -ENOMEM;
	collective->seen++;
	collective->in_flight += view->is_waiting;
	collective->shared += view->timing == NCCL_TIMING_SHARED;
	compare_description(join->data, collective, view);
	add_begin(join->data, collective, view);
	if (has_own_duration(view))
		add_duration(collective, view);
	return 0;
}

/* ---- between the passes ---- */

/* Not all ranks that have records were in it, or not with the same arguments. */
static int keep_problem(const struct nccl_data *data, struct nccl_joined *joined, uint32_t index)
{
	struct nccl_collective *collective = &joined->collectives[index];
	uint32_t members = data->teams[collective->team].member_count;
	struct nccl_join_problem kept = {.collective = index};

	if (collective->seen >= members && collective->different_member == NCCL_NONE)
		return 0;
	if (collective->different_member != NCCL_NONE)
		joined->mismatched++;
	if (joined->problem_count == PROBLEMS_MAX) {
		joined->more_problems++;
		return 0;
	}
	kept.present = calloc(members / 64 + 1, sizeof(*kept.present));
	if (!kept.present || array_reserve((void **)&joined->problems, &joined->problem_capacity,
					   joined->problem_count, sizeof(*joined->problems)) < 0) {
		free(kept.present);
		return -ENOMEM;
	}
	collective->problem = (uint32_t)joined->problem_count;
	joined->problems[joined->problem_count++] = kept;
	return 0;
}

static int by_place(const void *left, const void *right)
{
	const struct nccl_collective *a = left, *b = right;

	if (a->team != b->team)
		return a->team < b->team ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static int settle(const struct nccl_data *data, struct nccl_joined *joined)
{
	int result = 0;

	if (joined->count > 1)
		qsort(joined->collectives, joined->count, sizeof(*joined->collectives), by_place);
	memset(joined->slots, 0, joined->slot_count * sizeof(*joined->slots));
	for (uint32_t i = 0; i < joined->count; i++) {
		struct nccl_collective *collective = &joined->collectives[i];
		size_t slot = slot_of(joined, collective->team, collective->function,
				      collective->sequence);

		collective->next = joined->slots[slot];
		joined->slots[slot] = i + 1;
	}
	for (uint32_t i = 0; result == 0 && i < joined->count; i++) {
		struct nccl_collective *collective = &joined->collectives[i];
		uint64_t transfer = collective->shortest_ns * collective->timed;

		if (collective->timed > 1) {
			joined->transfer_ns += transfer;
			joined->waiting_ns += collective->sum_ns - transfer;
		}
		result = keep_problem(data, joined, i);
	}
	return result;
}

enum nccl_lateness nccl_collective_late(const struct nccl_collective *collective,
					uint32_t *ret_member)
{
	uint64_t apart = collective->last_ns - collective->first_ns;

	*ret_member = NCCL_NONE;
	if (collective->seen < 2)
		return NCCL_LATENESS_UNKNOWN;
	if (collective->error_ns != UINT64_MAX && apart > 2 * collective->error_ns &&
	    apart > LATE_LEAST_NS) {
		*ret_member = collective->last_member;
		return NCCL_LATENESS_CLOCK;
	}
	if (collective->timed < 2 ||
	    collective->longest_ns - collective->shortest_ns <= LATE_LEAST_NS)
		return NCCL_LATENESS_UNKNOWN;
	*ret_member = collective->shortest_member;
	return NCCL_LATENESS_DURATION;
}

/* ---- the second pass ---- */

static void mark_present(const struct nccl_data *data, struct nccl_joined *joined,
			 const struct nccl_collective *collective, uint32_t member)
{
	const struct nccl_team *team = &data->teams[collective->team];
	uint64_t *present = joined->problems[collective->problem].present;

	for (uint32_t i = 0; i < team->member_count; i++) {
		if (team->members[i] == member)
			present[i / 64] |= (uint64_t)1 << (i % 64);
	}
}

static bool is_described(const struct nccl_data *data, const struct nccl_view *view,
			 const struct nccl_collective *collective)
{
	return collective && collective->bytes == view->record->bytes &&
	       collective->type_hash == type_hash(data, view);
}

static void add_difference(const struct nccl_data *data, struct nccl_joined *joined,
			   const struct nccl_collective *collective, const struct nccl_view *view)
{
	uint64_t key = (uint64_t)view->member << 32 | view->function, at = collective->sequence;
	uint32_t sum = id_map_get(&nccl_private(data)->sums, key);
	struct nccl_difference *difference;

	if (sum == ID_MAP_NONE || is_described(data, view, collective))
		return;
	difference = &joined->differences[sum];
	if (!difference->count++ || at < difference->first_sequence)
		difference->first_sequence = at;
	difference->other_member = collective->described_member;
	if (is_described(data, view, find(joined, collective->team, view->function, at + 1)))
		difference->as_next++;
	if (at && is_described(data, view, find(joined, collective->team, view->function, at - 1)))
		difference->as_previous++;
}

bool nccl_difference_is_left_out(const struct nccl_difference *difference)
{
	return difference->as_next && difference->as_next + 1 >= difference->count &&
	       difference->as_next > difference->as_previous;
}

static int sum_operation(const struct nccl_view *view, void *context)
{
	struct join *join = context;
	struct nccl_rank_sum *sum = &join->joined->ranks[view->member];
	const struct nccl_collective *collective;
	uint32_t late;

	if (!takes_part(join->data, view))
		return 0;
	collective = find(join->joined, join->data->members[view->member].team, view->function,
			  view->record->sequence);
	if (!collective)
		return 0; /* recorded since the first pass */
	if (collective->problem != NCCL_NONE)
		mark_present(join->data, join->joined, collective, view->member);
	add_difference(join->data, join->joined, collective, view);
	if (!has_own_duration(view) || collective->timed < 2)
		return 0;
	sum->joined++;
	sum->duration_ns += view->duration_ns;
	sum->waited_ns += view->duration_ns - collective->shortest_ns;
	if (nccl_collective_late(collective, &late) != NCCL_LATENESS_UNKNOWN &&
	    late == view->member) {
		sum->last++;
		sum->caused_ns += collective->longest_ns - collective->shortest_ns;
	}
	return 0;
}

/* NCCL's numbers have no holes: who has later ones has had this one, but it was not reported. */
static void judge_absent(const struct nccl_data *data, struct nccl_joined *joined,
			 struct nccl_join_problem *problem)
{
	const struct nccl_collective *collective = &joined->collectives[problem->collective];
	const struct nccl_team *team = &data->teams[collective->team];

	for (uint32_t i = 0; i < team->member_count; i++) {
		uint32_t member = team->members[i];
		uint64_t key = (uint64_t)member << 32 | collective->function;
		uint32_t sum = id_map_get(&nccl_private(data)->sums, key);

		if (problem->present[i / 64] >> (i % 64) & 1)
			continue;
		if (data->processes[data->members[member].process].lost_operations ||
		    data->processes[data->members[member].process].overwritten) {
			problem->unknown++;
		} else if (sum != ID_MAP_NONE &&
			   data->sums[sum].last_sequence > collective->sequence) {
			problem->unseen++;
		} else {
			problem->absent++;
		}
	}
	joined->unseen += problem->unseen > 0;
}

static int each_process(struct join *join, int (*each)(const struct nccl_view *view, void *context),
			struct problem *problem)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < join->data->process_count; i++)
		result = nccl_each_operation(join->data, i, each, join, problem);
	return result;
}

static int join_all(struct join *join, struct problem *problem)
{
	struct nccl_data *data = join->data;
	struct nccl_joined *joined = join->joined;
	int result;

	joined->ranks = calloc((size_t)data->member_count + 1, sizeof(*joined->ranks));
	joined->differences = calloc((size_t)data->sum_count + 1, sizeof(*joined->differences));
	if (!joined->ranks || !joined->differences || grow_slots(joined) < 0)
		return -ENOMEM;
	result = each_process(join, join_operation, problem);
	if (result == 0)
		result = settle(data, joined);
	if (result == 0)
		result = each_process(join, sum_operation, problem);
	for (size_t i = 0; result == 0 && i < joined->problem_count; i++)
		judge_absent(data, joined, &joined->problems[i]);
	for (uint32_t i = 0; result == 0 && i < data->sum_count; i++) {
		if (nccl_difference_is_left_out(&joined->differences[i])) {
			joined->ranks[data->sums[i].member].left_out++;
			joined->left_out++;
		}
	}
	return result == 0 ? nccl_links_find(data, joined, problem) : result;
}

int nccl_join(struct nccl_data *data, struct nccl_joined *ret, struct problem *problem)
{
	struct join join = {data, ret};
	int result;

	*ret = (struct nccl_joined){0};
	result = join_all(&join, problem);
	if (result == -ENOMEM)
		nccl_out_of_memory(problem);
	if (result < 0)
		nccl_join_deinit(ret);
	return result;
}

void nccl_join_deinit(struct nccl_joined *joined)
{
	for (size_t i = 0; i < joined->problem_count; i++)
		free(joined->problems[i].present);
	free(joined->problems);
	free(joined->collectives);
	free(joined->slots);
	free(joined->ranks);
	free(joined->differences);
	free(joined->links);
	id_map_deinit(&joined->link_ids);
	*joined = (struct nccl_joined){0};
}
