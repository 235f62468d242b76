/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The timeline of a page: tracks with slices. A store holds so many slices one by one; when there
 * are more, the shortest of them are added up: those of one track and name that begin within the
 * same span of time become one entry, with their number and their sum. Both the length below which
 * that happens and the span double until what is left has room, and the page says what they are.
 */
#ifndef KYMO_OUTPUT_WEB_TIMELINE_H
#define KYMO_OUTPUT_WEB_TIMELINE_H

#include "analysis/id_map.h"
#include "output/web/page.h"

enum timeline_track_kind {
	TIMELINE_SAMPLES, /* names are nodes of the page * MODEL_SOURCE_COUNT + source */
	TIMELINE_REGIONS, /* of these and all others: numbers of strings */
	TIMELINE_CALLS,   /* of device runtimes */
	TIMELINE_MARKERS,
	TIMELINE_STEPS,
	TIMELINE_KERNELS,
	TIMELINE_COPIES,
	TIMELINE_NCCL,
	TIMELINE_NCCL_ENQUEUE,
	TIMELINE_TRACK_KIND_COUNT
};

struct timeline_track {
	enum timeline_track_kind kind;
	uint32_t process, thread; /* of the session, of the page; or MODEL_ENTRY_INDEX_NONE */
	int64_t name, owner;      /* strings, or -1; owner: where there is no process */
};

struct timeline_slice {
	uint64_t start_ns, duration_ns;
	uint64_t count; /* of slices or samples; of events in samples of events */
	uint32_t track, name;
};

/* Slices of one kind, within the limit. */
struct timeline_store {
	struct timeline_slice *slices, *merged;
	uint32_t *slots; /* of merged: index + 1, by track, span and name */
	uint32_t count, capacity, merged_count;
	uint64_t merged_slices;      /* that are no entry of their own */
	uint64_t length_ns, span_ns; /* 0: all slices are entries of their own */
	bool are_names_merged;       /* even one span for all time was not enough */
};

struct timeline {
	struct page_writer *page;
	struct timeline_store samples, spans;
	struct timeline_track *tracks;
	struct id_map track_of_key;
	uint32_t track_count, track_capacity;
	uint64_t slices_of_other_threads; /* that have no row of their own in the page */
};

#define TIMELINE_STORE_SLICES_MAX 75000u
#define TIMELINE_NAME_VARIOUS     (UINT32_MAX - 1)

/* `key` tells tracks of one kind apart. NULL: no memory. A new track has no name. */
struct timeline_track *timeline_find_or_add_track(struct timeline *timeline,
						  enum timeline_track_kind kind, uint64_t key,
						  uint32_t *ret);
int timeline_add_slice(struct timeline *timeline, struct timeline_store *store,
		       struct timeline_slice slice);
/* One that is not yet known to have ended lasts to the end of the session. */
int timeline_add_span(struct timeline *timeline, uint32_t track, uint64_t start_ns, uint64_t end_ns,
		      int64_t name);

void timeline_deinit(struct timeline *timeline);

/* timeline_threads.c */
int timeline_collect_samples(struct timeline *timeline);
int timeline_collect_regions(struct timeline *timeline);
/* timeline_devices.c, timeline_steps.c */
int timeline_collect_devices(struct timeline *timeline);
int timeline_collect_steps(struct timeline *timeline);
int timeline_collect_nccl(struct timeline *timeline);

#endif
