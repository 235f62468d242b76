/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes the reader of records of devices: whatever it accepts can be walked, every id in it
 * looked up, and NCCL's kernels in it found by the calls that launched them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu_counts.h"
#include "analysis/nccl_kernels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int look_up(const struct gpu_record_head *head, void *context)
{
	const struct gpu_process *process = context;
	static volatile size_t result;
	size_t sum = 0;

	sum += strlen(gpu_string(process, head->id));
	sum += strlen(gpu_agent_name(process, head->id));
	sum += strlen(gpu_kernel_name(process, head->id));
	sum += strlen(gpu_direction_name(head->id));
	sum += gpu_metric_name(head->id) != NULL;
	result = result + sum;
	return 0;
}

static int add_up(const struct gpu_count *count, void *context)
{
	uint32_t positions[GPU_DIMENSIONS_MAX] = {0};
	static volatile double result;

	(void)context;
	for (size_t i = 0; i < count->value_count; i++)
		gpu_count_positions(count->counter, count->values[i].instance, positions);
	result = result + count->total + positions[0];
	return 0;
}

static void find_kernels(const struct gpu_process *process)
{
	struct nccl_kernels kernels = {0};

	if (nccl_kernels_add(&kernels, process) == 0) {
		for (size_t i = 0; i < kernels.count; i++) {
			const struct nccl_kernel *kernel = &kernels.kernels[i];

			if (nccl_kernels_find(&kernels, kernel->thread, kernel->called_ns,
					      UINT64_MAX) == NULL)
				abort();
		}
	}
	nccl_kernels_deinit(&kernels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpu_process process;
	uint8_t *copy = malloc(size + !size);

	if (copy == NULL)
		return 0;
	memcpy(copy, data, size);
	if (gpu_process_read(copy, size, &process) == 0) {
		gpu_each(&process, look_up, &process);
		gpu_each_count(&process, add_up, NULL);
		find_kernels(&process);
		gpu_process_deinit(&process);
	}
	return 0;
}
