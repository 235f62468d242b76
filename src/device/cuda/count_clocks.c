/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What of a counted range is its kernel's. The device's clocks are counted while the range is open,
 * which is some 15 to 60 us longer than the kernel ran, as a range is opened before the launch and
 * closed when the kernel is known to have ended. Nothing else runs meanwhile: counts of work are
 * the kernel's, but clocks are the range's, and rates and shares of peaks are of its time. So the
 * range's time is counted with them, by the device, and they are reported as the kernel's own.
 *
 * Names of metrics: "Metrics Structure" in NVIDIA's Nsight Compute documentation.
 */
#include <string.h>

#include "device/cuda/counting.h"

#define RANGE_TIME_METRIC "gpu__time_duration"

static bool metric_counts_cycles_or_time(const char *event)
{
	size_t length = strcspn(event, ".");
	const char *cycles = strstr(event, "__cycles_elapsed");

	return (cycles != NULL && cycles < event + length) ||
	       (length == strlen(RANGE_TIME_METRIC) &&
		strncmp(event, RANGE_TIME_METRIC, length) == 0);
}

static bool contains_any_substring(const char *text, const char *const *parts)
{
	while (*parts != NULL && strstr(text, *parts) == NULL)
		parts++;
	return *parts != NULL;
}

enum cuda_time_dependence cuda_metric_get_time_dependence(const char *event)
{
	/* For a clock these are a rate of its own or a constant. */
	static const char *const rates[] = {".per_", ".pct", ".ratio", ".max_rate", NULL};
	static const char *const by_time[] = {".per_second",
					      ".per_cycle_elapsed",
					      ".per_cycle_in_",
					      ".pct_of_peak_sustained_elapsed",
					      ".pct_of_peak_sustained_region",
					      ".pct_of_peak_sustained_frame",
					      NULL};
	const char *form = strchr(event, '.');

	if (form != NULL &&
	    contains_any_substring(form, (const char *const[]){".peak_sustained", NULL}))
		return strstr(form, ".peak_sustained_elapsed") != NULL ? CUDA_GROWS_WITH_TIME
								       : CUDA_TIME_INDEPENDENT;
	if (metric_counts_cycles_or_time(event))
		return form != NULL && contains_any_substring(form, rates) ? CUDA_TIME_INDEPENDENT
									   : CUDA_GROWS_WITH_TIME;
	return form != NULL && contains_any_substring(form, by_time) ? CUDA_DIVIDED_BY_TIME
								     : CUDA_TIME_INDEPENDENT;
}

void cuda_add_range_time_to_metric_set(struct cuda_metric_set *set)
{
	bool is_wanted = false;

	set->range_time_name_index = set->count;
	for (uint32_t i = 0; i < set->count; i++) {
		is_wanted = is_wanted || set->time_dependence_by_metric[i] != CUDA_TIME_INDEPENDENT;
		if (strcmp(set->names[i], RANGE_TIME_METRIC ".sum") == 0)
			set->range_time_name_index = i;
	}
	if (is_wanted && set->range_time_name_index == set->count)
		set->names[set->count] = RANGE_TIME_METRIC ".sum";
	else if (!is_wanted)
		set->range_time_name_index = CUDA_NO_RANGE_TIME;
}

void cuda_drop_range_time_from_metric_set(struct cuda_metric_set *set)
{
	set->range_time_name_index = CUDA_NO_RANGE_TIME;
	set->names[set->count] = NULL;
}

uint32_t cuda_metric_set_get_value_count(const struct cuda_metric_set *set)
{
	return set->count + (set->range_time_name_index == set->count);
}

void cuda_scale_metric_values_to_kernel_ns(const struct cuda_metric_set *set, double *values,
					   uint64_t kernel_ns)
{
	double range, share;

	if (set->range_time_name_index == CUDA_NO_RANGE_TIME || kernel_ns == 0)
		return;
	range = values[set->range_time_name_index];
	if (range <= (double)kernel_ns) /* two clocks; it also sorts out what is no number */
		return;
	share = (double)kernel_ns / range;
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->time_dependence_by_metric[i] == CUDA_GROWS_WITH_TIME)
			values[i] *= share;
		else if (set->time_dependence_by_metric[i] == CUDA_DIVIDED_BY_TIME)
			values[i] /= share;
	}
}
