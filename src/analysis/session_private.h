/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a session keeps for itself beside the model: open files, clocks, module maps and the tree of
 * addresses. Only rooms below analysis include it.
 */
#ifndef KYMO_ANALYSIS_SESSION_PRIVATE_H
#define KYMO_ANALYSIS_SESSION_PRIVATE_H

#include "analysis/arena.h"
#include "analysis/calltree.h"
#include "analysis/clocks.h"
#include "analysis/id_map.h"
#include "analysis/module_map.h"
#include "analysis/session.h"
#include "analysis/spool_reader.h"
#include "analysis/views.h"

/* Indexed like session.processes. */
struct process_private {
	struct spool_file file;
	struct clock_map clock;
	struct module_map module_map;
	struct id_map threads; /* internal id -> index in session.threads */
	uint64_t end_ticks;    /* the last moment known of it */
	uint32_t root;         /* its node in the tree of addresses */
	/* Of a short process: what its thread had used when kymo began in this image, and at its
	 * end; the index of the image before, or MODEL_ENTRY_INDEX_NONE. */
	uint64_t cpu_time_at_image_start_ns, cpu_time_at_image_end_ns;
	uint32_t earlier_image_process_index;
	uint32_t unsampled_time_node; /* node of CPU time without samples, or CALLTREE_NO_NODE */
	bool has_unmapped_address;    /* some address lies in no module */
	bool code_depends_on_time;    /* an address alone does not say which code it is */
	struct jitmap *jitmap; /* analysis/runtime_code.h; NULL: run-time code never changed */
};

/* Work on devices that a thread launched (launched.h): at a node of the tree of addresses. */
struct launched_thread_work {
	uint32_t thread, node;
	uint64_t count, ns;
};

struct session_private {
	struct arena arena;
	struct session_options options;
	struct process_private *processes;
	size_t process_capacity, thread_capacity, module_capacity, problem_capacity;
	struct calltree tree;
	uint32_t *session_node_by_tree_node; /* tree node -> session node; NULL before
						session_symbolize() */
	struct view_thread_node_row *thread_nodes;
	size_t thread_node_count;
	bool thread_nodes_known;
	struct launched_thread_work *launched;
	size_t launched_count, launched_capacity;
};

static inline struct session_private *session_get_private(const struct session *session)
{
	return session->private_state;
}

int session_set_out_of_memory_problem(struct problem *problem);
/* Adds a line to session.problems. */
int session_add_problem_line(struct session *session, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Arguments as one line for a shell; NULL when out of memory. */
const char *session_quote_arguments(struct arena *arena, const char *const *arguments,
				    uint32_t count);

/* launch.c: reads <directory>/launch.json; what is missing or broken becomes a note. */
int session_read_launch(struct session *session, struct problem *problem);

/* The thread of a process with this internal id (index in session.threads), made if it is new.
 * MODEL_ENTRY_INDEX_NONE: a filter leaves it out, or *result was set to -ENOMEM. */
uint32_t session_find_or_add_thread(struct session *session, uint32_t process, uint64_t internal_id,
				    uint64_t tid, int *result);

/* samples.c: calls `each` for every sample of a process that passes the session's filters. The
 * sample's `node` is one of the tree of addresses; `each` may change the sample's node, and nothing
 * else. first_pass: new stacks are added to the tree and damage is counted; else samples with
 * unknown stacks are left out. */
int session_walk_process_samples(struct session *session, uint32_t process, bool first_pass,
				 int (*each)(struct model_sample *sample, void *context),
				 void *context, struct problem *problem);

#endif
