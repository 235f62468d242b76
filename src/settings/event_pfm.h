/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of hardware events as libpfm4 has them ("INST_RETIRED:ANY", "perf::PAGE-FAULTS"). The
 * library is loaded when it is there; without it nothing is known.
 */
#ifndef KYMO_SETTINGS_EVENT_PFM_H
#define KYMO_SETTINGS_EVENT_PFM_H

#include <stdbool.h>

#include "common/perf_events.h"

/* Is libpfm4 installed? */
bool event_pfm_is_available(void);
/* 0; -ENOENT: no such event, or no library; -EINVAL: the event is known but something behind it is
 * wrong, *ret_why says what. */
int event_pfm_find(const char *name, struct perf_event_code *ret, const char **ret_why);
/* All events of the PMUs that are present. `unit` is NULL for an event itself, else the name of one
 * of its unit masks. */
void event_pfm_for_each_event_and_unit(void (*each)(const char *pmu, const char *event,
						    const char *unit, const char *description,
						    void *context),
				       void *context);

#endif
