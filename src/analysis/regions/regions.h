/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions in the session model: what began and ended, from whatever source, and the call-tree
 * profile of it.
 *
 * The profile comes from PROFILE records (kept by the process itself, with all components) where
 * there are any, else from the region events of the trace (wall_clock and trip_count). Both give
 * the same counts; the process's own is complete even where events were dropped. Of events, only
 * the heaviest call paths are distinguished (prune.h).
 *
 * Life: session_open() fills `session_get_regions(session)`; names of FUNCTION regions are there
 * after session_symbolize(). Immutable after that. session_visit_region_events() streams over the
 * events for outputs that want each one; nothing here grows with their number.
 *
 * Statistics are in the component's unit. Times are ns of CLOCK_BOOTTIME.
 */
#ifndef KYMO_ANALYSIS_REGIONS_REGIONS_H
#define KYMO_ANALYSIS_REGIONS_REGIONS_H

#include "analysis/session.h"

struct model_region {
	uint32_t process;
	const char *category;
	const char *name; /* "(more)" for what no node could be had for */
	enum spool_region_kind kind;
	uint64_t address; /* FUNCTION: code address in the process, else 0 */
	const char *file; /* FUNCTION, after symbolize: source path or NULL */
	uint32_t line;    /* 0 unknown */
	uint32_t loop;    /* FUNCTION: not the function but the n-th loop in it; 0: the function */
	bool stands_for_dropped_paths; /* stands for call paths that model_regions.rest tells of */
};

struct model_region_component {
	const char *name, *unit, *description;
	enum spool_component_kind kind;
	uint32_t numerator_component, denominator_component; /* RATIO: components whose sums it is
								of, or MODEL_ENTRY_INDEX_NONE */
};

/* Of calls that ended; but the sum has also what calls took that are in no count: those that were
 * open when the data ended, up to then, and parts of calls that began elsewhere (before a fork). */
struct model_component_statistics {
	double sum, minimum, maximum, sum_of_squares;
	double unfinished_sum; /* of `sum`, what is of such calls */
};

/* A node of a thread's tree of regions. A parent's index is smaller than its children's. */
struct model_region_node {
	uint32_t parent;          /* MODEL_ENTRY_INDEX_NONE for outermost regions */
	uint32_t region;          /* index into model_regions.regions */
	uint32_t process, thread; /* thread: index into session->threads */
	uint32_t depth;
	uint32_t first_child, next_sibling;
	/* Of overlapping regions: real time of its own beyond its sum less those of its children,
	 * in ns. */
	double self_correction;
	uint64_t count; /* calls that ended */
	uint64_t open;  /* calls that were open when the data ended: of the statistics, only sums of
			   real time have them, up to the last moment known */
};

/* Calls that are in no node of their region, by thread: they were so short that their call paths
 * are in nodes "(more)". For outputs by region, which leave those nodes out. Of real time. */
struct model_region_dropped_sum {
	uint32_t process, thread, region;
	uint64_t count, open;
	struct model_component_statistics calls;
	double inclusive; /* sum, recursion counted once */
	double self;      /* without calls inside them */
};

struct model_regions {
	struct model_region *regions;
	struct model_region_component *components;
	struct model_region_node *nodes;
	/* node_count * component_count, by node, then component. RATIO components are computed from
	 * sums, and have no more than a sum. */
	struct model_component_statistics *statistics;
	struct model_region_dropped_sum *dropped_sums;
	uint32_t region_count, component_count, node_count, dropped_sum_count;
	uint64_t events;                  /* region records decoded */
	bool was_aggregated_in_process;   /* the profile was kept by the process itself */
	uint64_t unbalanced_region_count; /* regions ended by an outer one, or never begun */
};

enum model_region_event_kind {
	MODEL_EVENT_REGION_BEGIN,
	MODEL_EVENT_REGION_END,      /* of `region`, which need not be the innermost */
	MODEL_EVENT_REGION_COMPLETE, /* began at time_ns - duration_ns, ended at time_ns */
	MODEL_EVENT_MARK,
	MODEL_EVENT_COUNTER,
	MODEL_EVENT_PROGRESS
};

struct model_event_value {
	const char *name;
	enum spool_value_type type;
	int64_t number;     /* SIGNED, UNSIGNED, ADDRESS (as bits) */
	double real_number; /* REAL */
	const char *text;   /* TEXT */
};

/* Values are those that followed the record; pointers are valid during the call. */
struct model_region_event {
	enum model_region_event_kind kind;
	uint32_t process, thread, region;
	uint64_t time_ns, duration_ns;
	/* BEGIN: began before the data of this thread (open at the first span, or overwritten in
	 * ring mode); END: not seen, the thread or the data ended with it open, or a region around
	 * it ended. */
	bool is_implied;
	double counter;
	enum spool_progress progress;
	const struct model_event_value *values;
	uint32_t value_count;
};

/* Calls `each` for every event; those of one thread are in order of time, threads one after the
 * other, and begins and ends of a thread are balanced (implied ones are made). `each` returns 0 to
 * go on; anything else ends the walk and is returned. */
int session_visit_region_events(struct session *session,
				int (*each)(const struct model_region_event *, void *),
				void *context, struct problem *problem);

#define REGIONS_DATA_KIND_NAME "regions"

extern const struct session_data_kind_operations regions_data_kind_operations;

static inline struct model_regions *session_get_regions(const struct session *session)
{
	return session_find_kind_data(session, REGIONS_DATA_KIND_NAME);
}

#endif
