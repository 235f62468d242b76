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

struct perf_event_code {
	uint32_t type;
	uint64_t config, config1, config2;
	bool is_clock; /* counts ns: a frequency makes sense */
};

/* By a generic name of the kernel, a cache event's, or rNNN; in any case, with or without "perf::".
 * 0 or -ENOENT. `name` need not be terminated. */
int perf_event_find_by_name(const char *name, uint64_t length, struct perf_event_code *ret);
/* type:config[:config1[:config2]] in hexadecimal: how the command hands on events that only it can
 * find. 0 or -EINVAL. */
int perf_event_parse_code(const char *text, uint64_t length, struct perf_event_code *ret);
/* For listings: names of the table, NULL after the last. */
const char *perf_event_get_name_by_index(unsigned index, const char **ret_description);

#endif
