/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What was in flight; see hang.h. Each rank waits in the oldest of its unfinished operations;
 * the ranks of a communicator that wait in the same one are put together, and the others are
 * looked at as to that one.
 */
#include "analysis/nccl/hang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/private.h"

const char *nccl_get_transfer_wait_text(enum nccl_transfer_wait_reason wait)
{
	static const char *const texts[] = {"its next step", "the GPU", "the peer", "the network",
					    "a flush to the GPU"};

	return texts[wait];
}

const char *nccl_get_rank_progress_name(enum nccl_rank_progress standing)
{
	static const char *const names[] = {"waits",  "through", "queued",
					    "absent", "unknown", "no_data"};

	return names[standing];
}

uint64_t nccl_compute_ns_since_ticks(struct nccl_data *data, uint32_t process, uint64_t ticks)
{
	uint64_t then = nccl_ticks_to_common_time(data, process, ticks),
		 until = data->processes[process].known_until_ns;

	return until > then ? until - then : 0;
}

/* ---- open transfers ---- */

struct unfinished_transfer_search {
	struct nccl_data *data;
	struct nccl_hang_findings *findings;
	size_t process_first_transfer_index; /* of the process that is read */
};

static bool operation_is_waiting(const struct nccl_communicator_rank *member, uint64_t operation)
{
	uint64_t count = nccl_get_kept_waiting_operation_count(member);

	for (uint64_t i = 0; i < count; i++) {
		if (member->waiting[i].record.id == operation)
			return true;
	}
	return false;
}

static int add_transfer_if_open(struct unfinished_transfer_search *finder,
				const struct nccl_event *event, uint32_t member)
{
	struct nccl_hang_findings *hang = finder->findings;

	if (event->flags & NCCL_EVENT_STOPPED ||
	    !operation_is_waiting(&finder->data->members[member], event->parent))
		return 0;
	if (array_reserve_one_more(
		    (void **)&hang->unfinished_transfers, &hang->unfinished_transfer_capacity,
		    hang->unfinished_transfer_count, sizeof(*hang->unfinished_transfers)) < 0)
		return -ENOMEM;
	hang->unfinished_transfers[hang->unfinished_transfer_count++] =
		(struct nccl_unfinished_transfer){.member = member,
						  .operation = event->parent,
						  .id = event->id,
						  .peer = event->c,
						  .step_count = event->proxy_op.steps,
						  .channel = event->a,
						  .sends = event->flags & NCCL_EVENT_SEND,
						  .last_ticks = event->start};
	return 0;
}

/* The state told last is what it waits for. */
static enum nccl_transfer_wait_reason find_step_wait_reason(const struct nccl_event *event,
							    bool sends)
{
	enum { GPU = 1, STEP_STATE_PEER = 2, STEP_STATE_NETWORK = 4, STEP_STATE_FLUSH = 8 };

	if (sends) {
		if (event->a & STEP_STATE_NETWORK)
			return NCCL_WAIT_NETWORK;
		if (event->a & STEP_STATE_PEER)
			return NCCL_WAIT_PEER;
		return event->a & GPU ? NCCL_WAIT_GPU : NCCL_WAIT_UNKNOWN;
	}
	if (event->a & GPU)
		return NCCL_WAIT_GPU;
	if (event->a & STEP_STATE_FLUSH)
		return NCCL_WAIT_FLUSH;
	return event->a & STEP_STATE_NETWORK ? NCCL_WAIT_NETWORK : NCCL_WAIT_UNKNOWN;
}

static void add_step_to_transfer(struct unfinished_transfer_search *finder,
				 const struct nccl_event *event)
{
	struct nccl_hang_findings *hang = finder->findings;

	for (size_t i = hang->unfinished_transfer_count;
	     i-- > finder->process_first_transfer_index;) {
		struct nccl_unfinished_transfer *transfer = &hang->unfinished_transfers[i];
		uint64_t heard = event->stop > event->start ? event->stop : event->start;

		if (transfer->id != event->parent)
			continue;
		if (event->flags & NCCL_EVENT_STOPPED)
			transfer->done_step_count++;
		else
			transfer->wait = find_step_wait_reason(event, transfer->sends);
		if (heard > transfer->last_ticks)
			transfer->last_ticks = heard;
		return;
	}
}

static int add_event_to_transfers(const struct nccl_event *event, uint32_t process, uint32_t member,
				  void *context)
{
	struct unfinished_transfer_search *finder = context;

	(void)process;
	if (member == NCCL_INDEX_NONE || !finder->data->members[member].waiting_operation_count)
		return 0;
	if (event->kind == NCCL_KIND_PROXY_OP)
		return add_transfer_if_open(finder, event, member);
	if (event->kind == NCCL_KIND_PROXY_STEP)
		add_step_to_transfer(finder, event);
	return 0;
}

