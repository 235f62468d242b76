/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Readings of devices as a whole: power, temperature, clocks, utilization, memory, energy.
 */
#ifndef KYMO_LIBKYMO_GPU_METRICS_H
#define KYMO_LIBKYMO_GPU_METRICS_H

/* KYMO_GPU_METRICS_FREQ times a second (10); 0: none. */
void metrics_start_thread_unless_disabled(void);
void metrics_stop(void);

#endif
