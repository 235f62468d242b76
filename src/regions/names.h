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

#define NAMES_PAGE 4096u

bool names_equal(const char *copy, const char *text, uint32_t length);
/* Looks the name up, and keeps it in that place of the cache. */
region_id names_find_uncached(struct region_cached_name *cached, const char *category,
			      const char *name);

/* Is the name still what it was? At the same address there may be another one now. */
__attribute__((no_sanitize("address"))) static inline bool
names_is_same(const struct region_cached_name *cached, const char *name)
{
	uint64_t head[2];

	if (__builtin_expect(((uintptr_t)name & (NAMES_PAGE - 1)) > NAMES_PAGE - 16, 0))
		return names_equal(cached->copy, name, cached->length);
	__builtin_memcpy(head, name, sizeof(head));
	return !(((head[0] ^ cached->head[0]) & cached->mask[0]) |
		 ((head[1] ^ cached->head[1]) & cached->mask[1])) &&
	       (cached->length <= 16 ||
		names_equal(cached->copy + 16, name + 16, cached->length - 16));
}

/* The id of a name passed by the program at every call: through the thread's cache. */
static inline region_id names_find_cached(struct region_thread *thread, const char *category,
					  const char *name)
{
	uintptr_t key = (uintptr_t)name;
	struct region_cached_name *cached =
		&thread->cache[(key ^ key >> 6 ^ key >> 12) % REGION_NAMES_CACHED];

	/* A place that is empty has no pointer. */
	if (__builtin_expect(name && cached->pointer == name && cached->category == category, 1) &&
	    names_is_same(cached, name))
		return cached->region;
	return names_find_uncached(cached, category, name);
}

/* A call of a region ended after so many ticks: counts towards its throttling; racy on purpose. */
void names_throttle(region_id region, uint64_t ticks);
bool names_is_throttled(region_id region);

/* Writes one record among the names. For other rare records as well. False: no room. */
bool names_write(enum spool_record kind, const uint8_t *payload, uint32_t size);

#endif
