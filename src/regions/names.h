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
int names_init(const struct region_options *options);
/* Categories that are off, a bit each. */
uint32_t names_get_disabled_category_bits(void);
/* Writes the definitions of everything known: a forked child's file has none yet. */
void names_write_all_definitions(void);
/* What is written between is written by the background thread, which does not wait for itself. */
void names_set_background_is_writing(bool on_background);
/* In a forked child, before anything else. */
void names_forget_chunk_and_free_lock(void);

#define NAMES_PAGE_SIZE 4096u
#define NAMES_MAX       (1u << 20) /* ids are below this */

bool name_copy_equals_text(const char *copy, const char *text, uint32_t length);
/* Looks the name up, and keeps it in that place of the cache. */
region_id names_find_or_add_and_cache(struct region_cached_name *cached, const char *category,
				      const char *name);

/* For signal handlers that interrupt this room: 0, and nothing is counted, where the name is new
 * and cannot be added because the interrupted event is adding another one. */
region_id names_find_or_add_if_unlocked(const char *category, const char *name);
bool names_are_locked_by_this_thread(void);

/* Is the name still what it was? At the same address there may be another one now. */
__attribute__((no_sanitize("address"))) static inline bool
names_cached_is_unchanged(const struct region_cached_name *cached, const char *name)
{
	uint64_t head[2];

	if (__builtin_expect(((uintptr_t)name & (NAMES_PAGE_SIZE - 1)) > NAMES_PAGE_SIZE - 16, 0))
		return name_copy_equals_text(cached->copy, name, cached->length);
	__builtin_memcpy(head, name, sizeof(head));
	return !(((head[0] ^ cached->head[0]) & cached->mask[0]) |
		 ((head[1] ^ cached->head[1]) & cached->mask[1])) &&
	       (cached->length <= 16 ||
		name_copy_equals_text(cached->copy + 16, name + 16, cached->length - 16));
}

/* The id of a name passed by the program at every call: through the thread's cache. */
static inline region_id names_find_or_add_through_cache(struct region_thread_state *thread,
							const char *category, const char *name)
{
	uintptr_t key = (uintptr_t)name;
	struct region_cached_name *cached =
		&thread->name_cache[(key ^ key >> 6 ^ key >> 12) % REGION_NAME_CACHE_ENTRIES];

	/* A place that is empty has no pointer. */
	if (__builtin_expect(name && cached->passed_name == name &&
				     cached->passed_category == category,
			     1) &&
	    names_cached_is_unchanged(cached, name))
		return cached->region;
	return names_find_or_add_and_cache(cached, category, name);
}

/* A call of a region ended after so many ticks: counts towards its throttling; racy on purpose. */
void names_count_call_and_throttle(region_id region, uint64_t ticks);
bool names_region_is_throttled(region_id region);

/* Writes one record among the names. For other rare records as well. False: no room. */
bool names_write_record_in_name_chunk(enum spool_record kind, const uint8_t *payload,
				      uint32_t size);

#endif
