/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes the reader of records of devices: whatever it accepts can be walked, every id in it
 * looked up, and NCCL's kernels in it found by the calls that launched them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/counts.h"
#include "analysis/nccl/kernels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int look_up(const struct gpu_record_head *head, void *context)
{
	const struct gpu_records_of_process *process = context;
	static volatile size_t result;
	size_t sum = 0;

	sum += strlen(gpu_get_interned_string(process, head->id));
	sum += strlen(gpu_get_agent_name(process, head->id));
	sum += strlen(gpu_get_kernel_name_of_shape(process, head->id));
	sum += strlen(gpu_get_copy_direction_name(head->id));
	sum += gpu_get_metric_name(head->id) != NULL;
	result = result + sum;
	return 0;
}

static int add_up(const struct gpu_counter_measurement *count, void *context)
{
	uint32_t positions[GPU_DIMENSIONS_MAX] = {0};
	static volatile double result;

	(void)context;
	for (size_t i = 0; i < count->value_count; i++)
		gpu_counter_instance_to_dimension_positions(count->counter,
							    count->values[i].instance, positions);
	result = result + count->total + positions[0];
	return 0;
}

static void find_kernels(const struct gpu_records_of_process *process)
{
	struct nccl_kernels kernels = {0};

	if (nccl_kernels_add_from_process(&kernels, process) == 0) {
		for (size_t i = 0; i < kernels.count; i++) {
			const struct nccl_kernel *kernel = &kernels.kernels[i];

			if (nccl_kernels_find_by_launch(&kernels, kernel->thread,
							kernel->launch_call_start_ns,
							UINT64_MAX) == NULL)
				abort();
		}
	}
	nccl_kernels_deinit(&kernels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpu_records_of_process process;
	uint8_t *copy = malloc(size + !size);

	if (copy == NULL)
		return 0;
	memcpy(copy, data, size);
	if (gpu_process_parse_bytes(copy, size, &process) == 0) {
		gpu_visit_records(&process, look_up, &process);
		gpu_visit_counter_measurements(&process, add_up, NULL);
		find_kernels(&process);
		gpu_process_deinit(&process);
	}
	return 0;
}