static bool process_has_waiting_ranks(const struct nccl_data *data,
				      const struct nccl_process *process)
{
	for (uint32_t i = 0; i < process->member_count; i++) {
		if (data->members[process->first_member_index + i].waiting_operation_count)
			return true;
	}
	return false;
}

static int collect_all_open_transfers(struct nccl_data *data, struct nccl_hang_findings *hang,
				      struct problem *problem)
{
	struct unfinished_transfer_search finder = {data, hang, 0};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->process_count; i++) {
		if (!process_has_waiting_ranks(data, &data->processes[i]))
			continue;
		finder.process_first_transfer_index = hang->unfinished_transfer_count;
		result = nccl_visit_events_of_process(data, i, add_event_to_transfers, &finder,
						      problem);
	}
	return result;
}

/* ---- sends and receives that ranks wait in ---- */

static int compare_waiting_transfers(const void *left, const void *right)
{
	const struct nccl_waiting_transfer *a = left, *b = right;

	if (a->member != b->member)
		return a->member < b->member ? -1 : 1;
	if (a->peer != b->peer)
		return a->peer < b->peer ? -1 : 1;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return a->sends - b->sends;
}

/* Sends and receives of one group run together: a rank waits in all of them. */
static bool waits_together(const struct nccl_operation *first, const struct nccl_operation *other)
{
	return other->kind == NCCL_KIND_P2P &&
	       (other->id == first->id || (first->group && other->group == first->group) ||
		(first->launch && other->launch == first->launch &&
		 other->thread == first->thread));
}

static int add_transfer_if_waited_in(const struct nccl_operation_view *view, void *context)
{
	struct unfinished_transfer_search *finder = context;
	struct nccl_hang_findings *hang = finder->findings;
	const struct nccl_communicator_rank *member = &finder->data->members[view->member];

	if (!view->is_waiting || !member->waiting_operation_count ||
	    member->waiting[0].record.kind != NCCL_KIND_P2P ||
	    !waits_together(&member->waiting[0].record, view->record))
		return 0;
	if (array_reserve_one_more((void **)&hang->waiting_transfers,
				   &hang->waiting_transfer_capacity, hang->waiting_transfer_count,
				   sizeof(*hang->waiting_transfers)) < 0)
		return -ENOMEM;
	hang->waiting_transfers[hang->waiting_transfer_count++] = (struct nccl_waiting_transfer){
		.member = view->member,
		.peer = view->record->peer,
		.sequence = view->record->sequence,
		.sends = finder->data->functions[view->function].function == NCCL_FUNCTION_SEND};
	return 0;
}

static bool process_waits_in_transfers(const struct nccl_data *data,
				       const struct nccl_process *process)
{
	for (uint32_t i = 0; i < process->member_count; i++) {
		const struct nccl_communicator_rank *member =
			&data->members[process->first_member_index + i];

		if (member->waiting_operation_count &&
		    member->waiting[0].record.kind == NCCL_KIND_P2P)
			return true;
	}
	return false;
}

static int mark_transfer_if_done_by_peer(const struct nccl_operation_view *view, void *context)
{
	struct unfinished_transfer_search *finder = context;
	struct nccl_hang_findings *hang = finder->findings;
	const struct nccl_communicator_rank *member = &finder->data->members[view->member];
	struct nccl_waiting_transfer wanted = {.peer = member->rank,
					       .sequence = view->record->sequence},
				     *found;

	if (view->record->kind != NCCL_KIND_P2P || view->is_waiting ||
	    view->state == NCCL_OPERATION_INCOMPLETE ||
	    view->record->flags & NCCL_OPERATION_NO_SEQUENCE)
		return 0;
	wanted.member =
		nccl_find_member_of_rank(finder->data, member->communicator, view->record->peer);
	wanted.sends = finder->data->functions[view->function].function != NCCL_FUNCTION_SEND;
	found = bsearch(&wanted, hang->waiting_transfers, hang->waiting_transfer_count,
			sizeof(wanted), compare_waiting_transfers);
	if (found)
		found->is_done_by_peer = true;
	return 0;
}

/* A group may have more than are kept of other operations: two for each rank of an AlltoAll. */
static int collect_all_waiting_transfers(struct nccl_data *data, struct nccl_hang_findings *hang,
					 struct problem *problem)
{
	struct unfinished_transfer_search finder = {data, hang, 0};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->process_count; i++) {
		if (process_waits_in_transfers(data, &data->processes[i]))
			result = nccl_visit_operations_of_process(
				data, i, add_transfer_if_waited_in, &finder, problem);
	}
	if (hang->waiting_transfer_count > 1)
		qsort(hang->waiting_transfers, hang->waiting_transfer_count,
		      sizeof(*hang->waiting_transfers), compare_waiting_transfers);
	for (uint32_t i = 0; result == 0 && hang->waiting_transfer_count && i < data->process_count;
	     i++)
		result = nccl_visit_operations_of_process(data, i, mark_transfer_if_done_by_peer,
							  &finder, problem);
	return result;
}

