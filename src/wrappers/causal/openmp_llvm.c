/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenMP as clang calls it (LLVM, openmp/runtime/src/kmp.h). A region's body gets the thread's two
 * numbers and as many pointers as the call says; run_parallel_body() stands in for it with two
 * pointers more in front: the real one, and their number. Functions that are called with more
 * arguments than they have take no harm (System V ABI, AMD64 supplement 3.2.3), so there is one
 * call for all numbers.
 */
#include <stdarg.h>

#include "wrappers/causal/openmp.h"

#define BODY_ARGUMENTS_MAX 24

struct kmp_location;

#define EXPAND_BODY_ARGUMENTS(a)                                                                   \
	(a)[0], (a)[1], (a)[2], (a)[3], (a)[4], (a)[5], (a)[6], (a)[7], (a)[8], (a)[9], (a)[10],   \
		(a)[11], (a)[12], (a)[13], (a)[14], (a)[15], (a)[16], (a)[17], (a)[18], (a)[19],   \
		(a)[20], (a)[21], (a)[22], (a)[23]

static void read_body_arguments(void **argument, long count, va_list list)
{
	for (long i = 0; i < BODY_ARGUMENTS_MAX; i++)
		argument[i] = i < count ? va_arg(list, void *) : NULL;
}

static void run_parallel_body(const int *global, const int *bound, void *function, long count, ...)
{
	void (*body)(const int *, const int *, ...) =
		(void (*)(const int *, const int *, ...))function;
	void *argument[BODY_ARGUMENTS_MAX];
	va_list list;

	va_start(list, count);
	read_body_arguments(argument, count, list);
	va_end(list);
	causal_openmp_begin_body_of_thread((uint64_t)(uintptr_t)function);
	body(global, bound, EXPAND_BODY_ARGUMENTS(argument));
	causal_openmp_end_body_of_thread();
}

void __kmpc_fork_call(struct kmp_location *location, int count, void *body, ...);
DEFINE_ORIGINAL_POINTER(__kmpc_fork_call);
static void paced___kmpc_fork_call(struct kmp_location *location, int count, void *body, ...)
{
	void *argument[BODY_ARGUMENTS_MAX];
	va_list list;

	va_start(list, body);
	read_body_arguments(argument, count, list);
	va_end(list);
	if (!causal_is_active()) {
		ORIGINAL(__kmpc_fork_call)(location, count, body, EXPAND_BODY_ARGUMENTS(argument));
		return;
	}
	causal_openmp_begin_parallel_region(CAUSAL_GET_CALL_SITE);
	ORIGINAL(__kmpc_fork_call)
	(location, count + 2, (void *)run_parallel_body, body, (void *)(long)count,
	 EXPAND_BODY_ARGUMENTS(argument));
	causal_openmp_end_parallel_region(CAUSAL_GET_CALL_SITE);
}

#define PARAMETERS_AFTER_LOCATION(...) (struct kmp_location * location, int thread, ##__VA_ARGS__)

DEFINE_OPENMP_WAIT_VOID(__kmpc_barrier, PARAMETERS_AFTER_LOCATION(), (location, thread))
DEFINE_OPENMP_WAIT(int, __kmpc_cancel_barrier, PARAMETERS_AFTER_LOCATION(), (location, thread))
DEFINE_OPENMP_WAIT(int, __kmpc_barrier_master, PARAMETERS_AFTER_LOCATION(), (location, thread))
DEFINE_OPENMP_WAKE(__kmpc_end_barrier_master, PARAMETERS_AFTER_LOCATION(), (location, thread))
DEFINE_OPENMP_WAIT_VOID(__kmpc_critical, PARAMETERS_AFTER_LOCATION(void *lock),
			(location, thread, lock))
DEFINE_OPENMP_WAIT_VOID(__kmpc_critical_with_hint,
			PARAMETERS_AFTER_LOCATION(void *lock, unsigned hint),
			(location, thread, lock, hint))
DEFINE_OPENMP_WAKE(__kmpc_end_critical, PARAMETERS_AFTER_LOCATION(void *lock),
		   (location, thread, lock))
DEFINE_OPENMP_WAIT_VOID(__kmpc_ordered, PARAMETERS_AFTER_LOCATION(), (location, thread))
DEFINE_OPENMP_WAKE(__kmpc_end_ordered, PARAMETERS_AFTER_LOCATION(), (location, thread))
DEFINE_OPENMP_WAIT(int, __kmpc_reduce,
		   PARAMETERS_AFTER_LOCATION(int count, size_t size, void *data,
					     void (*reduce)(void *, void *), void *lock),
		   (location, thread, count, size, data, reduce, lock))
