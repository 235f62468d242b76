/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What all outputs of causal profiling need: names, warnings by name, and the predictions of one
 * progress point after the other.
 */
#ifndef KYMO_OUTPUT_CAUSAL_VIEW_H
#define KYMO_OUTPUT_CAUSAL_VIEW_H

#include "analysis/causal/causal.h"

/* Are targets lines rather than functions? */
bool causal_view_targets_are_lines(const struct causal_data *data);
/* "function", "file.c:12" (last part of the path), "target 7" where nothing is known. */
void causal_view_format_target_name(const struct causal_data *data, uint32_t id, char *buffer,
				    size_t size);
/* "a.c:12" of a function, "function" of a line; empty where it is not known. */
void causal_view_format_target_location(const struct causal_data *data, uint32_t id, char *buffer,
					size_t size);
/* "name", or "begin to end" of a latency point. */
void causal_view_format_point_name(const struct causal_data *data, uint32_t point,
				   uint32_t end_point, char *buffer, size_t size);
/* What the baseline of a point is, to be followed by a time: "Progress work: once every". */
void causal_view_format_baseline_label(const struct causal_data *data, uint32_t point,
				       uint32_t end_point, char *buffer, size_t size);
/* How many of the predictions from `first` on are of the same progress point? */
size_t causal_view_count_predictions_of_point(const struct causal_fit_result *result, size_t first);

/* What is to be said of a prediction and was not said of the whole run. */
uint32_t causal_view_get_unshared_warnings(const struct causal_fit_result *result,
					   const struct causal_prediction *prediction);

/* Bits of enum causal_warning_bit, lowest first: "no_visits", ...; NULL after the last one. */
const char *causal_view_get_warning_name(unsigned place, enum causal_warning_bit *ret);

/* CPU time of the target in all windows, as in struct causal_prediction, also where it was never
 * tried: totals[i] is of data->targets[i]. Allocated; NULL: out of memory. */
struct causal_view_target_times {
	uint64_t self_ns, total_ns;
};
struct causal_view_target_times *causal_view_sum_target_times(const struct causal_data *data);

/* What was measured: all windows but those that were cut short, whose time says nothing. */
struct causal_view_experiment_sums {
	uint64_t count, real_ns;
};
struct causal_view_experiment_sums causal_view_sum_experiments(const struct causal_data *data);

#endif
