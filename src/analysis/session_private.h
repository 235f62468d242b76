/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a session keeps for itself beside the model: open files, clocks, module maps and the tree of
 * addresses. Only files of this room include it.
 */
#ifndef KYMO_ANALYSIS_SESSION_PRIVATE_H
#define KYMO_ANALYSIS_SESSION_PRIVATE_H

#include "analysis/arena.h"
#include "analysis/calls_private.h"
#include "analysis/calltree.h"
#include "analysis/clocks.h"
#include "analysis/id_map.h"
#include "analysis/module_map.h"
#include "analysis/regions_private.h"
#include "analysis/session.h"
#include "analysis/spool_reader.h"
#include "analysis/views.h"

/* Indexed like session.processes. */
struct process_private {
	struct spool_file file;
	struct clock_map clock;
	struct module_map module_map;
	struct id_map threads; /* internal id -> index in session.threads */
	uint32_t root;         /* its node in the tree of addresses */
	uint32_t unsampled;    /* node of CPU time without samples, or CALLTREE_NONE */
	bool unmapped;         /* some address lies in no module */
	bool by_time;          /* an address alone does not say which code it is */
	struct jitmap *jitmap; /* runtime_code.h; NULL: run-time code never changed */
	struct process_regions regions;
	struct process_calls calls;
	struct id_map sites; /* id of a call site -> index in session.allocations, while scanning */
};

struct session_private {
	struct arena arena;
	struct session_options options;
	struct process_private *processes;
	size_t process_capacity, thread_capacity, module_capacity, problem_capacity;
	struct calltree tree;
	uint32_t *leaves; /* tree node -> session node; NULL before session_symbolize() */
	struct view_thread_node *thread_nodes;
	size_t thread_node_count;
	bool thread_nodes_known;
	struct regions_capacity regions_capacity;
	struct calls_capacity calls_capacity;
};

static inline struct session_private *session_private(const struct session *session)
{
	return session->private_state;
}

int session_out_of_memory(struct problem *problem);
/* Adds a line to session.problems. */
int session_note(struct session *session, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Arguments as one line for a shell; NULL when out of memory. */
const char *session_quote(struct arena *arena, const char *const *arguments, uint32_t count);

/* launch.c: reads <directory>/launch.json; what is missing or broken becomes a note. */
int session_read_launch(struct session *session, struct problem *problem);

/* scan.c: everything but the samples of one process (index in session.processes, its file open). */
int session_scan(struct session *session, uint32_t process, struct problem *problem);

/* samples.c: calls `each` for every sample of a process that passes the session's filters. The
 * sample's `node` is one of the tree of addresses; `each` may change the sample's node, and nothing
 * else. first_pass: new stacks are added to the tree and damage is counted; else samples with
 * unknown stacks are left out. */
int session_walk_samples(struct session *session, uint32_t process, bool first_pass,
			 int (*each)(struct model_sample *sample, void *context), void *context,
			 struct problem *problem);

#endif
