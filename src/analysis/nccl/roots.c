/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who waits in what for whom; see roots.h.
 *
 * A rank is *in* an operation if its kernel was seen to run. One that is only enqueued while the
 * rank is in another one, or while other ranks are in it, has not begun on the GPU: the others wait
 * for it. Where nothing was seen to run, because channels are not recorded, say, enqueued counts as
 * in.
 */
#include "analysis/nccl/roots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/calls.h"
#include "analysis/nccl/private.h"

/* The plugin's own thread gives a sign more often: whose last one is this much older has ended. */
#define ENDED_BEFORE_OTHERS_NS UINT64_C(300000000)

#define ROOTS_MAX 64 /* that are looked for: of more nobody reads */

struct root_search {
	const struct nccl_data *data;
	const struct nccl_hang_findings *hang;
	struct nccl_hang_roots *roots;
	bool *runs_something; /* by job rank: it was seen to run an operation that is not over */
	bool *waits, *awaited, *unsure, *is_resolved; /* by job rank */
	uint64_t latest_sign_ns;
};

/* ---- where ranks are ---- */

static bool operation_was_seen_to_run(const struct nccl_operation *operation)
{
	return operation->channels_started || operation->networks_started;
}

static bool process_is_gone(const struct root_search *search, uint32_t process)
{
	const struct nccl_process *of = &search->data->processes[process];

	return of->ended != NCCL_PROCESS_RUNNING &&
	       search->latest_sign_ns > of->known_until_ns + ENDED_BEFORE_OTHERS_NS;
}

static void find_running_ranks(struct root_search *search)
{
	const struct nccl_data *data = search->data;

	for (uint32_t i = 0; i < data->process_count; i++) {
		if (data->processes[i].known_until_ns > search->latest_sign_ns)
			search->latest_sign_ns = data->processes[i].known_until_ns;
	}
	for (uint32_t i = 0; i < data->member_count; i++) {
		const struct nccl_communicator_rank *member = &data->members[i];

		if (member->waiting_operation_count &&
		    operation_was_seen_to_run(&member->waiting[0].record))
			search->runs_something[member->job_rank_index] = true;
	}
}

/* Some rank was seen to run it, or has finished it: then it ran on all others as well, and who was
 * not seen to run it does not wait in it. */
static bool stuck_operation_runs(const struct nccl_data *data,
				 const struct nccl_stuck_operation *stuck)
{
	if (stuck->rank_count_by_progress[NCCL_RANK_HAS_FINISHED])
		return true;
	for (uint32_t i = 0; i < stuck->rank_count; i++) {
		const struct nccl_stuck_operation_rank *rank = &stuck->ranks[i];

		if (rank->progress == NCCL_RANK_IS_WAITING &&
		    operation_was_seen_to_run(&data->members[rank->member].waiting[0].record))
			return true;
	}
	return false;
}

static bool rank_is_inside(const struct root_search *search, uint32_t index, bool others_run)
{
	const struct nccl_communicator_rank *member = &search->data->members[index];

	if (process_is_gone(search, member->process))
		return false;
	if (operation_was_seen_to_run(&member->waiting[0].record))
		return true;
	return !others_run && !search->runs_something[member->job_rank_index];
}

/* ---- edges ---- */

static int add_edge(struct root_search *search, uint32_t waiter, uint32_t awaited, uint32_t stuck)
{
	struct nccl_hang_roots *roots = search->roots;

	search->awaited[awaited] = true;
	if (waiter == awaited)
		return 0;
	if (array_reserve_one_more((void **)&roots->edges, &roots->edge_capacity, roots->edge_count,
				   sizeof(*roots->edges)) < 0)
		return -ENOMEM;
	roots->edges[roots->edge_count++] = (struct nccl_wait_edge){waiter, awaited, stuck};
	return 0;
}

static int add_root(struct root_search *search, const struct nccl_hang_root *root)
{
	struct nccl_hang_roots *roots = search->roots;

	/* Ranks without records may be many, and are found first: what stands in the others' has
	 * room. */
	if (roots->root_count >= (root->kind == NCCL_ROOT_NO_RECORDS ? ROOTS_MAX / 2 : ROOTS_MAX))
		return 0;
	if (array_reserve_one_more((void **)&roots->roots, &roots->root_capacity, roots->root_count,
				   sizeof(*roots->roots)) < 0)
		return -ENOMEM;
	roots->roots[roots->root_count++] = *root;
	return 0;
}

