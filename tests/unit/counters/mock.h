/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A device that counts what the test says: its agent, its events with any dimensions, and their
 * values. It sits where a backend does (device/counting.h), in front of all others.
 */
#ifndef KYMO_TESTS_COUNTERS_MOCK_H
#define KYMO_TESTS_COUNTERS_MOCK_H

#include "device/counting.h"

#define MOCK_EVENTS_MAX 32

struct mock_event {
	struct counting_event_info event;
	const double *values; /* one kernel's, or those of one read; NULL: 1, 2, 3, ... */
	double rollups[5];    /* by enum counting_rollup */
	bool is_listed;       /* else it is only found by its texts */
};

struct mock {
	struct mock_event events[MOCK_EVENTS_MAX];
	uint32_t count;
	/* What it answers. */
	enum counting_status make_status, start_status, events_status;
	uint32_t fits; /* events in one set at most; 0: any number */
	uint32_t ways;
	/* What it saw. */
	uint32_t sets, sets_freed, started, stopped, reads;
	bool dispatches;
	uint64_t interval_ns;
	double scale; /* values are multiplied by it at each read */
};

extern struct mock mock;
extern device_handle mock_agent;

/* The agent is told, and its counting is the one in front. name: its architecture. */
void mock_start(const char *name, bool is_gpu);
/* An event with extents: pairs of dimension and size, ended by 0. */
struct mock_event *mock_event(const char *block, const char *event, const double *values, ...);
/* One kernel from enqueue to end, counted if the tool wants it: as a backend would. Returns whether
 * it was. */
bool mock_kernel(device_handle symbol, uint64_t start, uint64_t end);
/* One that fails to be counted. */
void mock_kernel_not_counted(enum counting_status why, const char *text);
/* A periodic sample. */
void mock_sample(uint64_t start, uint64_t end);

#endif
