/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See idle.h. Work is put in order by device and time; then time is walked.
 */
#include "analysis/gpu/idle.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/arena.h"
#include "analysis/gpu/gpu.h"
#include "analysis/id_map.h"

struct device_work {
	uint64_t start, end, correlation;
	uint32_t agent, launch_path;
};

struct process_idle {
	const struct gpu_records_of_process *process;
	struct device_work *work;
	size_t work_count, work_capacity;
	uint64_t *call_starts;
	size_t call_count, call_capacity;
	struct id_map call_by_correlation, row_by_path;
	uint32_t number;
};

static uint32_t get_device_of_kernel(const struct gpu_records_of_process *process, uint32_t shape)
{
	return shape <= process->shape_count && process->kernel_shape_by_id[shape] != NULL
		       ? process->kernel_shape_by_id[shape]->agent
		       : 0;
}

static int note_call(struct process_idle *idle, const struct gpu_call *call)
{
	if (idle->call_count >= ID_MAP_NONE ||
	    array_reserve_one_more((void **)&idle->call_starts, &idle->call_capacity,
				   idle->call_count, sizeof(*idle->call_starts)) < 0 ||
	    id_map_set(&idle->call_by_correlation, call->correlation, (uint32_t)idle->call_count) <
		    0)
		return -ENOMEM;
	idle->call_starts[idle->call_count++] = call->start;
	return 0;
}

static int note_work_or_call(const struct gpu_record_head *head, void *context)
{
	struct process_idle *idle = context;
	const struct gpu_kernel *kernel = (const void *)head;
	const struct gpu_copy *copy = (const void *)head;
	struct device_work work;

	if (head->kind == GPU_RECORD_CALL)
		return note_call(idle, (const void *)head);
	if (head->kind == GPU_RECORD_KERNEL && kernel->start != 0)
		work = (struct device_work){
			kernel->start, kernel->start + kernel->duration, kernel->correlation,
			get_device_of_kernel(idle->process, head->id), kernel->launch_path};
	else if (head->kind == GPU_RECORD_COPY && copy->start != 0)
		work = (struct device_work){
			copy->start, copy->start + copy->duration, copy->correlation,
			gpu_get_device_of_copy(idle->process, copy), copy->launch_path};
	else
		return 0;
	if (array_reserve_one_more((void **)&idle->work, &idle->work_capacity, idle->work_count,
				   sizeof(*idle->work)) < 0)
		return -ENOMEM;
	idle->work[idle->work_count++] = work;
	return 0;
}

static int compare_work(const void *left, const void *right)
{
	const struct device_work *a = left, *b = right;

	if (a->agent != b->agent)
		return a->agent < b->agent ? -1 : 1;
	return a->start < b->start ? -1 : a->start > b->start;
}

static struct gpu_idle_row *find_or_add_row(struct gpu_idle *idle, struct process_idle *process,
					    uint32_t launch_path)
{
	uint32_t index = id_map_get(&process->row_by_path, launch_path);

	if (index != ID_MAP_NONE)
		return &idle->rows[index];
	index = (uint32_t)idle->count;
	if (array_reserve_one_more((void **)&idle->rows, &idle->capacity, idle->count,
				   sizeof(*idle->rows)) < 0 ||
	    id_map_set(&process->row_by_path, launch_path, index) < 0)
		return NULL;
	idle->rows[index] =
		(struct gpu_idle_row){.process = process->number, .launch_path = launch_path};
	idle->count++;
	return &idle->rows[index];
}

/* The device had nothing from `begin` on, until this work began. */
static int add_gap(struct gpu_idle *idle, struct process_idle *process, uint64_t begin,
		   const struct device_work *next)
{
	struct gpu_idle_row *row = find_or_add_row(idle, process, next->launch_path);
	uint32_t call = next->correlation == 0
				? ID_MAP_NONE
				: id_map_get(&process->call_by_correlation, next->correlation);
	uint64_t ns = next->start - begin, launch, before = 0;

	if (row == NULL)
		return -ENOMEM;
	if (call == ID_MAP_NONE) {
		idle->unknown_launch_ns += ns;
	} else {
		launch = process->call_starts[call];
		before = launch <= begin ? 0 : launch >= next->start ? ns : launch - begin;
	}
	row->gaps++;
	row->ns += ns;
	row->before_launch_ns += before;
	if (ns > row->longest_ns)
		row->longest_ns = ns;
	idle->idle_ns += ns;
	idle->before_launch_ns += before;
	return 0;
}

static int walk_work(struct gpu_idle *idle, struct process_idle *process)
{
	uint64_t end = 0, first = 0;
	int result = 0;

	for (size_t i = 0; result == 0 && i < process->work_count; i++) {
		const struct device_work *work = &process->work[i];

		if (i == 0 || work->agent != work[-1].agent) {
			first = end = work->start;
		} else if (work->start > end) {
			result = add_gap(idle, process, end, work);
			end = work->start;
		}
		if (work->end > end) {
			idle->busy_ns += work->end - end;
			end = work->end;
		}
		if (i + 1 == process->work_count || work[1].agent != work->agent)
			idle->span_ns += end - first;
	}
	return result;
}

int gpu_idle_add_process(struct gpu_idle *idle, uint32_t number,
			 const struct gpu_records_of_process *process)
{
	struct process_idle state = {.process = process, .number = number};
	int result = gpu_visit_records(process, note_work_or_call, &state);

	if (state.work_count > 1)
		qsort(state.work, state.work_count, sizeof(*state.work), compare_work);
	if (result == 0)
		result = walk_work(idle, &state);
	free(state.work);
	free(state.call_starts);
	id_map_deinit(&state.call_by_correlation);
	id_map_deinit(&state.row_by_path);
	return result;
}

void gpu_idle_deinit(struct gpu_idle *idle)
{
	free(idle->rows);
}
