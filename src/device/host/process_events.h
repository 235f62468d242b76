/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One event of process_set.h, found by its texts.
 */
#ifndef KYMO_DEVICE_HOST_PROCESS_EVENTS_H
#define KYMO_DEVICE_HOST_PROCESS_EVENTS_H

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

#endif
