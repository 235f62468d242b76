/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes the reader of records of devices: whatever it accepts can be walked, and every id in it
 * looked up.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu_counts.h"

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
		gpu_process_deinit(&process);
	}
	return 0;
}
