/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenMP as clang calls it (LLVM, openmp/runtime/src/kmp.h). A region's body gets the thread's two
 * numbers and as many pointers as the call says; run_body() stands in for it with two pointers more
 * in front: the real one, and their number. Functions that are called with more arguments than they
 * have take no harm (System V ABI, AMD64 supplement 3.2.3), so there is one call for all numbers.
 */
#include <stdarg.h>

#include "wrappers/causal_openmp.h"

#define BODY_ARGUMENTS 24

struct kmp_location;

#define LIST(a)                                                                                    \
	(a)[0], (a)[1], (a)[2], (a)[3], (a)[4], (a)[5], (a)[6], (a)[7], (a)[8], (a)[9], (a)[10],   \
		(a)[11], (a)[12], (a)[13], (a)[14], (a)[15], (a)[16], (a)[17], (a)[18], (a)[19],   \
		(a)[20], (a)[21], (a)[22], (a)[23]

static void take(void **argument, long count, va_list list)
{
	for (long i = 0; i < BODY_ARGUMENTS; i++)
		argument[i] = i < count ? va_arg(list, void *) : NULL;
}

static void run_body(const int *global, const int *bound, void *function, long count, ...)
{
	void (*body)(const int *, const int *, ...) =
		(void (*)(const int *, const int *, ...))function;
	void *argument[BODY_ARGUMENTS];
	va_list list;

	va_start(list, count);
	take(argument, count, list);
	va_end(list);
	causal_openmp_body_begins((uint64_t)(uintptr_t)function);
	body(global, bound, LIST(argument));
	causal_openmp_body_ends();
}

void __kmpc_fork_call(struct kmp_location *location, int count, void *body, ...);
PACED_ORIGINAL(__kmpc_fork_call);
static void paced___kmpc_fork_call(struct kmp_location *location, int count, void *body, ...)
{
	void *argument[BODY_ARGUMENTS];
	va_list list;

	va_start(list, body);
	take(argument, count, list);
	va_end(list);
	if (!causal_on()) {
		ORIGINAL(__kmpc_fork_call)(location, count, body, LIST(argument));
		return;
	}
	causal_openmp_fork(CAUSAL_SITE);
	ORIGINAL(__kmpc_fork_call)
	(location, count + 2, (void *)run_body, body, (void *)(long)count, LIST(argument));
	causal_openmp_join(CAUSAL_SITE);
}

#define LOCATED(...) (struct kmp_location * location, int thread, ##__VA_ARGS__)

OPENMP_WAIT_VOID(__kmpc_barrier, LOCATED(), (location, thread))
OPENMP_WAIT(int, __kmpc_cancel_barrier, LOCATED(), (location, thread))
OPENMP_WAIT(int, __kmpc_barrier_master, LOCATED(), (location, thread))
OPENMP_WAKE(__kmpc_end_barrier_master, LOCATED(), (location, thread))
OPENMP_WAIT_VOID(__kmpc_critical, LOCATED(void *lock), (location, thread, lock))
OPENMP_WAIT_VOID(__kmpc_critical_with_hint, LOCATED(void *lock, unsigned hint),
		 (location, thread, lock, hint))
OPENMP_WAKE(__kmpc_end_critical, LOCATED(void *lock), (location, thread, lock))
OPENMP_WAIT_VOID(__kmpc_ordered, LOCATED(), (location, thread))
OPENMP_WAKE(__kmpc_end_ordered, LOCATED(), (location, thread))
OPENMP_WAIT(int, __kmpc_reduce,
	    LOCATED(int count, size_t size, void *data, void (*reduce)(void *, void *), void *lock),
	    (location, thread, count, size, data, reduce, lock))
OPENMP_WAIT_VOID(__kmpc_end_reduce, LOCATED(void *lock), (location, thread, lock))
OPENMP_WAIT(int, __kmpc_reduce_nowait,
	    LOCATED(int count, size_t size, void *data, void (*reduce)(void *, void *), void *lock),
	    (location, thread, count, size, data, reduce, lock))
OPENMP_WAKE(__kmpc_end_reduce_nowait, LOCATED(void *lock), (location, thread, lock))
OPENMP_WAIT_VOID(__kmpc_copyprivate,
		 LOCATED(size_t size, void *data, void (*copy)(void *, void *), int did),
		 (location, thread, size, data, copy, did))
/* Where tasks are made, whatever starts them then. */
void *__kmpc_omp_task_alloc LOCATED(int flags, size_t size, size_t shared, void *entry);
PACED_ORIGINAL(__kmpc_omp_task_alloc);
static void *paced___kmpc_omp_task_alloc LOCATED(int flags, size_t size, size_t shared, void *entry)
{
	causal_openmp_has_tasks();
	return ORIGINAL(__kmpc_omp_task_alloc)(location, thread, flags, size, shared, entry);
}

OPENMP_WAIT(int, __kmpc_omp_taskwait, LOCATED(), (location, thread))
OPENMP_WAIT(int, __kmpc_omp_taskyield, LOCATED(int end), (location, thread, end))
OPENMP_WAIT_VOID(__kmpc_end_taskgroup, LOCATED(), (location, thread))
OPENMP_WAIT(int, __kmpc_omp_task, LOCATED(void *task), (location, thread, task))
OPENMP_WAIT_VOID(__kmpc_set_lock, LOCATED(void **lock), (location, thread, lock))
OPENMP_WAKE(__kmpc_unset_lock, LOCATED(void **lock), (location, thread, lock))

int causal_openmp_llvm_add(void)
{
	static struct got_wrapper rows[] = {OPENMP_ROW(__kmpc_fork_call),
					    OPENMP_ROW(__kmpc_barrier),
					    OPENMP_ROW(__kmpc_cancel_barrier),
					    OPENMP_ROW(__kmpc_barrier_master),
					    OPENMP_ROW(__kmpc_end_barrier_master),
					    OPENMP_ROW(__kmpc_critical),
					    OPENMP_ROW(__kmpc_critical_with_hint),
					    OPENMP_ROW(__kmpc_end_critical),
					    OPENMP_ROW(__kmpc_ordered),
					    OPENMP_ROW(__kmpc_end_ordered),
					    OPENMP_ROW(__kmpc_reduce),
					    OPENMP_ROW(__kmpc_end_reduce),
					    OPENMP_ROW(__kmpc_reduce_nowait),
					    OPENMP_ROW(__kmpc_end_reduce_nowait),
					    OPENMP_ROW(__kmpc_copyprivate),
					    OPENMP_ROW(__kmpc_omp_task_alloc),
					    OPENMP_ROW(__kmpc_omp_taskwait),
					    OPENMP_ROW(__kmpc_omp_taskyield),
					    OPENMP_ROW(__kmpc_end_taskgroup),
					    OPENMP_ROW(__kmpc_omp_task),
					    OPENMP_ROW(__kmpc_set_lock),
					    OPENMP_ROW(__kmpc_unset_lock)};

	return got_add(TABLE(rows));
}
