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

#define PROCESS_CPUS_MAX COUNTING_SIZE_MAX_INSTANCE

/* The CPUs that SYSTEM is of; count 0: there is no such block. */
struct process_cpus {
	const uint16_t *numbers;
	uint32_t count;
};

struct process_set;

bool process_has_block(const char *block);
enum counting_status process_events(const struct process_cpus *cpus,
				    bool (*each)(void *context, const struct counting_event *event),
				    void *context);
enum counting_status process_event(const struct process_cpus *cpus, const char *block,
				   const char *event, struct counting_event *told);
enum counting_status process_set_make(const struct process_cpus *cpus,
				      const struct counting_request *requests, uint32_t count,
				      struct process_set **made, struct counting_problem *problem);
void process_set_free(struct process_set *set);
/* Can it be counted of one thread: has it no events of CPUs? */
bool process_set_is_of_threads(const struct process_set *set);
/* How many values it has. */
size_t process_set_values(const struct process_set *set);
/* Opens what must be open; once, later calls do nothing. */
enum counting_status process_set_start(struct process_set *set, struct counting_problem *problem);
enum counting_status process_set_read(struct process_set *set, double *values,
				      struct counting_problem *problem);

#endif
