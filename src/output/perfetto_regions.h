/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions in the Perfetto trace, shared by the perfetto_region*.c files.
 *
 * The events of each thread go on a packet sequence of their own: times are differences to the
 * packet before (a clock of the sequence), the thread's track is the default one, names are sent
 * once. A begin or end then takes some 15 bytes. Trace processors sort by time, and events of equal
 * time keep the order that they have in the file.
 *
 * Two passes over the events. The survey finds what has to be known before the first packet of a
 * region is written: which regions overlap others without being nested, and which calls started a
 * process. The second pass writes.
 *
 * Slices of one track must be nested, since an end closes whatever began last. A region that at
 * least once ended while regions inside it went on is therefore drawn on a track of its own, one
 * for each thread; ends of one region are those of its innermost begin, so such a track is nested.
 */
#ifndef KYMO_OUTPUT_PERFETTO_REGIONS_H
#define KYMO_OUTPUT_PERFETTO_REGIONS_H

#include "analysis/regions.h"
#include "output/perfetto.h"
#include "output/strings.h"

/* A call that starts processes (fork, posix_spawn, …), in the order of the events. */
struct perfetto_spawn {
	uint32_t process;
	uint32_t child; /* process index, MODEL_NONE if unknown */
	uint64_t begin_ns, end_ns;
	uint32_t child_pid; /* 0: not recorded */
};

struct perfetto_survey {
	uint32_t region_count; /* a process that still runs may have more later */
	bool *overlaps;        /* by region */
	struct perfetto_spawn *spawns;
	size_t spawn_count;
	uint64_t events;
};

/* Tables of what the current sequence has sent hold its generation, so that nothing has to be
 * cleared between threads. */
struct perfetto_region_names {
	uint32_t generation;
	uint32_t *names;                 /* by region: sent in which generation */
	uint32_t *category_of_region;    /* dense */
	uint32_t *categories;            /* by category: sent in which generation */
	struct strings category_strings; /* borrowed from the model */
	struct strings value_strings;    /* owned: names of values live as long as one event */
	uint32_t *values;                /* by value name: sent in which generation */
};

enum {
	TRACK_EVENT_SLICE_BEGIN = 1,
	TRACK_EVENT_SLICE_END = 2,
	TRACK_EVENT_CATEGORY_IIDS = 3,
	TRACK_EVENT_NAME_IID = 10,
	TRACK_EVENT_EXTRA_COUNTER_VALUES = 12,
	TRACK_EVENT_EXTRA_COUNTER_TRACKS = 31,
	TRACK_EVENT_SOURCE_LOCATION_IID = 34,
	TRACK_EVENT_FLOWS = 47,
	TRACK_EVENT_LAST_FLOWS = 48,

	ANNOTATION_NAME_IID = 1,
	ANNOTATION_BOOL = 2,
	ANNOTATION_UINT = 3,
	ANNOTATION_INT = 4,
	ANNOTATION_DOUBLE = 5,
	ANNOTATION_STRING = 6,
	ANNOTATION_POINTER = 7,
	ANNOTATION_NAME = 10,
};

/* One packet with an event, as it is written. */
struct perfetto_region_event {
	unsigned type;
	uint64_t time_ns;
	uint32_t region; /* MODEL_NONE: no name (ends) */
	uint64_t track;  /* 0: the thread's */
	uint64_t flow;   /* 0: none */
	const struct model_value *values;
	uint32_t value_count;
	const char *note;     /* a value of kymo's own, true or `note_value`; NULL: none */
	uint64_t note_value;  /* 0: true */
	uint64_t count_track; /* 0: none; else a counter that gets `count` */
	uint64_t count;
};

/* perfetto_region_survey.c; 0 or negative errno */
int perfetto_survey_regions(struct perfetto *trace, struct perfetto_survey *ret);
void perfetto_survey_deinit(struct perfetto_survey *survey);
bool perfetto_region_spawns(const struct model_region *region);
/* Events that say where each found child began. */
void perfetto_write_spawned(struct perfetto *trace, const struct perfetto_survey *survey);

/* perfetto_region_packets.c */
struct perfetto_region_writer {
	struct perfetto *trace;
	struct perfetto_region_names names;
	uint32_t sequence;
	uint64_t last_ns; /* time of the packet before, on this sequence */
};
int perfetto_region_writer_init(struct perfetto_region_writer *writer, struct perfetto *trace);
void perfetto_region_writer_deinit(struct perfetto_region_writer *writer);
/* Starts the sequence of a thread whose first event is at `time_ns`. */
void perfetto_region_begin_thread(struct perfetto_region_writer *writer, uint32_t thread,
				  uint64_t time_ns);
void perfetto_region_write_event(struct perfetto_region_writer *writer,
				 const struct perfetto_region_event *event);
void perfetto_region_write_counter(struct perfetto_region_writer *writer, uint64_t track,
				   uint64_t time_ns, double value);

#endif
