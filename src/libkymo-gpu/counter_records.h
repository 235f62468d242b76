/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Values of counters as records of the file. All with the file's lock held.
 */
#ifndef KYMO_LIBKYMO_GPU_COUNTER_RECORDS_H
#define KYMO_LIBKYMO_GPU_COUNTER_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include <rocprofiler-sdk/rocprofiler.h>

/* A kernel, then its values, `count` of them. */
void counter_records_write_counted_kernel(const rocprofiler_dispatch_counting_service_data_t *told,
					  size_t count, uint32_t tid);
/* `count` values of a kernel, or of one reading of a device (start and end; dispatch_id is 0),
 * in the order of their counters. */
void counter_records_write_values(const rocprofiler_counter_record_t *const *values, size_t count,
				  uint64_t start, uint64_t end);
void counter_records_reset_after_fork(void);

#endif