const struct nccl_waiting_transfer *
nccl_find_waiting_transfers(const struct nccl_hang_findings *hang, uint32_t member,
			    size_t *ret_count)
{
	size_t low = 0, high = hang->waiting_transfer_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (hang->waiting_transfers[middle].member < member)
			low = middle + 1;
		else
			high = middle;
	}
	high = low;
	while (high < hang->waiting_transfer_count &&
	       hang->waiting_transfers[high].member == member)
		high++;
	*ret_count = high - low;
	return high > low ? &hang->waiting_transfers[low] : NULL;
}

bool nccl_rank_waits_in_transfer(const struct nccl_hang_findings *hang,
				 const struct nccl_waiting_transfer *transfer)
{
	return hang->waiting_transfer_count &&
	       bsearch(transfer, hang->waiting_transfers, hang->waiting_transfer_count,
		       sizeof(*transfer), compare_waiting_transfers) != NULL;
}

/* ---- who waits in what ---- */

static struct nccl_stuck_operation *
find_listed_stuck_operation(struct nccl_hang_findings *hang, size_t first, uint32_t member,
			    const struct nccl_waiting_operation *waiting)
{
	for (size_t i = first; i < hang->stuck_operation_count; i++) {
		struct nccl_stuck_operation *stuck = &hang->stuck_operations[i];

		if (waiting->record.kind == NCCL_KIND_P2P) {
			if (stuck->first_waiting_member == member)
				return stuck;
		} else if (stuck->kind != NCCL_KIND_P2P && stuck->function == waiting->function &&
			   stuck->sequence == waiting->record.sequence) {
			return stuck;
		}
	}
	return NULL;
}

static int add_stuck_operation_if_new(struct nccl_data *data, struct nccl_hang_findings *hang,
				      size_t first, uint32_t member)
{
	const struct nccl_communicator_rank *from = &data->members[member];
	const struct nccl_waiting_operation *waiting = &from->waiting[0];

	if (find_listed_stuck_operation(hang, first, member, waiting))
		return 0;
	if (array_reserve_one_more((void **)&hang->stuck_operations,
				   &hang->stuck_operation_capacity, hang->stuck_operation_count,
				   sizeof(*hang->stuck_operations)) < 0)
		return -ENOMEM;
	hang->stuck_operations[hang->stuck_operation_count++] =
		(struct nccl_stuck_operation){.communicator = from->communicator,
					      .function = waiting->function,
					      .sequence = waiting->record.sequence,
					      .kind = waiting->record.kind,
					      .waiting = waiting,
					      .first_waiting_member = member};
	return 0;
}

static const struct nccl_rank_function_sums *
find_rank_function_sum(const struct nccl_data *data, uint32_t member, uint32_t function)
{
	uint32_t index = id_map_get(&nccl_get_private(data)->rank_function_sum_index_by_key,
				    (uint64_t)member << 32 | function);

	return index == ID_MAP_NONE ? NULL : &data->rank_function_sums[index];
}

static enum nccl_rank_progress determine_rank_progress(const struct nccl_data *data,
						       const struct nccl_stuck_operation *stuck,
						       uint32_t index)
{
	const struct nccl_communicator_rank *member = &data->members[index];
	const struct nccl_waiting_operation *waiting =
		member->waiting_operation_count ? &member->waiting[0] : NULL;
	const struct nccl_rank_function_sums *sum =
		find_rank_function_sum(data, index, stuck->function);

	if (waiting && waiting->function == stuck->function &&
	    waiting->record.sequence == stuck->sequence && waiting->record.kind == stuck->kind)
		return NCCL_RANK_IS_WAITING;
	if (sum && sum->last_sequence >= stuck->sequence)
		return waiting && (waiting->function != stuck->function ||
				   waiting->record.sequence < stuck->sequence)
			       ? NCCL_RANK_HAS_QUEUED
			       : NCCL_RANK_HAS_FINISHED;
	return data->processes[member->process].lost_operation_count ? NCCL_RANK_PROGRESS_UNKNOWN
								     : NCCL_RANK_HAS_NOT_ENTERED;
}

static void set_rank_progress(struct nccl_data *data, struct nccl_stuck_operation *stuck,
			      struct nccl_stuck_operation_rank *rank)
{
	const struct nccl_communicator_rank *member = &data->members[rank->member];

