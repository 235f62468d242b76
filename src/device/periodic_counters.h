/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting over time where counters run freely: readings are differences to the first, and a
 * thread gives those of every interval. For backends that read counters; the hardware of others
 * samples by itself.
 */
#ifndef KYMO_DEVICE_PERIODIC_COUNTERS_H
#define KYMO_DEVICE_PERIODIC_COUNTERS_H

#include "device/counting.h"

/* The counters' state now, `count` values of the set. */
typedef enum counting_status periodic_counters_read_callback(void *set, double *values,
							     struct counting_problem *problem);

enum counting_status periodic_counters_start_of_agent(device_handle agent, void *set, size_t count,
						      periodic_counters_read_callback *reader,
						      uint64_t interval_ns,
						      struct counting_problem *problem);
enum counting_status periodic_counters_read_of_agent(device_handle agent, double *values,
						     size_t count, uint64_t *time,
						     struct counting_problem *problem);
void periodic_counters_stop_of_agent(device_handle agent);
/* In a child of fork: there are no threads any more. */
void periodic_counters_reset_forked(void);

#endif
