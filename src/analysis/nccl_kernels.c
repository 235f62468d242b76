/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See nccl_kernels.h.
 */
#include "analysis/nccl_kernels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/gpu.h"
#include "analysis/id_map.h"

#define SLACK_NS   500 /* between readings of two clocks */
#define OF_NO_CALL 0   /* called_ns: not known, or of more kernels than one */

struct reading {
	const struct gpu_process *process;
	struct nccl_kernels *kernels;
	size_t first;
	struct id_map of_call; /* correlation -> index in kernels */
};

/* ncclDevKernel_AllReduce_..., mangled or not, ncclSymDevKernel_..., ncclKernel_... */
static bool is_of_nccl(const char *name)
{
	return strstr(name, "nccl") != NULL && strstr(name, "Kernel") != NULL;
}

static int take_kernel(const struct gpu_record_head *head, void *context)
{
	const struct gpu_kernel *kernel = (const void *)head;
	struct reading *reading = context;
	struct nccl_kernels *kernels = reading->kernels;

	if (head->kind != GPU_RECORD_KERNEL || kernel->correlation == 0 || kernel->duration == 0 ||
	    kernel->start > INT64_MAX || kernel->duration > INT64_MAX - kernel->start ||
	    !is_of_nccl(gpu_kernel_name(reading->process, head->id)))
		return 0;
	/* Kernels of one launch of a graph: which is which is not known. */
	if (id_map_get(&reading->of_call, kernel->correlation) != ID_MAP_NONE)
		return id_map_set(&reading->of_call, kernel->correlation, ID_MAP_NONE - 1);
	if (array_reserve((void **)&kernels->kernels, &kernels->capacity, kernels->count,
			  sizeof(*kernels->kernels)) < 0)
		return -ENOMEM;
	kernels->kernels[kernels->count] =
		(struct nccl_kernel){.start_ns = kernel->start, .duration_ns = kernel->duration};
	return id_map_set(&reading->of_call, kernel->correlation, (uint32_t)kernels->count++);
}

static int take_call(const struct gpu_record_head *head, void *context)
{
	const struct gpu_call *call = (const void *)head;
	struct reading *reading = context;
	struct nccl_kernel *kernel;
	uint32_t index;

	if (head->kind != GPU_RECORD_CALL || call->correlation == 0)
		return 0;
	index = id_map_get(&reading->of_call, call->correlation);
	if (index >= reading->kernels->count)
		return 0;
	kernel = &reading->kernels->kernels[index];
	kernel->called_ns = call->start;
	kernel->thread = call->tid;
	return 0;
}

static void keep_called(struct nccl_kernels *kernels, size_t first)
{
	size_t kept = first;

	for (size_t i = first; i < kernels->count; i++) {
		if (kernels->kernels[i].called_ns != OF_NO_CALL)
			kernels->kernels[kept++] = kernels->kernels[i];
	}
	kernels->count = kept;
}

static int take_all(struct nccl_kernels *kernels, const struct gpu_process *process)
{
	struct reading reading = {process, kernels, kernels->count, {0}};
	int result = gpu_each(process, take_kernel, &reading);

	if (result == 0)
		result = gpu_each(process, take_call, &reading);
	keep_called(kernels, reading.first);
	id_map_deinit(&reading.of_call);
	return result;
}

static int by_thread_and_call(const void *left, const void *right)
{
	const struct nccl_kernel *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->called_ns < b->called_ns ? -1 : a->called_ns > b->called_ns;
}

int nccl_kernels_add(struct nccl_kernels *kernels, const struct gpu_process *process)
{
	int result = take_all(kernels, process);

	if (kernels->count > 1)
		qsort(kernels->kernels, kernels->count, sizeof(*kernels->kernels),
		      by_thread_and_call);
	return result;
}

struct nccl_kernel *nccl_kernels_find(const struct nccl_kernels *kernels, uint32_t thread,
				      uint64_t launched_ns, uint64_t started_ns)
{
	struct nccl_kernel wanted = {.thread = thread, .called_ns = launched_ns};
	size_t low = 0, high = kernels->count, middle;
	struct nccl_kernel *found;

	wanted.called_ns -= launched_ns > SLACK_NS ? SLACK_NS : launched_ns;
	while (low < high) {
		middle = low + (high - low) / 2;
		if (by_thread_and_call(&kernels->kernels[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == kernels->count)
		return NULL;
	found = &kernels->kernels[low];
	return found->thread == thread && found->called_ns <= started_ns ? found : NULL;
}

void nccl_kernels_deinit(struct nccl_kernels *kernels)
{
	free(kernels->kernels);
	*kernels = (struct nccl_kernels){0};
}
