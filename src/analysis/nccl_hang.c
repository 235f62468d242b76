/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What was in flight; see nccl_hang.h. Each rank waits in the oldest of its unfinished operations;
 * the ranks of a communicator that wait in the same one are put together, and the others are
 * looked at as to that one.
 */
#include "analysis/nccl_hang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl_private.h"

const char *nccl_wait_text(enum nccl_wait wait)
{
	static const char *const texts[] = {"its next step", "the GPU", "the peer", "the network",
					    "a flush to the GPU"};

	return texts[wait];
}

const char *nccl_standing_name(enum nccl_standing standing)
{
	static const char *const names[] = {"waits",  "through", "queued",
					    "absent", "unknown", "no_data"};

	return names[standing];
}

uint64_t nccl_quiet_ns(struct nccl_data *data, uint32_t process, uint64_t ticks)
{
	uint64_t then = nccl_time(data, process, ticks), until = data->processes[process].until_ns;

	return until > then ? until - then : 0;
}

/* ---- open transfers ---- */

struct finder {
	struct nccl_data *data;
	struct nccl_hang *hang;
	size_t first_transfer; /* of the process that is read */
};

static bool is_kept(const struct nccl_member *member, uint64_t operation)
{
	uint64_t count = member->waiting_count < NCCL_WAITING_KEPT ? member->waiting_count
								   : NCCL_WAITING_KEPT;

	for (uint64_t i = 0; i < count; i++) {
		if (member->waiting[i].record.id == operation)
			return true;
	}
	return false;
}

static int add_transfer(struct finder *finder, const struct nccl_event *event, uint32_t member)
{
	struct nccl_hang *hang = finder->hang;

	if (event->flags & NCCL_EVENT_STOPPED ||
	    !is_kept(&finder->data->members[member], event->parent))
		return 0;
	if (array_reserve((void **)&hang->transfers, &hang->transfer_capacity, hang->transfer_count,
			  sizeof(*hang->transfers)) < 0)
		return -ENOMEM;
	hang->transfers[hang->transfer_count++] =
		(struct nccl_open_transfer){.member = member,
					    .operation = event->parent,
					    .id = event->id,
					    .peer = event->c,
					    .steps = event->proxy_op.steps,
					    .channel = event->a,
					    .sends = event->flags & NCCL_EVENT_SEND,
					    .last_ticks = event->start};
	return 0;
}

/* The state told last is what it waits for. */
static enum nccl_wait step_wait(const struct nccl_event *event, bool sends)
{
	enum { GPU = 1, PEER = 2, NETWORK = 4, FLUSH = 8 };

	if (sends) {
		if (event->a & NETWORK)
			return NCCL_WAIT_NETWORK;
		if (event->a & PEER)
			return NCCL_WAIT_PEER;
		return event->a & GPU ? NCCL_WAIT_GPU : NCCL_WAIT_NOTHING_TOLD;
	}
	if (event->a & GPU)
		return NCCL_WAIT_GPU;
	if (event->a & FLUSH)
		return NCCL_WAIT_FLUSH;
	return event->a & NETWORK ? NCCL_WAIT_NETWORK : NCCL_WAIT_NOTHING_TOLD;
}

static void add_step(struct finder *finder, const struct nccl_event *event)
{
	struct nccl_hang *hang = finder->hang;

	for (size_t i = hang->transfer_count; i-- > finder->first_transfer;) {
		struct nccl_open_transfer *transfer = &hang->transfers[i];
		uint64_t heard = event->stop > event->start ? event->stop : event->start;

		if (transfer->id != event->parent)
			continue;
		if (event->flags & NCCL_EVENT_STOPPED)
			transfer->steps_done++;
		else
			transfer->wait = step_wait(event, transfer->sends);
		if (heard > transfer->last_ticks)
			transfer->last_ticks = heard;
		return;
	}
}

