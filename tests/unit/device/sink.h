/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A sink that counts what it is told and checks that each handle is used as device.h says.
 */
#ifndef TESTS_UNIT_DEVICE_SINK_H
#define TESTS_UNIT_DEVICE_SINK_H

#include "device/device.h"

#define HANDLES_MAX 200000

struct told {
	_Atomic unsigned agents, runtimes, calls_entered, calls_left, kernels, submitted, failed,
		completed, without_time, copies, copies_completed, copies_failed, opened, closed,
		kernel_records, copy_records, unknown_correlations, allocations, frees, programs,
		symbols, unloaded, markers, said, misused;
	_Atomic uint64_t copied_bytes, allocated_bytes;
	char last_agent[256], last_symbol[256], last_said[512], last_marker[256];
	struct device_kernel_launch last_kernel;
	struct device_copy last_copy;
	struct device_agent last_device; /* its texts are not there any more */
};

extern struct told told;
/* What all devices are known as from now on; DEVICE_HANDLE_NONE: each is another agent. */
extern _Atomic device_handle sink_agent;
/* Which services anybody wants; all at first. */
extern _Atomic uint32_t sink_wanted;
/* Starts the sink; each time with counters at 0. */
void sink_start(void);

#endif
