/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Records that belong together and are more than a chunk of an arena holds: a kernel's counters
 * with thousands of instances. They get memory of their own, hang on the arena until it is emptied,
 * and stand in its list by their time, in one piece. What they take counts as the arena's: when
 * that is full, it is full; but one group always has room.
 */
#include <stdlib.h>
#include <string.h>

#include "libkymo-sdk/arena.h"

#define ARENA_UNIT 8u

struct arena_group {
	struct arena_group *next;
	uint64_t time;
	uint32_t count;
	struct arena_header headers[];
};

static struct arena_group arena_closed;

static struct arena_group *group_make(const struct arena_record *records, uint32_t count,
				      uint64_t units, uint64_t time)
{
	struct arena_group *group =
		malloc(sizeof(*group) + count * sizeof(group->headers[0]) + units * ARENA_UNIT);
	char *payload;

	if (!group)
		return NULL;
	group->time = time;
	group->count = count;
	payload = (char *)&group->headers[count];
	for (uint32_t i = 0; i < count; i++) {
		memcpy(payload, records[i].payload, records[i].size);
		group->headers[i].hash = records[i].category | (uint64_t)records[i].kind << 32;
		atomic_init(&group->headers[i].payload, payload);
		payload += (records[i].size + ARENA_UNIT - 1) & ~(size_t)(ARENA_UNIT - 1);
	}
	return group;
}

/* Takes so much of the arena's size. */
static bool group_has_room(struct arena *arena, uint64_t units)
{
	uint64_t most = (uint64_t)arena->chunk_count * arena->chunk_units;
	uint64_t taken = atomic_load_explicit(&arena->group_units, memory_order_relaxed);

	do {
		if (taken && taken + units > most)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&arena->group_units, &taken, taken + units,
							memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

enum arena_result arena_groups_put(struct arena *arena, const struct arena_record *records,
				   uint32_t count, uint64_t units, uint64_t time, uint64_t *used)
{
	struct arena_group *first = atomic_load_explicit(&arena->groups, memory_order_acquire);
	struct arena_group *group;

	if (first == &arena_closed)
		return ARENA_CLOSED;
	if (!group_has_room(arena, units))
		return ARENA_FULL;
	group = group_make(records, count, units, time);
	if (!group)
		return ARENA_NO_MEMORY;
	do {
		if (first == &arena_closed) {
			free(group);
			return ARENA_CLOSED;
		}
		group->next = first;
	} while (!atomic_compare_exchange_weak_explicit(
		&arena->groups, &first, group, memory_order_acq_rel, memory_order_acquire));
	*used = (atomic_load_explicit(&arena->left_units, memory_order_relaxed) +
		 atomic_load_explicit(&arena->group_units, memory_order_relaxed)) *
		ARENA_UNIT;
	return ARENA_DONE;
}

void arena_groups_open(struct arena *arena)
{
	/* What threads that were held up took of the size before it was closed is theirs no more.
	 */
	atomic_store_explicit(&arena->group_units, 0, memory_order_relaxed);
	atomic_store_explicit(&arena->groups, NULL, memory_order_release);
}

bool arena_groups_are_empty(struct arena *arena)
{
	struct arena_group *first = atomic_load_explicit(&arena->groups, memory_order_acquire);

	return !first || first == &arena_closed;
}

/* By time; of the same time, as they were put. Groups are few. */
static struct arena_group *groups_sorted(struct arena_group *latest)
{
	struct arena_group *sorted = NULL;

	while (latest) {
		struct arena_group *group = latest, **place = &sorted;

		latest = group->next;
		while (*place && (*place)->time < group->time)
			place = &(*place)->next;
		group->next = *place;
		*place = group;
	}
	return sorted;
}

static size_t groups_merge(const struct arena *arena, size_t count,
			   rocprofiler_record_header_t **merged)
{
	const struct arena_group *group = arena->taken;
	size_t made = 0;

	for (size_t i = 0; i <= count; i++) {
		while (group && (i == count || group->time < arena_time(arena, arena->list[i]))) {
			for (uint32_t j = 0; j < group->count; j++)
				merged[made++] = (rocprofiler_record_header_t *)(uintptr_t)&group
							 ->headers[j];
			group = group->next;
		}
		if (i < count)
			merged[made++] = arena->list[i];
	}
	return made;
}

/* Where there is no memory for one list, the groups are lost, and arena->lost says so. */
size_t arena_groups_close(struct arena *arena, size_t count, rocprofiler_record_header_t ***list)
{
	struct arena_group *group;
	size_t more = 0;

	*list = arena->list;
	group = atomic_exchange_explicit(&arena->groups, &arena_closed, memory_order_acq_rel);
	arena->taken = groups_sorted(group == &arena_closed ? NULL : group);
	for (group = arena->taken; group; group = group->next)
		more += group->count;
	if (!more)
		return count;
	arena->merged = (rocprofiler_record_header_t **)malloc((count + more) * sizeof(void *));
	if (!arena->merged) {
		arena->lost = more;
		return count;
	}
	*list = arena->merged;
	return groups_merge(arena, count, arena->merged);
}

void arena_groups_reset(struct arena *arena)
{
	struct arena_group *group =
		atomic_exchange_explicit(&arena->groups, &arena_closed, memory_order_acq_rel);

	if (group == &arena_closed)
		group = NULL;
	for (int i = 0; i < 2; i++) {
		while (group) {
			struct arena_group *next = group->next;

			free(group);
			group = next;
		}
		group = arena->taken;
		arena->taken = NULL;
	}
	free((void *)arena->merged);
	arena->merged = NULL;
	arena->lost = 0;
}
