/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The pass over all records: sums, what was in flight, bounds of the GPUs' clocks; and what ranks
 * on several hosts did together, for the hosts' clocks (nccl_align.h). One file after the other, so
 * thousands of them need no more memory than one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl_private.h"

#define SIGHTS_MAX      (1u << 20)
#define SIGHTS_ALL_UPTO 2048 /* collectives of a team that are looked at without exception */
#define SIGHTS_EVERY    256

/* One collective as the ranks of one host saw it. */
struct sight {
	uint32_t team, function, host;
	uint64_t sequence;
	uint64_t entered_ns, left_ns; /* own clock */
};

struct survey {
	struct nccl_data *data;
	uint32_t process;
	struct sight *sights;
	size_t sight_count, sight_capacity;
	struct id_map known;
};

/* ---- sums ---- */

static struct nccl_sum *sum_of(struct nccl_data *data, uint32_t member, uint32_t function)
{
	struct nccl_private *private = nccl_private(data);
	uint64_t key = (uint64_t)member << 32 | function;
	uint32_t index = id_map_get(&private->sums, key);

	if (index != ID_MAP_NONE)
		return &data->sums[index];
	if (array_reserve((void **)&data->sums, &private->sum_capacity, data->sum_count,
			  sizeof(*data->sums)) < 0 ||
	    id_map_set(&private->sums, key, data->sum_count) < 0)
		return NULL;
	memset(&data->sums[data->sum_count], 0, sizeof(*data->sums));
	data->sums[data->sum_count].member = member;
	data->sums[data->sum_count].function = function;
	return &data->sums[data->sum_count++];
}

static int add_to_sum(struct nccl_data *data, const struct nccl_view *view)
{
	struct nccl_sum *sum = sum_of(data, view->member, view->function);
	bool own = nccl_timing_is_own(view->timing);
	struct nccl_timed timed = {
		.size_bytes = view->size_known ? view->size_bytes : 0,
		.ns = own ? view->duration_ns : 0,
		.bus_factor = view->bus_factor,
		.size_known = view->size_known,
		.by_network = view->timing == NCCL_TIMING_NETWORK,
	};

	if (!sum)
		return -ENOMEM;
	if (!sum->seen || view->record->sequence < sum->first_sequence)
		sum->first_sequence = view->record->sequence;
	sum->seen = true;
	if (view->record->sequence > sum->last_sequence)
		sum->last_sequence = view->record->sequence;
	/* Where the oldest are gone, the plugin's sums stand for all that it was done with. */
	if (data->processes[view->process].overwritten &&
	    (view->record->flags & NCCL_OPERATION_SEALED))
		return 0;
	nccl_tally_add(&sum->tally, &timed);
	sum->tally.batched += (view->flags & NCCL_OPERATION_BATCHED) != 0;
	sum->tally.aliased += (view->flags & NCCL_OPERATION_ALIASED) != 0;
	sum->tally.enqueue_only +=
		view->timing == NCCL_TIMING_NONE && view->state != NCCL_OPERATION_INCOMPLETE;
	sum->tally.incomplete += view->state == NCCL_OPERATION_INCOMPLETE;
	sum->tally.in_flight += view->is_waiting;
	return 0;
}

/* ---- what was in flight ---- */

/* Keeps the oldest few, in order. */
static int keep_waiting(struct nccl_member *member, const struct nccl_view *view)
{
	uint64_t count = member->waiting_count++, at;

	if (!member->waiting)
		member->waiting = calloc(NCCL_WAITING_KEPT, sizeof(*member->waiting));
	if (!member->waiting)
		return -ENOMEM;
	if (count > NCCL_WAITING_KEPT)
		count = NCCL_WAITING_KEPT;
	for (at = count; at > 0; at--) {
		if (member->waiting[at - 1].record.ordinal <= view->record->ordinal)
			break;
		if (at < NCCL_WAITING_KEPT)
			member->waiting[at] = member->waiting[at - 1];
	}
	if (at < NCCL_WAITING_KEPT)
		member->waiting[at] = (struct nccl_waiting){*view->record, view->function};
	return 0;
}

static void keep_last(struct nccl_member *member, const struct nccl_view *view)
{
	if (member->has_last && member->last.ordinal > view->record->ordinal)
		return;
	member->last = *view->record;
	member->last_function = view->function;
	member->has_last = true;
}

