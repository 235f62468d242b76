/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What works on this machine, found out by trying it: sampling sources and perf events.
 */
#ifndef KYMO_SETTINGS_PROBE_H
#define KYMO_SETTINGS_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/perf_events.h"

struct probed_sampling_source {
	const char *name; /* "perf-sigtrap", "perf-signal", "timer" */
	const char *description;
	bool works;
	char detail[256]; /* why not and what to do, or what it can do */
};

enum { PROBE_SOURCE_COUNT = 3 };

/* In the order in which SAMPLING_SOURCE=auto prefers them. */
void probe_sampling_sources(struct probed_sampling_source ret[PROBE_SOURCE_COUNT]);
/* 0, or the errno of opening the event for this process. */
int probe_get_perf_event_open_error(const struct perf_event_code *event);
/* What such an errno means for an event. */
const char *probe_event_error_to_text(int error);
/* kernel.perf_event_paranoid, or -100 when it cannot be read. */
int probe_read_paranoid_level(void);

#endif
