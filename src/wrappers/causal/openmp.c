/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenMP as GCC calls it (libgomp_g.h), and its locks. A region's body is led through
 * run_parallel_body() by way of a pair of the real one and its data, which lies on the stack of the
 * thread that meets the region: it stays there until all have passed the barrier at the region's
 * end.
 */
#include "wrappers/causal/openmp.h"

static __thread struct openmp_wait_state
	*thread_innermost_openmp_wait; /* the innermost wait, unless a task interrupts it */
static __thread struct openmp_wait_state thread_between_bodies_wait_state;
static __thread bool thread_between_openmp_bodies_flag;
static atomic_bool program_has_unwrapped_tasks_flag;
static __thread unsigned
	parallel_depth; /* bodies and regions of the thread, one inside the other */

void causal_openmp_set_unwrapped_tasks_flag(void)
{
	atomic_store_explicit(&program_has_unwrapped_tasks_flag, true, memory_order_relaxed);
}

void causal_openmp_begin_wait(struct openmp_wait_state *wait)
{
	wait->outer = thread_innermost_openmp_wait;
	causal_apply_delay_and_begin_wait(&wait->wait);
	if (atomic_load_explicit(&program_has_unwrapped_tasks_flag, memory_order_relaxed))
		causal_allow_pauses_in_wait();
	thread_innermost_openmp_wait = wait;
}

void causal_openmp_end_wait(struct openmp_wait_state *wait, uint64_t site)
{
	causal_end_wait_at_site(&wait->wait, CAUSAL_WAKER_SESSION, site);
	thread_innermost_openmp_wait = wait->outer;
}

struct openmp_wait_state *causal_openmp_interrupt_wait_by_task(uint64_t task)
{
	struct openmp_wait_state *interrupted = thread_innermost_openmp_wait;

	if (interrupted)
		causal_end_wait_at_site(&interrupted->wait, CAUSAL_WAKER_SESSION, task);
	thread_innermost_openmp_wait = NULL;
	return interrupted;
}

void causal_openmp_resume_interrupted_wait(struct openmp_wait_state *interrupted)
{
	if (interrupted)
		causal_apply_delay_and_begin_wait(&interrupted->wait);
	else
		causal_pay_delay();
	thread_innermost_openmp_wait = interrupted;
}

static void end_wait_between_bodies(uint64_t site)
{
	if (thread_between_openmp_bodies_flag)
		causal_openmp_end_wait(&thread_between_bodies_wait_state, site);
	thread_between_openmp_bodies_flag = false;
}

void causal_openmp_begin_body_of_thread(uint64_t body)
{
	end_wait_between_bodies(body);
	parallel_depth++;
}

void causal_openmp_end_body_of_thread(void)
{
	parallel_depth--;
	causal_openmp_begin_wait(&thread_between_bodies_wait_state);
	thread_between_openmp_bodies_flag = true;
}

void causal_openmp_begin_parallel_region(uint64_t site)
{
	causal_pay_delay_at_site(site);
	parallel_depth++;
}

void causal_openmp_end_parallel_region(uint64_t site)
{
	static _Atomic uint32_t known; /* index of the point + 1 */
	uint32_t point = atomic_load_explicit(&known, memory_order_relaxed);

	end_wait_between_bodies(site);
	if (--parallel_depth)
		return;
	if (!point) {
		point = causal_find_or_add_point("openmp regions", CAUSAL_POINT_PROGRESS,
						 CAUSAL_ORIGIN_AUTOMATIC) +
			1;
		atomic_store_explicit(&known, point, memory_order_relaxed);
	}
	if (point)
		causal_record_visit(point - 1);
}

struct parallel_body_and_data {
	void *reductions; /* where GOMP_parallel_reductions looks for them in the data */
	void (*function)(void *);
	void *data;
};

static void run_parallel_body(void *argument)
{
	struct parallel_body_and_data body = *(const struct parallel_body_and_data *)argument;

	causal_openmp_begin_body_of_thread((uint64_t)(uintptr_t)body.function);
	body.function(body.data);
	causal_openmp_end_body_of_thread();
}

