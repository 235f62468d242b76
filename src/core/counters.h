/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * perf counters per thread, recorded with the samples (SAMPLING_COUNTERS).
 *
 * The background thread opens the events and maps their user pages; the handler reads a counter
 * from its page, with rdpmc where the hardware and the kernel let user space do so. Else, and for
 * the kernel's own events always, the page has the value that the kernel left there when the thread
 * was last switched in, which a thread that has a processor for itself seldom is: the background
 * thread reads the descriptor some 50 times a second, and the later value counts. No system call in
 * the handler (perf_event_open(2), "cap_user_rdpmc").
 */
#ifndef KYMO_CORE_COUNTERS_H
#define KYMO_CORE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/threads.h"

struct runtime;
struct perf_event_code;
struct perf_event_mmap_page;

/* As the kernel gives them: with more events than counters an event counts only part of the time
 * (perf_event_open(2), PERF_FORMAT_TOTAL_TIME_RUNNING). */
struct counter_reading {
	uint64_t count, enabled, running;
};

static inline bool counter_reading_is_partial(const struct counter_reading *reading)
{
	return reading->running && reading->running < reading->enabled;
}

/* The count brought up to all of the time. */
uint64_t counter_reading_get_scaled_count(const struct counter_reading *reading);
/* Opens the event for a thread; read(2) gives a counter_reading. A descriptor or negative errno. */
long counters_open_perf_event(const struct perf_event_code *event, uint32_t tid, bool running);
/* The thread itself. False: the counter is not on the processor now, and the reading is as old as
 * the last switch. */
bool counters_read_mmap_page(const volatile struct perf_event_mmap_page *page,
			     struct counter_reading *ret);

/* Background thread. Events that cannot be opened are said once and left out (they stay zero). */
void counters_open_for_thread(struct runtime *runtime, struct thread *thread);
void counters_close_for_thread(struct thread *thread);
/* Reads what the handler of a running thread may not see in the page. */
void counters_update_from_descriptors(struct thread *thread);
/* While no samples are taken nothing is counted. */
void counters_set_enabled_for_thread(const struct thread *thread, bool on);
/* Handler of that thread: values into values[0 … THREAD_COUNTERS_MAX). Scaled for multiplexing by
 * the kernel's times. */
void counters_read_for_sample(const struct thread *thread, uint64_t *values);

#endif
