/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of regions: interned for the life of the process, defined in the spool before their first
 * use.
 *
 * Look-ups take no lock. A new name takes one that a signal handler of the holder does not get: the
 * name is not recorded then (counted), and can be later. Definitions stand in chunks of their own
 * that are never reused, so that a ring of events keeps its names.
 */
#ifndef KYMO_REGIONS_NAMES_H
#define KYMO_REGIONS_NAMES_H

#include "regions/state.h"

/* Reads the category and selection settings. 0 or negative errno. */
int names_init(const struct options_regions *options);
/* Categories that are off, a bit each. */
uint32_t names_categories_off(void);
/* Writes the definitions of everything known: a forked child's file has none yet. */
void names_define_all(void);
/* What is written between is written by the background thread, which does not wait for itself. */
void names_set_background(bool on_background);
/* In a forked child, before anything else. */
void names_forget_chunk(void);

/* The id of a name passed by the program at every call: through the thread's cache. */
region_id names_find_cached(struct region_thread *thread, const char *category, const char *name);

/* A call of a region ended after so many ticks: counts towards its throttling; racy on purpose. */
void names_throttle(region_id region, uint64_t ticks);
bool names_is_throttled(region_id region);

/* Writes one record among the names. For other rare records as well. False: no room. */
bool names_write(enum spool_record kind, const uint8_t *payload, uint32_t size);

#endif
