/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads in outputs: the busiest ones are listed, the others are added up by process and name, so
 * that no file grows with the number of threads that a service has had.
 */
#ifndef KYMO_OUTPUT_THREAD_SUMS_H
#define KYMO_OUTPUT_THREAD_SUMS_H

#include "analysis/session.h"

#define THREADS_LISTED_MAX 1000u
#define THREADS_SUMMED_NOTE                                                                        \
	"threads beyond the 1,000 busiest are added up by name, without the number at its end"

struct thread_sum {
	uint32_t process;
	char name[64]; /* "worker-*" for worker-1, worker-2, ... */
	uint64_t threads, cpu_ns, covered_cpu_ns, signals_blocked_cpu_ns;
	uint64_t samples[MODEL_SOURCE_COUNT], weight[MODEL_SOURCE_COUNT];
};

struct thread_sums {
	bool *is_thread_listed; /* by thread; NULL: all are */
	struct thread_sum *sums;
	size_t count;
};

/* 0 or -ENOMEM. */
int thread_sums_create(const struct session *session, struct thread_sums *ret);
void thread_sums_destroy(struct thread_sums *sums);

static inline bool thread_sums_is_thread_listed(const struct thread_sums *sums, uint32_t thread)
{
	return !sums->is_thread_listed || sums->is_thread_listed[thread];
}

#endif
