/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include "counting_sink.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct counted_told counted_told;
void *_Atomic counting_set;
_Atomic unsigned counting_most = UINT32_MAX;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool counts_kernels(device_handle agent)
{
	(void)agent;
	return atomic_load(&counting_set) != NULL;
}

static void *dispatch_select(device_handle kernel, const struct device_kernel_launch *told)
{
	(void)kernel;
	(void)told;
	return atomic_fetch_add(&counted_told.asked, 1) < atomic_load(&counting_most)
		       ? atomic_load(&counting_set)
		       : NULL;
}

static void keep(const double *values, size_t count, uint64_t start, uint64_t end)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count && i < COUNTED_VALUES_MAX; i++) {
		counted_told.last[i] = values[i];
		counted_told.sums[i] += values[i];
	}
	counted_told.last_start = start;
	counted_told.last_end = end;
	pthread_mutex_unlock(&lock);
}

static void dispatch_counted(device_handle kernel, const double *values, size_t count,
			     uint64_t start, uint64_t end)
{
	(void)kernel;
	keep(values, count, start, end);
	counted_told.counted++;
}

static void dispatch_not_counted(device_handle kernel, enum counting_status why, const char *text)
{
	(void)kernel;
	pthread_mutex_lock(&lock);
	counted_told.last_status = why;
	snprintf(counted_told.last_text, sizeof(counted_told.last_text), "%s", text);
	pthread_mutex_unlock(&lock);
	counted_told.filtered += why == COUNTING_FILTERED;
	counted_told.released += why == COUNTING_TIMED_OUT;
	counted_told.not_counted++;
}

static void device_sample(device_handle agent, const double *values, size_t count, uint64_t start,
			  uint64_t end)
{
	(void)agent;
	keep(values, count, start, end);
	counted_told.samples++;
}

static void device_samples_lost(device_handle agent, uint64_t count)
{
	(void)agent;
	counted_told.samples_lost += count;
}

static void runtime_ready(void)
{
	counted_told.ready++;
}

const struct device_counting_sink counting_test_sink = {
	counts_kernels, dispatch_select,     dispatch_counted, dispatch_not_counted,
	device_sample,  device_samples_lost, runtime_ready};
