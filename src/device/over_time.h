/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting over time where counters run freely: readings are differences to the first, and a
 * thread gives those of every interval. For backends that read counters; the hardware of others
 * samples by itself.
 */
#ifndef KYMO_DEVICE_OVER_TIME_H
#define KYMO_DEVICE_OVER_TIME_H

#include "device/counting.h"

/* The counters' state now, `count` values of the set. */
typedef enum counting_status over_time_reader(void *set, double *values,
					      struct counting_problem *problem);

enum counting_status over_time_start(device_handle agent, void *set, size_t count,
				     over_time_reader *reader, uint64_t interval_ns,
				     struct counting_problem *problem);
enum counting_status over_time_read(device_handle agent, double *values, size_t count,
				    uint64_t *time, struct counting_problem *problem);
void over_time_stop(device_handle agent);
/* In a child of fork: there are no threads any more. */
void over_time_forked(void);

#endif
