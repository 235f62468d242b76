/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parallel regions of OpenMP in causal profiling, for both families of run times. Their threads
 * wait for work with futexes of their own, which no wrapper sees: what is seen is where the body of
 * a region begins and ends on each of them. From one body to the next, a thread waits for the
 * session.
 *
 * Threads that wait in the run time run tasks meanwhile: a task interrupts the wait.
 */
#ifndef KYMO_WRAPPERS_CAUSAL_OPENMP_H
#define KYMO_WRAPPERS_CAUSAL_OPENMP_H

#include "wrappers/causal/paced.h"

/* Either may be the other's: LLVM's exports the functions of GCC's. */
#define CAUSAL_OPENMP_LIBRARY_PREFIXES "libgomp|libomp|libiomp"
#define OPENMP_TABLE_ROW(symbol_)                                                                  \
	PACED_TABLE_ROW_FOR_LIBRARY(symbol_, CAUSAL_OPENMP_LIBRARY_PREFIXES)

struct openmp_wait_state {
	struct causal_wait_state wait;
	struct openmp_wait_state *outer;
};

/* The program has tasks that are not led through wrappers: from now on waits may run them. */
void causal_openmp_set_unwrapped_tasks_flag(void);
/* Around a wait, on the thread's stack. `site` (CAUSAL_GET_CALL_SITE), or the code itself, tells
 * what the thread does next. */
void causal_openmp_begin_wait(struct openmp_wait_state *wait);
void causal_openmp_end_wait(struct openmp_wait_state *wait, uint64_t site);
/* Around a task: returns the wait that it interrupts, or NULL. */
struct openmp_wait_state *causal_openmp_interrupt_wait_by_task(uint64_t task);
void causal_openmp_resume_interrupted_wait(struct openmp_wait_state *interrupted);
/* Around a region, on the thread that meets it. */
void causal_openmp_begin_parallel_region(uint64_t site);
void causal_openmp_end_parallel_region(uint64_t site);
/* Around its body, on each thread of the team. */
void causal_openmp_begin_body_of_thread(uint64_t body);
void causal_openmp_end_body_of_thread(void);

/* Functions of the run times; there is no header that declares them. */
#define DEFINE_OPENMP_WAIT(type, symbol, parameters, arguments)                                    \
	type symbol parameters;                                                                    \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct openmp_wait_state wait;                                                     \
		type result;                                                                       \
		if (!causal_is_active())                                                           \
			return ORIGINAL(symbol) arguments;                                         \
		causal_openmp_begin_wait(&wait);                                                   \
		result = ORIGINAL(symbol) arguments;                                               \
		causal_openmp_end_wait(&wait, CAUSAL_GET_CALL_SITE);                               \
		return result;                                                                     \
	}
#define DEFINE_OPENMP_WAIT_VOID(symbol, parameters, arguments)                                     \
	void symbol parameters;                                                                    \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static void paced_##symbol parameters                                                      \
	{                                                                                          \
		struct openmp_wait_state wait;                                                     \
		bool on = causal_is_active();                                                      \
		if (on)                                                                            \
			causal_openmp_begin_wait(&wait);                                           \
		ORIGINAL(symbol) arguments;                                                        \
		if (on)                                                                            \
			causal_openmp_end_wait(&wait, CAUSAL_GET_CALL_SITE);                       \
	}
#define DEFINE_OPENMP_WAKE(symbol, parameters, arguments)                                          \
	void symbol parameters;                                                                    \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static void paced_##symbol parameters                                                      \
	{                                                                                          \
		if (causal_is_active())                                                            \
			causal_pay_delay_at_site(CAUSAL_GET_CALL_SITE);                            \
		ORIGINAL(symbol) arguments;                                                        \
	}

int causal_add_openmp_wait_wrappers(void);
int causal_add_llvm_openmp_wrappers(void);

#endif
