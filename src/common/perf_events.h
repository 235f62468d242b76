/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * perf events by name: the kernel's generic names as perf(1) lists them, the peer's PERF_COUNT_*
 * names, cache events (L1-dcache-load-misses), raw events (rNNN) and events that sysfs describes
 * (pmu/event/). No allocation.
 */
#ifndef KYMO_COMMON_PERF_EVENTS_H
#define KYMO_COMMON_PERF_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct perf_event_name {
	uint32_t type;
	uint64_t config;
	bool is_clock; /* counts ns: a frequency makes sense */
};

/* 0 or -ENOENT. `name` need not be terminated. */
int perf_event_find(const char *name, uint64_t length, struct perf_event_name *ret);
/* For listings: names of the table, NULL after the last. */
const char *perf_event_listed(unsigned index, const char **ret_description);

#endif