static int find_transfer(const struct nccl_event *event, uint32_t process, uint32_t member,
			 void *context)
{
	struct finder *finder = context;

	(void)process;
	if (member == NCCL_NONE || !finder->data->members[member].waiting_count)
		return 0;
	if (event->kind == NCCL_KIND_PROXY_OP)
		return add_transfer(finder, event, member);
	if (event->kind == NCCL_KIND_PROXY_STEP)
		add_step(finder, event);
	return 0;
}

static bool process_waits(const struct nccl_data *data, const struct nccl_process *process)
{
	for (uint32_t i = 0; i < process->member_count; i++) {
		if (data->members[process->first_member + i].waiting_count)
			return true;
	}
	return false;
}

static int find_transfers(struct nccl_data *data, struct nccl_hang *hang, struct problem *problem)
{
	struct finder finder = {data, hang, 0};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->process_count; i++) {
		if (!process_waits(data, &data->processes[i]))
			continue;
		finder.first_transfer = hang->transfer_count;
		result = nccl_each_event(data, i, find_transfer, &finder, problem);
	}
	return result;
}

/* ---- who waits in what ---- */

static struct nccl_stuck *stuck_in(struct nccl_hang *hang, size_t first, uint32_t member,
				   const struct nccl_waiting *waiting)
{
	for (size_t i = first; i < hang->stuck_count; i++) {
		struct nccl_stuck *stuck = &hang->stuck[i];

		if (waiting->record.kind == NCCL_KIND_P2P) {
			if (stuck->first_member == member)
				return stuck;
		} else if (stuck->kind != NCCL_KIND_P2P && stuck->function == waiting->function &&
			   stuck->sequence == waiting->record.sequence) {
			return stuck;
		}
	}
	return NULL;
}

static int add_stuck(struct nccl_data *data, struct nccl_hang *hang, size_t first, uint32_t member)
{
	const struct nccl_member *from = &data->members[member];
	const struct nccl_waiting *waiting = &from->waiting[0];

	if (stuck_in(hang, first, member, waiting))
		return 0;
	if (array_reserve((void **)&hang->stuck, &hang->stuck_capacity, hang->stuck_count,
			  sizeof(*hang->stuck)) < 0)
		return -ENOMEM;
	hang->stuck[hang->stuck_count++] = (struct nccl_stuck){.team = from->team,
							       .function = waiting->function,
							       .sequence = waiting->record.sequence,
							       .kind = waiting->record.kind,
							       .waiting = waiting,
							       .first_member = member};
	return 0;
}

static const struct nccl_sum *find_sum(const struct nccl_data *data, uint32_t member,
				       uint32_t function)
{
	uint32_t index = id_map_get(&nccl_private(data)->sums, (uint64_t)member << 32 | function);

	return index == ID_MAP_NONE ? NULL : &data->sums[index];
}

static enum nccl_standing standing_of(const struct nccl_data *data, const struct nccl_stuck *stuck,
				      uint32_t index)
{
	const struct nccl_member *member = &data->members[index];
	const struct nccl_waiting *waiting = member->waiting_count ? &member->waiting[0] : NULL;
	const struct nccl_sum *sum = find_sum(data, index, stuck->function);

	if (waiting && waiting->function == stuck->function &&
	    waiting->record.sequence == stuck->sequence && waiting->record.kind == stuck->kind)
		return NCCL_STANDING_WAITS;
	if (sum && sum->last_sequence >= stuck->sequence)
		return waiting && (waiting->function != stuck->function ||
				   waiting->record.sequence < stuck->sequence)
			       ? NCCL_STANDING_QUEUED
			       : NCCL_STANDING_THROUGH;
	return data->processes[member->process].lost_operations ? NCCL_STANDING_UNKNOWN
								: NCCL_STANDING_ABSENT;
}

static void judge_rank(struct nccl_data *data, struct nccl_stuck *stuck,
		       struct nccl_stuck_rank *rank)
{
	const struct nccl_member *member = &data->members[rank->member];

