/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What one thread counts from here to there: a set of process_set.h without its SYSTEM events, for
 * the calling thread alone. What the kernel accounts of threads anyway is read twice; perf events
 * are opened for the while.
 */
#ifndef KYMO_DEVICE_HOST_PROCESS_SPAN_H
#define KYMO_DEVICE_HOST_PROCESS_SPAN_H

#include "device/host/process_set.h"

struct thread_counting_span;

/* `set` is to live as long. problem is filled in for everything but OK. */
enum counting_status thread_counting_span_begin(const struct process_counter_set *set,
						struct thread_counting_span **span,
						struct counting_problem *problem);
/* On the same thread. The values are the span's. */
enum counting_status thread_counting_span_end(struct thread_counting_span *span, double **values,
					      size_t *count, struct counting_problem *problem);
void thread_counting_span_free(struct thread_counting_span *span); /* any thread */

#endif
