/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the kernel counts of this process and of the machine's CPUs. Three blocks:
 *
 *   SW      of the process, by software: task-clock, page-faults, context-switches, ... What the
 *           kernel accounts for every process anyway is taken from there (clock_gettime,
 *           getrusage), needs no permission and knows every thread; the rest are perf events.
 *   CORE    of the process, by the CPUs' counters: perf events, one a thread, inherited by those
 *           that it makes.
 *   SYSTEM  the same events of whole CPUs, whoever runs there: one value a CPU.
 *
 * Counters run freely once a set is started; what happened between two readings is their
 * difference, so that any number of threads uses a set at once.
 */
#ifndef KYMO_DEVICE_HOST_PROCESS_SET_H
#define KYMO_DEVICE_HOST_PROCESS_SET_H

#include "device/counting.h"

#define MACHINE_CPUS_MAX COUNTING_INSTANCE_EXTENT_MAX

/* The CPUs that SYSTEM is of; count 0: there is no such block. */
struct system_counting_cpu_list {
	const uint16_t *numbers;
	uint32_t count;
};

struct process_counter_set;

bool process_is_event_block_name(const char *block);
enum counting_status process_for_each_countable_event(
	const struct system_counting_cpu_list *cpus,
	bool (*each)(void *context, const struct counting_event_info *event), void *context);
enum counting_status process_find_event(const struct system_counting_cpu_list *cpus,
					const char *block, const char *event,
					struct counting_event_info *told);
enum counting_status process_counter_set_create(const struct system_counting_cpu_list *cpus,
						const struct counting_event_request *requests,
						uint32_t count, struct process_counter_set **made,
						struct counting_problem *problem);
void process_counter_set_free(struct process_counter_set *set);
/* Can it be counted of one thread: has it no events of CPUs? */
bool process_counter_set_is_thread_countable(const struct process_counter_set *set);
/* How many values it has. */
size_t process_counter_set_get_value_count(const struct process_counter_set *set);
/* Opens what must be open; once, later calls do nothing. */
enum counting_status process_counter_set_open_once(struct process_counter_set *set,
						   struct counting_problem *problem);
enum counting_status process_counter_set_read(struct process_counter_set *set, double *values,
					      struct counting_problem *problem);

#endif
