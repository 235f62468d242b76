/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A kernel that was counted has its values when its range is decoded, and its times when its record
 * comes; whichever is first. It is reported when both are there.
 */
#include <stdlib.h>

#include "device/cuda/counting.h"

#define KERNEL_PART_VALUES 1u
#define KERNEL_PART_RECORD 2u

struct cuda_profiled_kernel *cuda_profiled_kernel_new(device_handle handle, device_handle symbol,
						      struct cuda_metric_set *set)
{
	struct cuda_profiled_kernel *counted = calloc(1, sizeof(*counted));

	if (counted == NULL)
		return NULL;
	counted->handle = handle;
	counted->symbol = symbol;
	counted->metric_set = set;
	return counted;
}

device_handle cuda_profiled_kernel_to_handle(const struct cuda_profiled_kernel *counted)
{
	return (device_handle)(uintptr_t)counted;
}

void cuda_profiled_kernel_free(struct cuda_profiled_kernel *counted)
{
	if (counted != NULL)
		free(counted->values);
	free(counted);
}

/* The second of the two parts ends it. */
static void complete_part_and_report_if_all(struct cuda_profiled_kernel *counted, uint32_t part)
{
	const struct device_sink *sink = device_get_sink();
	uint64_t start, end;

	if ((atomic_fetch_or_explicit(&counted->parts, part, memory_order_acq_rel) | part) !=
	    (KERNEL_PART_VALUES | KERNEL_PART_RECORD))
		return;
	start = counted->ran_start_ns != 0 ? counted->ran_start_ns : counted->start;
	end = counted->ran_start_ns != 0 ? counted->ran_end_ns : counted->end;
	if (counted->values != NULL) {
		cuda_scale_metric_values_to_kernel_ns(counted->metric_set, counted->values,
						      counted->ran_start_ns != 0 ? end - start : 0);
		sink->counting->dispatch_counted(counted->handle, counted->values,
						 counted->metric_set->count, start, end);
	}
	sink->kernel_complete(counted->handle,
			      counted->has_launch_as_run ? &counted->launch_as_run : NULL, start,
			      end);
	cuda_profiled_kernel_free(counted);
}

void cuda_profiled_kernel_mark_values_ready(struct cuda_profiled_kernel *counted)
{
	complete_part_and_report_if_all(counted, KERNEL_PART_VALUES);
}

void cuda_profiled_kernel_report_uncounted(struct cuda_profiled_kernel *counted,
					   enum counting_status why, const char *text)
{
	device_get_sink()->counting->dispatch_not_counted(counted->handle, why, text);
	complete_part_and_report_if_all(counted, KERNEL_PART_VALUES);
}

void cuda_profiled_kernel_report_unlaunched(struct cuda_profiled_kernel *counted)
{
	device_get_sink()->counting->dispatch_not_counted(counted->handle, COUNTING_FAILED,
							  "the driver refused to launch it");
	cuda_profiled_kernel_free(counted);
}

/* The profiler that replays kernels leaves their records without times. */
void cuda_profiled_kernel_add_record(device_handle handle, const struct device_kernel_launch *ran,
				     uint64_t start, uint64_t end)
{
	struct cuda_profiled_kernel *counted =
		(struct cuda_profiled_kernel *)(uintptr_t)handle; // NOLINT

	counted->has_launch_as_run = ran != NULL;
	if (ran != NULL)
		counted->launch_as_run = *ran;
	counted->ran_start_ns = start != 0 && end != 0 ? start : 0;
	counted->ran_end_ns = end;
	complete_part_and_report_if_all(counted, KERNEL_PART_RECORD);
}
