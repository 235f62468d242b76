/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What waits and wakes inside OpenMP regions, as GCC calls it (libgomp_g.h), and OpenMP's locks.
 *
 * Tasks are led through run_wrapped_task() by copying their data, which the run time does for each
 * task, behind a header. Left out are tasks whose data the run time itself looks into (detach,
 * reductions, taskloops): they count as part of the wait in which they run.
 */
#include <string.h>

#include "wrappers/causal/openmp.h"

/* ---- barriers, sections, loops ---- */

DEFINE_OPENMP_WAIT_VOID(GOMP_parallel_end, (void), ())
DEFINE_OPENMP_WAIT_VOID(GOMP_barrier, (void), ())
DEFINE_OPENMP_WAIT(bool, GOMP_barrier_cancel, (void), ())
DEFINE_OPENMP_WAIT_VOID(GOMP_loop_end, (void), ())
DEFINE_OPENMP_WAIT(bool, GOMP_loop_end_cancel, (void), ())
DEFINE_OPENMP_WAIT_VOID(GOMP_sections_end, (void), ())
DEFINE_OPENMP_WAIT(bool, GOMP_sections_end_cancel, (void), ())
DEFINE_OPENMP_WAIT(void *, GOMP_single_copy_start, (void), ())
DEFINE_OPENMP_WAIT_VOID(GOMP_single_copy_end, (void *data), (data))
DEFINE_OPENMP_WAIT_VOID(GOMP_ordered_start, (void), ())
DEFINE_OPENMP_WAKE(GOMP_ordered_end, (void), ())

/* ---- mutual exclusion ---- */

DEFINE_OPENMP_WAIT_VOID(GOMP_critical_start, (void), ())
DEFINE_OPENMP_WAKE(GOMP_critical_end, (void), ())
DEFINE_OPENMP_WAIT_VOID(GOMP_critical_name_start, (void **name), (name))
DEFINE_OPENMP_WAKE(GOMP_critical_name_end, (void **name), (name))
DEFINE_OPENMP_WAIT_VOID(GOMP_atomic_start, (void), ())
DEFINE_OPENMP_WAKE(GOMP_atomic_end, (void), ())
DEFINE_OPENMP_WAIT_VOID(omp_set_lock, (void *lock), (lock))
DEFINE_OPENMP_WAKE(omp_unset_lock, (void *lock), (lock))
DEFINE_OPENMP_WAIT_VOID(omp_set_nest_lock, (void *lock), (lock))
DEFINE_OPENMP_WAKE(omp_unset_nest_lock, (void *lock), (lock))

/* ---- tasks ---- */

#define GOMP_TASK_FLAG_REDUCTION (1u << 12) /* gomp-constants.h */
#define GOMP_TASK_FLAG_DETACH    (1u << 13)

struct wrapped_task_header {
	void (*function)(void *);
	void (*copy_function)(void *, void *);
	void *data;
	size_t size, offset; /* of its data behind the header */
};

static void copy_wrapped_task(void *to, void *from)
{
	const struct wrapped_task_header *task = from;
	void *data = (char *)to + task->offset;

	memcpy(to, task, sizeof(*task));
	if (task->copy_function)
		task->copy_function(data, task->data);
	else if (task->size)
		memcpy(data, task->data, task->size);
}

static void run_wrapped_task(void *argument)
{
	const struct wrapped_task_header *task = argument;
	struct openmp_wait_state *interrupted =
		causal_openmp_interrupt_wait_by_task((uint64_t)(uintptr_t)task->function);

	task->function((char *)argument + task->offset);
	causal_openmp_resume_interrupted_wait(interrupted);
}

/* Compilers pass the last arguments since GCC 4.9, 6 and 11; nobody looks at them without their
 * flags. */
void GOMP_task(void (*function)(void *), void *data, void (*copy)(void *, void *), long size,
	       long alignment, bool deferred, unsigned flags, void **depends, int priority,
	       void *detach);
