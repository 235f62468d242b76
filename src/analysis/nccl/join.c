/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Collectives over ranks; see join.h.
 */
#include "analysis/nccl/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/calls.h"
#include "analysis/nccl/collectives.h"
#include "analysis/nccl/links.h"
#include "analysis/nccl/private.h"
#include "analysis/nccl/waits.h"

#define COLLECTIVE_PROBLEMS_MAX 4096
/* One of so many ranks may be without a duration: it could be the late one, but seldom is. */
#define RANKS_PER_UNTIMED_RANK 16

const char *nccl_get_lateness_basis_name(enum nccl_lateness_basis lateness)
{
	static const char *const names[] = {"unknown", "clock", "duration"};

	return names[lateness];
}

/* ---- the first pass ---- */

struct collective_join_context {
	struct nccl_data *data;
	struct nccl_joined_collectives *joined_collectives;
};

static bool operation_can_be_joined(const struct nccl_data *data,
				    const struct nccl_operation_view *view)
{
	return view->record->kind != NCCL_KIND_P2P &&
	       data->communicators[data->members[view->member].communicator].member_count > 1;
}

static void note_or_compare_rank_arguments(const struct nccl_data *data,
					   struct nccl_collective *collective,
					   const struct nccl_operation_view *view)
{
	uint64_t hash = nccl_hash_operation_arguments(data, view);
	uint32_t first = collective->arguments_from_member;

	if (first == NCCL_INDEX_NONE) {
		collective->arguments_from_member = view->member;
		collective->bytes = view->record->bytes;
		collective->size_bytes = view->is_size_known ? view->size_bytes : 0;
		collective->arguments_hash = hash;
		return;
	}
	if (collective->bytes != view->record->bytes || collective->arguments_hash != hash)
		collective->differing_arguments_member = view->member;
	if (data->processes[data->members[first].process].host !=
	    data->processes[view->process].host)
		collective->is_between_hosts = true;
}

uint64_t nccl_get_begin_error(const struct nccl_data *data, const struct nccl_operation_view *view)
{
	struct nccl_host_clock_offset offset = nccl_align_get_offset_at_time(
		&data->clock_alignment, data->processes[view->process].host, view->begin_ns);

	return view->begin_error_ns == UINT64_MAX || offset.error_ns == UINT64_MAX
		       ? UINT64_MAX
		       : view->begin_error_ns + offset.error_ns;
}

static void add_rank_times_to_collective(struct nccl_data *data, struct nccl_collective *collective,
					 const struct nccl_operation_view *view)
{
	uint64_t error = nccl_get_begin_error(data, view);

	if (error > collective->begin_end_error_ns)
		collective->begin_end_error_ns = error;
	if (!collective->first_begin_ns || view->begin_ns < collective->first_begin_ns) {
		collective->first_begin_ns = view->begin_ns;
		collective->first_to_begin_member = view->member;
	}
	if (view->begin_ns > collective->last_begin_ns) {
		collective->second_to_last_begin_ns = collective->last_begin_ns;
		collective->last_begin_ns = view->begin_ns;
		collective->last_to_begin_member = view->member;
	} else if (view->begin_ns > collective->second_to_last_begin_ns) {
		collective->second_to_last_begin_ns = view->begin_ns;
	}
	if (view->end_ns > collective->last_end_ns)
		collective->last_end_ns = view->end_ns;
}

static void add_rank_duration_to_collective(struct nccl_collective *collective,
					    const struct nccl_operation_view *view)
{
	if (!collective->timed || view->duration_ns < collective->shortest_duration_ns) {
		collective->second_shortest_duration_ns =
			collective->timed ? collective->shortest_duration_ns : UINT64_MAX;
		collective->shortest_duration_ns = view->duration_ns;
		collective->shortest_duration_member = view->member;
	} else if (view->duration_ns < collective->second_shortest_duration_ns) {
		collective->second_shortest_duration_ns = view->duration_ns;
	}
	if (!collective->timed || view->duration_ns > collective->longest_duration_ns) {
		collective->longest_duration_ns = view->duration_ns;
		collective->longest_duration_member = view->member;
		collective->longest_duration_end_ns = view->end_ns;
	}
	collective->duration_sum_ns += view->duration_ns;
	collective->timed++;
}

