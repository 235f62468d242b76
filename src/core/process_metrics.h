/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The process as a whole: who it is, and its metrics over time, from /proc and getrusage.
 * Background thread only.
 */
#ifndef KYMO_CORE_PROCESS_METRICS_H
#define KYMO_CORE_PROCESS_METRICS_H

#include <stdint.h>

#include "core/spool/process_records.h"

/* Writes the PROCESS record. */
void process_metrics_write_identity(struct process_records *track, uint32_t pid,
				    uint32_t parent_pid, char *const *environment);
/* Writes one PROCESS_METRICS record, with the frequency of the first `frequency_cpus` CPUs. */
void process_metrics_write_record(struct process_records *track, uint32_t frequency_cpus);
/* Field 22 of /proc/self/stat: start time in clock ticks since boot. */
uint64_t process_get_start_time_clock_ticks(void);
/* CPUs online. */
uint32_t process_count_allowed_cpus(void);

/* What the kernel tells the process alone about itself is noted by its threads. Signal-safe. */
extern _Atomic uint32_t process_usage_update_requested;
void process_usage_update(void);
/* In a child that was forked. */
void process_usage_reset(void);

static inline void process_usage_update_if_requested(void)
{
	if (__builtin_expect(atomic_load_explicit(&process_usage_update_requested,
						  memory_order_relaxed) != 0,
			     0))
		process_usage_update();
}

#endif
