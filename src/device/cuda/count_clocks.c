/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What of a counted range is its kernel's. The device's clocks are counted while the range is open,
 * which is some 15 to 60 us longer than the kernel ran, as a range is opened before the launch and
 * closed when the kernel is known to have ended. Nothing else runs meanwhile: counts of work are
 * the kernel's, but clocks are the range's, and rates and shares of peaks are of its time. So the
 * range's time is counted with them, by the device, and they are told for the kernel's own.
 *
 * Names of metrics: "Metrics Structure" in NVIDIA's Nsight Compute documentation.
 */
#include <string.h>

#include "device/cuda/counting.h"

#define RANGE_TIME "gpu__time_duration"

static bool is_clock(const char *event)
{
	size_t length = strcspn(event, ".");
	const char *cycles = strstr(event, "__cycles_elapsed");

	return (cycles != NULL && cycles < event + length) ||
	       (length == strlen(RANGE_TIME) && strncmp(event, RANGE_TIME, length) == 0);
}

static bool has_any(const char *text, const char *const *parts)
{
	while (*parts != NULL && strstr(text, *parts) == NULL)
		parts++;
	return *parts != NULL;
}

enum cuda_of_time cuda_clock_kind(const char *event)
{
	/* Of a clock these are a rate of its own or a constant. */
	static const char *const rates[] = {".per_", ".pct", ".ratio", ".max_rate", NULL};
	static const char *const by_time[] = {".per_second",
					      ".per_cycle_elapsed",
					      ".per_cycle_in_",
					      ".pct_of_peak_sustained_elapsed",
					      ".pct_of_peak_sustained_region",
					      ".pct_of_peak_sustained_frame",
					      NULL};
	const char *form = strchr(event, '.');

	if (form != NULL && has_any(form, (const char *const[]){".peak_sustained", NULL}))
		return strstr(form, ".peak_sustained_elapsed") != NULL ? CUDA_WITH_TIME
								       : CUDA_NOT_OF_TIME;
	if (is_clock(event))
		return form != NULL && has_any(form, rates) ? CUDA_NOT_OF_TIME : CUDA_WITH_TIME;
	return form != NULL && has_any(form, by_time) ? CUDA_BY_TIME : CUDA_NOT_OF_TIME;
}

void cuda_clocks_add(struct cuda_set *set)
{
	bool is_wanted = false;

	set->range_time = set->count;
	for (uint32_t i = 0; i < set->count; i++) {
		is_wanted = is_wanted || set->of_time[i] != CUDA_NOT_OF_TIME;
		if (strcmp(set->names[i], RANGE_TIME ".sum") == 0)
			set->range_time = i;
	}
	if (is_wanted && set->range_time == set->count)
		set->names[set->count] = RANGE_TIME ".sum";
	else if (!is_wanted)
		set->range_time = CUDA_NO_RANGE_TIME;
}

void cuda_clocks_drop(struct cuda_set *set)
{
	set->range_time = CUDA_NO_RANGE_TIME;
	set->names[set->count] = NULL;
}

uint32_t cuda_clocks_count(const struct cuda_set *set)
{
	return set->count + (set->range_time == set->count);
}

void cuda_clocks_correct(const struct cuda_set *set, double *values, uint64_t kernel_ns)
{
	double range, share;

	if (set->range_time == CUDA_NO_RANGE_TIME || kernel_ns == 0)
		return;
	range = values[set->range_time];
	if (range <= (double)kernel_ns) /* two clocks; it also sorts out what is no number */
		return;
	share = (double)kernel_ns / range;
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->of_time[i] == CUDA_WITH_TIME)
			values[i] *= share;
		else if (set->of_time[i] == CUDA_BY_TIME)
			values[i] /= share;
	}
}
