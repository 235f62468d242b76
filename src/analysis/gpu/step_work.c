/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See step_work.h.
 */
#include "analysis/gpu/step_work.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/gpu/gpu.h"
#include "analysis/id_map.h"
#include "common/array.h"

struct step_work_reader {
	const struct gpu_records_of_process *process;
	struct step_work_list *list;
	struct id_map call_by_correlation, range_by_correlation;
	uint64_t *correlations; /* of work, until its launch is looked up */
	size_t correlation_capacity;
	uint64_t *call_starts;
	size_t call_count, call_capacity;
};

/* As in device/kernel_filter.c: the kernels of NCCL and its like, also in a namespace. */
static bool is_name_of_communication(const char *name)
{
	static const char *const words[] = {"nccl", "rccl", "nvshmem"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		for (const char *at = strstr(name, words[i]); at; at = strstr(at + 1, words[i])) {
			if (at == name || !isalpha((unsigned char)at[-1]))
				return true;
		}
	}
	return false;
}

static int append_work(struct step_work_reader *reader, const struct step_work *work,
		       uint64_t correlation)
{
	struct step_work_list *list = reader->list;

	if (array_reserve_one_more((void **)&reader->correlations, &reader->correlation_capacity,
				   list->work_count, sizeof(*reader->correlations)) < 0 ||
	    array_reserve_one_more((void **)&list->work, &list->work_capacity, list->work_count,
				   sizeof(*list->work)) < 0)
		return -ENOMEM;
	reader->correlations[list->work_count] = correlation;
	list->work[list->work_count++] = *work;
	return 0;
}

static int read_kernel(struct step_work_reader *reader, const struct gpu_kernel *kernel)
{
	const struct gpu_records_of_process *process = reader->process;
	uint32_t id = kernel->head.id;
	const struct gpu_shape *shape =
		id <= process->shape_count ? process->kernel_shape_by_id[id] : NULL;
	struct step_work work = {.start = kernel->start,
				 .end = kernel->start + kernel->duration,
				 .launch_path = kernel->launch_path,
				 .class = STEP_WORK_COMPUTES};

	if (!kernel->start || !shape)
		return 0;
	work.agent = shape->agent;
	work.id = shape->kernel <= process->string_count ? shape->kernel : 0;
	if (is_name_of_communication(gpu_get_interned_string(process, work.id)))
		work.class = STEP_WORK_COMMUNICATES;
	return append_work(reader, &work, kernel->correlation);
}

static int read_copy(struct step_work_reader *reader, const struct gpu_copy *copy)
{
	struct step_work work = {.start = copy->start,
				 .end = copy->start + copy->duration,
				 .agent = gpu_get_device_of_copy(reader->process, copy),
				 .id = copy->head.id < GPU_DIRECTION_COUNT ? copy->head.id : 0,
				 .launch_path = copy->launch_path,
				 .class = STEP_WORK_COPIES};

	return copy->start ? append_work(reader, &work, copy->correlation) : 0;
}

static int read_call(struct step_work_reader *reader, const struct gpu_call *call)
{
	if (reader->call_count >= ID_MAP_NONE ||
	    array_reserve_one_more((void **)&reader->call_starts, &reader->call_capacity,
				   reader->call_count, sizeof(*reader->call_starts)) < 0 ||
	    id_map_set(&reader->call_by_correlation, call->correlation,
		       (uint32_t)reader->call_count) < 0)
		return -ENOMEM;
	reader->call_starts[reader->call_count++] = call->start;
	return 0;
}

static int read_marker(struct step_work_reader *reader, const struct gpu_marker *marker)
{
	struct step_work_list *list = reader->list;
	uint32_t index;

	if (marker->head.id == GPU_MARKER_END) {
		index = id_map_get(&reader->range_by_correlation, marker->correlation);
		if (index != ID_MAP_NONE && marker->time >= list->ranges[index].begin)
			list->ranges[index].end = marker->time;
		return 0;
	}
	if (marker->head.id != GPU_MARKER_BEGIN)
		return 0;
	if (list->range_count >= ID_MAP_NONE ||
	    array_reserve_one_more((void **)&list->ranges, &list->range_capacity, list->range_count,
				   sizeof(*list->ranges)) < 0 ||
	    id_map_set(&reader->range_by_correlation, marker->correlation,
		       (uint32_t)list->range_count) < 0)
		return -ENOMEM;
	list->ranges[list->range_count++] = (struct step_range){
		.begin = marker->time,
		.name = marker->message <= reader->process->string_count ? marker->message : 0};
	return 0;
}

static int read_record(const struct gpu_record_head *head, void *context)
{
	struct step_work_reader *reader = context;

	switch (head->kind) {
	case GPU_RECORD_KERNEL:
		return read_kernel(reader, (const struct gpu_kernel *)(const void *)head);
	case GPU_RECORD_COPY:
		return read_copy(reader, (const struct gpu_copy *)(const void *)head);
	case GPU_RECORD_CALL:
		return read_call(reader, (const struct gpu_call *)(const void *)head);
	case GPU_RECORD_MARKER:
		return read_marker(reader, (const struct gpu_marker *)(const void *)head);
	default:
		return 0;
	}
}

static void set_launch_times(struct step_work_reader *reader)
{
	for (size_t i = 0; i < reader->list->work_count; i++) {
		struct step_work *work = &reader->list->work[i];
		uint32_t call =
			reader->correlations[i] == 0
				? ID_MAP_NONE
				: id_map_get(&reader->call_by_correlation, reader->correlations[i]);

		work->is_launch_known = call != ID_MAP_NONE;
		work->launch = call != ID_MAP_NONE ? reader->call_starts[call] : work->start;
		if (work->launch > work->start)
			work->launch = work->start;
	}
}

/* Ranges that were open when the data ended are no steps. */
static void remove_open_ranges(struct step_work_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->range_count; i++) {
		if (list->ranges[i].end)
			list->ranges[kept++] = list->ranges[i];
	}
	list->range_count = kept;
}

static int compare_work(const void *left, const void *right)
{
	const struct step_work *a = left, *b = right;

	if (a->agent != b->agent)
		return a->agent < b->agent ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->launch < b->launch ? -1 : a->launch > b->launch;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct step_range *a = left, *b = right;

	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

int step_work_read(const struct gpu_records_of_process *process, struct step_work_list *ret)
{
	struct step_work_reader reader = {.process = process, .list = ret};
	int result;

	*ret = (struct step_work_list){0};
	result = gpu_visit_records(process, read_record, &reader);
	if (result == 0) {
		set_launch_times(&reader);
		remove_open_ranges(ret);
	}
	if (ret->work_count > 1)
		qsort(ret->work, ret->work_count, sizeof(*ret->work), compare_work);
	if (ret->range_count > 1)
		qsort(ret->ranges, ret->range_count, sizeof(*ret->ranges), compare_ranges);
	id_map_deinit(&reader.call_by_correlation);
	id_map_deinit(&reader.range_by_correlation);
	free(reader.correlations);
	free(reader.call_starts);
	return result;
}

void step_work_deinit(struct step_work_list *list)
{
	free(list->work);
	free(list->ranges);
	*list = (struct step_work_list){0};
}
