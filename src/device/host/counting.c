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
#include "device/over_time.h"

#define PACKAGES_MAX 64

static struct package {
	_Atomic device_handle agent;
	bool is_first;
	uint16_t cpus[PROCESS_CPUS_MAX];
	uint32_t cpu_count;
} * _Atomic packages[PACKAGES_MAX];

struct host_set {
	device_handle agent;
	struct process_set *process;
};

static uint32_t package_of(unsigned cpu)
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

void host_package_is(device_handle agent, uint32_t number, bool is_first)
{
	struct package *package, *none = NULL;
	unsigned place = 0;

	while (place < PACKAGES_MAX && atomic_load(&packages[place]) != NULL) {
		if (atomic_load(&packages[place])->agent == agent)
			return;
		place++;
	}
	package = place < PACKAGES_MAX ? calloc(1, sizeof(*package)) : NULL;
	if (package == NULL)
		return;
	package->agent = agent;
	package->is_first = is_first;
	for (unsigned cpu = 0; cpu < PROCESS_CPUS_MAX; cpu++) {
		uint32_t its = package_of(cpu);

		if (its == UINT32_MAX)
			break;
		if (its == number)
			package->cpus[package->cpu_count++] = (uint16_t)cpu;
	}
	if (!atomic_compare_exchange_strong(&packages[place], &none, package))
		free(package);
}

static const struct package *find(device_handle agent)
{
	for (unsigned i = 0; i < PACKAGES_MAX; i++) {
		const struct package *package = atomic_load(&packages[i]);

		if (package == NULL)
			return NULL;
		if (package->agent == agent)
			return package;
	}
	return NULL;
}

device_handle host_first_agent(void)
{
	const struct package *package = atomic_load(&packages[0]);

	return package != NULL ? atomic_load(&package->agent) : DEVICE_NONE;
}

const struct process_set *host_set_process(const void *set)
{
	return ((const struct host_set *)set)->process;
}

static struct process_cpus cpus_of(const struct package *package)
{
	return (struct process_cpus){package->cpus, package->cpu_count};
}

struct listing {
	bool (*each)(void *context, const struct counting_event *event);
	void *context;
	bool is_first;
};

static bool is_system(const char *block)
{
	return strcmp(block, "SYSTEM") == 0;
}

static uint32_t ways_of(const char *block)
{
	return COUNTING_BY_DEVICE | (is_system(block) ? 0 : COUNTING_BY_DISPATCH);
}

static bool list_one(void *context, const struct counting_event *event)
{
	const struct listing *listing = context;
	struct counting_event told = *event;

	told.ways = ways_of(event->block);
	return (!listing->is_first && !is_system(event->block)) ||
	       listing->each(listing->context, &told);
}

static enum counting_status
host_events(device_handle agent, bool (*each)(void *context, const struct counting_event *event),
	    void *context)
{
	const struct package *package = find(agent);
	struct process_cpus cpus;
	struct listing listing = {each, context, false};

	if (package == NULL)
		return COUNTING_NO_SUCH_EVENT;
	cpus = cpus_of(package);
	listing.is_first = package->is_first;
	return process_events(&cpus, list_one, &listing);
}

static enum counting_status host_event(device_handle agent, const char *block, const char *event,
				       struct counting_event *told)
{
	const struct package *package = find(agent);
	struct process_cpus cpus;
	enum counting_status status;

	if (package == NULL || (!package->is_first && !is_system(block)))
		return COUNTING_NO_SUCH_EVENT;
	cpus = cpus_of(package);
	status = process_event(&cpus, block, event, told);
	if (status == COUNTING_OK)
		told->ways = ways_of(told->block);
	return status;
}

static enum counting_status set_make(device_handle agent, const struct counting_request *requests,
				     uint32_t count, void **made, uint32_t *ways,
				     struct counting_problem *problem)
{
	const struct package *package = find(agent);
	struct host_set *set;
	struct process_cpus cpus;
	enum counting_status status;

	problem->text[0] = '\0';
	if (package == NULL)
		return COUNTING_NO_SUCH_EVENT;
	for (uint32_t i = 0; i < count; i++) {
		if (package->is_first || is_system(requests[i].block))
			continue;
		snprintf(problem->text, sizeof(problem->text),
			 "%s is of the process, which is counted on the first CPU agent",
			 requests[i].event);
		return COUNTING_NO_SUCH_EVENT;
	}
	set = calloc(1, sizeof(*set));
	if (set == NULL)
		return COUNTING_NO_MEMORY;
	set->agent = agent;
	cpus = cpus_of(package);
	status = process_set_make(&cpus, requests, count, &set->process, problem);
	if (status != COUNTING_OK) {
		free(set);
		return status;
	}
	*made = set;
	*ways = COUNTING_BY_DEVICE |
		(process_set_is_of_threads(set->process) ? COUNTING_BY_DISPATCH : 0);
	return COUNTING_OK;
}

static void set_free(void *given)
{
	struct host_set *set = given;

	process_set_free(set->process);
	free(set);
}

static void dispatches(device_handle agent, bool on)
{
	(void)agent;
	(void)on;
}

static enum counting_status read_set(void *given, double *values, struct counting_problem *problem)
{
	return process_set_read(((struct host_set *)given)->process, values, problem);
}

static enum counting_status device_start_counting(device_handle agent, void *given,
						  uint64_t interval_ns,
						  struct counting_problem *problem)
{
	struct host_set *set = given;
	enum counting_status status = process_set_start(set->process, problem);

	if (status != COUNTING_OK)
		return status;
	return over_time_start(agent, set, process_set_values(set->process), read_set, interval_ns,
			       problem);
}

const struct device_counting host_counting = {host_events,    host_event,    set_make,
					      set_free,       dispatches,    device_start_counting,
					      over_time_read, over_time_stop};
