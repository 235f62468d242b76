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

#include "libkymo-sdk/base/arena.h"

#define ARENA_UNIT_BYTES 8u

struct record_buffer_record_group {
	struct record_buffer_record_group *next;
	uint64_t time;
	uint32_t count;
	struct record_buffer_record_header headers[];
};

static struct record_buffer_record_group record_buffer_closed_groups_marker;

static struct record_buffer_record_group *
create_group_from_records(const struct arena_record *records, uint32_t count, uint64_t units,
			  uint64_t time)
{
	struct record_buffer_record_group *group = malloc(
		sizeof(*group) + count * sizeof(group->headers[0]) + units * ARENA_UNIT_BYTES);
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
		payload +=
			(records[i].size + ARENA_UNIT_BYTES - 1) & ~(size_t)(ARENA_UNIT_BYTES - 1);
	}
	return group;
}

/* Takes so much of the arena's size. */
static bool reserve_units_for_record_group(struct arena *arena, uint64_t units)
{
	uint64_t most = (uint64_t)arena->chunk_count * arena->units_per_chunk;
	uint64_t taken = atomic_load_explicit(&arena->group_units_used, memory_order_relaxed);

	do {
		if (taken && taken + units > most)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&arena->group_units_used, &taken,
							taken + units, memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

enum record_buffer_append_result
record_buffer_append_record_group(struct arena *arena, const struct arena_record *records,
				  uint32_t count, uint64_t units, uint64_t time, uint64_t *used)
{
	struct record_buffer_record_group *first =
		atomic_load_explicit(&arena->groups, memory_order_acquire);
	struct record_buffer_record_group *group;

	if (first == &record_buffer_closed_groups_marker)
		return RECORD_BUFFER_CLOSED;
	if (!reserve_units_for_record_group(arena, units))
		return RECORD_BUFFER_FULL;
	group = create_group_from_records(records, count, units, time);
	if (!group)
		return RECORD_BUFFER_NO_MEMORY;
	do {
		if (first == &record_buffer_closed_groups_marker) {
			free(group);
			return RECORD_BUFFER_CLOSED;
		}
		group->next = first;
	} while (!atomic_compare_exchange_weak_explicit(
		&arena->groups, &first, group, memory_order_acq_rel, memory_order_acquire));
	*used = (atomic_load_explicit(&arena->left_units, memory_order_relaxed) +
		 atomic_load_explicit(&arena->group_units_used, memory_order_relaxed)) *
		ARENA_UNIT_BYTES;
	return RECORD_BUFFER_APPENDED;
}

void record_buffer_reopen_record_groups(struct arena *arena)
{
	/* What threads that were held up took of the size before it was closed is theirs no more.
	 */
	atomic_store_explicit(&arena->group_units_used, 0, memory_order_relaxed);
	atomic_store_explicit(&arena->groups, NULL, memory_order_release);
}

bool record_buffer_has_no_record_groups(struct arena *arena)
{
	struct record_buffer_record_group *first =
		atomic_load_explicit(&arena->groups, memory_order_acquire);

	return !first || first == &record_buffer_closed_groups_marker;
}

/* By time; of the same time, as they were put. Groups are few. */
static struct record_buffer_record_group *
sort_record_groups_by_time(struct record_buffer_record_group *latest)
{
	struct record_buffer_record_group *sorted = NULL;

	while (latest) {
		struct record_buffer_record_group *group = latest, **place = &sorted;

		latest = group->next;
		while (*place && (*place)->time < group->time)
			place = &(*place)->next;
		group->next = *place;
		*place = group;
	}
	return sorted;
}

static size_t merge_record_groups_into_list(const struct arena *arena, size_t count,
					    rocprofiler_record_header_t **merged)
{
	const struct record_buffer_record_group *group = arena->taken;
	size_t made = 0;

	for (size_t i = 0; i <= count; i++) {
		while (group && (i == count || group->time < record_buffer_get_record_time(
								     arena, arena->list[i]))) {
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
size_t record_buffer_close_and_merge_record_groups(struct arena *arena, size_t count,
						   rocprofiler_record_header_t ***list)
{
	struct record_buffer_record_group *group;
	size_t more = 0;

	*list = arena->list;
	group = atomic_exchange_explicit(&arena->groups, &record_buffer_closed_groups_marker,
					 memory_order_acq_rel);
	arena->taken = sort_record_groups_by_time(
		group == &record_buffer_closed_groups_marker ? NULL : group);
	for (group = arena->taken; group; group = group->next)
		more += group->count;
	if (!more)
		return count;
	arena->merged_list =
		(rocprofiler_record_header_t **)malloc((count + more) * sizeof(void *));
	if (!arena->merged_list) {
		arena->lost = more;
		return count;
	}
	*list = arena->merged_list;
	return merge_record_groups_into_list(arena, count, arena->merged_list);
}

void record_buffer_free_record_groups(struct arena *arena)
{
	struct record_buffer_record_group *group = atomic_exchange_explicit(
		&arena->groups, &record_buffer_closed_groups_marker, memory_order_acq_rel);

	if (group == &record_buffer_closed_groups_marker)
		group = NULL;
	for (int i = 0; i < 2; i++) {
		while (group) {
			struct record_buffer_record_group *next = group->next;

			free(group);
			group = next;
		}
		group = arena->taken;
		arena->taken = NULL;
	}
	free((void *)arena->merged_list);
	arena->merged_list = NULL;
	arena->lost = 0;
}
