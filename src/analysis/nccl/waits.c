/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The second pass over the records: who waited for whom; see waits.h.
 */
#include "analysis/nccl/waits.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/nccl/blame.h"
#include "analysis/nccl/collectives.h"
#include "analysis/nccl/pairs.h"
#include "analysis/nccl/private.h"

/* ---- the last to enter ---- */

/* Several may come late together, for the sake of one: then clocks must tell the last one from the
 * second to last. */
static bool clocks_tell_last_rank(const struct nccl_collective *collective)
{
	uint64_t apart = collective->last_begin_ns - collective->second_to_last_begin_ns;

	return collective->begin_end_error_ns != UINT64_MAX &&
	       apart > 2 * collective->begin_end_error_ns && apart > NCCL_LATENESS_LEAST_NS;
}

/* Whom some may leave without, has no waiting in its duration: only where nobody can leave first is
 * the shortest that of the last one. */
static bool durations_tell_last_rank(const struct nccl_collective *collective)
{
	return collective->is_timed && collective->waits_for_all &&
	       collective->second_shortest_duration_ns - collective->shortest_duration_ns >
		       nccl_get_leaving_lag(collective->seen, collective->is_between_hosts);
}

enum nccl_lateness_basis nccl_collective_find_late_rank(const struct nccl_collective *collective,
							uint32_t *ret_member)
{
	*ret_member = NCCL_INDEX_NONE;
	if (!collective->is_complete || collective->seen < 2)
		return NCCL_LATENESS_UNKNOWN;
	if (clocks_tell_last_rank(collective)) {
		*ret_member = collective->last_to_begin_member;
		return NCCL_LATENESS_BY_CLOCK;
	}
	if (!durations_tell_last_rank(collective))
		return NCCL_LATENESS_UNKNOWN;
	*ret_member = collective->shortest_duration_member;
	return NCCL_LATENESS_BY_DURATION;
}

/* ---- one operation ---- */

struct wait_summing_context {
	struct nccl_data *data;
	struct nccl_joined_collectives *joined;
	struct nccl_wait_entries *entries; /* of the process that is read */
	struct operation_place *places;    /* by member: its last operation that was read */
};

struct operation_place {
	uint64_t next_ordinal, end_ns;
};

/* In an operation that was lost it may have waited all the time. */
static int add_wait_entry_of_gap(struct wait_summing_context *context, uint32_t member,
				 uint64_t until_ns)
{
	uint64_t from = context->places[member].end_ns;

	if (!from)
		from = nccl_ticks_to_common_time(
			context->data, context->data->members[member].process,
			context->data->processes[context->data->members[member].process]
				.start_ticks);
	return until_ns <= from ? 0
				: nccl_wait_entries_add(context->entries,
							&(struct nccl_wait_entry){
								.begin_ns = from,
								.wait_ns = until_ns - from,
								.member = member,
								.other_member = NCCL_INDEX_NONE});
}

static int note_place_of_operation(struct wait_summing_context *context,
				   const struct nccl_operation_view *view)
{
	struct operation_place *place = &context->places[view->member];
	int result = 0;

	if (view->record->ordinal > place->next_ordinal)
		result = add_wait_entry_of_gap(context, view->member, view->begin_ns);
	if (view->record->ordinal >= place->next_ordinal) {
		place->next_ordinal = view->record->ordinal + 1;
		place->end_ns = view->end_ns ? view->end_ns : view->begin_ns;
	}
	return result;
}

/* Those behind the last one that was read. */
static int add_wait_entries_of_last_gaps(struct wait_summing_context *context, uint32_t process)
{
	const struct nccl_process *of = &context->data->processes[process];
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < of->member_count; i++) {
		uint32_t member = of->first_member_index + i;

		if (context->places[member].next_ordinal <
		    context->data->members[member].record.operations)
			result = add_wait_entry_of_gap(context, member, of->known_until_ns);
	}
	return result;
}

