/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The pass over all records: sums, what was in flight, bounds of the GPUs' clocks; and what ranks
 * on several hosts did together, for the hosts' clocks (align.h). One file after the other, so
 * thousands of them need no more memory than one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/calls.h"
#include "analysis/nccl/private.h"

#define COLLECTIVE_OBSERVATIONS_MAX (1u << 20)
#define FIRST_SEQUENCES_ALL_OBSERVED_COUNT                                                         \
	2048 /* collectives of a communicator that are looked at without exception */
#define OBSERVED_SEQUENCE_INTERVAL 256

/* One collective as the ranks of one host saw it. */
struct host_collective_observation {
	uint32_t communicator, function, host;
	uint64_t sequence;
	uint64_t last_enter_ns, first_leave_ns; /* own clock */
};

struct nccl_process_scan_state {
	struct nccl_data *data;
	uint32_t process;
	struct host_collective_observation *observations;
	size_t observation_count, observation_capacity;
	struct id_map observation_index_by_key;
};

/* ---- sums ---- */

static struct nccl_rank_function_sums *
find_or_add_rank_function_sum(struct nccl_data *data, uint32_t member, uint32_t function)
{
	struct nccl_private *private = nccl_get_private(data);
	uint64_t key = (uint64_t)member << 32 | function;
	uint32_t index = id_map_get(&private->rank_function_sum_index_by_key, key);

	if (index != ID_MAP_NONE)
		return &data->rank_function_sums[index];
	if (array_reserve_one_more(
		    (void **)&data->rank_function_sums, &private->rank_function_sum_capacity,
		    data->rank_function_sum_count, sizeof(*data->rank_function_sums)) < 0 ||
	    id_map_set(&private->rank_function_sum_index_by_key, key,
		       data->rank_function_sum_count) < 0)
		return NULL;
	memset(&data->rank_function_sums[data->rank_function_sum_count], 0,
	       sizeof(*data->rank_function_sums));
	data->rank_function_sums[data->rank_function_sum_count].member = member;
	data->rank_function_sums[data->rank_function_sum_count].function = function;
	return &data->rank_function_sums[data->rank_function_sum_count++];
}

static int add_operation_to_rank_function_sums(struct nccl_data *data,
					       const struct nccl_operation_view *view)
{
	struct nccl_rank_function_sums *sum =
		find_or_add_rank_function_sum(data, view->member, view->function);
	bool own = nccl_timing_source_is_of_one_operation(view->timing_source);
	struct nccl_timed_operation timed = {
		.size_bytes = view->is_size_known ? view->size_bytes : 0,
		.ns = own ? view->duration_ns : 0,
		.bus_factor = view->bus_factor,
		.is_size_known = view->is_size_known,
		.is_timed_by_network = view->timing_source == NCCL_TIMING_BY_NETWORK,
	};

	if (!sum)
		return -ENOMEM;
	if (!sum->seen || view->record->sequence < sum->first_sequence)
		sum->first_sequence = view->record->sequence;
	sum->seen = true;
	if (view->record->sequence > sum->last_sequence)
		sum->last_sequence = view->record->sequence;
	/* Where the oldest are gone, the plugin's sums stand for all that it was done with. */
	if (data->processes[view->process].overwritten_operation_count &&
	    (view->record->flags & NCCL_OPERATION_SEALED))
		return 0;
	nccl_tally_add_operation(&sum->tally, &timed);
	sum->tally.batched_operation_count += (view->flags & NCCL_OPERATION_BATCHED) != 0;
	sum->tally.aliased_operation_count += (view->flags & NCCL_OPERATION_ALIASED) != 0;
	sum->tally.enqueue_only_operation_count += view->timing_source == NCCL_TIMING_UNKNOWN &&
						   view->state != NCCL_OPERATION_INCOMPLETE;
	sum->tally.incomplete += view->state == NCCL_OPERATION_INCOMPLETE;
	sum->tally.in_flight_operation_count += view->is_waiting;
	return 0;
}

/* ---- what was in flight ---- */

