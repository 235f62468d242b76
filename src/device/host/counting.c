/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting on the host: over time, or within ranges of threads (regions.c), for nothing is
 * enqueued here. The process' own events are the first package's, so that a sum over agents counts
 * them once; each package has its CPUs'.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/host/host.h"
#include "device/host/process_set.h"
#include "device/periodic_counters.h"

#define PACKAGES_MAX 64

static struct host_package {
	_Atomic device_handle agent;
	bool is_first_package;
	uint16_t cpus[MACHINE_CPUS_MAX];
	uint32_t cpu_count;
} * _Atomic host_packages[PACKAGES_MAX];

struct host_counting_set {
	device_handle agent;
	struct process_counter_set *process;
};

static uint32_t read_cpu_package(unsigned cpu)
{
	char path[96];
	FILE *stream;
	unsigned package = 0;
	bool found;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/physical_package_id",
		 cpu);
	stream = fopen(path, "re");
	found = stream != NULL && fscanf(stream, "%u", &package) == 1;
	if (stream != NULL)
		fclose(stream);
	return found ? package : UINT32_MAX;
}

void host_add_package(device_handle agent, uint32_t number, bool is_first)
{
	struct host_package *package, *none = NULL;
	unsigned place = 0;

	while (place < PACKAGES_MAX && atomic_load(&host_packages[place]) != NULL) {
		if (atomic_load(&host_packages[place])->agent == agent)
			return;
		place++;
	}
	package = place < PACKAGES_MAX ? calloc(1, sizeof(*package)) : NULL;
	if (package == NULL)
		return;
	package->agent = agent;
	package->is_first_package = is_first;
	for (unsigned cpu = 0; cpu < MACHINE_CPUS_MAX; cpu++) {
		uint32_t its = read_cpu_package(cpu);

		if (its == UINT32_MAX)
			break;
		if (its == number)
			package->cpus[package->cpu_count++] = (uint16_t)cpu;
	}
	if (!atomic_compare_exchange_strong(&host_packages[place], &none, package))
		free(package);
}

static const struct host_package *find_agent_package(device_handle agent)
{
	for (unsigned i = 0; i < PACKAGES_MAX; i++) {
		const struct host_package *package = atomic_load(&host_packages[i]);

		if (package == NULL)
			return NULL;
		if (package->agent == agent)
			return package;
	}
	return NULL;
}

device_handle host_get_first_agent(void)
{
	const struct host_package *package = atomic_load(&host_packages[0]);

	return package != NULL ? atomic_load(&package->agent) : DEVICE_HANDLE_NONE;
}

const struct process_counter_set *host_get_process_counter_set(const void *set)
{
	return ((const struct host_counting_set *)set)->process;
}

static struct system_counting_cpu_list get_cpu_list_of_package(const struct host_package *package)
{
	return (struct system_counting_cpu_list){package->cpus, package->cpu_count};
}

struct host_event_listing_context {
	bool (*each)(void *context, const struct counting_event_info *event);
	void *context;
	bool is_first_package;
};

static bool is_system_block(const char *block)
{
	return strcmp(block, "SYSTEM") == 0;
}

static uint32_t get_counting_ways_of_block(const char *block)
{
	return COUNTING_BY_DEVICE | (is_system_block(block) ? 0 : COUNTING_BY_DISPATCH);
}

static bool report_event_if_of_package(void *context, const struct counting_event_info *event)
{
	const struct host_event_listing_context *listing = context;
	struct counting_event_info told = *event;

	told.ways = get_counting_ways_of_block(event->block);
	return (!listing->is_first_package && !is_system_block(event->block)) ||
	       listing->each(listing->context, &told);
}

static enum counting_status
counting_list_events(device_handle agent,
		     bool (*each)(void *context, const struct counting_event_info *event),
		     void *context)
{
	const struct host_package *package = find_agent_package(agent);
	struct system_counting_cpu_list cpus;
	struct host_event_listing_context listing = {each, context, false};

	if (package == NULL)
		return COUNTING_NO_SUCH_EVENT;
	cpus = get_cpu_list_of_package(package);
	listing.is_first_package = package->is_first_package;
	return process_for_each_countable_event(&cpus, report_event_if_of_package, &listing);
}

static enum counting_status counting_find_event(device_handle agent, const char *block,
						const char *event, struct counting_event_info *told)
{
	const struct host_package *package = find_agent_package(agent);
	struct system_counting_cpu_list cpus;
	enum counting_status status;

	if (package == NULL || (!package->is_first_package && !is_system_block(block)))
		return COUNTING_NO_SUCH_EVENT;
	cpus = get_cpu_list_of_package(package);
	status = process_find_event(&cpus, block, event, told);
	if (status == COUNTING_OK)
		told->ways = get_counting_ways_of_block(told->block);
	return status;
}

static enum counting_status counting_make_set(device_handle agent,
					      const struct counting_event_request *requests,
					      uint32_t count, void **made, uint32_t *ways,
					      struct counting_problem *problem)
{
	const struct host_package *package = find_agent_package(agent);
	struct host_counting_set *set;
	struct system_counting_cpu_list cpus;
	enum counting_status status;

	problem->text[0] = '\0';
	if (package == NULL)
		return COUNTING_NO_SUCH_EVENT;
	for (uint32_t i = 0; i < count; i++) {
		if (package->is_first_package || is_system_block(requests[i].block))
			continue;
		snprintf(problem->text, sizeof(problem->text),
			 "%s counts the process, which only the first CPU agent does",
			 requests[i].event);
		return COUNTING_NO_SUCH_EVENT;
	}
	set = calloc(1, sizeof(*set));
	if (set == NULL)
		return COUNTING_NO_MEMORY;
	set->agent = agent;
	cpus = get_cpu_list_of_package(package);
	status = process_counter_set_create(&cpus, requests, count, &set->process, problem);
	if (status != COUNTING_OK) {
		free(set);
		return status;
	}
	*made = set;
	*ways = COUNTING_BY_DEVICE |
		(process_counter_set_is_thread_countable(set->process) ? COUNTING_BY_DISPATCH : 0);
	return COUNTING_OK;
}

static void counting_free_set(void *given)
{
	struct host_counting_set *set = given;

	process_counter_set_free(set->process);
	free(set);
}

static void host_ignore_kernel_counting_switch(device_handle agent, bool on)
{
	(void)agent;
	(void)on;
}

static enum counting_status counting_read_set(void *given, double *values,
					      struct counting_problem *problem)
{
	return process_counter_set_read(((struct host_counting_set *)given)->process, values,
					problem);
}

static enum counting_status counting_start_device(device_handle agent, void *given,
						  uint64_t interval_ns,
						  struct counting_problem *problem)
{
	struct host_counting_set *set = given;
	enum counting_status status = process_counter_set_open_once(set->process, problem);

	if (status != COUNTING_OK)
		return status;
	return periodic_counters_start_of_agent(agent, set,
						process_counter_set_get_value_count(set->process),
						counting_read_set, interval_ns, problem);
}

const struct device_counting_backend host_counting = {counting_list_events,
						      counting_find_event,
						      counting_make_set,
						      counting_free_set,
						      host_ignore_kernel_counting_switch,
						      counting_start_device,
						      periodic_counters_read_of_agent,
						      periodic_counters_stop_of_agent};