static bool rank_is_awaited(const struct root_search *search,
			    const struct nccl_stuck_operation_rank *rank, bool others_run)
{
	switch (rank->progress) {
	case NCCL_RANK_HAS_FINISHED:
	case NCCL_RANK_HAS_NO_FILE:
		return false;
	case NCCL_RANK_IS_WAITING:
		return !rank_is_inside(search, rank->member, others_run);
	default:
		return true;
	}
}

static int add_edges_to_rank(struct root_search *search, uint32_t number, uint32_t awaited,
			     bool others_run)
{
	const struct nccl_stuck_operation *stuck = &search->hang->stuck_operations[number];
	const struct nccl_communicator_rank *members = search->data->members;
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < stuck->rank_count; i++) {
		const struct nccl_stuck_operation_rank *rank = &stuck->ranks[i];

		if (rank->progress == NCCL_RANK_IS_WAITING &&
		    rank_is_inside(search, rank->member, others_run))
			result = add_edge(search, members[rank->member].job_rank_index,
					  members[awaited].job_rank_index, number);
	}
	return result;
}

static int add_edges_of_collective(struct root_search *search, uint32_t number)
{
	const struct nccl_stuck_operation *stuck = &search->hang->stuck_operations[number];
	bool run = stuck_operation_runs(search->data, stuck), inside = false, awaited = false;
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < stuck->rank_count; i++) {
		const struct nccl_stuck_operation_rank *rank = &stuck->ranks[i];

		awaited |= rank->progress == NCCL_RANK_HAS_NO_FILE;
		if (rank->progress == NCCL_RANK_HAS_NO_FILE)
			result = add_root(search, &(struct nccl_hang_root){NCCL_ROOT_NO_RECORDS,
									   NCCL_INDEX_NONE, number,
									   rank->rank, 0, 0, true});
		if (rank->member == NCCL_INDEX_NONE)
			continue;
		if (rank->progress == NCCL_RANK_IS_WAITING &&
		    rank_is_inside(search, rank->member, run)) {
			search->waits[search->data->members[rank->member].job_rank_index] = true;
			inside = true;
		} else if (rank_is_awaited(search, rank, run)) {
			search->unsure[search->data->members[rank->member].job_rank_index] |=
				rank->progress == NCCL_RANK_PROGRESS_UNKNOWN;
			awaited = true;
			result = add_edges_to_rank(search, number, rank->member, run);
		}
	}
	if (result == 0 && inside && !awaited)
		result = add_root(search, &(struct nccl_hang_root){NCCL_ROOT_ALL_ARE_INSIDE,
								   NCCL_INDEX_NONE, number, -1, 0,
								   0, false});
	return result;
}

/* ---- send and receive ---- */

static int add_edge_of_transfer(struct root_search *search, uint32_t number,
				const struct nccl_communicator_rank *member,
				const struct nccl_waiting_transfer *transfer, bool *awaited)
{
	uint32_t peer =
		nccl_find_member_of_rank(search->data, member->communicator, transfer->peer);
	struct nccl_waiting_transfer other_side = {peer, member->rank, transfer->sequence,
						   !transfer->sends, false};

	if (transfer->is_done_by_peer)
		return 0;
	if (peer == NCCL_INDEX_NONE) {
		*awaited = true;
		return add_root(search,
				&(struct nccl_hang_root){NCCL_ROOT_NO_RECORDS, NCCL_INDEX_NONE,
							 number, transfer->peer, 0, 0, true});
	}
	if (!process_is_gone(search, search->data->members[peer].process) &&
	    nccl_rank_waits_in_transfer(search->hang, &other_side))
		return 0;
	*awaited = true;
	search->unsure[search->data->members[peer].job_rank_index] |=
		search->data->processes[search->data->members[peer].process].lost_operation_count !=
		0;
	return add_edge(search, member->job_rank_index, search->data->members[peer].job_rank_index,
			number);
}

static int add_edges_of_transfers(struct root_search *search, uint32_t number)
{
	const struct nccl_stuck_operation *stuck = &search->hang->stuck_operations[number];
	const struct nccl_communicator_rank *member =
		&search->data->members[stuck->first_waiting_member];
	size_t count;
	const struct nccl_waiting_transfer *transfers =
		nccl_find_waiting_transfers(search->hang, stuck->first_waiting_member, &count);
	bool awaited = false;
	int result = 0;

	if (!rank_is_inside(search, stuck->first_waiting_member, false))
		return 0;
	search->waits[member->job_rank_index] = true;
	for (size_t i = 0; result == 0 && i < count; i++)
		result = add_edge_of_transfer(search, number, member, &transfers[i], &awaited);
	if (result == 0 && !awaited)
		result = add_root(search, &(struct nccl_hang_root){NCCL_ROOT_ALL_ARE_INSIDE,
								   NCCL_INDEX_NONE, number, -1, 0,
								   0, false});
	return result;
}

