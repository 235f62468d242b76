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

#include "analysis/regions/regions.h"
#include "output/perfetto/perfetto.h"
#include "output/strings.h"

/* A call that starts processes (fork, posix_spawn, …), in the order of the events. */
struct perfetto_spawn_call {
	uint32_t process;
	uint32_t child; /* process index, MODEL_ENTRY_INDEX_NONE if unknown */
	uint64_t begin_ns, end_ns;
	uint32_t child_pid; /* 0: not recorded */
};

struct perfetto_region_survey {
	uint32_t region_count;       /* a process that still runs may have more later */
	bool *is_region_overlapping; /* by region */
	struct perfetto_spawn_call *spawn_calls;
	size_t spawn_call_count;
	uint64_t events;
};

/* Tables of what the current sequence has sent hold its generation, so that nothing has to be
 * cleared between threads. */
struct perfetto_region_name_tables {
	uint32_t generation;
	uint32_t *name_sent_generation;       /* by region: sent in which generation */
	uint32_t *category_of_region;         /* dense */
	uint32_t *category_sent_generation;   /* by category: sent in which generation */
	struct string_table category_strings; /* borrowed from the model */
	struct string_table value_strings;    /* owned: names of values live as long as one event */
	uint32_t *value_sent_generation;      /* by value name: sent in which generation */
};

enum {
	TRACK_EVENT_TYPE_SLICE_BEGIN = 1,
	TRACK_EVENT_TYPE_SLICE_END = 2,
	TRACK_EVENT_FIELD_CATEGORY_IIDS = 3,
	TRACK_EVENT_FIELD_NAME_IID = 10,
	TRACK_EVENT_FIELD_EXTRA_COUNTER_VALUES = 12,
	TRACK_EVENT_FIELD_EXTRA_COUNTER_TRACKS = 31,
	TRACK_EVENT_FIELD_SOURCE_LOCATION_IID = 34,
	TRACK_EVENT_FIELD_FLOWS = 47,
	TRACK_EVENT_FIELD_TERMINATING_FLOWS = 48,

	ANNOTATION_FIELD_NAME_IID = 1,
	ANNOTATION_FIELD_BOOL_VALUE = 2,
	ANNOTATION_FIELD_UINT_VALUE = 3,
	ANNOTATION_FIELD_INT_VALUE = 4,
	ANNOTATION_FIELD_DOUBLE_VALUE = 5,
	ANNOTATION_FIELD_STRING_VALUE = 6,
	ANNOTATION_FIELD_POINTER_VALUE = 7,
	ANNOTATION_FIELD_NAME = 10,
};

/* One packet with an event, as it is written. */
struct perfetto_region_event {
	unsigned type;
	uint64_t time_ns;
	uint32_t region; /* MODEL_ENTRY_INDEX_NONE: no name (ends) */
	uint64_t track;  /* 0: the thread's */
	uint64_t flow;   /* 0: none */
	const struct model_event_value *values;
	uint32_t value_count;
	const char *note_name;     /* a value of kymo's own, true or `note_value`; NULL: none */
	uint64_t note_value;       /* 0: true */
	uint64_t count_track_uuid; /* 0: none; else a counter that gets `count` */
	uint64_t count;
};

/* region_survey.c; 0 or negative errno */
int perfetto_survey_regions(struct perfetto_trace *trace, struct perfetto_region_survey *ret);
void perfetto_region_survey_deinit(struct perfetto_region_survey *survey);
bool perfetto_region_is_spawn_call(const struct model_region *region);
/* Events that say where each found child began. */
void perfetto_write_all_process_spawn_arrow_ends(struct perfetto_trace *trace,
						 const struct perfetto_region_survey *survey);

/* region_packets.c */
struct perfetto_region_writer {
	struct perfetto_trace *trace;
	struct perfetto_region_name_tables names;
	uint32_t sequence;
	uint64_t last_packet_time_ns; /* time of the packet before, on this sequence */
};
int perfetto_region_writer_init(struct perfetto_region_writer *writer,
				struct perfetto_trace *trace);
void perfetto_region_writer_deinit(struct perfetto_region_writer *writer);
/* Starts the sequence of a thread whose first event is at `time_ns`. */
void perfetto_region_start_thread_sequence(struct perfetto_region_writer *writer, uint32_t thread,
					   uint64_t time_ns);
void perfetto_region_write_event(struct perfetto_region_writer *writer,
				 const struct perfetto_region_event *event);
void perfetto_region_write_counter(struct perfetto_region_writer *writer, uint64_t track,
				   uint64_t time_ns, double value);

#endif
