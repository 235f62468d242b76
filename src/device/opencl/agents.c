/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenCL's devices as agents. A device that is the CPU (PoCL) is one of type CPU, unless
 * KYMO_OPENCL_CPU_AS_GPU=1 asks otherwise, for tools that look at GPUs alone.
 */
#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/settings_value.h"
#include "device/opencl/opencl.h"
#include "device/opencl/user_events.h"
#include "device/pointer_map.h"
#include "device/turns.h"

#define DEVICES_MAX 64

static struct {
	cl_device_id device;
	_Atomic device_handle agent;
	bool is_cpu;
} devices[DEVICES_MAX + 1];
static struct pointer_map numbers;
static _Atomic unsigned device_count;

static bool ask(cl_device_id device, cl_device_info what, void *value, size_t size)
{
	return opencl_next.clGetDeviceInfo(device, what, size, value, NULL) == CL_SUCCESS;
}

static void ask_text(cl_device_id device, cl_device_info what, char *text, size_t size)
{
	if (!ask(device, what, text, size))
		text[0] = '\0';
	text[size - 1] = '\0';
}

/* "opencl_nvidia_corporation": a name that files of counters can use as a key. */
static void name_architecture(const char *vendor, bool is_pocl, char *name, size_t size)
{
	int length;

	if (is_pocl) {
		snprintf(name, size, "pocl_cpu");
		return;
	}
	length = snprintf(name, size, "opencl_%s", vendor[0] != '\0' ? vendor : "device");
	for (int i = 0; i < length && name[i] != '\0'; i++)
		name[i] = isalnum((unsigned char)name[i]) ? (char)tolower((unsigned char)name[i])
							  : '_';
}

static void describe_place(cl_device_id device, struct device_agent *agent)
{
	cl_uint pci[4] = {0}; /* domain, bus, device, function */

	if (ask(device, CL_DEVICE_PCI_BUS_INFO_KHR, pci, sizeof(pci))) {
		agent->pci_domain = pci[0];
		agent->pci_location = pci[1] << 8 | pci[2] << 3 | pci[3];
	}
	ask(device, CL_DEVICE_UUID_KHR, agent->uuid, sizeof(agent->uuid));
}

static void describe_size(cl_device_id device, struct device_agent *agent)
{
	size_t group = 0, items[8] = {0};
	cl_ulong bytes = 0;

	ask(device, CL_DEVICE_VENDOR_ID, &agent->vendor_id, sizeof(cl_uint));
	ask(device, CL_DEVICE_MAX_COMPUTE_UNITS, &agent->compute_units, sizeof(cl_uint));
	ask(device, CL_DEVICE_MAX_CLOCK_FREQUENCY, &agent->clock_mhz, sizeof(cl_uint));
	ask(device, CL_DEVICE_GLOBAL_MEM_SIZE, &agent->memory_bytes, sizeof(cl_ulong));
	if (ask(device, CL_DEVICE_LOCAL_MEM_SIZE, &bytes, sizeof(bytes)))
		agent->local_memory_kib = (uint32_t)(bytes >> 10);
	if (ask(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, &group, sizeof(group)))
		agent->group_size = (uint32_t)group;
	ask(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, items, sizeof(items));
	for (unsigned i = 0; i < 3; i++) {
		agent->group_dimensions[i] =
			items[i] > UINT32_MAX ? UINT32_MAX : (uint32_t)items[i];
		agent->grid_dimensions[i] = UINT32_MAX;
	}
	agent->simds_per_unit = 1;
	agent->engines = 1;
	agent->wave_size = 1;
}

static bool processors_are_gpus(void)
{
	const char *asked = getenv("KYMO_OPENCL_CPU_AS_GPU");
	bool are = false;

	return asked != NULL && setting_parse_bool(setting_slice(asked), &are) == SETTING_VALID &&
	       are;
}