static void mark_rank_present(const struct nccl_data *data, struct nccl_joined_collectives *joined,
			      const struct nccl_collective *collective, uint32_t member)
{
	uint64_t *present = joined->problems[collective->problem].present;
	uint32_t place = data->members[member].place_in_communicator;

	present[place / 64] |= (uint64_t)1 << (place % 64);
}

static bool arguments_match_collective(const struct nccl_data *data,
				       const struct nccl_operation_view *view,
				       const struct nccl_collective *collective)
{
	return collective && collective->bytes == view->record->bytes &&
	       collective->arguments_hash == nccl_hash_operation_arguments(data, view);
}

static void add_argument_difference_if_any(const struct nccl_data *data,
					   struct nccl_joined_collectives *joined,
					   const struct nccl_collective *collective,
					   const struct nccl_operation_view *view)
{
	uint64_t key = (uint64_t)view->member << 32 | view->function, at = collective->sequence;
	uint32_t sum = id_map_get(&nccl_get_private(data)->rank_function_sum_index_by_key, key);
	struct nccl_differing_argument_counts *difference;

	if (sum == ID_MAP_NONE || arguments_match_collective(data, view, collective))
		return;
	difference = &joined->argument_differences_by_sum[sum];
	if (!difference->count++ || at < difference->first_sequence)
		difference->first_sequence = at;
	difference->compared_to_member = collective->arguments_from_member;
	if (arguments_match_collective(
		    data, view,
		    nccl_find_collective(joined, collective->communicator, view->function, at + 1)))
		difference->like_next_call_count++;
	if (at && arguments_match_collective(data, view,
					     nccl_find_collective(joined, collective->communicator,
								  view->function, at - 1)))
		difference->like_previous_call_count++;
}

bool nccl_differing_calls_suggest_skipped_call(
	const struct nccl_differing_argument_counts *difference)
{
	return difference->like_next_call_count &&
	       difference->like_next_call_count + 1 >= difference->count &&
	       difference->like_next_call_count > difference->like_previous_call_count;
}

/* Some functions let ranks leave before the last one enters: that one made nobody wait. */
static uint64_t get_caused_wait(const struct nccl_collective *collective)
{
	if (!collective->waits_for_all &&
	    (collective->begin_end_error_ns == UINT64_MAX ||
	     collective->longest_duration_end_ns + 2 * collective->begin_end_error_ns <
		     collective->last_begin_ns))
		return 0;
	return collective->longest_duration_ns - collective->shortest_duration_ns;
}

/* Where it is not known what of its time is waiting, all of it may be: also where one of many has
 * no duration, which may be the one that came last. */
static int add_wait_entry_of_operation(struct wait_summing_context *context,
				       const struct nccl_operation_view *view,
				       const struct nccl_collective *collective)
{
	const struct nccl_data *data = context->data;
	struct nccl_wait_entry entry = {
		.begin_ns = view->begin_ns,
		.wait_ns = view->duration_ns ? view->duration_ns : UINT64_MAX,
		.leaving_lag_ns = nccl_get_leaving_lag(data->members[view->member].rank_count,
						       !collective || !collective->is_complete ||
							       collective->is_between_hosts),
		.member = view->member,
		.other_member = NCCL_INDEX_NONE,
		.levels = nccl_function_waits_for_all_ranks(
			data->functions[view->function].function)};

	if (collective && collective->is_timed &&
	    nccl_timing_source_is_of_one_operation(view->timing_source)) {
		if (nccl_collective_find_late_rank(collective, &entry.other_member) !=
			    NCCL_LATENESS_UNKNOWN &&
		    entry.other_member == view->member)
			entry.caused_ns = get_caused_wait(collective);
		if (collective->timed == collective->seen)
			entry.wait_ns = view->duration_ns - collective->shortest_duration_ns;
	}
	return nccl_wait_entries_add(context->entries, &entry);
}