/* ---- roots ---- */

/* Marks those that wait for `root`, directly or behind others; their number, without itself. */
static uint32_t mark_victims(struct root_search *search, uint32_t root, bool *seen,
			     uint32_t *ret_direct)
{
	const struct nccl_hang_roots *roots = search->roots;
	uint32_t count = 0;
	bool again = true;

	memset(seen, 0, search->data->job_rank_count * sizeof(*seen));
	*ret_direct = 0;
	seen[root] = search->is_resolved[root] = true;
	for (size_t i = 0; i < roots->edge_count; i++) {
		if (roots->edges[i].awaited == root && !seen[roots->edges[i].waiter]) {
			seen[roots->edges[i].waiter] = true;
			++*ret_direct;
		}
	}
	count = *ret_direct;
	while (again) {
		again = false;
		for (size_t i = 0; i < roots->edge_count; i++) {
			const struct nccl_wait_edge *edge = &roots->edges[i];

			search->is_resolved[edge->waiter] |= seen[edge->waiter];
			if (!seen[edge->awaited] || seen[edge->waiter])
				continue;
			seen[edge->waiter] = search->is_resolved[edge->waiter] = true;
			count++;
			again = true;
		}
	}
	return count;
}

static int add_rank_root(struct root_search *search, enum nccl_hang_root_kind kind,
			 uint32_t job_rank, bool *seen)
{
	struct nccl_hang_root root = {.kind = kind,
				      .job_rank = job_rank,
				      .stuck = NCCL_INDEX_NONE,
				      .rank = -1,
				      .is_unsure = search->unsure[job_rank]};

	if (search->roots->root_count >= ROOTS_MAX)
		return 0;
	root.victim_count = mark_victims(search, job_rank, seen, &root.direct_count);
	return add_root(search, &root);
}

/* Who waits in an operation that hangs by itself, or for a rank without records, is no cycle. */
static void resolve_waiters_of_other_roots(struct root_search *search)
{
	const struct nccl_hang_roots *roots = search->roots;
	bool again = true;

	for (size_t i = 0; i < roots->root_count; i++) {
		const struct nccl_hang_root *root = &roots->roots[i];
		const struct nccl_stuck_operation *stuck =
			root->stuck == NCCL_INDEX_NONE
				? NULL
				: &search->hang->stuck_operations[root->stuck];

		for (uint32_t k = 0; stuck && k < stuck->rank_count; k++) {
			if (stuck->ranks[k].progress == NCCL_RANK_IS_WAITING)
				search->is_resolved[search->data->members[stuck->ranks[k].member]
							    .job_rank_index] = true;
		}
	}
	while (again) {
		again = false;
		for (size_t i = 0; i < roots->edge_count; i++) {
			const struct nccl_wait_edge *edge = &roots->edges[i];

			if (search->is_resolved[edge->awaited] &&
			    !search->is_resolved[edge->waiter])
				again = search->is_resolved[edge->waiter] = true;
		}
	}
}

static uint32_t find_differing_rank_among_unresolved(const struct root_search *search)
{
	const struct nccl_data *data = search->data;

	for (uint32_t i = 0; i < data->differing_call_count; i++) {
		const struct nccl_differing_call *call = &data->differing_calls[i];
		uint32_t job_rank = data->members[call->member].job_rank_index;

		if (call->difference != NCCL_CALL_IS_DISPUTED && search->waits[job_rank] &&
		    !search->is_resolved[job_rank])
			return job_rank;
	}
	return NCCL_INDEX_NONE;
}

static int find_cycles(struct root_search *search, bool *seen)
{
	uint32_t differing = find_differing_rank_among_unresolved(search);
	int result = 0;

	if (differing != NCCL_INDEX_NONE)
		result = add_rank_root(search, NCCL_ROOT_DIFFERS, differing, seen);
	for (uint32_t i = 0; result == 0 && i < search->data->job_rank_count; i++) {
		struct nccl_wait_edge one;

		if (search->waits[i] && !search->is_resolved[i] &&
		    nccl_list_cycle(search->roots, search->data->job_rank_count, i, &one, 1))
			result = add_rank_root(search, NCCL_ROOT_CYCLE, one.waiter, seen);
	}
	return result;
}