	rank->rank = member->rank;
	rank->progress = stuck->kind == NCCL_KIND_P2P
				 ? NCCL_RANK_IS_WAITING
				 : determine_rank_progress(data, stuck, rank->member);
	if (rank->progress == NCCL_RANK_IS_WAITING) {
		const struct nccl_operation *record = &member->waiting[0].record;
		uint64_t inside = nccl_compute_ns_since_ticks(data, member->process, record->start);

		rank->quiet_ns = nccl_compute_ns_since_ticks(data, member->process, record->last);
		if (inside > stuck->longest_wait_ns)
			stuck->longest_wait_ns = inside;
	} else {
		rank->quiet_ns =
			nccl_compute_ns_since_ticks(data, member->process, member->last_ticks);
	}
}

/* Ranks that no file tells of; only where all that are there say which they are. */
static void add_ranks_without_file(const struct nccl_data *data, struct nccl_stuck_operation *stuck,
				   uint32_t ranks)
{
	const struct nccl_communicator *communicator = &data->communicators[stuck->communicator];
	uint32_t next = 0;

	for (uint32_t rank = 0; rank < ranks; rank++) {
		while (next < communicator->member_count &&
		       data->members[communicator->members[next]].rank < (int32_t)rank)
			next++;
		if (next < communicator->member_count &&
		    data->members[communicator->members[next]].rank == (int32_t)rank)
			continue;
		stuck->ranks[stuck->rank_count++] = (struct nccl_stuck_operation_rank){
			(int32_t)rank, NCCL_INDEX_NONE, NCCL_RANK_HAS_NO_FILE, 0};
	}
}

static int set_progress_of_all_ranks(struct nccl_data *data, struct nccl_stuck_operation *stuck)
{
	const struct nccl_communicator *communicator = &data->communicators[stuck->communicator];
	bool p2p = stuck->kind == NCCL_KIND_P2P;
	uint32_t ranks =
		communicator->is_rank_count_inferred || p2p || communicator->rank_count > 65536
			? 0
			: communicator->rank_count;

	stuck->ranks =
		calloc((size_t)communicator->member_count + ranks + 1, sizeof(*stuck->ranks));
	if (!stuck->ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < communicator->member_count; i++) {
		struct nccl_stuck_operation_rank *rank = &stuck->ranks[stuck->rank_count];

		if (p2p && communicator->members[i] != stuck->first_waiting_member)
			continue;
		rank->member = communicator->members[i];
		set_rank_progress(data, stuck, rank);
		stuck->rank_count++;
	}
	add_ranks_without_file(data, stuck, ranks);
	for (uint32_t i = 0; i < stuck->rank_count; i++)
		stuck->rank_count_by_progress[stuck->ranks[i].progress]++;
	return 0;
}

static int add_communicator_stuck_operations(struct nccl_data *data,
					     struct nccl_hang_findings *hang, uint32_t index)
{
	const struct nccl_communicator *communicator = &data->communicators[index];
	size_t first = hang->stuck_operation_count, collectives = 0;
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < communicator->member_count; i++) {
		if (data->members[communicator->members[i]].waiting_operation_count)
			result = add_stuck_operation_if_new(data, hang, first,
							    communicator->members[i]);
	}
	for (size_t i = first; i < hang->stuck_operation_count; i++)
		collectives += hang->stuck_operations[i].kind != NCCL_KIND_P2P;
	for (size_t i = first; result == 0 && i < hang->stuck_operation_count; i++) {
		for (size_t k = first; k < hang->stuck_operation_count; k++)
			hang->stuck_operations[i].has_function_mismatch |=
				collectives > 1 &&
				hang->stuck_operations[k].kind != NCCL_KIND_P2P &&
				hang->stuck_operations[k].function !=
					hang->stuck_operations[i].function;
		result = set_progress_of_all_ranks(data, &hang->stuck_operations[i]);
	}
	return result;
}

int nccl_find_stuck_operations(struct nccl_data *data, struct nccl_hang_findings *ret,
			       struct problem *problem)
{
	int result = 0;

	*ret = (struct nccl_hang_findings){0};
	for (uint32_t i = 0; result == 0 && i < data->communicator_count; i++)
		result = add_communicator_stuck_operations(data, ret, i);
	if (result < 0)
		nccl_set_out_of_memory_problem(problem);
	if (result == 0)
		result = collect_all_open_transfers(data, ret, problem);
	if (result == 0)
		result = collect_all_waiting_transfers(data, ret, problem);
	if (result < 0)
		nccl_hang_findings_deinit(ret);
	return result;
}

void nccl_hang_findings_deinit(struct nccl_hang_findings *hang)
{
	for (size_t i = 0; i < hang->stuck_operation_count; i++)
		free(hang->stuck_operations[i].ranks);
	free(hang->stuck_operations);
	free(hang->unfinished_transfers);
	free(hang->waiting_transfers);
	*hang = (struct nccl_hang_findings){0};
}