/* Keeps the oldest few, in order. */
static int insert_waiting_operation_if_oldest(struct nccl_communicator_rank *member,
					      const struct nccl_operation_view *view)
{
	uint64_t count = nccl_get_kept_waiting_operation_count(member), at;

	member->waiting_operation_count++;
	if (!member->waiting)
		member->waiting = calloc(NCCL_WAITING_OPERATIONS_MAX, sizeof(*member->waiting));
	if (!member->waiting)
		return -ENOMEM;
	for (at = count; at > 0; at--) {
		if (member->waiting[at - 1].record.ordinal <= view->record->ordinal)
			break;
		if (at < NCCL_WAITING_OPERATIONS_MAX)
			member->waiting[at] = member->waiting[at - 1];
	}
	if (at < NCCL_WAITING_OPERATIONS_MAX)
		member->waiting[at] =
			(struct nccl_waiting_operation){*view->record, view->function};
	return 0;
}

static void update_last_operation_of_rank(struct nccl_communicator_rank *member,
					  const struct nccl_operation_view *view)
{
	if (member->has_last_operation && member->last_operation.ordinal > view->record->ordinal)
		return;
	member->last_operation = *view->record;
	member->last_operation_function = view->function;
	member->has_last_operation = true;
}

/* ---- clocks ---- */

static bool sequence_is_chosen_for_observation(uint64_t sequence)
{
	return sequence < FIRST_SEQUENCES_ALL_OBSERVED_COUNT ||
	       sequence % OBSERVED_SEQUENCE_INTERVAL == 0;
}

static int
merge_or_add_observation(struct nccl_process_scan_state *survey,
			 const struct host_collective_observation *host_collective_observation)
{
	uint64_t key = id_map_hash_key(((uint64_t)host_collective_observation->communicator << 32 |
					host_collective_observation->host) +
				       (uint64_t)host_collective_observation->function *
					       UINT64_C(0x9e3779b97f4a7c15)) ^
		       id_map_hash_key(host_collective_observation->sequence + 1);
	uint32_t index = id_map_get(&survey->observation_index_by_key, key);
	struct host_collective_observation *known;

	if (index != ID_MAP_NONE) {
		known = &survey->observations[index];
		if (known->communicator != host_collective_observation->communicator ||
		    known->sequence != host_collective_observation->sequence ||
		    known->function != host_collective_observation->function ||
		    known->host != host_collective_observation->host)
			return 0;
		if (host_collective_observation->last_enter_ns > known->last_enter_ns)
			known->last_enter_ns = host_collective_observation->last_enter_ns;
		if (host_collective_observation->first_leave_ns < known->first_leave_ns)
			known->first_leave_ns = host_collective_observation->first_leave_ns;
		return 0;
	}
	if (survey->observation_count == COLLECTIVE_OBSERVATIONS_MAX)
		return 0;
	if (array_reserve_one_more((void **)&survey->observations, &survey->observation_capacity,
				   survey->observation_count, sizeof(*survey->observations)) < 0 ||
	    id_map_set(&survey->observation_index_by_key, key,
		       (uint32_t)survey->observation_count) < 0)
		return -ENOMEM;
	survey->observations[survey->observation_count++] = *host_collective_observation;
	return 0;
}

/* The launch is before a rank enters; the last thing heard of an operation is after it left. */
static int add_observation_of_operation(struct nccl_process_scan_state *survey,
					const struct nccl_operation_view *view)
{
	struct nccl_data *data = survey->data;
	struct nccl_process *process = &data->processes[view->process];
	const struct nccl_operation *operation = view->record;
	struct host_collective_observation host_collective_observation = {
		.communicator = data->members[view->member].communicator,
		.function = view->function,
		.host = process->host,
		.sequence = operation->sequence};

	if (data->host_count < 2 || !operation->launch || view->is_waiting ||
	    view->timing_source == NCCL_TIMING_UNKNOWN ||
	    !sequence_is_chosen_for_observation(operation->sequence) ||
	    (view->flags & (NCCL_OPERATION_ALIASED | NCCL_OPERATION_REPLAYED)) ||
	    operation->kind == NCCL_KIND_P2P ||
	    !nccl_function_waits_for_all_ranks(data->functions[view->function].function))
		return 0;
	host_collective_observation.last_enter_ns =
		nccl_ticks_to_host_time(process, operation->launch);
	host_collective_observation.first_leave_ns =
		view->kernel ? view->kernel->start_ns + view->kernel->duration_ns
			     : nccl_ticks_to_host_time(process, operation->last);
	return merge_or_add_observation(survey, &host_collective_observation);
}