/* ---- clocks ---- */

static bool is_looked_at(uint64_t sequence)
{
	return sequence < SIGHTS_ALL_UPTO || sequence % SIGHTS_EVERY == 0;
}

static int keep_sight(struct survey *survey, const struct sight *sight)
{
	uint64_t key = id_map_mix(((uint64_t)sight->team << 32 | sight->host) +
				  (uint64_t)sight->function * UINT64_C(0x9e3779b97f4a7c15)) ^
		       id_map_mix(sight->sequence + 1);
	uint32_t index = id_map_get(&survey->known, key);
	struct sight *known;

	if (index != ID_MAP_NONE) {
		known = &survey->sights[index];
		if (known->team != sight->team || known->sequence != sight->sequence ||
		    known->function != sight->function || known->host != sight->host)
			return 0;
		if (sight->entered_ns > known->entered_ns)
			known->entered_ns = sight->entered_ns;
		if (sight->left_ns < known->left_ns)
			known->left_ns = sight->left_ns;
		return 0;
	}
	if (survey->sight_count == SIGHTS_MAX)
		return 0;
	if (array_reserve((void **)&survey->sights, &survey->sight_capacity, survey->sight_count,
			  sizeof(*survey->sights)) < 0 ||
	    id_map_set(&survey->known, key, (uint32_t)survey->sight_count) < 0)
		return -ENOMEM;
	survey->sights[survey->sight_count++] = *sight;
	return 0;
}

/* The launch is before a rank enters; the last thing heard of an operation is after it left. */
static int look_at(struct survey *survey, const struct nccl_view *view)
{
	struct nccl_data *data = survey->data;
	struct nccl_process *process = &data->processes[view->process];
	const struct nccl_operation *operation = view->record;
	struct sight sight = {.team = data->members[view->member].team,
			      .function = view->function,
			      .host = process->host,
			      .sequence = operation->sequence};

	if (data->host_count < 2 || !operation->launch || view->is_waiting ||
	    view->timing == NCCL_TIMING_NONE || !is_looked_at(operation->sequence) ||
	    (view->flags & (NCCL_OPERATION_ALIASED | NCCL_OPERATION_REPLAYED)) ||
	    operation->kind == NCCL_KIND_P2P ||
	    !nccl_function_joins_all(data->functions[view->function].function))
		return 0;
	sight.entered_ns = nccl_own_time(process, operation->launch);
	sight.left_ns = view->kernel ? view->kernel->start_ns + view->kernel->duration_ns
				     : nccl_own_time(process, operation->last);
	return keep_sight(survey, &sight);
}

static int bound_gpu_by_launch(struct nccl_data *data, const struct nccl_view *view)
{
	const struct nccl_operation *operation = view->record;
	struct nccl_member *member = &data->members[view->member];

	if (!operation->launch || !operation->gpu_start || (view->flags & NCCL_OPERATION_ALIASED))
		return 0;
	return nccl_gpu_clock_add(&member->gpu, nccl_gpu_ns(data, member, operation->gpu_start),
				  nccl_own_time(&data->processes[view->process], operation->launch),
				  true);
}

/* Starts alone, and whoever they are of, they were before they were heard of: it is the stop that
 * is now and then taken from a later item of the GPU's ring. */
static int bound_gpu_by_event(struct nccl_data *data, struct nccl_process *process,
			      struct nccl_member *member, const struct nccl_event *event)
{
	if (!event->gpu.start)
		return 0;
	return nccl_gpu_clock_add(&member->gpu, nccl_gpu_ns(data, member, event->gpu.start),
				  nccl_own_time(process, event->start), false);
}

/* ---- the pass ---- */

static void sign_of_life(struct nccl_process *process, uint64_t ticks)
{
	if (ticks > process->last_ticks)
		process->last_ticks = ticks;
}

