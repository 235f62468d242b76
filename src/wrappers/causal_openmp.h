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

#include "wrappers/causal_paced.h"

/* Either may be the other's: LLVM's exports the functions of GCC's. */
#define CAUSAL_OPENMP       "libgomp|libomp|libiomp"
#define OPENMP_ROW(symbol_) PACED_ROW_IN(symbol_, CAUSAL_OPENMP)

struct openmp_wait {
	struct causal_wait wait;
	struct openmp_wait *outer;
};

/* The program has tasks that are not led through wrappers: from now on waits may run them. */
void causal_openmp_has_tasks(void);
/* Around a wait, on the thread's stack. `site` (CAUSAL_SITE), or the code itself, tells what the
 * thread does next. */
void causal_openmp_wait_begins(struct openmp_wait *wait);
void causal_openmp_wait_ends(struct openmp_wait *wait, uint64_t site);
/* Around a task: returns the wait that it interrupts, or NULL. */
struct openmp_wait *causal_openmp_task_begins(uint64_t task);
void causal_openmp_task_ends(struct openmp_wait *interrupted);
/* Around a region, on the thread that meets it. */
void causal_openmp_fork(uint64_t site);
void causal_openmp_join(uint64_t site);
/* Around its body, on each thread of the team. */
void causal_openmp_body_begins(uint64_t body);
void causal_openmp_body_ends(void);

/* Functions of the run times; there is no header that declares them. */
#define OPENMP_WAIT(type, symbol, parameters, arguments)                                           \
	type symbol parameters;                                                                    \
	PACED_ORIGINAL(symbol);                                                                    \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct openmp_wait wait;                                                           \
		type result;                                                                       \
		if (!causal_on())                                                                  \
			return ORIGINAL(symbol) arguments;                                         \
		causal_openmp_wait_begins(&wait);                                                  \
		result = ORIGINAL(symbol) arguments;                                               \
		causal_openmp_wait_ends(&wait, CAUSAL_SITE);                                       \
		return result;                                                                     \
	}
#define OPENMP_WAIT_VOID(symbol, parameters, arguments)                                            \
	void symbol parameters;                                                                    \
	PACED_ORIGINAL(symbol);                                                                    \
	static void paced_##symbol parameters                                                      \
	{                                                                                          \
		struct openmp_wait wait;                                                           \
		bool on = causal_on();                                                             \
		if (on)                                                                            \
			causal_openmp_wait_begins(&wait);                                          \
		ORIGINAL(symbol) arguments;                                                        \
		if (on)                                                                            \
			causal_openmp_wait_ends(&wait, CAUSAL_SITE);                               \
	}
#define OPENMP_WAKE(symbol, parameters, arguments)                                                 \
	void symbol parameters;                                                                    \
	PACED_ORIGINAL(symbol);                                                                    \
	static void paced_##symbol parameters                                                      \
	{                                                                                          \
		if (causal_on())                                                                   \
			causal_pay_at(CAUSAL_SITE);                                                \
		ORIGINAL(symbol) arguments;                                                        \
	}

int causal_openmp_waits_add(void);
int causal_openmp_llvm_add(void);

#endif
