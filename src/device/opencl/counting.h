/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sets of events of OpenCL's devices (counting_sets.c): those that the layer itself can tell (block
 * OPENCL), and, on a device that is the CPU, the process' own, whose threads run the kernels.
 */
#ifndef KYMO_DEVICE_OPENCL_COUNTING_H
#define KYMO_DEVICE_OPENCL_COUNTING_H

#include "device/counting.h"
#include "device/host/process_set.h"

#define OPENCL_COUNTERS_PER_SET_MAX 256u /* requests */

enum opencl_counter_source {
	OPENCL_COUNTER_SOURCE_PROCESS,
	OPENCL_COUNTER_SOURCE_KERNEL_TIME,
	OPENCL_COUNTER_SOURCE_BUSY_TIME,
	OPENCL_COUNTER_SOURCE_KERNEL_COUNT
};

struct opencl_counter_set {
	unsigned device_number;
	uint32_t count;
	struct process_counter_set *process; /* NULL: none of its events */
	uint32_t process_event_count;
	uint8_t sources[OPENCL_COUNTERS_PER_SET_MAX]; /* enum opencl_counter_source; those of the
						   process in order */
};

enum counting_status opencl_for_each_countable_event(
	device_handle agent, bool (*each)(void *context, const struct counting_event_info *event),
	void *context);
enum counting_status opencl_find_countable_event(device_handle agent, const char *block,
						 const char *event,
						 struct counting_event_info *told);
enum counting_status opencl_counter_set_create(device_handle agent,
					       const struct counting_event_request *requests,
					       uint32_t count, void **made, uint32_t *ways,
					       struct counting_problem *problem);
void opencl_counter_set_free(void *set);

#endif
