/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Views: sums that outputs show, computed from an immutable session. The weight that counts is
 * chosen by `measure`.
 */
#ifndef KYMO_ANALYSIS_VIEWS_H
#define KYMO_ANALYSIS_VIEWS_H

#include "analysis/session.h"

enum view_measure_kind {
	VIEW_MEASURE_CPU_TIME,       /* ns of CPU time */
	VIEW_MEASURE_REAL_TIME,      /* ns of real time: CPU + WALL + RUNNABLE samples */
	VIEW_MEASURE_COUNTER_EVENTS, /* events */
	VIEW_MEASURE_DEVICE_TIME,    /* ns of work on devices */
	VIEW_MEASURE_COUNT
};

/* How many threads the program has had; those of kymo are left out. */
uint32_t view_count_program_threads(const struct session *session);

/* The measure that the session's samples support best: CPU unless there are wall samples only, and
 * so on. */
enum view_measure_kind view_choose_default_measure(const struct session *session);
const char *
view_measure_get_unit(enum view_measure_kind measure); /* "ns", or "events" of counters */
const char *view_measure_get_name(
	enum view_measure_kind measure); /* "cpu_time", "real_time", "events", "device_time" */
/* What a measure makes of sums by source (weights or sample counts). */
uint64_t view_sum_sources_of_measure(const uint64_t by_source[MODEL_SOURCE_COUNT],
				     enum view_measure_kind measure);
uint64_t view_get_node_self_weight(const struct model_calltree_node *node,
				   enum view_measure_kind measure);

/* One function over the whole session; inclusive counts a recursive function once a stack. */
struct view_flat_profile_row {
	uint32_t function_id;
	uint32_t frame; /* a representative frame */
	uint64_t self, inclusive, self_samples, inclusive_samples;
};

/* Flat profile, heaviest self first. *ret is malloc'ed, the caller frees it. */
int view_build_flat_profile(const struct session *session, enum view_measure_kind measure,
			    struct view_flat_profile_row **ret, size_t *count);

/* Inclusive weight and sample count of every node, indexed like session->nodes; malloc'ed. */
int view_compute_inclusive_sums(const struct session *session, enum view_measure_kind measure,
				uint64_t **ret_weight, uint64_t **ret_samples);

/* The heaviest paths: leaf nodes by self weight, heaviest first; malloc'ed array of node ids. */
int view_list_heaviest_paths(const struct session *session, enum view_measure_kind measure,
			     size_t at_most, uint32_t **ret, size_t *count);

/* Per-thread call trees, for outputs that separate threads: sums of self weight by (thread, node),
 * sorted by thread then node. Needs a pass over the samples, done on first use and kept by the
 * session. */
struct view_thread_node_row {
	uint32_t thread, node;
	uint64_t self_weight[MODEL_SOURCE_COUNT];
	uint64_t self_samples[MODEL_SOURCE_COUNT];
};
int view_sum_by_thread_and_node(struct session *session, const struct view_thread_node_row **ret,
				size_t *count);

#endif
