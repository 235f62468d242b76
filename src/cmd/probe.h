/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What works on this machine, found out by trying it: sampling sources and perf events.
 */
#ifndef KYMO_CMD_PROBE_H
#define KYMO_CMD_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/perf_events.h"

struct probe_source {
	const char *name; /* "perf-sigtrap", "perf-signal", "timer" */
	const char *description;
	bool works;
	char detail[256]; /* why not and what to do, or what it can do */
};

enum { PROBE_SOURCES = 3 };

/* In the order in which SAMPLING_SOURCE=auto prefers them. */
void probe_sources(struct probe_source ret[PROBE_SOURCES]);
/* 0, or the errno of opening the event for this process. */
int probe_event(const struct perf_event_name *event);
/* What such an errno means for an event. */
const char *probe_event_why(int error);
/* kernel.perf_event_paranoid, or -100 when it cannot be read. */
int probe_paranoid(void);

#endif
