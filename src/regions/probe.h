/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Readings that need a file descriptor (/proc files, perf events), taken on behalf of program
 * threads by a thread of kymo's own: a descriptor opened by a program thread, however briefly, can
 * take the number that another thread of the program counts on.
 *
 * A reading costs some 10 microseconds. Perf events whose counter the processor lets programs read
 * (rdpmc) are read directly after their first time.
 */
#ifndef KYMO_REGIONS_PROBE_H
#define KYMO_REGIONS_PROBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/components.h"

enum probe_request_kind {
	PROBE_READ_MEMORY = 1,
	PROBE_READ_IO = 2,
	PROBE_READ_EVENTS = 4,
	PROBE_CLOSE_EVENTS = 8
};

/* One a thread; it waits until `done`. */
struct probe_reading_request {
	struct probe_reading_request *next;
	_Atomic uint32_t done;
	uint32_t what, tid;
	bool has_opened_events; /* its events have been opened */
	uint64_t memory_bytes[2], io_bytes[4], events[PERF_EVENT_COMPONENTS_PER_PROFILE_MAX];
	int event_fds[PERF_EVENT_COMPONENTS_PER_PROFILE_MAX]; /* in the probe's descriptor table;
								 -1: none */
	void *event_mmap_pages[PERF_EVENT_COMPONENTS_PER_PROFILE_MAX]; /* perf_event_mmap_page, for
									  rdpmc */
	uint64_t usage[8]; /* COMPONENT_USAGE_*: what waiting for answers cost the thread */
};

/* `events`: the setting COMPONENT_EVENTS. Starts the thread. 0 or negative errno. */
int probe_start_background_thread(const char *events);
/* In a forked child: the thread is gone. */
void probe_set_not_running(void);
/* Fills in what was asked for; false when there is no answer in time (values stay as they were). */
bool probe_request_and_wait(struct probe_reading_request *request, uint32_t what);
/* Events of the calling thread, scaled where they were multiplexed. */
bool probe_read_thread_event_counts(struct probe_reading_request *request);
/* The thread ends. */
void probe_request_close_events(struct probe_reading_request *request);

#endif