static int add_operation_to_rank_wait_sums(const struct nccl_operation_view *view, void *pointer)
{
	struct wait_summing_context *context = pointer;
	struct nccl_joined_collectives *joined = context->joined;
	struct nccl_rank_wait_sums *sum = &joined->ranks[view->member];
	const struct nccl_collective *collective;

	if (note_place_of_operation(context, view) < 0)
		return -ENOMEM;
	if (view->record->kind == NCCL_KIND_P2P ||
	    context->data->members[view->member].rank_count == 1)
		return 0;
	collective = nccl_find_collective(joined, context->data->members[view->member].communicator,
					  view->function, view->record->sequence);
	/* Of no other rank there are records, or not yet in the first pass. */
	if (!collective)
		return add_wait_entry_of_operation(context, view, NULL);
	if (collective->problem != NCCL_INDEX_NONE)
		mark_rank_present(context->data, joined, collective, view->member);
	add_argument_difference_if_any(context->data, joined, collective, view);
	if (nccl_timing_source_is_of_one_operation(view->timing_source) && collective->is_timed) {
		sum->joined++;
		sum->duration_ns += view->duration_ns;
		sum->waited_ns += view->duration_ns - collective->shortest_duration_ns;
	}
	return add_wait_entry_of_operation(context, view, collective);
}

/* ---- all of them ---- */

static int index_members_by_rank_and_communicator(const struct nccl_data *data,
						  struct nccl_joined_collectives *joined)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->member_count; i++)
		result = id_map_set(&joined->member_by_rank_and_communicator,
				    (uint64_t)data->members[i].job_rank_index << 32 |
					    data->members[i].communicator,
				    i);
	return result;
}

/* A process after the other, since the waiting of one is needed together. */
int nccl_sum_waits_of_all_ranks(struct nccl_data *data, struct nccl_joined_collectives *joined,
				struct problem *problem)
{
	struct wait_summing_context context = {
		.data = data,
		.joined = joined,
		.places = calloc((size_t)data->member_count + 1, sizeof(*context.places))};
	int result =
		context.places ? index_members_by_rank_and_communicator(data, joined) : -ENOMEM;

	for (uint32_t i = 0; result == 0 && i < data->process_count; i++) {
		context.entries = &joined->pairs->entries_by_process[i];
		result = nccl_visit_operations_of_process(data, i, add_operation_to_rank_wait_sums,
							  &context, problem);
		if (result == 0)
			result = add_wait_entries_of_last_gaps(&context, i);
		if (result == 0)
			result = nccl_blame_ranks_of_process(data, context.entries, joined);
		free(context.entries->entries);
		*context.entries = (struct nccl_wait_entries){0};
	}
	free(context.places);
	return result == 0 ? nccl_index_longest_passed_waits(data, joined) : result;
}

struct nccl_rank_wait_sums nccl_sum_waits_of_job_rank(const struct nccl_data *data,
						      const struct nccl_joined_collectives *joined,
						      uint32_t job_rank)
{
	const struct nccl_process *process = &data->processes[data->job_ranks[job_rank].process];
	struct nccl_rank_wait_sums sum = {0};

	for (uint32_t i = 0; i < process->member_count; i++) {
		uint32_t member = process->first_member_index + i;
		const struct nccl_rank_wait_sums *own = &joined->ranks[member];

		if (data->members[member].job_rank_index != job_rank)
			continue;
		sum.joined += own->joined;
		sum.last += own->last;
		sum.joined_transfers += own->joined_transfers;
		sum.last_transfers += own->last_transfers;
		sum.caused_wait_ns += own->caused_wait_ns;
		sum.caused_wait_square_sum += own->caused_wait_square_sum;
		sum.passed_on_wait_ns += own->passed_on_wait_ns;
		sum.waited_ns += own->waited_ns;
		sum.duration_ns += own->duration_ns;
		sum.left_out += own->left_out;
	}
	return sum;
}
