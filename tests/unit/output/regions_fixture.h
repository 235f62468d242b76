/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions for the session in session_fixture.h, and session_visit_region_events() answered from
 * them.
 */
#ifndef KYMO_TESTS_REGIONS_FIXTURE_H
#define KYMO_TESTS_REGIONS_FIXTURE_H

#include "analysis/regions/regions.h"

enum { FIXTURE_RECURSION = 600 };

/* The model without regions, which sessions have at first. */
struct model_regions *fixture_no_regions(void);
/* Gives the session its regions. `repeat`: not 0 for so many events of two threads instead, begins
 * and ends of 300 functions that call each other. */
void fixture_add_regions(struct session *session, uint64_t repeat);

#endif
