/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counting.h.
 */
#include "device/opencl/counting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "device/opencl/opencl.h"

#define OPENCL_COUNTING_BLOCK_NAME "OPENCL"

static const struct system_counting_cpu_list empty_cpu_list;

#define COUNTING_EVENT_INITIALIZER(its_name, its_event, text, its_ways)                            \
	{                                                                                          \
		.name = (its_name), .block = OPENCL_COUNTING_BLOCK_NAME, .event = (its_event),     \
		.description = (text), .extents_count = 1,                                         \
		.extents = {{COUNTING_DIMENSION_INSTANCE, 1}}, .ways = (its_ways)                  \
	}

static const struct {
	struct counting_event_info event;
	enum opencl_counter_source source;
} opencl_layer_counters[] = {
	{COUNTING_EVENT_INITIALIZER("kernel_time", "kernel-time",
				    "Time of the kernel on the device, ns", COUNTING_BY_DISPATCH),
	 OPENCL_COUNTER_SOURCE_KERNEL_TIME},
	{COUNTING_EVENT_INITIALIZER("busy_time", "busy-time",
				    "Time in which kernels ran on the device, ns",
				    COUNTING_BY_DEVICE),
	 OPENCL_COUNTER_SOURCE_BUSY_TIME},
	{COUNTING_EVENT_INITIALIZER("kernels", "kernels", "Kernels that have ended on the device",
				    COUNTING_BY_DEVICE),
	 OPENCL_COUNTER_SOURCE_KERNEL_COUNT},
};
#define OPENCL_LAYER_COUNTER_COUNT ARRAY_SIZE(opencl_layer_counters)

enum counting_status opencl_for_each_countable_event(
	device_handle agent, bool (*each)(void *context, const struct counting_event_info *event),
	void *context)
{
	unsigned number = opencl_device_find_number_of_agent(agent);

	if (number == 0)
		return COUNTING_NO_SUCH_EVENT;
	for (size_t i = 0; i < OPENCL_LAYER_COUNTER_COUNT; i++) {
		if (!each(context, &opencl_layer_counters[i].event))
			return COUNTING_OK;
	}
	return opencl_device_is_cpu(number)
		       ? process_for_each_countable_event(&empty_cpu_list, each, context)
		       : COUNTING_OK;
}

static enum counting_status find_countable_event_and_source(unsigned number, const char *block,
							    const char *event,
							    struct counting_event_info *told,
							    enum opencl_counter_source *source)
{
	*source = OPENCL_COUNTER_SOURCE_PROCESS;
	if (opencl_device_is_cpu(number) && process_is_event_block_name(block))
		return process_find_event(&empty_cpu_list, block, event, told);
	for (size_t i = 0; i < OPENCL_LAYER_COUNTER_COUNT; i++) {
		if (strcmp(block, OPENCL_COUNTING_BLOCK_NAME) != 0 ||
		    strcmp(event, opencl_layer_counters[i].event.event) != 0)
			continue;
		*told = opencl_layer_counters[i].event;
		*source = opencl_layer_counters[i].source;
		return COUNTING_OK;
	}
	return COUNTING_NO_SUCH_EVENT;
}

enum counting_status opencl_find_countable_event(device_handle agent, const char *block,
						 const char *event,
						 struct counting_event_info *told)
{
	unsigned number = opencl_device_find_number_of_agent(agent);
	enum opencl_counter_source source;

	return number == 0 ? COUNTING_NO_SUCH_EVENT
			   : find_countable_event_and_source(number, block, event, told, &source);
}

/* Sorts requests into the process' and ours. */
static enum counting_status separate_counter_requests_by_source(
	struct opencl_counter_set *set, const struct counting_event_request *requests,
	struct counting_event_request *of_process, uint32_t *ways, struct counting_problem *problem)
{
	*ways = COUNTING_BY_DISPATCH | COUNTING_BY_DEVICE;
	for (uint32_t i = 0; i < set->count; i++) {
		const struct counting_event_request *request = &requests[i];
		struct counting_event_info event = {0};
		enum opencl_counter_source source;
		enum counting_status status = find_countable_event_and_source(
			set->device_number, request->block, request->event, &event, &source);

		if (status != COUNTING_OK) {
			snprintf(problem->text, sizeof(problem->text),
				 "the device has no event %s in block %s", request->event,
				 request->block);
			return status;
		}
		if (request->rollup != COUNTING_ROLLUP_NONE ||
		    request->accumulation_resolution != COUNTING_ACCUMULATE_NONE) {
			snprintf(problem->text, sizeof(problem->text),
				 "%s: OpenCL has no rollups and accumulates nothing",
				 request->event);
			return COUNTING_NOT_SUPPORTED;
		}
		*ways &= event.ways;
		set->sources[i] = (uint8_t)source;
		if (source == OPENCL_COUNTER_SOURCE_PROCESS)
			of_process[set->process_event_count++] = *request;
	}
	if (*ways != 0)
		return COUNTING_OK;
	snprintf(problem->text, sizeof(problem->text),
		 "some of these are of single kernels and some of the whole device");
	return COUNTING_NOT_SUPPORTED;
}

static enum counting_status
fill_opencl_counter_set_from_requests(struct opencl_counter_set *set,
				      const struct counting_event_request *requests, uint32_t *ways,
				      struct counting_problem *problem)
{
	struct counting_event_request of_process[OPENCL_COUNTERS_PER_SET_MAX];
	enum counting_status status =
		separate_counter_requests_by_source(set, requests, of_process, ways, problem);

	if (status != COUNTING_OK || set->process_event_count == 0)
		return status;
	return process_counter_set_create(&empty_cpu_list, of_process, set->process_event_count,
					  &set->process, problem);
}

enum counting_status opencl_counter_set_create(device_handle agent,
					       const struct counting_event_request *requests,
					       uint32_t count, void **made, uint32_t *ways,
					       struct counting_problem *problem)
{
	unsigned number = opencl_device_find_number_of_agent(agent);
	struct opencl_counter_set *set;
	enum counting_status status;

	problem->text[0] = '\0';
	if (number == 0)
		return COUNTING_NO_SUCH_EVENT;
	if (count > OPENCL_COUNTERS_PER_SET_MAX) {
		snprintf(problem->text, sizeof(problem->text), "more than %u events at once",
			 OPENCL_COUNTERS_PER_SET_MAX);
		return COUNTING_DOES_NOT_FIT;
	}
	set = calloc(1, sizeof(*set));
	if (set == NULL)
		return COUNTING_NO_MEMORY;
	set->device_number = number;
	set->count = count;
	status = fill_opencl_counter_set_from_requests(set, requests, ways, problem);
	if (status != COUNTING_OK) {
		opencl_counter_set_free(set);
		return status;
	}
	*made = set;
	return COUNTING_OK;
}

void opencl_counter_set_free(void *given)
{
	struct opencl_counter_set *set = given;

	if (set->process != NULL)
		process_counter_set_free(set->process);
	free(set);
}
