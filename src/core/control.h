/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The one place that decides whether kymo collects now: time windows, INIT_ENABLED, the start and
 * stop calls of the program, `kymo ctl` and the control signal. Regions read `closed` with every
 * event and follow at once; samplers and metrics are armed and disarmed by the background thread.
 */
#ifndef KYMO_CORE_CONTROL_H
#define KYMO_CORE_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Why nothing is collected. The same values as enum regions_closed (regions/regions.h). */
enum control_closed {
	CONTROL_CLOSED_START = 1,  /* not started yet, or the runtime is off */
	CONTROL_CLOSED_WINDOW = 2, /* outside the collection windows */
	CONTROL_CLOSED_STOPPED = 4 /* by INIT_ENABLED=off or somebody's stop */
};

struct control {
	_Atomic uint32_t closed; /* control_closed bits; 0: collect */
};

#endif
