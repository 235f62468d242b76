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

enum probe_what { PROBE_MEMORY = 1, PROBE_IO = 2, PROBE_EVENTS = 4, PROBE_CLOSE = 8 };

/* One a thread; it waits until `done`. */
struct probe_request {
	struct probe_request *next;
	_Atomic uint32_t done;
	uint32_t what, tid;
	bool opened; /* its events have been opened */
	uint64_t memory[2], io[4], events[COMPONENT_EVENTS_MAX];
	int descriptors[COMPONENT_EVENTS_MAX]; /* in the probe's descriptor table; -1: none */
	void *pages[COMPONENT_EVENTS_MAX];     /* perf_event_mmap_page, for rdpmc */
	uint64_t usage[8]; /* COMPONENT_USAGE_*: what waiting for answers cost the thread */
};

/* `events`: the setting COMPONENT_EVENTS. Starts the thread. 0 or negative errno. */
int probe_start(const char *events);
/* In a forked child: the thread is gone. */
void probe_forget(void);
/* Fills in what was asked for; false when there is no answer in time (values stay as they were). */
bool probe_read(struct probe_request *request, uint32_t what);
/* Events of the calling thread, scaled where they were multiplexed. */
bool probe_read_events(struct probe_request *request);
/* The thread ends. */
void probe_close(struct probe_request *request);

#endif
