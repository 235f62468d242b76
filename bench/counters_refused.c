/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * For bench/counters_device: a driver that lets only administrators count. Preloaded, it changes
 * what NVIDIA's kernel driver answers when its profiler is asked for (class MAXWELL_PROFILER_DEVICE
 * of the open kernel modules) into NV_ERR_INSUFFICIENT_PERMISSIONS, as it answers itself with
 * NVreg_RestrictProfilingToAdminUsers=1. CUPTI and libcuda are the real ones.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define OF_THE_DRIVER            'F'
#define ALLOCATE                 0x2b /* NV_ESC_RM_ALLOC */
#define MAXWELL_PROFILER_DEVICE  0xb2cc
#define INSUFFICIENT_PERMISSIONS 0x1b

/* NVOS64_PARAMETERS */
struct allocation {
	uint32_t root, parent, object, class;
	uint64_t parameters, rights;
	uint32_t parameters_size, flags, status, none;
};

__attribute__((visibility("default"))) int ioctl(int file, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, void *);
	struct allocation *allocation;
	va_list arguments;
	int result;

	va_start(arguments, request);
	allocation = va_arg(arguments, void *);
	va_end(arguments);
	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "ioctl");
	result = next(file, request, allocation);
	if (_IOC_TYPE(request) == OF_THE_DRIVER && _IOC_NR(request) == ALLOCATE &&
	    _IOC_SIZE(request) == sizeof(*allocation) &&
	    allocation->class == MAXWELL_PROFILER_DEVICE)
		allocation->status = INSUFFICIENT_PERMISSIONS;
	return result;
}
