/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * All that runs on the machine: events of each CPU, and what /proc says of the processes that are
 * there before.
 */
#ifndef KYMO_OUTSIDE_MACHINE_H
#define KYMO_OUTSIDE_MACHINE_H

#include "outside/events.h"
#include "outside/process.h"

/* Opens the events first, so that nothing begins unseen between. world->scope is set. 0 or negative
 * errno. */
int outside_machine_open(struct outside_world *world, struct outside_events *events,
			 uint64_t now_ns);

#endif
