/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenMP as GCC calls it (libgomp_g.h), and its locks. A region's body is led through run_body()
 * by way of a pair of the real one and its data, which lies on the stack of the thread that meets
 * the region: it stays there until all have passed the barrier at the region's end.
 */
#include "wrappers/causal_openmp.h"

static __thread struct openmp_wait *waiting; /* the innermost wait, unless a task interrupts it */
static __thread struct openmp_wait between;
static __thread bool is_between;
static atomic_bool has_tasks;
static __thread unsigned depth; /* bodies and regions of the thread, one inside the other */

void causal_openmp_has_tasks(void)
{
	atomic_store_explicit(&has_tasks, true, memory_order_relaxed);
}

void causal_openmp_wait_begins(struct openmp_wait *wait)
{
	wait->outer = waiting;
	causal_before_wait(&wait->wait);
	if (atomic_load_explicit(&has_tasks, memory_order_relaxed))
		causal_wait_runs();
	waiting = wait;
}

void causal_openmp_wait_ends(struct openmp_wait *wait, uint64_t site)
{
	causal_after_wait_at(&wait->wait, CAUSAL_WAKER_SESSION, site);
	waiting = wait->outer;
}

struct openmp_wait *causal_openmp_task_begins(uint64_t task)
{
	struct openmp_wait *interrupted = waiting;

	if (interrupted)
		causal_after_wait_at(&interrupted->wait, CAUSAL_WAKER_SESSION, task);
	waiting = NULL;
	return interrupted;
}

void causal_openmp_task_ends(struct openmp_wait *interrupted)
{
	if (interrupted)
		causal_before_wait(&interrupted->wait);
	else
		causal_pay();
	waiting = interrupted;
}

static void end_between(uint64_t site)
{
	if (is_between)
		causal_openmp_wait_ends(&between, site);
	is_between = false;
}

void causal_openmp_body_begins(uint64_t body)
{
	end_between(body);
	depth++;
}

void causal_openmp_body_ends(void)
{
	depth--;
	causal_openmp_wait_begins(&between);
	is_between = true;
}

void causal_openmp_fork(uint64_t site)
{
	causal_pay_at(site);
	depth++;
}

void causal_openmp_join(uint64_t site)
{
	static _Atomic uint32_t known; /* index of the point + 1 */
	uint32_t point = atomic_load_explicit(&known, memory_order_relaxed);

	end_between(site);
	if (--depth)
		return;
	if (!point) {
		point = causal_point("openmp regions", CAUSAL_POINT_PROGRESS,
				     CAUSAL_ORIGIN_AUTOMATIC) +
			1;
		atomic_store_explicit(&known, point, memory_order_relaxed);
	}
	if (point)
		causal_visit(point - 1);
}

struct body {
	void *reductions; /* where GOMP_parallel_reductions looks for them in the data */
	void (*function)(void *);
	void *data;
};

static void run_body(void *argument)
{
	struct body body = *(const struct body *)argument;

	causal_openmp_body_begins((uint64_t)(uintptr_t)body.function);
	body.function(body.data);
	causal_openmp_body_ends();
}

#define PACED_REGION(symbol, parameters, arguments, arguments_of_body)                             \
	void symbol parameters;                                                                    \
	PACED_ORIGINAL(symbol);                                                                    \
	static void paced_##symbol parameters                                                      \
	{                                                                                          \
		struct body body = {NULL, function, data};                                         \
		if (!causal_on()) {                                                                \
			ORIGINAL(symbol) arguments;                                                \
			return;                                                                    \
		}                                                                                  \
		causal_openmp_fork(CAUSAL_SITE);                                                   \
		ORIGINAL(symbol) arguments_of_body;                                                \
		causal_openmp_join(CAUSAL_SITE);                                                   \
	}

#define PACED_LOOP(symbol)                                                                         \
	PACED_REGION(symbol,                                                                       \
		     (void (*function)(void *), void *data, unsigned threads, long first,          \
		      long last, long step, long chunk, unsigned flags),                           \
		     (function, data, threads, first, last, step, chunk, flags),                   \
		     (run_body, &body, threads, first, last, step, chunk, flags))
#define PACED_LOOP_RUNTIME(symbol)                                                                 \
	PACED_REGION(symbol,                                                                       \
		     (void (*function)(void *), void *data, unsigned threads, long first,          \
		      long last, long step, unsigned flags),                                       \
		     (function, data, threads, first, last, step, flags),                          \
		     (run_body, &body, threads, first, last, step, flags))

PACED_REGION(GOMP_parallel,
	     (void (*function)(void *), void *data, unsigned threads, unsigned flags),
	     (function, data, threads, flags), (run_body, &body, threads, flags))
PACED_REGION(GOMP_parallel_sections,
	     (void (*function)(void *), void *data, unsigned threads, unsigned count,
	      unsigned flags),
	     (function, data, threads, count, flags), (run_body, &body, threads, count, flags))
PACED_LOOP(GOMP_parallel_loop_static)
PACED_LOOP(GOMP_parallel_loop_dynamic)
PACED_LOOP(GOMP_parallel_loop_guided)
PACED_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
PACED_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
PACED_LOOP_RUNTIME(GOMP_parallel_loop_runtime)
PACED_LOOP_RUNTIME(GOMP_parallel_loop_nonmonotonic_runtime)
PACED_LOOP_RUNTIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

unsigned GOMP_parallel_reductions(void (*function)(void *), void *data, unsigned threads,
				  unsigned flags);
PACED_ORIGINAL(GOMP_parallel_reductions);
static unsigned paced_GOMP_parallel_reductions(void (*function)(void *), void *data,
					       unsigned threads, unsigned flags)
{
	struct body body = {NULL, function, data};
	unsigned result;

	if (!causal_on())
		return ORIGINAL(GOMP_parallel_reductions)(function, data, threads, flags);
	body.reductions = *(void **)data;
	causal_openmp_fork(CAUSAL_SITE);
	result = ORIGINAL(GOMP_parallel_reductions)(run_body, &body, threads, flags);
	causal_openmp_join(CAUSAL_SITE);
	return result;
}

int causal_openmp_add(void)
{
	static struct got_wrapper rows[] = {
		OPENMP_ROW(GOMP_parallel),
		OPENMP_ROW(GOMP_parallel_sections),
		OPENMP_ROW(GOMP_parallel_loop_static),
		OPENMP_ROW(GOMP_parallel_loop_dynamic),
		OPENMP_ROW(GOMP_parallel_loop_guided),
		OPENMP_ROW(GOMP_parallel_loop_nonmonotonic_dynamic),
		OPENMP_ROW(GOMP_parallel_loop_nonmonotonic_guided),
		OPENMP_ROW(GOMP_parallel_loop_runtime),
		OPENMP_ROW(GOMP_parallel_loop_nonmonotonic_runtime),
		OPENMP_ROW(GOMP_parallel_loop_maybe_nonmonotonic_runtime),
		OPENMP_ROW(GOMP_parallel_reductions)};
	int error = got_add(TABLE(rows));

	if (!error)
		error = causal_openmp_waits_add();
	return error ? error : causal_openmp_llvm_add();
}