static device_handle tell(const struct device_sink *sink, cl_device_id device, unsigned number)
{
	char vendor[128], model[256], version[128], name[128];
	struct device_agent agent = {.runtime = DEVICE_RUNTIME_OPENCL,
				     .runtime_ordinal = number - 1};
	cl_device_type type = 0;

	ask(device, CL_DEVICE_TYPE, &type, sizeof(type));
	ask_text(device, CL_DEVICE_VENDOR, vendor, sizeof(vendor));
	ask_text(device, CL_DEVICE_NAME, model, sizeof(model));
	ask_text(device, CL_DEVICE_VERSION, version, sizeof(version));
	name_architecture(vendor,
			  strstr(version, "pocl") != NULL || strstr(version, "PoCL") != NULL, name,
			  sizeof(name));
	devices[number].is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
	agent.is_gpu = (type & CL_DEVICE_TYPE_CPU) == 0 || processors_are_gpus();
	agent.name = name;
	agent.vendor_name = vendor;
	agent.product_name = model;
	agent.model_name = version;
	describe_place(device, &agent);
	describe_size(device, &agent);
	return sink->agent(&agent);
}

unsigned opencl_device_number(cl_device_id device)
{
	const struct device_sink *sink = device_sink();
	uint64_t number = pointer_map_get(&numbers, device);

	if (number != 0 || device == NULL || sink == NULL)
		return (unsigned)number;
	number = atomic_fetch_add(&device_count, 1) + 1;
	if (number > DEVICES_MAX)
		return 0;
	devices[number].device = device;
	atomic_store(&devices[number].agent, tell(sink, device, (unsigned)number));
	pointer_map_set(&numbers, device, number);
	return (unsigned)number;
}

device_handle opencl_device_agent(unsigned number)
{
	return number != 0 && number <= DEVICES_MAX ? atomic_load(&devices[number].agent)
						    : DEVICE_NONE;
}

cl_device_id opencl_device(unsigned number)
{
	return number != 0 && number <= DEVICES_MAX ? devices[number].device : NULL;
}

bool opencl_device_is_cpu(unsigned number)
{
	return number != 0 && number <= DEVICES_MAX && devices[number].is_cpu;
}

unsigned opencl_device_of_agent(device_handle agent)
{
	for (unsigned number = 1; agent != DEVICE_NONE && number <= DEVICES_MAX; number++) {
		if (atomic_load(&devices[number].agent) == agent)
			return number;
	}
	return 0;
}

unsigned opencl_context_device_number(cl_context context)
{
	cl_device_id found[DEVICES_MAX] = {NULL};

	if (opencl_next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(found), found, NULL) !=
	    CL_SUCCESS)
		return 0;
	return opencl_device_number(found[0]);
}

/* All devices of all platforms, through the functions below us: the loader is up. */
static void discover(const struct device_sink *sink)
{
	cl_platform_id platforms[16];
	cl_uint platform_count = 0;

	(void)sink;
	if (!opencl_is_there() ||
	    opencl_next.clGetPlatformIDs(16, platforms, &platform_count) != CL_SUCCESS)
		return;
	for (cl_uint i = 0; i < platform_count && i < 16; i++) {
		cl_device_id found[DEVICES_MAX];
		cl_uint count = 0;

		if (opencl_next.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, DEVICES_MAX, found,
					       &count) != CL_SUCCESS)
			continue;
		for (cl_uint j = 0; j < count && j < DEVICES_MAX; j++)
			opencl_device_number(found[j]);
	}
}

static void wanted_changed(const struct device_sink *sink)
{
	(void)sink; /* every call asks */
}

static void flush(bool wait, uint64_t wait_ns)
{
	if (wait)
		opencl_wait(wait_ns);
}

static void finish(void)
{
	opencl_wait(0);
}

static void losses(struct device_losses *out)
{
	*out = opencl_losses;
	out->incomplete = opencl_in_flight();
}

static void forked(void)
{
	opencl_forget_in_flight();
	user_events_forked();
	turns_forked();
}

const struct device_backend device_backend_opencl = {
	"opencl", DEVICE_RUNTIME_OPENCL, discover, wanted_changed, flush, finish, forked,
	losses,   &opencl_counting};
