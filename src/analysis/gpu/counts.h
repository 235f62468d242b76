/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters in records of devices: a launch (or a reading of a device) and a counter at a time, and
 * sums of them by kernel.
 */
#ifndef KYMO_ANALYSIS_GPU_COUNTS_H
#define KYMO_ANALYSIS_GPU_COUNTS_H

#include "analysis/gpu/gpu.h"

/* All values that a counter had for one launch or one reading. */
struct gpu_counter_measurement {
	const struct gpu_counted *kernel; /* NULL: a reading */
	const struct gpu_counter *counter;
	uint64_t start, end;
	const struct gpu_value *values;
	size_t value_count;
	double total; /* all instances added up */
};

/* Calls `each` for every one; non-zero ends, and is given. -ENOMEM. Values of a launch that is not
 * there, or of a counter that is not, are left out. */
int gpu_visit_counter_measurements(const struct gpu_records_of_process *process,
				   int (*each)(const struct gpu_counter_measurement *count,
					       void *context),
				   void *context);
/* Where an instance stands in the counter's dimensions; `positions` has dimension_count places. */
void gpu_counter_instance_to_dimension_positions(const struct gpu_counter *counter,
						 uint32_t instance, uint32_t *positions);

/* Fills in `counts` and `readings` of the data, over all its processes. 0 or -ENOMEM. */
int gpu_sum_counter_rows(struct gpu_data *data);
void gpu_counter_rows_deinit(struct gpu_data *data);

#endif
