/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The clock of an OpenCL device on ours. Each reading of the device's clock between two readings of
 * ours says: the difference lies between two bounds. Readings are made by clGetDeviceAndHostTimer()
 * (OpenCL 2.1, its host's time is no use: nobody says which clock that is), else by the times at
 * which commands were queued. Bounds of many readings are intersected; where they contradict each
 * other, the clocks have drifted, and the newer one counts.
 */
#include <stdatomic.h>

#include "device/opencl/opencl.h"

#define DEVICES_MAX                    64
#define CLOCK_READ_INTERVAL_NS         1000000000u
#define CLOCK_READINGS_PER_ROUND_COUNT 5

static struct {
	_Atomic int64_t offset_low_ns, offset_high_ns; /* host - device */
	_Atomic bool known;
	_Atomic uint64_t last_read_at_ns;
} clock_offset_bounds_by_device[DEVICES_MAX + 1];

static void narrow_clock_offset_bounds(unsigned number, int64_t low, int64_t high)
{
	int64_t old_low = atomic_load(&clock_offset_bounds_by_device[number].offset_low_ns);
	int64_t old_high = atomic_load(&clock_offset_bounds_by_device[number].offset_high_ns);

	if (atomic_load(&clock_offset_bounds_by_device[number].known) && low <= old_high &&
	    high >= old_low) {
		if (low < old_low)
			low = old_low;
		if (high > old_high)
			high = old_high;
	}
	atomic_store(&clock_offset_bounds_by_device[number].offset_low_ns, low);
	atomic_store(&clock_offset_bounds_by_device[number].offset_high_ns, high);
	atomic_store(&clock_offset_bounds_by_device[number].known, true);
}

void opencl_clock_add_reading(unsigned number, uint64_t queued, uint64_t before, uint64_t after)
{
	if (number != 0 && queued != 0 && after >= before)
		narrow_clock_offset_bounds(number, (int64_t)(before - queued),
					   (int64_t)(after - queued));
}

static void read_device_clock_several_times(unsigned number, uint64_t now)
{
	const struct device_sink *sink = device_get_sink();
	cl_device_id device = opencl_device_find_by_number(number);

	atomic_store(&clock_offset_bounds_by_device[number].last_read_at_ns, now);
	if (opencl_next_functions.clGetDeviceAndHostTimer == NULL || device == NULL)
		return;
	for (unsigned i = 0; i < CLOCK_READINGS_PER_ROUND_COUNT; i++) {
		cl_ulong device_time = 0, host_time = 0;
		uint64_t before = sink->now();

		if (opencl_next_functions.clGetDeviceAndHostTimer(device, &device_time,
								  &host_time) != CL_SUCCESS)
			return;
		opencl_clock_add_reading(number, device_time, before, sink->now());
	}
}

uint64_t opencl_device_to_host_time(unsigned number, uint64_t device_time)
{
	uint64_t now = device_get_sink()->now();
	int64_t low, high;

	if (number == 0 || device_time == 0)
		return 0;
	if (now - atomic_load(&clock_offset_bounds_by_device[number].last_read_at_ns) >
	    CLOCK_READ_INTERVAL_NS)
		read_device_clock_several_times(number, now);
	if (!atomic_load(&clock_offset_bounds_by_device[number].known))
		return 0;
	low = atomic_load(&clock_offset_bounds_by_device[number].offset_low_ns);
	high = atomic_load(&clock_offset_bounds_by_device[number].offset_high_ns);
	return device_time + (uint64_t)(low + (high - low) / 2);
}