static int survey_operation(const void *record, void *context)
{
	struct survey *survey = context;
	struct nccl_data *data = survey->data;
	struct nccl_process *process = &data->processes[survey->process];
	const struct nccl_operation *operation = record;
	struct nccl_member *member;
	struct nccl_view view;
	int result;

	process->operations++;
	sign_of_life(process, operation->last);
	sign_of_life(process, operation->start);
	if (!nccl_view_make(data, survey->process, operation, false, &view))
		return 0;
	member = &data->members[view.member];
	member->operations++;
	if (operation->start > member->last_ticks)
		member->last_ticks = operation->start;
	keep_last(member, &view);
	if (operation->channels_started && operation->ordinal >= member->ran)
		member->ran = operation->ordinal + 1;
	result = add_to_sum(data, &view);
	if (result == 0 && view.is_waiting)
		result = keep_waiting(member, &view);
	if (result == 0)
		result = bound_gpu_by_launch(data, &view);
	if (result == 0)
		result = look_at(survey, &view);
	return result;
}

static int survey_event(const void *record, void *context)
{
	struct survey *survey = context;
	struct nccl_data *data = survey->data;
	struct nccl_process *process = &data->processes[survey->process];
	const struct nccl_event *event = record;
	uint32_t member;

	process->events++;
	sign_of_life(process, event->start);
	sign_of_life(process, event->stop);
	if (event->kind != NCCL_KIND_KERNEL_CHANNEL)
		return 0;
	member = id_map_get(&process->members, event->communicator);
	return member == ID_MAP_NONE
		       ? 0
		       : bound_gpu_by_event(data, process, &data->members[member], event);
}

static int survey_total(const void *record, void *context)
{
	struct survey *survey = context;
	struct nccl_data *data = survey->data;
	struct nccl_process *process = &data->processes[survey->process];
	const struct nccl_total *total = record;
	uint32_t member = id_map_get(&process->members, total->communicator);
	uint32_t function = nccl_function_of(data, survey->process, total->function);
	struct nccl_sum *sum;

	if (member == ID_MAP_NONE || !process->overwritten)
		return 0;
	if (function == NCCL_NONE || !(sum = sum_of(data, member, function)))
		return -ENOMEM;
	nccl_total_add(&sum->tally, total, data->functions[function].function,
		       data->members[member].ranks, nccl_kernel_around_ns(process));
	return 0;
}

static int count_in_kernel(const void *record, void *context)
{
	struct survey *survey = context;
	struct nccl_kernel *kernel =
		nccl_kernel_of(&survey->data->processes[survey->process], record);

	if (kernel)
		kernel->operations++;
	return 0;
}

static int survey_process(struct survey *survey, struct problem *problem)
{
	struct nccl_process *process = &survey->data->processes[survey->process];
	int result = nccl_file_resume(&process->file, problem);

	if (result == 0 && nccl_prove(survey->data, process) < 0)
		result = nccl_out_of_memory(problem);
	if (result == 0 && process->kernels.count)
		result = nccl_file_each(&process->file, NCCL_CHUNK_OPERATIONS, count_in_kernel,
					survey);
	for (size_t i = 0; result == 0 && i < process->file.chunk_count; i++) {
		const struct nccl_chunk *chunk = &process->file.chunks[i];

		if (chunk->kind == NCCL_CHUNK_OPERATIONS)
			result = nccl_chunk_each(&process->file, chunk, survey_operation, survey);
		else if (chunk->kind == NCCL_CHUNK_EVENTS)
			result = nccl_chunk_each(&process->file, chunk, survey_event, survey);
		else if (chunk->kind == NCCL_CHUNK_TOTALS)
			result = nccl_chunk_each(&process->file, chunk, survey_total, survey);
		if (result < 0)
			problem_set(problem, result, "cannot read %s: %s", process->file.path,
				    strerror(-result));
	}
	process->lost_operations += process->file.torn_records;
	nccl_file_pause(&process->file);
	return result;
}

/* ---- clocks of the hosts ---- */

static int by_collective(const void *left, const void *right)
{
	const struct sight *a = left, *b = right;

	if (a->team != b->team)
		return a->team < b->team ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return a->host < b->host ? -1 : a->host > b->host;
}

static bool is_same_collective(const struct sight *a, const struct sight *b)
{
	return a->team == b->team && a->function == b->function && a->sequence == b->sequence;
}