static int add_gpu_clock_bound_of_launch(struct nccl_data *data,
					 const struct nccl_operation_view *view)
{
	const struct nccl_operation *operation = view->record;
	struct nccl_communicator_rank *member = &data->members[view->member];

	if (!operation->launch || !operation->gpu_start || (view->flags & NCCL_OPERATION_ALIASED))
		return 0;
	return nccl_gpu_clock_add_bound(
		&member->gpu_clock, nccl_gpu_stamp_to_gpu_ns(data, member, operation->gpu_start),
		nccl_ticks_to_host_time(&data->processes[view->process], operation->launch), true);
}

/* Starts alone, and whoever they are of, they were before they were heard of: it is the stop that
 * is now and then taken from a later item of the GPU's ring. */
static int add_gpu_clock_bound_of_event(struct nccl_data *data, struct nccl_process *process,
					struct nccl_communicator_rank *member,
					const struct nccl_event *event)
{
	if (!event->gpu.start)
		return 0;
	return nccl_gpu_clock_add_bound(&member->gpu_clock,
					nccl_gpu_stamp_to_gpu_ns(data, member, event->gpu.start),
					nccl_ticks_to_host_time(process, event->start), false);
}

/* ---- the pass ---- */

static void update_last_sign_of_life(struct nccl_process *process, uint64_t ticks)
{
	if (ticks > process->last_ticks)
		process->last_ticks = ticks;
}

static int scan_operation_record(const void *record, void *context)
{
	struct nccl_process_scan_state *survey = context;
	struct nccl_data *data = survey->data;
	struct nccl_process *process = &data->processes[survey->process];
	const struct nccl_operation *operation = record;
	struct nccl_communicator_rank *member;
	struct nccl_operation_view view;
	int result;

	process->operations++;
	update_last_sign_of_life(process, operation->last);
	update_last_sign_of_life(process, operation->start);
	if (!nccl_make_operation_view(data, survey->process, operation, false, &view))
		return 0;
	member = &data->members[view.member];
	member->operations++;
	if (operation->start > member->last_ticks)
		member->last_ticks = operation->start;
	update_last_operation_of_rank(member, &view);
	if (operation->channels_started && operation->ordinal >= member->ran)
		member->ran = operation->ordinal + 1;
	result = add_operation_to_rank_function_sums(data, &view);
	if (result == 0)
		result = nccl_add_call_of_rank(data, &view);
	if (result == 0 && view.is_waiting)
		result = insert_waiting_operation_if_oldest(member, &view);
	if (result == 0)
		result = add_gpu_clock_bound_of_launch(data, &view);
	if (result == 0)
		result = add_observation_of_operation(survey, &view);
	return result;
}

static int scan_event_record(const void *record, void *context)
{
	struct nccl_process_scan_state *survey = context;
	struct nccl_data *data = survey->data;
	struct nccl_process *process = &data->processes[survey->process];
	const struct nccl_event *event = record;
	uint32_t member;

	process->events++;
	update_last_sign_of_life(process, event->start);
	update_last_sign_of_life(process, event->stop);
	if (event->kind != NCCL_KIND_KERNEL_CHANNEL)
		return 0;
	member = id_map_get(&process->members, event->communicator);
	return member == ID_MAP_NONE
		       ? 0
		       : add_gpu_clock_bound_of_event(data, process, &data->members[member], event);
}

static int scan_total_record(const void *record, void *context)
{
	struct nccl_process_scan_state *survey = context;
	struct nccl_data *data = survey->data;
	struct nccl_process *process = &data->processes[survey->process];
	const struct nccl_total *total = record;
	uint32_t member = id_map_get(&process->members, total->communicator);
	uint32_t function = nccl_find_or_add_function(data, survey->process, total->function);
	struct nccl_rank_function_sums *sum;

	if (member == ID_MAP_NONE || !process->overwritten_operation_count)
		return 0;
	if (function == NCCL_INDEX_NONE ||
	    !(sum = find_or_add_rank_function_sum(data, member, function)))
		return -ENOMEM;
	nccl_tally_add_total_record(&sum->tally, total, data->functions[function].function,
				    data->members[member].rank_count,
				    nccl_get_kernel_time_outside_stamps_ns(process));
	return 0;
}