static int add_operation_to_collective(const struct nccl_operation_view *view, void *context)
{
	struct collective_join_context *join = context;
	struct nccl_collective *collective;

	if (!operation_can_be_joined(join->data, view))
		return 0;
	collective = nccl_find_or_add_collective(join->joined_collectives,
						 join->data->members[view->member].communicator,
						 view->function, view->record->sequence);
	if (!collective)
		return -ENOMEM;
	collective->seen++;
	collective->waits_for_all =
		nccl_function_waits_for_all_ranks(join->data->functions[view->function].function);
	collective->in_flight_rank_count += view->is_waiting;
	collective->shared += view->timing_source == NCCL_TIMING_SHARED_BY_SEVERAL;
	note_or_compare_rank_arguments(join->data, collective, view);
	add_rank_times_to_collective(join->data, collective, view);
	if (nccl_timing_source_is_of_one_operation(view->timing_source))
		add_rank_duration_to_collective(collective, view);
	return 0;
}

/* ---- between the passes ---- */

/* Not all ranks that have records were in it, or not with the same arguments. */
static int add_collective_problem_if_any(const struct nccl_data *data,
					 struct nccl_joined_collectives *joined, uint32_t index)
{
	struct nccl_collective *collective = &joined->collectives[index];
	uint32_t members = data->communicators[collective->communicator].member_count;
	struct nccl_mismatched_collective_info kept = {.collective = index};

	if (collective->seen >= members &&
	    collective->differing_arguments_member == NCCL_INDEX_NONE)
		return 0;
	if (collective->differing_arguments_member != NCCL_INDEX_NONE)
		joined->mismatched_collective_count++;
	if (joined->problem_count == COLLECTIVE_PROBLEMS_MAX) {
		joined->unkept_problem_count++;
		return 0;
	}
	kept.present = calloc(members / 64 + 1, sizeof(*kept.present));
	if (!kept.present ||
	    array_reserve_one_more((void **)&joined->problems, &joined->problem_capacity,
				   joined->problem_count, sizeof(*joined->problems)) < 0) {
		free(kept.present);
		return -ENOMEM;
	}
	collective->problem = (uint32_t)joined->problem_count;
	joined->problems[joined->problem_count++] = kept;
	return 0;
}

/* A rank without a record may have been the last of all, and then nobody's time is the transfer. */
static void set_collective_completeness(const struct nccl_data *data,
					struct nccl_joined_collectives *joined,
					struct nccl_collective *collective)
{
	const struct nccl_communicator *communicator =
		&data->communicators[collective->communicator];
	uint32_t ranks = communicator->rank_count > communicator->member_count
				 ? communicator->rank_count
				 : communicator->member_count;

	collective->is_in_doubt = collective->sequence >=
				  nccl_get_first_sequence_in_doubt(data, collective->communicator,
								   collective->function);
	joined->collectives_in_doubt += collective->is_in_doubt;
	if (collective->is_in_doubt)
		return;
	collective->is_complete = collective->seen >= ranks;
	collective->is_timed = collective->is_complete && collective->timed > 1 &&
			       collective->timed + ranks / RANKS_PER_UNTIMED_RANK >= ranks;
	joined->incomplete_collective_count +=
		!collective->is_complete && !collective->in_flight_rank_count;
	if (!collective->is_timed)
		return;
	joined->timed_collective_count++;
	joined->transfer_ns += collective->shortest_duration_ns * collective->timed;
	joined->waiting_ns +=
		collective->duration_sum_ns - collective->shortest_duration_ns * collective->timed;
}

static int sort_and_check_collectives(const struct nccl_data *data,
				      struct nccl_joined_collectives *joined)
{
	int result = 0;

	nccl_sort_collectives(joined);
	for (uint32_t i = 0; result == 0 && i < joined->count; i++) {
		set_collective_completeness(data, joined, &joined->collectives[i]);
		result = add_collective_problem_if_any(data, joined, i);
	}
	return result;
}