static int align_sights(struct survey *survey)
{
	struct nccl_align *align = &survey->data->align;
	const struct sight *first = survey->sights;
	int result = 0;

	if (survey->sight_count > 1)
		qsort(survey->sights, survey->sight_count, sizeof(*survey->sights), by_collective);
	for (size_t i = 1; result == 0 && i < survey->sight_count; i++) {
		const struct sight *sight = &survey->sights[i];
		struct nccl_align_sight one = {first->host, (int64_t)first->entered_ns,
					       (int64_t)first->left_ns};
		struct nccl_align_sight other = {sight->host, (int64_t)sight->entered_ns,
						 (int64_t)sight->left_ns};

		if (is_same_collective(first, sight))
			result = nccl_align_add(align, &one, &other);
		else
			first = sight;
	}
	return result;
}

static uint64_t realtime_of(const struct nccl_data *data, const struct nccl_process *process,
			    uint64_t own_ns)
{
	return own_ns + (uint64_t)data->hosts[process->host].realtime_minus_boottime_ns;
}

static int align_hosts(struct survey *survey)
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
		uint64_t first =
			realtime_of(data, process, nccl_own_time(process, process->start_ticks));
		uint64_t last =
			realtime_of(data, process, nccl_own_time(process, process->last_ticks));

		start = first < start ? first : start;
		end = last > end ? last : end;
	}
	result = nccl_align_init(&data->align, data->host_count, offsets, start, end);
	free(offsets);
	if (result == 0)
		result = align_sights(survey);
	return result == 0 ? nccl_align_solve(&data->align) : result;
}

/* ---- what follows from it ---- */

static void find_worst_error(struct nccl_member *member)
{
	for (size_t i = 0; i < member->gpu.window_count; i++) {
		const struct nccl_gpu_window *window = &member->gpu.windows[i];
		uint64_t gpu_ns =
			window->high_gpu_ns[0] ? window->high_gpu_ns[0] : window->low_gpu_ns;
		struct nccl_host_time time;

		if (gpu_ns && nccl_gpu_clock_find(&member->gpu, gpu_ns, &time) &&
		    time.error_ns > member->worst_gpu_error_ns)
			member->worst_gpu_error_ns = time.error_ns;
	}
}

/* Operations of a communicator run in order: what was only enqueued, and a later one ran, has run
 * unseen. The plugin marks these, unless the process ended first. */
static void drop_unseen(struct nccl_member *member)
{
	uint64_t count = member->waiting_count, kept = 0;

	if (count > NCCL_WAITING_KEPT)
		count = NCCL_WAITING_KEPT;
	for (uint64_t i = 0; i < count; i++) {
		const struct nccl_operation *record = &member->waiting[i].record;

		if (record->stop && !record->channels_started && !record->networks_started &&
		    member->ran > record->ordinal + 1)
			member->waiting_count--;
		else
			member->waiting[kept++] = member->waiting[i];
	}
	if (!kept)
		member->waiting_count = 0;
}

static void finish(struct nccl_data *data)
{
	struct nccl_private *private = nccl_private(data);

	data->start_ns = data->process_count ? UINT64_MAX : 0;
	for (uint32_t i = 0; i < data->process_count; i++) {
		struct nccl_process *process = &data->processes[i];
		uint64_t start = nccl_time(data, i, process->start_ticks);
		uint64_t end = nccl_time(data, i, process->last_ticks);

		process->until_ns =
			process->ended == NCCL_ENDED_RUNNING
				? nccl_common_time(data, process->host, private->now_boottime_ns)
				: end;
		data->start_ns = start < data->start_ns ? start : data->start_ns;
		data->end_ns = end > data->end_ns ? end : data->end_ns;
	}
	if (data->end_ns < data->start_ns)
		data->end_ns = data->start_ns;
	for (uint32_t i = 0; i < data->member_count; i++) {
		nccl_gpu_clock_solve(&data->members[i].gpu);
		find_worst_error(&data->members[i]);
		drop_unseen(&data->members[i]);
	}
}

int nccl_survey(struct nccl_data *data, struct problem *problem)
{
	struct survey survey = {.data = data};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->process_count; i++) {
		survey.process = i;
		result = survey_process(&survey, problem);
	}
	if (result == 0 && align_hosts(&survey) < 0)
		result = nccl_out_of_memory(problem);
	if (result == 0)
		finish(data);
	free(survey.sights);
	id_map_deinit(&survey.known);
	return result;
}