static int compare_roots(const void *left, const void *right)
{
	const struct nccl_hang_root *a = left, *b = right;

	if ((a->kind == NCCL_ROOT_NO_RECORDS) != (b->kind == NCCL_ROOT_NO_RECORDS))
		return a->kind == NCCL_ROOT_NO_RECORDS ? 1 : -1;
	if (a->victim_count != b->victim_count)
		return a->victim_count > b->victim_count ? -1 : 1;
	if (a->job_rank != b->job_rank)
		return a->job_rank < b->job_rank ? -1 : 1;
	return a->stuck < b->stuck ? -1 : a->stuck > b->stuck;
}

static int compare_edges_by_waiter(const void *left, const void *right)
{
	const struct nccl_wait_edge *a = left, *b = right;

	if (a->waiter != b->waiter)
		return a->waiter < b->waiter ? -1 : 1;
	if (a->stuck != b->stuck)
		return a->stuck < b->stuck ? -1 : 1;
	return a->awaited < b->awaited ? -1 : a->awaited > b->awaited;
}

static int find_roots(struct root_search *search, bool *seen)
{
	int result = 0;

	find_running_ranks(search);
	for (uint32_t i = 0; result == 0 && i < search->hang->stuck_operation_count; i++)
		result = search->hang->stuck_operations[i].kind == NCCL_KIND_P2P
				 ? add_edges_of_transfers(search, i)
				 : add_edges_of_collective(search, i);
	if (search->roots->edge_count > 1)
		qsort(search->roots->edges, search->roots->edge_count,
		      sizeof(*search->roots->edges), compare_edges_by_waiter);
	for (uint32_t i = 0; result == 0 && i < search->data->job_rank_count; i++) {
		if (search->awaited[i] && !search->waits[i])
			result = add_rank_root(search, NCCL_ROOT_RANK, i, seen);
	}
	if (result == 0 && search->roots->root_count < ROOTS_MAX) {
		resolve_waiters_of_other_roots(search);
		result = find_cycles(search, seen);
	}
	if (result == 0 && search->roots->root_count > 1)
		qsort(search->roots->roots, search->roots->root_count,
		      sizeof(*search->roots->roots), compare_roots);
	return result;
}

int nccl_find_hang_roots(const struct nccl_data *data, const struct nccl_hang_findings *hang,
			 struct nccl_hang_roots *ret)
{
	size_t count = (size_t)data->job_rank_count + 1;
	bool *marks = calloc(count * 6, sizeof(*marks));
	struct root_search search = {.data = data, .hang = hang, .roots = ret};
	int result;

	*ret = (struct nccl_hang_roots){0};
	if (!marks)
		return -ENOMEM;
	search.runs_something = marks;
	search.waits = marks + count;
	search.awaited = marks + 2 * count;
	search.unsure = marks + 3 * count;
	search.is_resolved = marks + 4 * count;
	result = find_roots(&search, marks + 5 * count);
	free(marks);
	if (result < 0)
		nccl_hang_roots_deinit(ret);
	return result;
}

void nccl_hang_roots_deinit(struct nccl_hang_roots *roots)
{
	free(roots->edges);
	free(roots->roots);
	*roots = (struct nccl_hang_roots){0};
}

/* The first edge of a rank. */
static const struct nccl_wait_edge *find_edge_of(const struct nccl_hang_roots *roots, uint32_t from)
{
	size_t low = 0, high = roots->edge_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (roots->edges[middle].waiter < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low < roots->edge_count && roots->edges[low].waiter == from ? &roots->edges[low]
									   : NULL;
}

size_t nccl_list_cycle(const struct nccl_hang_roots *roots, uint32_t job_rank_count, uint32_t from,
		       struct nccl_wait_edge *ret, size_t most)
{
	const struct nccl_wait_edge *edge;
	uint32_t start = from;
	size_t count = 0;

	/* As many steps as there are ranks lead onto the cycle. */
	for (uint32_t i = 0; i < job_rank_count; i++) {
		edge = find_edge_of(roots, start);
		if (!edge)
			return 0;
		start = edge->awaited;
	}
	for (from = start; (edge = find_edge_of(roots, from)) != NULL; from = edge->awaited) {
		if (count < most)
			ret[count] = *edge;
		count++;
		if (edge->awaited == start)
			break;
	}
	return count < most ? count : most;
}
