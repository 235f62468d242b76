/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See kernels.h.
 */
#include "analysis/nccl/kernels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/gpu/gpu.h"
#include "analysis/id_map.h"

#define CLOCK_READING_SLACK_NS 500 /* between readings of two clocks */
#define LAUNCH_CALL_TIME_UNKNOWN                                                                   \
	0 /* launch_call_start_ns: not known, or of more kernels than one */

struct nccl_kernel_collecting_state {
	const struct gpu_records_of_process *process;
	struct nccl_kernels *kernels;
	size_t first_kernel_index;
	struct id_map kernel_index_by_correlation; /* correlation -> index in kernels */
};

/* ncclDevKernel_AllReduce_..., mangled or not, ncclSymDevKernel_..., ncclKernel_... */
static bool is_nccl_kernel_name(const char *name)
{
	return strstr(name, "nccl") != NULL && strstr(name, "Kernel") != NULL;
}

static int add_kernel_if_of_nccl(const struct gpu_record_head *head, void *context)
{
	const struct gpu_kernel *kernel = (const void *)head;
	struct nccl_kernel_collecting_state *reading = context;
	struct nccl_kernels *kernels = reading->kernels;

	if (head->kind != GPU_RECORD_KERNEL || kernel->correlation == 0 || kernel->duration == 0 ||
	    kernel->start > INT64_MAX || kernel->duration > INT64_MAX - kernel->start ||
	    !is_nccl_kernel_name(gpu_get_kernel_name_of_shape(reading->process, head->id)))
		return 0;
	/* Kernels of one launch of a graph: which is which is not known. */
	if (id_map_get(&reading->kernel_index_by_correlation, kernel->correlation) != ID_MAP_NONE)
		return id_map_set(&reading->kernel_index_by_correlation, kernel->correlation,
				  ID_MAP_NONE - 1);
	if (array_reserve_one_more((void **)&kernels->kernels, &kernels->capacity, kernels->count,
				   sizeof(*kernels->kernels)) < 0)
		return -ENOMEM;
	kernels->kernels[kernels->count] =
		(struct nccl_kernel){.start_ns = kernel->start, .duration_ns = kernel->duration};
	return id_map_set(&reading->kernel_index_by_correlation, kernel->correlation,
			  (uint32_t)kernels->count++);
}

static int set_launch_call_of_kernel(const struct gpu_record_head *head, void *context)
{
	const struct gpu_call *call = (const void *)head;
	struct nccl_kernel_collecting_state *reading = context;
	struct nccl_kernel *kernel;
	uint32_t index;

	if (head->kind != GPU_RECORD_CALL || call->correlation == 0)
		return 0;
	index = id_map_get(&reading->kernel_index_by_correlation, call->correlation);
	if (index >= reading->kernels->count)
		return 0;
	kernel = &reading->kernels->kernels[index];
	kernel->launch_call_start_ns = call->start;
	kernel->thread = call->tid;
	return 0;
}

static void drop_kernels_without_launch_call(struct nccl_kernels *kernels, size_t first)
{
	size_t kept = first;

	for (size_t i = first; i < kernels->count; i++) {
		if (kernels->kernels[i].launch_call_start_ns != LAUNCH_CALL_TIME_UNKNOWN)
			kernels->kernels[kept++] = kernels->kernels[i];
	}
	kernels->count = kept;
}

static int read_nccl_kernels(struct nccl_kernels *kernels,
			     const struct gpu_records_of_process *process)
{
	struct nccl_kernel_collecting_state reading = {process, kernels, kernels->count, {0}};
	int result = gpu_visit_records(process, add_kernel_if_of_nccl, &reading);

	if (result == 0)
		result = gpu_visit_records(process, set_launch_call_of_kernel, &reading);
	drop_kernels_without_launch_call(kernels, reading.first_kernel_index);
	id_map_deinit(&reading.kernel_index_by_correlation);
	return result;
}

static int compare_kernels_by_thread_and_call(const void *left, const void *right)
{
	const struct nccl_kernel *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->launch_call_start_ns < b->launch_call_start_ns
		       ? -1
		       : a->launch_call_start_ns > b->launch_call_start_ns;
}

int nccl_kernels_add_from_process(struct nccl_kernels *kernels,
				  const struct gpu_records_of_process *process)
{
	int result = read_nccl_kernels(kernels, process);

	if (kernels->count > 1)
		qsort(kernels->kernels, kernels->count, sizeof(*kernels->kernels),
		      compare_kernels_by_thread_and_call);
	return result;
}

struct nccl_kernel *nccl_kernels_find_by_launch(const struct nccl_kernels *kernels, uint32_t thread,
						uint64_t launched_ns, uint64_t started_ns)
{
	struct nccl_kernel wanted = {.thread = thread, .launch_call_start_ns = launched_ns};
	size_t low = 0, high = kernels->count, middle;
	struct nccl_kernel *found;

	wanted.launch_call_start_ns -=
		launched_ns > CLOCK_READING_SLACK_NS ? CLOCK_READING_SLACK_NS : launched_ns;
	while (low < high) {
		middle = low + (high - low) / 2;
		if (compare_kernels_by_thread_and_call(&kernels->kernels[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == kernels->count)
		return NULL;
	found = &kernels->kernels[low];
	return found->thread == thread && found->launch_call_start_ns <= started_ns ? found : NULL;
}

void nccl_kernels_deinit(struct nccl_kernels *kernels)
{
	free(kernels->kernels);
	*kernels = (struct nccl_kernels){0};
}
