/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions in the session model: what began and ended, from whatever source, and the call-tree
 * profile of it.
 *
 * The profile comes from PROFILE records (kept by the process itself, with all components) where
 * there are any, else from the region events of the trace (wall_clock and trip_count). Both give
 * the same counts; the process's own is complete even where events were dropped. Of events, only
 * the heaviest call paths are told apart (region_prune.h).
 *
 * Life: session_open() fills `session->regions`; names of FUNCTION regions are there after
 * session_symbolize(). Immutable after that. session_each_region_event() streams over the events
 * for outputs that want each one; nothing here grows with their number.
 *
 * Statistics are in the component's unit. Times are ns of CLOCK_BOOTTIME.
 */
#ifndef KYMO_ANALYSIS_REGIONS_H
#define KYMO_ANALYSIS_REGIONS_H

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
	bool more;        /* stands for call paths that model_regions.rest tells of */
};

struct model_component {
	const char *name, *unit, *description;
	enum spool_component_kind kind;
	uint32_t numerator, denominator; /* RATIO: components whose sums it is of, or MODEL_NONE */
};

struct model_statistics {
	double sum, minimum, maximum, sum_of_squares;
};

/* A node of a thread's tree of regions. A parent's index is smaller than its children's. */
struct model_region_node {
	uint32_t parent;          /* MODEL_NONE for outermost regions */
	uint32_t region;          /* index into model_regions.regions */
	uint32_t process, thread; /* thread: index into session->threads */
	uint32_t depth;
	uint32_t first_child, next_sibling;
	uint64_t count; /* calls that ended */
	uint64_t open;  /* calls that were open at the end of the data: in no statistics but count +
			   open */
};

/* Calls that are in no node of their region, by thread: they were so short that their call paths
 * are in nodes "(more)". For outputs by region, which leave those nodes out. Of real time. */
struct model_region_rest {
	uint32_t process, thread, region;
	uint64_t count, open;
	struct model_statistics calls;
	double inclusive; /* sum, recursion counted once */
	double self;      /* without calls inside them */
};

struct model_regions {
	struct model_region *regions;
	struct model_component *components;
	struct model_region_node *nodes;
	/* node_count * component_count, by node, then component. RATIO components are computed from
	 * sums, and have no more than a sum. */
	struct model_statistics *statistics;
	struct model_region_rest *rest;
	uint32_t region_count, component_count, node_count, rest_count;
	uint64_t events;     /* region records decoded */
	bool from_process;   /* the profile was kept by the process itself */
	uint64_t unbalanced; /* regions ended by an outer one, or never begun */
};

enum model_event_kind {
	MODEL_REGION_BEGIN,
	MODEL_REGION_END,   /* of `region`, which need not be the innermost */
	MODEL_REGION_WHOLE, /* began at time_ns - duration_ns, ended at time_ns */
	MODEL_MARK,
	MODEL_COUNTER,
	MODEL_PROGRESS
};

struct model_value {
	const char *name;
	enum spool_value_type type;
	int64_t number;   /* SIGNED, UNSIGNED, ADDRESS (as bits) */
	double real;      /* REAL */
	const char *text; /* TEXT */
};

/* Values are those that followed the record; pointers are valid during the call. */
struct model_event {
	enum model_event_kind kind;
	uint32_t process, thread, region;
	uint64_t time_ns, duration_ns;
	/* BEGIN: began before the data of this thread (open at the first span, or overwritten in
	 * ring mode); END: not seen, the thread or the data ended with it open, or a region around
	 * it ended. */
	bool implied;
	double counter;
	enum spool_progress progress;
	const struct model_value *values;
	uint32_t value_count;
};

/* Calls `each` for every event; those of one thread are in order of time, threads one after the
 * other, and begins and ends of a thread are balanced (implied ones are made). `each` returns 0 to
 * go on; anything else ends the walk and is returned. */
int session_each_region_event(struct session *session,
			      int (*each)(const struct model_event *, void *), void *context,
			      struct problem *problem);

#endif