static int count_operation_in_its_kernel(const void *record, void *context)
{
	struct nccl_process_scan_state *survey = context;
	struct nccl_kernel *kernel =
		nccl_find_kernel_of_operation(&survey->data->processes[survey->process], record);

	if (kernel)
		kernel->operations++;
	return 0;
}

static int scan_process(struct nccl_process_scan_state *survey, struct problem *problem)
{
	struct nccl_process *process = &survey->data->processes[survey->process];
	int result = nccl_file_reopen(&process->file, problem);

	if (result == 0 && nccl_mark_proven_gpu_times(survey->data, process) < 0)
		result = nccl_set_out_of_memory_problem(problem);
	if (result == 0 && process->kernels.count)
		result = nccl_file_visit_records_of_kind(&process->file, NCCL_CHUNK_OPERATIONS,
							 count_operation_in_its_kernel, survey);
	for (size_t i = 0; result == 0 && i < process->file.chunk_count; i++) {
		const struct nccl_chunk_location *chunk = &process->file.chunks[i];

		if (chunk->kind == NCCL_CHUNK_OPERATIONS)
			result = nccl_chunk_visit_records(&process->file, chunk,
							  scan_operation_record, survey);
		else if (chunk->kind == NCCL_CHUNK_EVENTS)
			result = nccl_chunk_visit_records(&process->file, chunk, scan_event_record,
							  survey);
		else if (chunk->kind == NCCL_CHUNK_TOTALS)
			result = nccl_chunk_visit_records(&process->file, chunk, scan_total_record,
							  survey);
		if (result < 0)
			problem_set(problem, result, "cannot read %s: %s", process->file.path,
				    strerror(-result));
	}
	process->lost_operation_count += process->file.torn_record_count;
	nccl_file_close_temporarily(&process->file);
	return result;
}

/* ---- clocks of the hosts ---- */

static int compare_observations_by_collective(const void *left, const void *right)
{
	const struct host_collective_observation *a = left, *b = right;

	if (a->communicator != b->communicator)
		return a->communicator < b->communicator ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return a->host < b->host ? -1 : a->host > b->host;
}

static bool observations_are_of_same_collective(const struct host_collective_observation *a,
						const struct host_collective_observation *b)
{
	return a->communicator == b->communicator && a->function == b->function &&
	       a->sequence == b->sequence;
}

/* Behind a call that ranks do not agree on, the same number is another call on some of them. */
static bool observation_is_in_doubt(const struct nccl_data *data,
				    const struct host_collective_observation *observation)
{
	return observation->sequence >= nccl_get_first_sequence_in_doubt(data,
									 observation->communicator,
									 observation->function);
}

static int add_observations_to_alignment(struct nccl_process_scan_state *survey)
{
	struct nccl_host_clock_alignment *align = &survey->data->clock_alignment;
	const struct host_collective_observation *first = survey->observations;
	int result = 0;

	if (survey->observation_count > 1)
		qsort(survey->observations, survey->observation_count,
		      sizeof(*survey->observations), compare_observations_by_collective);
	for (size_t i = 1; result == 0 && i < survey->observation_count; i++) {
		const struct host_collective_observation *host_collective_observation =
			&survey->observations[i];
		struct nccl_host_collective_observation one = {
			first->host, (int64_t)first->last_enter_ns, (int64_t)first->first_leave_ns};
		struct nccl_host_collective_observation other = {
			host_collective_observation->host,
			(int64_t)host_collective_observation->last_enter_ns,
			(int64_t)host_collective_observation->first_leave_ns};

		if (!observations_are_of_same_collective(first, host_collective_observation))
			first = host_collective_observation;
		else if (!observation_is_in_doubt(survey->data, first))
			result = nccl_align_add_observations(align, &one, &other);
	}
	return result;
}

static uint64_t host_time_to_realtime(const struct nccl_data *data,
				      const struct nccl_process *process, uint64_t own_ns)
{
	return own_ns + (uint64_t)data->hosts[process->host].realtime_minus_boottime_ns;
}