/* NCCL's numbers have no holes: who has later ones has had this one, but it was not reported. */
static void count_absent_ranks_by_reason(const struct nccl_data *data,
					 struct nccl_joined_collectives *joined,
					 struct nccl_mismatched_collective_info *problem)
{
	const struct nccl_collective *collective = &joined->collectives[problem->collective];
	const struct nccl_communicator *communicator =
		&data->communicators[collective->communicator];

	for (uint32_t i = 0; i < communicator->member_count; i++) {
		uint32_t member = communicator->members[i];
		uint64_t key = (uint64_t)member << 32 | collective->function;
		uint32_t sum =
			id_map_get(&nccl_get_private(data)->rank_function_sum_index_by_key, key);

		if (problem->present[i / 64] >> (i % 64) & 1)
			continue;
		if (data->processes[data->members[member].process].lost_operation_count ||
		    data->processes[data->members[member].process].overwritten_operation_count) {
			problem->unknown_rank_count++;
		} else if (sum != ID_MAP_NONE &&
			   data->rank_function_sums[sum].last_sequence > collective->sequence) {
			problem->skipped_rank_count++;
		} else {
			problem->not_reached_rank_count++;
		}
	}
	joined->skipped_collective_count += problem->skipped_rank_count > 0;
}

static int visit_operations_of_all_processes(struct collective_join_context *join,
					     int (*each)(const struct nccl_operation_view *view,
							 void *context),
					     struct problem *problem)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < join->data->process_count; i++)
		result = nccl_visit_operations_of_process(join->data, i, each, join, problem);
	return result;
}

static int join_operations_of_all_processes(struct collective_join_context *join,
					    struct problem *problem)
{
	struct nccl_data *data = join->data;
	struct nccl_joined_collectives *joined = join->joined_collectives;
	int result;

	joined->ranks = calloc((size_t)data->member_count + 1, sizeof(*joined->ranks));
	joined->argument_differences_by_sum = calloc((size_t)data->rank_function_sum_count + 1,
						     sizeof(*joined->argument_differences_by_sum));
	if (!joined->ranks || !joined->argument_differences_by_sum)
		return -ENOMEM;
	result = visit_operations_of_all_processes(join, add_operation_to_collective, problem);
	if (result == 0)
		result = sort_and_check_collectives(data, joined);
	if (result == 0)
		result = nccl_sum_transfers_by_link(data, joined, problem);
	if (result == 0)
		result = nccl_sum_waits_of_all_ranks(data, joined, problem);
	for (size_t i = 0; result == 0 && i < joined->problem_count; i++)
		count_absent_ranks_by_reason(data, joined, &joined->problems[i]);
	for (uint32_t i = 0; result == 0 && i < data->rank_function_sum_count; i++) {
		if (nccl_differing_calls_suggest_skipped_call(
			    &joined->argument_differences_by_sum[i])) {
			joined->ranks[data->rank_function_sums[i].member].left_out++;
			joined->left_out++;
		}
	}
	return result;
}

int nccl_join_collectives(struct nccl_data *data, struct nccl_joined_collectives *ret,
			  struct problem *problem)
{
	struct collective_join_context join = {.data = data, .joined_collectives = ret};
	int result;

	*ret = (struct nccl_joined_collectives){.process_count = data->process_count};
	result = join_operations_of_all_processes(&join, problem);
	if (result == -ENOMEM)
		nccl_set_out_of_memory_problem(problem);
	if (result < 0)
		nccl_joined_collectives_deinit(ret);
	return result;
}

void nccl_joined_collectives_deinit(struct nccl_joined_collectives *joined)
{
	for (size_t i = 0; i < joined->problem_count; i++)
		free(joined->problems[i].present);
	free(joined->problems);
	free(joined->collectives);
	free(joined->slots);
	free(joined->ranks);
	free(joined->argument_differences_by_sum);
	free(joined->links);
	nccl_paired_transfers_free(joined->pairs, joined->process_count);
	free(joined->passed_waits);
	free(joined->longest_passed_waits);
	id_map_deinit(&joined->passed_wait_index_by_key);
	id_map_deinit(&joined->member_by_rank_and_communicator);
	id_map_deinit(&joined->link_index_by_key);
	*joined = (struct nccl_joined_collectives){0};
}