	rank->rank = member->rank;
	rank->standing = stuck->kind == NCCL_KIND_P2P ? NCCL_STANDING_WAITS
						      : standing_of(data, stuck, rank->member);
	if (rank->standing == NCCL_STANDING_WAITS) {
		const struct nccl_operation *record = &member->waiting[0].record;
		uint64_t inside = nccl_quiet_ns(data, member->process, record->start);

		rank->quiet_ns = nccl_quiet_ns(data, member->process, record->last);
		if (inside > stuck->longest_ns)
			stuck->longest_ns = inside;
	} else {
		rank->quiet_ns = nccl_quiet_ns(data, member->process, member->last_ticks);
	}
}

/* Ranks that no file tells of; only where all that are there say which they are. */
static void add_missing(const struct nccl_data *data, struct nccl_stuck *stuck, uint32_t ranks)
{
	const struct nccl_team *team = &data->teams[stuck->team];
	uint32_t next = 0;

	for (uint32_t rank = 0; rank < ranks; rank++) {
		while (next < team->member_count &&
		       data->members[team->members[next]].rank < (int32_t)rank)
			next++;
		if (next < team->member_count &&
		    data->members[team->members[next]].rank == (int32_t)rank)
			continue;
		stuck->ranks[stuck->rank_count++] = (struct nccl_stuck_rank){
			(int32_t)rank, NCCL_NONE, NCCL_STANDING_NO_DATA, 0};
	}
}

static int judge(struct nccl_data *data, struct nccl_stuck *stuck)
{
	const struct nccl_team *team = &data->teams[stuck->team];
	bool p2p = stuck->kind == NCCL_KIND_P2P;
	uint32_t ranks = team->ranks_inferred || p2p || team->ranks > 65536 ? 0 : team->ranks;

	stuck->ranks = calloc((size_t)team->member_count + ranks + 1, sizeof(*stuck->ranks));
	if (!stuck->ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < team->member_count; i++) {
		struct nccl_stuck_rank *rank = &stuck->ranks[stuck->rank_count];

		if (p2p && team->members[i] != stuck->first_member)
			continue;
		rank->member = team->members[i];
		judge_rank(data, stuck, rank);
		stuck->rank_count++;
	}
	add_missing(data, stuck, ranks);
	for (uint32_t i = 0; i < stuck->rank_count; i++)
		stuck->standing_counts[stuck->ranks[i].standing]++;
	return 0;
}

static int find_stuck_team(struct nccl_data *data, struct nccl_hang *hang, uint32_t index)
{
	const struct nccl_team *team = &data->teams[index];
	size_t first = hang->stuck_count, collectives = 0;
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < team->member_count; i++) {
		if (data->members[team->members[i]].waiting_count)
			result = add_stuck(data, hang, first, team->members[i]);
	}
	for (size_t i = first; i < hang->stuck_count; i++)
		collectives += hang->stuck[i].kind != NCCL_KIND_P2P;
	for (size_t i = first; result == 0 && i < hang->stuck_count; i++) {
		for (size_t k = first; k < hang->stuck_count; k++)
			hang->stuck[i].mismatch |=
				collectives > 1 && hang->stuck[k].kind != NCCL_KIND_P2P &&
				hang->stuck[k].function != hang->stuck[i].function;
		result = judge(data, &hang->stuck[i]);
	}
	return result;
}

int nccl_hang_find(struct nccl_data *data, struct nccl_hang *ret, struct problem *problem)
{
	int result = 0;

	*ret = (struct nccl_hang){0};
	for (uint32_t i = 0; result == 0 && i < data->team_count; i++)
		result = find_stuck_team(data, ret, i);
	if (result < 0)
		nccl_out_of_memory(problem);
	if (result == 0)
		result = find_transfers(data, ret, problem);
	if (result < 0)
		nccl_hang_deinit(ret);
	return result;
}

void nccl_hang_deinit(struct nccl_hang *hang)
{
	for (size_t i = 0; i < hang->stuck_count; i++)
		free(hang->stuck[i].ranks);
	free(hang->stuck);
	free(hang->transfers);
	*hang = (struct nccl_hang){0};
}
