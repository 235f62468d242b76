/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * kymo-opencl-devices: writes what OpenCL says of each device to standard output, as structs
 * (device/opencl/device_facts.h). The tool library starts it (device/opencl/probe.h) and kills it
 * when it takes too long. It ends at once: what drivers do at their end takes time.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/opencl/device_facts.h"

#define PLATFORMS_MAX 16
#define TIME_LIMIT_S  10

static struct {
	cl_int (*get_platforms)(cl_uint room, cl_platform_id *platforms, cl_uint *count);
	cl_int (*get_devices)(cl_platform_id platform, cl_device_type type, cl_uint room,
			      cl_device_id *devices, cl_uint *count);
	opencl_get_device_info_function *get_device_info;
} opencl;

static bool load_opencl(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);

	if (library == NULL)
		return false;
	*(void **)&opencl.get_platforms = dlsym(library, "clGetPlatformIDs");
	*(void **)&opencl.get_devices = dlsym(library, "clGetDeviceIDs");
	*(void **)&opencl.get_device_info = dlsym(library, "clGetDeviceInfo");
	return opencl.get_platforms != NULL && opencl.get_devices != NULL &&
	       opencl.get_device_info != NULL;
}

static void write_whole(const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size != 0) {
		ssize_t written = write(STDOUT_FILENO, at, size);

		if (written <= 0)
			_exit(1);
		at += written;
		size -= (size_t)written;
	}
}

static void write_devices_of_platform(cl_platform_id platform)
{
	cl_device_id devices[OPENCL_DEVICES_MAX];
	cl_uint count = 0;

	if (opencl.get_devices(platform, CL_DEVICE_TYPE_ALL, OPENCL_DEVICES_MAX, devices, &count) !=
	    CL_SUCCESS)
		return;
	for (cl_uint i = 0; i < count && i < OPENCL_DEVICES_MAX; i++) {
		struct opencl_device_facts facts;

		opencl_read_device_facts(opencl.get_device_info, devices[i], &facts);
		write_whole(&facts, sizeof(facts));
	}
}

int main(void)
{
	cl_platform_id platforms[PLATFORMS_MAX];
	cl_uint count = 0;

	alarm(TIME_LIMIT_S);
	if (load_opencl() && opencl.get_platforms(PLATFORMS_MAX, platforms, &count) == CL_SUCCESS) {
		for (cl_uint i = 0; i < count && i < PLATFORMS_MAX; i++)
			write_devices_of_platform(platforms[i]);
	}
	_exit(0);
}
