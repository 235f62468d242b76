/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/web/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_COUNT (4 * TIMELINE_STORE_SLICES_MAX)

struct timeline_track *timeline_find_or_add_track(struct timeline *timeline,
						  enum timeline_track_kind kind, uint64_t key,
						  uint32_t *ret)
{
	uint64_t full = id_map_hash_key(key) * TIMELINE_TRACK_KIND_COUNT + (uint64_t)kind;

	*ret = id_map_get(&timeline->track_of_key, full);
	if (*ret != ID_MAP_NONE)
		return &timeline->tracks[*ret];
	if (timeline->track_count == timeline->track_capacity) {
		uint32_t capacity = timeline->track_capacity * 2 + 64;
		struct timeline_track *tracks =
			reallocarray(timeline->tracks, capacity, sizeof(*tracks));
		if (tracks == NULL)
			return NULL;
		timeline->tracks = tracks;
		timeline->track_capacity = capacity;
	}
	*ret = timeline->track_count;
	if (id_map_set(&timeline->track_of_key, full, *ret) != 0)
		return NULL;
	timeline->tracks[timeline->track_count++] =
		(struct timeline_track){.kind = kind,
					.process = MODEL_ENTRY_INDEX_NONE,
					.thread = MODEL_ENTRY_INDEX_NONE,
					.name = -1,
					.owner = -1};
	return &timeline->tracks[*ret];
}

/* ---- adding up ---- */

static struct timeline_slice *find_slot(struct timeline_store *store,
					const struct timeline_slice *slice, uint32_t **ret_slot)
{
	uint64_t span = slice->start_ns / store->span_ns;
	uint64_t hash =
		id_map_hash_key(id_map_hash_key((uint64_t)slice->track << 32 | slice->name) +
				span * UINT64_C(0x9e3779b97f4a7c15));

	for (size_t at = hash % SLOT_COUNT;; at = (at + 1) % SLOT_COUNT) {
		struct timeline_slice *known;

		*ret_slot = &store->slots[at];
		if (store->slots[at] == 0)
			return NULL;
		known = &store->merged[store->slots[at] - 1];
		if (known->track == slice->track && known->name == slice->name &&
		    known->start_ns / store->span_ns == span)
			return known;
	}
}

static void merge_slice(struct timeline_store *store, struct timeline_slice slice)
{
	uint32_t *slot;

	if (store->are_names_merged)
		slice.name = TIMELINE_NAME_VARIOUS;
	struct timeline_slice *known = find_slot(store, &slice, &slot);
	if (known == NULL) {
		store->merged[store->merged_count++] = slice;
		*slot = store->merged_count;
		return;
	}
	/* The earliest begin stays in the same span, so the slot stays right. */
	if (slice.start_ns < known->start_ns)
		known->start_ns = slice.start_ns;
	known->duration_ns += slice.duration_ns;
	known->count += slice.count;
}

static void merge_all_again(struct timeline_store *store)
{
	uint32_t count = store->merged_count;

	memset(store->slots, 0, SLOT_COUNT * sizeof(*store->slots));
	store->merged_count = 0;
	/* What is read is never before what is written. */
	for (uint32_t i = 0; i < count; i++)
		merge_slice(store, store->merged[i]);
}

static void make_room_for_merged(struct timeline_store *store, uint64_t duration_ns)
{
	while (store->merged_count >= TIMELINE_STORE_SLICES_MAX) {
		if (store->span_ns <= duration_ns)
			store->span_ns *= 2;
		else
			store->are_names_merged = true;
		merge_all_again(store);
		/* More threads than slices cannot be: the page has a thousand threads. */
	}
}

static int begin_to_merge(struct timeline_store *store, uint64_t duration_ns)
{
	store->merged = malloc((TIMELINE_STORE_SLICES_MAX + 1) * sizeof(*store->merged));
	store->slots = calloc(SLOT_COUNT, sizeof(*store->slots));
	store->span_ns = (duration_ns >> 18) + 1;
	store->length_ns = 1000;
	return store->merged != NULL && store->slots != NULL ? 0 : -ENOMEM;
}

/* Moves the shortest to where they are added up, until half of the room is free. */
static void merge_shortest(struct timeline_store *store, uint64_t duration_ns)
{
	while (store->count > TIMELINE_STORE_SLICES_MAX / 2) {
		uint32_t kept = 0;

		for (uint32_t i = 0; i < store->count; i++) {
			if (store->slices[i].duration_ns >= store->length_ns) {
				store->slices[kept++] = store->slices[i];
				continue;
			}
			make_room_for_merged(store, duration_ns);
			merge_slice(store, store->slices[i]);
			store->merged_slices++;
		}
		store->count = kept;
		if (kept > TIMELINE_STORE_SLICES_MAX / 2)
			store->length_ns *= 2;
	}
}

static uint64_t get_duration_ns(const struct timeline *timeline)
{
	const struct session *session = timeline->page->session;

	return session->end_ns > session->start_ns ? session->end_ns - session->start_ns : 0;
}

int timeline_add_slice(struct timeline *timeline, struct timeline_store *store,
		       struct timeline_slice slice)
{
	if (slice.duration_ns < store->length_ns) {
		make_room_for_merged(store, get_duration_ns(timeline));
		merge_slice(store, slice);
		store->merged_slices++;
		return 0;
	}
	if (store->count == TIMELINE_STORE_SLICES_MAX) {
		if (store->span_ns == 0 && begin_to_merge(store, get_duration_ns(timeline)) != 0)
			return -ENOMEM;
		merge_shortest(store, get_duration_ns(timeline));
		return timeline_add_slice(timeline, store, slice); /* it may be too short now */
	}
	if (store->count == store->capacity) {
		uint32_t capacity = store->capacity * 2 + 1024;
		struct timeline_slice *slices =
			reallocarray(store->slices, capacity, sizeof(*slices));
		if (slices == NULL)
			return -ENOMEM;
		store->slices = slices;
		store->capacity = capacity;
	}
	store->slices[store->count++] = slice;
	return 0;
}

int timeline_add_span(struct timeline *timeline, uint32_t track, uint64_t start_ns, uint64_t end_ns,
		      int64_t name)
{
	if (end_ns == UINT64_MAX)
		end_ns = timeline->page->session->end_ns;
	return timeline_add_slice(
		timeline, &timeline->spans,
		(struct timeline_slice){.start_ns = start_ns,
					.duration_ns = end_ns > start_ns ? end_ns - start_ns : 0,
					.count = 1,
					.track = track,
					.name = (uint32_t)name});
}

static void deinit_store(struct timeline_store *store)
{
	free(store->slices);
	free(store->merged);
	free(store->slots);
}

void timeline_deinit(struct timeline *timeline)
{
	deinit_store(&timeline->samples);
	deinit_store(&timeline->spans);
	free(timeline->tracks);
	id_map_deinit(&timeline->track_of_key);
}
