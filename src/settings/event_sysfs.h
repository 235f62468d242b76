/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Events that the kernel describes in files: `pmu/event/` and `pmu/term=value,term/` from
 * /sys/bus/event_source/devices, tracepoints `subsystem:event` from tracefs.
 */
#ifndef KYMO_SETTINGS_EVENT_SYSFS_H
#define KYMO_SETTINGS_EVENT_SYSFS_H

#include "common/perf_events.h"

#define EVENT_SYSFS_ROOT "/sys/bus/event_source/devices"

/* `root` is EVENT_SYSFS_ROOT but in tests. 0; -ENOENT: no such PMU or event; -EINVAL: a term is
 * wrong, *ret_why names it (static storage). Terms may be separated by colons as well as commas. */
int event_sysfs_find(const char *root, const char *name, struct perf_event_code *ret,
		     const char **ret_why);
/* Named events of all PMUs, as `pmu/event/`. */
void event_sysfs_for_each_event(const char *root, void (*each)(const char *name, void *context),
				void *context);
/* -ENOENT: no such tracepoint; -EACCES: tracefs is not readable. */
int event_tracepoint_find(const char *name, struct perf_event_code *ret);

#endif
