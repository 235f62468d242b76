/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One event of process_set.h, found by its texts.
 */
#ifndef KYMO_DEVICE_HOST_PROCESS_EVENTS_H
#define KYMO_DEVICE_HOST_PROCESS_EVENTS_H

#include <sys/resource.h>
#include <time.h>

#include "common/perf_events.h"
#include "device/host/process_set.h"

enum process_counter_source {
	PROCESS_COUNTER_CPU_TIME,    /* clock_gettime() */
	PROCESS_COUNTER_PAGE_FAULTS, /* the rest of these: getrusage() */
	PROCESS_COUNTER_MINOR_FAULTS,
	PROCESS_COUNTER_MAJOR_FAULTS,
	PROCESS_COUNTER_CONTEXT_SWITCHES,
	PROCESS_COUNTER_PERF_OF_THREADS, /* perf events of its threads */
	PROCESS_COUNTER_PERF_OF_CPUS     /* perf events of CPUs */
};

struct process_counter_origin {
	enum process_counter_source source;
	struct perf_event_code perf_code;
};

enum counting_status
process_find_counter_origin_by_event_name(const struct system_counting_cpu_list *cpus,
					  const char *block, const char *event,
					  struct process_counter_origin *origin);
/* thread 0: the calling one, -1: every process; cpu -1: any; leader -1: none. The kernel's part
 * is left out where that is all that is permitted. A descriptor, or -errno. */
int process_perf_event_open(const struct perf_event_code *event, int thread, int cpu, int leader,
			    bool inherit);

/* ---- process_set.c, for spans ---- */

enum process_counter_source
process_counter_set_get_counter_source(const struct process_counter_set *set, size_t event,
				       const char **text);
/* What the kernel accounts anyway, by the clock and the usage of whom it is asked of. */
double process_get_clock_or_rusage_value(enum process_counter_source source, clockid_t clock,
					 const struct rusage *usage);
/* A descriptor for each perf event of the set, of the calling thread alone; -1 for the others. */
enum counting_status process_open_perf_fd_row_of_this_thread(const struct process_counter_set *set,
							     int *row,
							     struct counting_problem *problem);
void process_close_perf_fd_row(const int *row, size_t count);
/* Adds. false: it did not count all the time. */
bool process_read_and_add_perf_value(int descriptor, double *value);
void process_set_multiplexed_counter_problem(const char *text, struct counting_problem *problem);

#endif
