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

#define DEVICES_MAX      64
#define READ_AGAIN_NS    1000000000u
#define READINGS_AT_ONCE 5

static struct {
	_Atomic int64_t low, high; /* host - device */
	_Atomic bool known;
	_Atomic uint64_t read_ns;
} clocks[DEVICES_MAX + 1];

static void narrow(unsigned number, int64_t low, int64_t high)
{
	int64_t old_low = atomic_load(&clocks[number].low);
	int64_t old_high = atomic_load(&clocks[number].high);

	if (atomic_load(&clocks[number].known) && low <= old_high && high >= old_low) {
		if (low < old_low)
			low = old_low;
		if (high > old_high)
			high = old_high;
	}
	atomic_store(&clocks[number].low, low);
	atomic_store(&clocks[number].high, high);
	atomic_store(&clocks[number].known, true);
}

void opencl_clock_seen(unsigned number, uint64_t queued, uint64_t before, uint64_t after)
{
	if (number != 0 && queued != 0 && after >= before)
		narrow(number, (int64_t)(before - queued), (int64_t)(after - queued));
}

static void read_again(unsigned number, uint64_t now)
{
	const struct device_sink *sink = device_sink();
	cl_device_id device = opencl_device(number);

	atomic_store(&clocks[number].read_ns, now);
	if (opencl_next.clGetDeviceAndHostTimer == NULL || device == NULL)
		return;
	for (unsigned i = 0; i < READINGS_AT_ONCE; i++) {
		cl_ulong device_time = 0, host_time = 0;
		uint64_t before = sink->now();

		if (opencl_next.clGetDeviceAndHostTimer(device, &device_time, &host_time) !=
		    CL_SUCCESS)
			return;
		opencl_clock_seen(number, device_time, before, sink->now());
	}
}

uint64_t opencl_host_time(unsigned number, uint64_t device_time)
{
	uint64_t now = device_sink()->now();
	int64_t low, high;

	if (number == 0 || device_time == 0)
		return 0;
	if (now - atomic_load(&clocks[number].read_ns) > READ_AGAIN_NS)
		read_again(number, now);
	if (!atomic_load(&clocks[number].known))
		return 0;
	low = atomic_load(&clocks[number].low);
	high = atomic_load(&clocks[number].high);
	return device_time + (uint64_t)(low + (high - low) / 2);
}
