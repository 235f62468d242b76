/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Processes that have used little CPU time yet are dormant: they are announced in the session's
 * file of short processes, and a CPU timer of theirs runs; there is no helper, no spool file and no
 * table. Most processes of a build or of a shell script end like that, and cost next to nothing.
 * One that lives on wakes: collection begins as it does in the first process of the session, which
 * is never dormant (docs/internals/short-processes.md).
 *
 * What needs more than the announcement wakes the process: threads, calls of the program's to kymo,
 * changes of user, sandboxes.
 */
#ifndef KYMO_LIBKYMO_DORMANT_H
#define KYMO_LIBKYMO_DORMANT_H

#include <stdbool.h>

#include "core/process/state.h"
#include "core/runtime.h"

/* By the constructor, when the options are known: the process is dormant (true), or collection is
 * to begin. `install`: wraps the program's calls, by a thread that is not in a handler. */
bool dormant_begin_dormancy_if_allowed(struct runtime *runtime, char *const *arguments,
				       void (*install)(struct runtime *runtime));
/* In a child after fork. False: it is to go on as its parent. */
bool dormant_begin_in_forked_child(void);

static inline bool dormant_is_this_process(void)
{
	return atomic_load_explicit(&kymo_process.state, memory_order_relaxed) == RUNTIME_DORMANT &&
	       process_is_where_runtime_started();
}

void dormant_wake_now(void);
/* Collection begins, if the process is dormant. Not in handlers. */
static inline void dormant_wake(void)
{
	if (dormant_is_this_process())
		dormant_wake_now();
}

void dormant_install_pending_wrappers_now(void);
extern bool kymo_dormant_has_pending_wrappers;
/* Where the process woke in a handler, the program's calls are not wrapped yet: now they are. */
static inline void dormant_install_pending_wrappers(void)
{
	if (__builtin_expect(kymo_dormant_has_pending_wrappers, 0))
		dormant_install_pending_wrappers_now();
}

/* The program has used kymo's interface, so its children are never dormant. */
void dormant_forbid_for_children(void);

/* The process ends in order. */
void dormant_write_process_end(void);
/* It is about to execute another image. `path` NULL: not known; `obstacle`: why that will not be
 * profiled, or NULL; `work_begun_ns`: of kymo's own work, since when it prepares for that. False:
 * it woke meanwhile, and prepares as processes that collect do. */
bool dormant_prepare_exec(const char *path, const char *obstacle, uint64_t work_begun_ns);
/* exec failed. */
void dormant_resume_after_failed_exec(void);
/* A notice of the two texts. By the process or a vfork child of it. */
void dormant_write_process_notice(enum spool_notice kind, uint64_t argument, const char *text,
				  const char *more);
/* A child that leaves no data. */
void dormant_write_not_followed_notice(int pid, const char *path, const char *obstacle);

#endif
