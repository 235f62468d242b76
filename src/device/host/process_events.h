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

enum process_source {
	PROCESS_CPU_TIME, /* clock_gettime() */
	PROCESS_FAULTS,   /* the rest of these: getrusage() */
	PROCESS_MINOR_FAULTS,
	PROCESS_MAJOR_FAULTS,
	PROCESS_SWITCHES,
	PROCESS_PERF,       /* perf events of its threads */
	PROCESS_PERF_SYSTEM /* perf events of CPUs */
};

struct process_origin {
	enum process_source source;
	struct perf_event_name perf;
};

enum counting_status process_event_origin(const struct process_cpus *cpus, const char *block,
					  const char *event, struct process_origin *origin);
/* thread 0: the calling one, -1: every process; cpu -1: any; leader -1: none. The kernel's part
 * is left out where that is all that is permitted. A descriptor, or -errno. */
int process_perf_open(const struct perf_event_name *event, int thread, int cpu, int leader,
		      bool inherit);

/* ---- process_set.c, for spans ---- */

enum process_source process_set_source(const struct process_set *set, size_t event,
				       const char **text);
/* What the kernel accounts anyway, by the clock and the usage of whom it is asked of. */
double process_account(enum process_source source, clockid_t clock, const struct rusage *usage);
/* A descriptor for each perf event of the set, of the calling thread alone; -1 for the others. */
enum counting_status process_row_open(const struct process_set *set, int *row,
				      struct counting_problem *problem);
void process_row_close(const int *row, size_t count);
/* Adds. false: it did not count all the time. */
bool process_row_read(int descriptor, double *value);
void process_set_shared(const char *text, struct counting_problem *problem);

#endif
