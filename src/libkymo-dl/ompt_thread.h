/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Open OpenMP regions of a thread, and the names they have.
 *
 * Runtimes do not end everything they begin: a worker's last implicit task and the barrier at its
 * end are reported as over when the worker is needed again, or never. So each thread keeps a list
 * of what is open, and what should have ended is ended when the next thing shows that it has.
 */
#ifndef KYMO_LIBKYMO_DL_OMPT_THREAD_H
#define KYMO_LIBKYMO_DL_OMPT_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "libkymo/api.h"

/* Everything that is recorded, with its name. */
#define OMPT_REGION_NAME_LIST(NAME)                                                                \
	NAME(THREAD, "omp_thread")                                                                 \
	NAME(PARALLEL, "omp_parallel")                                                             \
	NAME(TEAMS, "omp_teams")                                                                   \
	NAME(IMPLICIT_TASK, "omp_implicit_task")                                                   \
	NAME(LOOP, "omp_loop")                                                                     \
	NAME(SECTIONS, "omp_sections")                                                             \
	NAME(SINGLE, "omp_single")                                                                 \
	NAME(SINGLE_OTHER, "omp_single_other")                                                     \
	NAME(WORKSHARE, "omp_workshare")                                                           \
	NAME(DISTRIBUTE, "omp_distribute")                                                         \
	NAME(TASKLOOP, "omp_taskloop")                                                             \
	NAME(SCOPE, "omp_scope")                                                                   \
	NAME(MASKED, "omp_masked")                                                                 \
	NAME(BARRIER, "omp_barrier")                                                               \
	NAME(BARRIER_IMPLICIT, "omp_barrier_implicit")                                             \
	NAME(BARRIER_IMPLEMENTATION, "omp_barrier_implementation")                                 \
	NAME(BARRIER_TEAMS, "omp_barrier_teams")                                                   \
	NAME(TASKWAIT, "omp_taskwait")                                                             \
	NAME(TASKGROUP, "omp_taskgroup")                                                           \
	NAME(REDUCTION, "omp_reduction")                                                           \
	NAME(BARRIER_WAIT, "omp_barrier_wait")                                                     \
	NAME(TASKWAIT_WAIT, "omp_taskwait_wait")                                                   \
	NAME(TASKGROUP_WAIT, "omp_taskgroup_wait")                                                 \
	NAME(REDUCTION_WAIT, "omp_reduction_wait")                                                 \
	NAME(LOCK_WAIT, "omp_lock_wait")                                                           \
	NAME(CRITICAL_WAIT, "omp_critical_wait")                                                   \
	NAME(ATOMIC_WAIT, "omp_atomic_wait")                                                       \
	NAME(ORDERED_WAIT, "omp_ordered_wait")                                                     \
	NAME(LOCK_RELEASED, "omp_lock_released")                                                   \
	NAME(CRITICAL, "omp_critical")                                                             \
	NAME(ATOMIC, "omp_atomic")                                                                 \
	NAME(ORDERED, "omp_ordered")                                                               \
	NAME(TASK, "omp_task")                                                                     \
	NAME(TASK_CREATE, "omp_task_create")                                                       \
	NAME(FLUSH, "omp_flush")                                                                   \
	NAME(CANCEL, "omp_cancel")                                                                 \
	NAME(ERROR, "omp_error")                                                                   \
	NAME(TARGET, "omp_target")                                                                 \
	NAME(TARGET_ENTER_DATA, "omp_target_enter_data")                                           \
	NAME(TARGET_EXIT_DATA, "omp_target_exit_data")                                             \
	NAME(TARGET_UPDATE, "omp_target_update")                                                   \
	NAME(TARGET_SUBMIT, "omp_target_submit")                                                   \
	NAME(TARGET_ALLOC, "omp_target_alloc")                                                     \
	NAME(TARGET_TO_DEVICE, "omp_target_transfer_to_device")                                    \
	NAME(TARGET_FROM_DEVICE, "omp_target_transfer_from_device")                                \
	NAME(TARGET_DELETE, "omp_target_delete")                                                   \
	NAME(TARGET_ASSOCIATE, "omp_target_associate")                                             \
	NAME(TARGET_DISASSOCIATE, "omp_target_disassociate")

enum ompt_region_name {
#define OMPT_NAME(id, text) OMPT_NAME_##id,
	OMPT_REGION_NAME_LIST(OMPT_NAME)
#undef OMPT_NAME
		OMPT_NAME_COUNT,
	OMPT_NAME_NONE = OMPT_NAME_COUNT /* not recorded */
};

/* Begins a region of this thread, with values. `what` tells those apart that can be open several
 * times in any order (tasks); else 0. */
void ompt_begin_region(enum ompt_region_name name, uint64_t what, const struct region_value *values,
		       uint32_t count);
/* Ends the innermost one with this name and `what`, and what is open inside it. Nothing if it is
 * not open. */
void ompt_end_region(enum ompt_region_name name, uint64_t what);
bool ompt_region_is_open(enum ompt_region_name name, uint64_t what);
/* Ends all that this thread left open; with `but_thread` not the region of the thread itself. */
void ompt_end_all_regions(bool but_thread);
void ompt_record_mark(enum ompt_region_name name, const struct region_value *values,
		      uint32_t count);
/* Something that is known to be a wait only when it is over: ompt_remember_lock_wait_begin()
 * remembers the time, and ompt_record_lock_wait() records from there to now. */
void ompt_remember_lock_wait_begin(void);
void ompt_record_lock_wait(enum ompt_region_name name, const struct region_value *values,
			   uint32_t count);

#endif
