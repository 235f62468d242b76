/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The process as a whole: who it is, and its metrics over time, from /proc and getrusage.
 * Background thread only.
 */
#ifndef KYMO_CORE_PROCESS_METRICS_H
#define KYMO_CORE_PROCESS_METRICS_H

#include <stdint.h>

#include "core/track.h"

/* Writes the PROCESS record. */
void process_metrics_describe(struct track *track, char *const *environment);
/* Writes one PROCESS_METRICS record, with the frequency of the first `frequency_cpus` CPUs. */
void process_metrics_write(struct track *track, uint32_t frequency_cpus);
/* Field 22 of /proc/self/stat: start time in clock ticks since boot. */
uint64_t process_metrics_start_time(void);
/* CPUs online. */
uint32_t process_metrics_cpus(void);

#endif