DEFINE_ORIGINAL_POINTER(GOMP_task);
static void paced_GOMP_task(void (*function)(void *), void *data, void (*copy)(void *, void *),
			    long size, long alignment, bool deferred, unsigned flags,
			    void **depends, int priority, void *detach)
{
	size_t align = alignment > 16 ? (size_t)alignment : 16;
	struct wrapped_task_header task = {function, copy, data, (size_t)size,
					   (sizeof(task) + align - 1) & ~(align - 1)};

	if (causal_is_active())
		causal_pay_delay_at_site(CAUSAL_GET_CALL_SITE);
	if (!causal_is_active() || flags & (GOMP_TASK_FLAG_REDUCTION | GOMP_TASK_FLAG_DETACH)) {
		causal_openmp_set_unwrapped_tasks_flag();
		ORIGINAL(GOMP_task)
		(function, data, copy, size, alignment, deferred, flags, depends, priority, detach);
		return;
	}
	ORIGINAL(GOMP_task)
	(run_wrapped_task, &task, copy_wrapped_task, size + (long)task.offset, (long)align,
	 deferred, flags, depends, priority, detach);
}

/* Its tasks begin with their own bounds. It may be waited for, or not. */
#define DEFINE_PACED_TASKLOOP(symbol, number)                                                      \
	void symbol(void *, void *, void *, long, long, unsigned, unsigned long, int, number,      \
		    number, number);                                                               \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static void paced_##symbol(void *function, void *data, void *copy, long size,              \
				   long alignment, unsigned flags, unsigned long tasks,            \
				   int priority, number first, number last, number step)           \
	{                                                                                          \
		struct openmp_wait_state wait;                                                     \
		bool on = causal_is_active();                                                      \
		causal_openmp_set_unwrapped_tasks_flag();                                          \
		if (on)                                                                            \
			causal_openmp_begin_wait(&wait);                                           \
		ORIGINAL(symbol)                                                                   \
		(function, data, copy, size, alignment, flags, tasks, priority, first, last,       \
		 step);                                                                            \
		if (on)                                                                            \
			causal_openmp_end_wait(&wait, CAUSAL_GET_CALL_SITE);                       \
	}

DEFINE_PACED_TASKLOOP(GOMP_taskloop, long)
DEFINE_PACED_TASKLOOP(GOMP_taskloop_ull, unsigned long long)
DEFINE_OPENMP_WAIT_VOID(GOMP_taskwait, (void), ())
DEFINE_OPENMP_WAIT_VOID(GOMP_taskwait_depend, (void **depends), (depends))
DEFINE_OPENMP_WAIT_VOID(GOMP_taskyield, (void), ())
DEFINE_OPENMP_WAIT_VOID(GOMP_taskgroup_end, (void), ())

int causal_add_openmp_wait_wrappers(void)
{
	static struct got_wrapper rows[] = {OPENMP_TABLE_ROW(GOMP_parallel_end),
					    OPENMP_TABLE_ROW(GOMP_barrier),
					    OPENMP_TABLE_ROW(GOMP_barrier_cancel),
					    OPENMP_TABLE_ROW(GOMP_loop_end),
					    OPENMP_TABLE_ROW(GOMP_loop_end_cancel),
					    OPENMP_TABLE_ROW(GOMP_sections_end),
					    OPENMP_TABLE_ROW(GOMP_sections_end_cancel),
					    OPENMP_TABLE_ROW(GOMP_single_copy_start),
					    OPENMP_TABLE_ROW(GOMP_single_copy_end),
					    OPENMP_TABLE_ROW(GOMP_ordered_start),
					    OPENMP_TABLE_ROW(GOMP_ordered_end),
					    OPENMP_TABLE_ROW(GOMP_critical_start),
					    OPENMP_TABLE_ROW(GOMP_critical_end),
					    OPENMP_TABLE_ROW(GOMP_critical_name_start),
					    OPENMP_TABLE_ROW(GOMP_critical_name_end),
					    OPENMP_TABLE_ROW(GOMP_atomic_start),
					    OPENMP_TABLE_ROW(GOMP_atomic_end),
					    OPENMP_TABLE_ROW(omp_set_lock),
					    OPENMP_TABLE_ROW(omp_unset_lock),
					    OPENMP_TABLE_ROW(omp_set_nest_lock),
					    OPENMP_TABLE_ROW(omp_unset_nest_lock),
					    OPENMP_TABLE_ROW(GOMP_task),
					    OPENMP_TABLE_ROW(GOMP_taskloop),
					    OPENMP_TABLE_ROW(GOMP_taskloop_ull),
					    OPENMP_TABLE_ROW(GOMP_taskwait),
					    OPENMP_TABLE_ROW(GOMP_taskwait_depend),
					    OPENMP_TABLE_ROW(GOMP_taskyield),
					    OPENMP_TABLE_ROW(GOMP_taskgroup_end)};

	return got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));
}
