/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counting.h.
 */
#include "device/opencl/counting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/opencl/opencl.h"

#define BLOCK "OPENCL"

static const struct process_cpus no_cpus;

#define EVENT(its_name, its_event, text, its_ways)                                                 \
	{                                                                                          \
		.name = (its_name), .block = BLOCK, .event = (its_event), .description = (text),   \
		.extents_count = 1, .extents = {{COUNTING_DIMENSION_INSTANCE, 1}},                 \
		.ways = (its_ways)                                                                 \
	}

static const struct {
	struct counting_event event;
	enum opencl_source source;
} own[] = {
	{EVENT("kernel_time", "kernel-time", "Time of the kernel on the device, ns",
	       COUNTING_BY_DISPATCH),
	 OPENCL_KERNEL_TIME},
	{EVENT("busy_time", "busy-time", "Time in which kernels ran on the device, ns",
	       COUNTING_BY_DEVICE),
	 OPENCL_BUSY_TIME},
	{EVENT("kernels", "kernels", "Kernels that have ended on the device", COUNTING_BY_DEVICE),
	 OPENCL_KERNELS},
};
#define OWN (sizeof(own) / sizeof(own[0]))

enum counting_status opencl_events(device_handle agent,
				   bool (*each)(void *context, const struct counting_event *event),
				   void *context)
{
	unsigned number = opencl_device_of_agent(agent);

	if (number == 0)
		return COUNTING_NO_SUCH_EVENT;
	for (size_t i = 0; i < OWN; i++) {
		if (!each(context, &own[i].event))
			return COUNTING_OK;
	}
	return opencl_device_is_cpu(number) ? process_events(&no_cpus, each, context) : COUNTING_OK;
}

static enum counting_status find(unsigned number, const char *block, const char *event,
				 struct counting_event *told, enum opencl_source *source)
{
	*source = OPENCL_PROCESS;
	if (opencl_device_is_cpu(number) && process_has_block(block))
		return process_event(&no_cpus, block, event, told);
	for (size_t i = 0; i < OWN; i++) {
		if (strcmp(block, BLOCK) != 0 || strcmp(event, own[i].event.event) != 0)
			continue;
		*told = own[i].event;
		*source = own[i].source;
		return COUNTING_OK;
	}
	return COUNTING_NO_SUCH_EVENT;
}

enum counting_status opencl_event(device_handle agent, const char *block, const char *event,
				  struct counting_event *told)
{
	unsigned number = opencl_device_of_agent(agent);
	enum opencl_source source;

	return number == 0 ? COUNTING_NO_SUCH_EVENT : find(number, block, event, told, &source);
}

/* Sorts requests into the process' and ours. */
static enum counting_status sort(struct opencl_set *set, const struct counting_request *requests,
				 struct counting_request *of_process, uint32_t *ways,
				 struct counting_problem *problem)
{
	*ways = COUNTING_BY_DISPATCH | COUNTING_BY_DEVICE;
	for (uint32_t i = 0; i < set->count; i++) {
		const struct counting_request *request = &requests[i];
		struct counting_event event = {0};
		enum opencl_source source;
		enum counting_status status =
			find(set->device_number, request->block, request->event, &event, &source);

		if (status != COUNTING_OK) {
			snprintf(problem->text, sizeof(problem->text),
				 "the device has no event %s in block %s", request->event,
				 request->block);
			return status;
		}
		if (request->rollup != COUNTING_ROLLUP_NONE ||
		    request->accumulate != COUNTING_ACCUMULATE_NONE) {
			snprintf(problem->text, sizeof(problem->text),
				 "%s: OpenCL has no rollups and accumulates nothing",
				 request->event);
			return COUNTING_NOT_SUPPORTED;
		}
		*ways &= event.ways;
		set->sources[i] = (uint8_t)source;
		if (source == OPENCL_PROCESS)
			of_process[set->process_count++] = *request;
	}
	if (*ways != 0)
		return COUNTING_OK;
	snprintf(problem->text, sizeof(problem->text),
		 "some of these are of single kernels and some of the whole device");
	return COUNTING_NOT_SUPPORTED;
}

static enum counting_status fill(struct opencl_set *set, const struct counting_request *requests,
				 uint32_t *ways, struct counting_problem *problem)
{
	struct counting_request of_process[OPENCL_SET_MAX];
	enum counting_status status = sort(set, requests, of_process, ways, problem);

	if (status != COUNTING_OK || set->process_count == 0)
		return status;
	return process_set_make(&no_cpus, of_process, set->process_count, &set->process, problem);
}

enum counting_status opencl_set_make(device_handle agent, const struct counting_request *requests,
				     uint32_t count, void **made, uint32_t *ways,
				     struct counting_problem *problem)
{
	unsigned number = opencl_device_of_agent(agent);
	struct opencl_set *set;
	enum counting_status status;

	problem->text[0] = '\0';
	if (number == 0)
		return COUNTING_NO_SUCH_EVENT;
	if (count > OPENCL_SET_MAX) {
		snprintf(problem->text, sizeof(problem->text), "more than %u events at once",
			 OPENCL_SET_MAX);
		return COUNTING_DOES_NOT_FIT;
	}
	set = calloc(1, sizeof(*set));
	if (set == NULL)
		return COUNTING_NO_MEMORY;
	set->device_number = number;
	set->count = count;
	status = fill(set, requests, ways, problem);
	if (status != COUNTING_OK) {
		opencl_set_free(set);
		return status;
	}
	*made = set;
	return COUNTING_OK;
}

void opencl_set_free(void *given)
{
	struct opencl_set *set = given;

	if (set->process != NULL)
		process_set_free(set->process);
	free(set);
}