#define DEFINE_PACED_PARALLEL_REGION(symbol, parameters, arguments, arguments_of_body)             \
	void symbol parameters;                                                                    \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static void paced_##symbol parameters                                                      \
	{                                                                                          \
		struct parallel_body_and_data body = {NULL, function, data};                       \
		if (!causal_is_active()) {                                                         \
			ORIGINAL(symbol) arguments;                                                \
			return;                                                                    \
		}                                                                                  \
		causal_openmp_begin_parallel_region(CAUSAL_GET_CALL_SITE);                         \
		ORIGINAL(symbol) arguments_of_body;                                                \
		causal_openmp_end_parallel_region(CAUSAL_GET_CALL_SITE);                           \
	}

#define DEFINE_PACED_PARALLEL_LOOP(symbol)                                                         \
	DEFINE_PACED_PARALLEL_REGION(                                                              \
		symbol,                                                                            \
		(void (*function)(void *), void *data, unsigned threads, long first, long last,    \
		 long step, long chunk, unsigned flags),                                           \
		(function, data, threads, first, last, step, chunk, flags),                        \
		(run_parallel_body, &body, threads, first, last, step, chunk, flags))
#define DEFINE_PACED_RUNTIME_LOOP(symbol)                                                          \
	DEFINE_PACED_PARALLEL_REGION(                                                              \
		symbol,                                                                            \
		(void (*function)(void *), void *data, unsigned threads, long first, long last,    \
		 long step, unsigned flags),                                                       \
		(function, data, threads, first, last, step, flags),                               \
		(run_parallel_body, &body, threads, first, last, step, flags))

DEFINE_PACED_PARALLEL_REGION(
	GOMP_parallel, (void (*function)(void *), void *data, unsigned threads, unsigned flags),
	(function, data, threads, flags), (run_parallel_body, &body, threads, flags))
DEFINE_PACED_PARALLEL_REGION(GOMP_parallel_sections,
			     (void (*function)(void *), void *data, unsigned threads,
			      unsigned count, unsigned flags),
			     (function, data, threads, count, flags),
			     (run_parallel_body, &body, threads, count, flags))
DEFINE_PACED_PARALLEL_LOOP(GOMP_parallel_loop_static)
DEFINE_PACED_PARALLEL_LOOP(GOMP_parallel_loop_dynamic)
DEFINE_PACED_PARALLEL_LOOP(GOMP_parallel_loop_guided)
DEFINE_PACED_PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
DEFINE_PACED_PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
DEFINE_PACED_RUNTIME_LOOP(GOMP_parallel_loop_runtime)
DEFINE_PACED_RUNTIME_LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
DEFINE_PACED_RUNTIME_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

unsigned GOMP_parallel_reductions(void (*function)(void *), void *data, unsigned threads,
				  unsigned flags);
DEFINE_ORIGINAL_POINTER(GOMP_parallel_reductions);
static unsigned paced_GOMP_parallel_reductions(void (*function)(void *), void *data,
					       unsigned threads, unsigned flags)
{
	struct parallel_body_and_data body = {NULL, function, data};
	unsigned result;

	if (!causal_is_active())
		return ORIGINAL(GOMP_parallel_reductions)(function, data, threads, flags);
	body.reductions = *(void **)data;
	causal_openmp_begin_parallel_region(CAUSAL_GET_CALL_SITE);
	result = ORIGINAL(GOMP_parallel_reductions)(run_parallel_body, &body, threads, flags);
	causal_openmp_end_parallel_region(CAUSAL_GET_CALL_SITE);
	return result;
}

int causal_add_openmp_wrappers(void)
{
	static struct got_wrapper rows[] = {
		OPENMP_TABLE_ROW(GOMP_parallel),
		OPENMP_TABLE_ROW(GOMP_parallel_sections),
		OPENMP_TABLE_ROW(GOMP_parallel_loop_static),
		OPENMP_TABLE_ROW(GOMP_parallel_loop_dynamic),
		OPENMP_TABLE_ROW(GOMP_parallel_loop_guided),
		OPENMP_TABLE_ROW(GOMP_parallel_loop_nonmonotonic_dynamic),
		OPENMP_TABLE_ROW(GOMP_parallel_loop_nonmonotonic_guided),
		OPENMP_TABLE_ROW(GOMP_parallel_loop_runtime),
		OPENMP_TABLE_ROW(GOMP_parallel_loop_nonmonotonic_runtime),
		OPENMP_TABLE_ROW(GOMP_parallel_loop_maybe_nonmonotonic_runtime),
		OPENMP_TABLE_ROW(GOMP_parallel_reductions)};
	int error = got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));

	if (!error)
		error = causal_add_openmp_wait_wrappers();
	return error ? error : causal_add_llvm_openmp_wrappers();
}
