/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * perf counters per thread, recorded with the samples (SAMPLING_COUNTERS).
 *
 * The background thread opens the events and maps their user pages; the handler reads a counter
 * from its page: with rdpmc where the hardware and the kernel let user space do so, else the value
 * that the kernel last left there (it does so whenever the thread is switched in). No system call
 * in the handler (perf_event_open(2), "cap_user_rdpmc").
 */
#ifndef KYMO_CORE_COUNTERS_H
#define KYMO_CORE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/threads.h"

struct runtime;

/* Background thread. Events that cannot be opened are said once and left out (they stay zero). */
void counters_open(struct runtime *runtime, struct thread *thread);
void counters_close(struct thread *thread);
/* While no samples are taken nothing is counted. */
void counters_switch(const struct thread *thread, bool on);
/* Handler of that thread: values into values[0 … THREAD_COUNTERS). Scaled for multiplexing by the
 * kernel's times. */
void counters_read(const struct thread *thread, uint64_t *values);

#endif