static int align_host_clocks(struct nccl_process_scan_state *survey)
{
	struct nccl_data *data = survey->data;
	int64_t *offsets = calloc((size_t)data->host_count + 1, sizeof(*offsets));
	uint64_t start = UINT64_MAX, end = 0;
	int result;

	if (!offsets)
		return -ENOMEM;
	for (uint32_t i = 0; i < data->host_count; i++)
		offsets[i] = data->hosts[i].realtime_minus_boottime_ns;
	for (uint32_t i = 0; i < data->process_count; i++) {
		struct nccl_process *process = &data->processes[i];
		uint64_t first = host_time_to_realtime(
			data, process, nccl_ticks_to_host_time(process, process->start_ticks));
		uint64_t last = host_time_to_realtime(
			data, process, nccl_ticks_to_host_time(process, process->last_ticks));

		start = first < start ? first : start;
		end = last > end ? last : end;
	}
	result = nccl_host_clock_alignment_init(&data->clock_alignment, data->host_count, offsets,
						start, end);
	free(offsets);
	if (result == 0)
		result = add_observations_to_alignment(survey);
	return result == 0 ? nccl_align_solve_offsets(&data->clock_alignment) : result;
}

/* ---- what follows from it ---- */

static void set_rank_worst_gpu_clock_error(struct nccl_communicator_rank *member)
{
	for (size_t i = 0; i < member->gpu_clock.window_count; i++) {
		const struct nccl_gpu_clock_window *window = &member->gpu_clock.windows[i];
		uint64_t gpu_ns = window->high_bounds_at_gpu_ns[0]
					  ? window->high_bounds_at_gpu_ns[0]
					  : window->low_bound_at_gpu_ns;
		struct nccl_gpu_time_on_host time;

		if (gpu_ns && nccl_gpu_clock_to_host_time(&member->gpu_clock, gpu_ns, &time) &&
		    time.error_ns > member->worst_gpu_clock_error_ns)
			member->worst_gpu_clock_error_ns = time.error_ns;
	}
}

/* Operations of a communicator run in order: what was only enqueued, and a later one ran, has run
 * unseen. The plugin marks these, unless the process ended first. */
static void drop_waiting_operations_that_ran_unseen(struct nccl_communicator_rank *member)
{
	uint64_t count = nccl_get_kept_waiting_operation_count(member), kept = 0;

	for (uint64_t i = 0; i < count; i++) {
		const struct nccl_operation *record = &member->waiting[i].record;

		if (record->stop && !record->channels_started && !record->networks_started &&
		    member->ran > record->ordinal + 1)
			member->waiting_operation_count--;
		else
			member->waiting[kept++] = member->waiting[i];
	}
	if (!kept)
		member->waiting_operation_count = 0;
}

static void finish_process_and_rank_times(struct nccl_data *data)
{
	struct nccl_private *private = nccl_get_private(data);

	data->start_ns = data->process_count ? UINT64_MAX : 0;
	for (uint32_t i = 0; i < data->process_count; i++) {
		struct nccl_process *process = &data->processes[i];
		uint64_t start = nccl_ticks_to_common_time(data, i, process->start_ticks);
		uint64_t end = nccl_ticks_to_common_time(data, i, process->last_ticks);

		process->known_until_ns =
			process->ended == NCCL_PROCESS_RUNNING
				? nccl_host_time_to_common_time(data, process->host,
								private->now_boottime_ns)
				: end;
		data->start_ns = start < data->start_ns ? start : data->start_ns;
		data->end_ns = end > data->end_ns ? end : data->end_ns;
	}
	if (data->end_ns < data->start_ns)
		data->end_ns = data->start_ns;
	for (uint32_t i = 0; i < data->member_count; i++) {
		nccl_gpu_clock_compute_drift(&data->members[i].gpu_clock);
		set_rank_worst_gpu_clock_error(&data->members[i]);
		drop_waiting_operations_that_ran_unseen(&data->members[i]);
	}
}

int nccl_scan_records_of_all_processes(struct nccl_data *data, struct problem *problem)
{
	struct nccl_process_scan_state survey = {.data = data};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->process_count; i++) {
		survey.process = i;
		result = scan_process(&survey, problem);
	}
	if (result == 0 && nccl_find_differing_calls(data) < 0)
		result = nccl_set_out_of_memory_problem(problem);
	if (result == 0 && align_host_clocks(&survey) < 0)
		result = nccl_set_out_of_memory_problem(problem);
	if (result == 0)
		finish_process_and_rank_times(data);
	free(survey.observations);
	id_map_deinit(&survey.observation_index_by_key);
	return result;
}
