/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What waits and wakes inside OpenMP regions, as GCC calls it (libgomp_g.h), and OpenMP's locks.
 *
 * Tasks are led through run_task() by copying their data, which the run time does for each task,
 * behind a header. Left out are tasks whose data the run time itself looks into (detach,
 * reductions, taskloops): they count as part of the wait in which they run.
 */
#include <string.h>

#include "wrappers/causal_openmp.h"

/* ---- barriers, sections, loops ---- */

OPENMP_WAIT_VOID(GOMP_parallel_end, (void), ())
OPENMP_WAIT_VOID(GOMP_barrier, (void), ())
OPENMP_WAIT(bool, GOMP_barrier_cancel, (void), ())
OPENMP_WAIT_VOID(GOMP_loop_end, (void), ())
OPENMP_WAIT(bool, GOMP_loop_end_cancel, (void), ())
OPENMP_WAIT_VOID(GOMP_sections_end, (void), ())
OPENMP_WAIT(bool, GOMP_sections_end_cancel, (void), ())
OPENMP_WAIT(void *, GOMP_single_copy_start, (void), ())
OPENMP_WAIT_VOID(GOMP_single_copy_end, (void *data), (data))
OPENMP_WAIT_VOID(GOMP_ordered_start, (void), ())
OPENMP_WAKE(GOMP_ordered_end, (void), ())

/* ---- mutual exclusion ---- */

OPENMP_WAIT_VOID(GOMP_critical_start, (void), ())
OPENMP_WAKE(GOMP_critical_end, (void), ())
OPENMP_WAIT_VOID(GOMP_critical_name_start, (void **name), (name))
OPENMP_WAKE(GOMP_critical_name_end, (void **name), (name))
OPENMP_WAIT_VOID(GOMP_atomic_start, (void), ())
OPENMP_WAKE(GOMP_atomic_end, (void), ())
OPENMP_WAIT_VOID(omp_set_lock, (void *lock), (lock))
OPENMP_WAKE(omp_unset_lock, (void *lock), (lock))
OPENMP_WAIT_VOID(omp_set_nest_lock, (void *lock), (lock))
OPENMP_WAKE(omp_unset_nest_lock, (void *lock), (lock))

/* ---- tasks ---- */

#define TASK_REDUCTION (1u << 12) /* gomp-constants.h */
#define TASK_DETACH    (1u << 13)

struct task {
	void (*function)(void *);
	void (*copy)(void *, void *);
	void *data;
	size_t size, offset; /* of its data behind the header */
};

static void copy_task(void *to, void *from)
{
	const struct task *task = from;
	void *data = (char *)to + task->offset;

	memcpy(to, task, sizeof(*task));
	if (task->copy)
		task->copy(data, task->data);
	else if (task->size)
		memcpy(data, task->data, task->size);
}

static void run_task(void *argument)
{
	const struct task *task = argument;
	struct openmp_wait *interrupted =
		causal_openmp_task_begins((uint64_t)(uintptr_t)task->function);

	task->function((char *)argument + task->offset);
	causal_openmp_task_ends(interrupted);
}

/* Compilers pass the last arguments since GCC 4.9, 6 and 11; nobody looks at them without their
 * flags. */
void GOMP_task(void (*function)(void *), void *data, void (*copy)(void *, void *), long size,
	       long alignment, bool deferred, unsigned flags, void **depends, int priority,
	       void *detach);
PACED_ORIGINAL(GOMP_task);
static void paced_GOMP_task(void (*function)(void *), void *data, void (*copy)(void *, void *),
			    long size, long alignment, bool deferred, unsigned flags,
			    void **depends, int priority, void *detach)
{
	size_t align = alignment > 16 ? (size_t)alignment : 16;
	struct task task = {function, copy, data, (size_t)size,
			    (sizeof(task) + align - 1) & ~(align - 1)};

	if (causal_on())
		causal_pay_at(CAUSAL_SITE);
	if (!causal_on() || flags & (TASK_REDUCTION | TASK_DETACH)) {
		causal_openmp_has_tasks();
		ORIGINAL(GOMP_task)
		(function, data, copy, size, alignment, deferred, flags, depends, priority, detach);
		return;
	}
	ORIGINAL(GOMP_task)
	(run_task, &task, copy_task, size + (long)task.offset, (long)align, deferred, flags,
	 depends, priority, detach);
}

/* Its tasks begin with their own bounds. It may be waited for, or not. */
#define PACED_TASKLOOP(symbol, number)                                                             \
	void symbol(void *, void *, void *, long, long, unsigned, unsigned long, int, number,      \
		    number, number);                                                               \
	PACED_ORIGINAL(symbol);                                                                    \
	static void paced_##symbol(void *function, void *data, void *copy, long size,              \
				   long alignment, unsigned flags, unsigned long tasks,            \
				   int priority, number first, number last, number step)           \
	{                                                                                          \
		struct openmp_wait wait;                                                           \
		bool on = causal_on();                                                             \
		causal_openmp_has_tasks();                                                         \
		if (on)                                                                            \
			causal_openmp_wait_begins(&wait);                                          \
		ORIGINAL(symbol)                                                                   \
		(function, data, copy, size, alignment, flags, tasks, priority, first, last,       \
		 step);                                                                            \
		if (on)                                                                            \
			causal_openmp_wait_ends(&wait, CAUSAL_SITE);                               \
	}

PACED_TASKLOOP(GOMP_taskloop, long)
PACED_TASKLOOP(GOMP_taskloop_ull, unsigned long long)
OPENMP_WAIT_VOID(GOMP_taskwait, (void), ())
OPENMP_WAIT_VOID(GOMP_taskwait_depend, (void **depends), (depends))
OPENMP_WAIT_VOID(GOMP_taskyield, (void), ())
OPENMP_WAIT_VOID(GOMP_taskgroup_end, (void), ())

int causal_openmp_waits_add(void)
{
	static struct got_wrapper rows[] = {OPENMP_ROW(GOMP_parallel_end),
					    OPENMP_ROW(GOMP_barrier),
					    OPENMP_ROW(GOMP_barrier_cancel),
					    OPENMP_ROW(GOMP_loop_end),
					    OPENMP_ROW(GOMP_loop_end_cancel),
					    OPENMP_ROW(GOMP_sections_end),
					    OPENMP_ROW(GOMP_sections_end_cancel),
					    OPENMP_ROW(GOMP_single_copy_start),
					    OPENMP_ROW(GOMP_single_copy_end),
					    OPENMP_ROW(GOMP_ordered_start),
					    OPENMP_ROW(GOMP_ordered_end),
					    OPENMP_ROW(GOMP_critical_start),
					    OPENMP_ROW(GOMP_critical_end),
					    OPENMP_ROW(GOMP_critical_name_start),
					    OPENMP_ROW(GOMP_critical_name_end),
					    OPENMP_ROW(GOMP_atomic_start),
					    OPENMP_ROW(GOMP_atomic_end),
					    OPENMP_ROW(omp_set_lock),
					    OPENMP_ROW(omp_unset_lock),
					    OPENMP_ROW(omp_set_nest_lock),
					    OPENMP_ROW(omp_unset_nest_lock),
					    OPENMP_ROW(GOMP_task),
					    OPENMP_ROW(GOMP_taskloop),
					    OPENMP_ROW(GOMP_taskloop_ull),
					    OPENMP_ROW(GOMP_taskwait),
					    OPENMP_ROW(GOMP_taskwait_depend),
					    OPENMP_ROW(GOMP_taskyield),
					    OPENMP_ROW(GOMP_taskgroup_end)};

	return got_add(TABLE(rows));
}
