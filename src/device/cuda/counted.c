/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A kernel that was counted has its values when its range is decoded, and its times when its record
 * comes; whichever is first. It is told when both are there.
 */
#include <stdlib.h>

#include "device/cuda/counting.h"

#define PART_VALUES 1u
#define PART_RECORD 2u

struct cuda_counted *cuda_counted_new(device_handle handle, device_handle symbol,
				      struct cuda_set *set)
{
	struct cuda_counted *counted = calloc(1, sizeof(*counted));

	if (counted == NULL)
		return NULL;
	counted->handle = handle;
	counted->symbol = symbol;
	counted->set = set;
	return counted;
}

device_handle cuda_counted_handle(const struct cuda_counted *counted)
{
	return (device_handle)(uintptr_t)counted;
}

void cuda_counted_free(struct cuda_counted *counted)
{
	if (counted != NULL)
		free(counted->values);
	free(counted);
}

/* The second of the two parts ends it. */
static void add_part(struct cuda_counted *counted, uint32_t part)
{
	const struct device_sink *sink = device_sink();
	uint64_t start, end;

	if ((atomic_fetch_or_explicit(&counted->parts, part, memory_order_acq_rel) | part) !=
	    (PART_VALUES | PART_RECORD))
		return;
	start = counted->ran_start != 0 ? counted->ran_start : counted->start;
	end = counted->ran_start != 0 ? counted->ran_end : counted->end;
	if (counted->values != NULL) {
		cuda_clocks_correct(counted->set, counted->values,
				    counted->ran_start != 0 ? end - start : 0);
		sink->counting->dispatch_counted(counted->handle, counted->values,
						 counted->set->count, start, end);
	}
	sink->kernel_complete(counted->handle, counted->has_ran ? &counted->ran : NULL, start, end);
	cuda_counted_free(counted);
}

void cuda_counted_values(struct cuda_counted *counted)
{
	add_part(counted, PART_VALUES);
}

void cuda_counted_not(struct cuda_counted *counted, enum counting_status why, const char *text)
{
	device_sink()->counting->dispatch_not_counted(counted->handle, why, text);
	add_part(counted, PART_VALUES);
}

void cuda_counted_failed(struct cuda_counted *counted)
{
	device_sink()->counting->dispatch_not_counted(counted->handle, COUNTING_FAILED,
						      "the driver refused to launch it");
	cuda_counted_free(counted);
}

/* The profiler that replays kernels leaves their records without times. */
void cuda_counted_ran(device_handle handle, const struct device_kernel *ran, uint64_t start,
		      uint64_t end)
{
	struct cuda_counted *counted = (struct cuda_counted *)(uintptr_t)handle; // NOLINT

	counted->has_ran = ran != NULL;
	if (ran != NULL)
		counted->ran = *ran;
	counted->ran_start = start != 0 && end != 0 ? start : 0;
	counted->ran_end = end;
	add_part(counted, PART_RECORD);
}