DEFINE_OPENMP_WAIT_VOID(__kmpc_end_reduce, PARAMETERS_AFTER_LOCATION(void *lock),
			(location, thread, lock))
DEFINE_OPENMP_WAIT(int, __kmpc_reduce_nowait,
		   PARAMETERS_AFTER_LOCATION(int count, size_t size, void *data,
					     void (*reduce)(void *, void *), void *lock),
		   (location, thread, count, size, data, reduce, lock))
DEFINE_OPENMP_WAKE(__kmpc_end_reduce_nowait, PARAMETERS_AFTER_LOCATION(void *lock),
		   (location, thread, lock))
DEFINE_OPENMP_WAIT_VOID(__kmpc_copyprivate,
			PARAMETERS_AFTER_LOCATION(size_t size, void *data,
						  void (*copy)(void *, void *), int did),
			(location, thread, size, data, copy, did))
/* Where tasks are made, whatever starts them then. */
void *__kmpc_omp_task_alloc PARAMETERS_AFTER_LOCATION(int flags, size_t size, size_t shared,
						      void *entry);
DEFINE_ORIGINAL_POINTER(__kmpc_omp_task_alloc);
static void *paced___kmpc_omp_task_alloc PARAMETERS_AFTER_LOCATION(int flags, size_t size,
								   size_t shared, void *entry)
{
	causal_openmp_set_unwrapped_tasks_flag();
	return ORIGINAL(__kmpc_omp_task_alloc)(location, thread, flags, size, shared, entry);
}

DEFINE_OPENMP_WAIT(int, __kmpc_omp_taskwait, PARAMETERS_AFTER_LOCATION(), (location, thread))
DEFINE_OPENMP_WAIT(int, __kmpc_omp_taskyield, PARAMETERS_AFTER_LOCATION(int end),
		   (location, thread, end))
DEFINE_OPENMP_WAIT_VOID(__kmpc_end_taskgroup, PARAMETERS_AFTER_LOCATION(), (location, thread))
DEFINE_OPENMP_WAIT(int, __kmpc_omp_task, PARAMETERS_AFTER_LOCATION(void *task),
		   (location, thread, task))
DEFINE_OPENMP_WAIT_VOID(__kmpc_set_lock, PARAMETERS_AFTER_LOCATION(void **lock),
			(location, thread, lock))
DEFINE_OPENMP_WAKE(__kmpc_unset_lock, PARAMETERS_AFTER_LOCATION(void **lock),
		   (location, thread, lock))

int causal_add_llvm_openmp_wrappers(void)
{
	static struct got_wrapper rows[] = {OPENMP_TABLE_ROW(__kmpc_fork_call),
					    OPENMP_TABLE_ROW(__kmpc_barrier),
					    OPENMP_TABLE_ROW(__kmpc_cancel_barrier),
					    OPENMP_TABLE_ROW(__kmpc_barrier_master),
					    OPENMP_TABLE_ROW(__kmpc_end_barrier_master),
					    OPENMP_TABLE_ROW(__kmpc_critical),
					    OPENMP_TABLE_ROW(__kmpc_critical_with_hint),
					    OPENMP_TABLE_ROW(__kmpc_end_critical),
					    OPENMP_TABLE_ROW(__kmpc_ordered),
					    OPENMP_TABLE_ROW(__kmpc_end_ordered),
					    OPENMP_TABLE_ROW(__kmpc_reduce),
					    OPENMP_TABLE_ROW(__kmpc_end_reduce),
					    OPENMP_TABLE_ROW(__kmpc_reduce_nowait),
					    OPENMP_TABLE_ROW(__kmpc_end_reduce_nowait),
					    OPENMP_TABLE_ROW(__kmpc_copyprivate),
					    OPENMP_TABLE_ROW(__kmpc_omp_task_alloc),
					    OPENMP_TABLE_ROW(__kmpc_omp_taskwait),
					    OPENMP_TABLE_ROW(__kmpc_omp_taskyield),
					    OPENMP_TABLE_ROW(__kmpc_end_taskgroup),
					    OPENMP_TABLE_ROW(__kmpc_omp_task),
					    OPENMP_TABLE_ROW(__kmpc_set_lock),
					    OPENMP_TABLE_ROW(__kmpc_unset_lock)};

	return got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));
}
