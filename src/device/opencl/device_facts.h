/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What OpenCL says of a device, without any pointers: one process may ask for another (probe.h).
 */
#ifndef KYMO_DEVICE_OPENCL_DEVICE_FACTS_H
#define KYMO_DEVICE_OPENCL_DEVICE_FACTS_H

#include <stdbool.h>

#include "device/opencl/types.h"

#define OPENCL_DEVICES_MAX 64

struct opencl_device_facts {
	cl_ulong type;
	char vendor[128], model[256], version[128];
	uint8_t uuid[16];
	cl_uint pci[4]; /* domain, bus, device, function; all 0: not known */
	cl_uint vendor_id, compute_units, clock_mhz;
	cl_ulong memory_bytes, local_memory_bytes;
	uint64_t group_size, group_dimensions_max[3];
};

typedef cl_int opencl_get_device_info_function(cl_device_id device, cl_device_info what,
					       size_t size, void *value, size_t *size_wanted);

/* What is not known is 0 or "". */
void opencl_read_device_facts(opencl_get_device_info_function *get_info, cl_device_id device,
			      struct opencl_device_facts *facts);

#endif
