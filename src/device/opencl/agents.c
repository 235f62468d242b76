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
#include "device/kernel_serializer.h"
#include "device/opencl/opencl.h"
#include "device/opencl/probe.h"
#include "device/opencl/user_events.h"
#include "device/pointer_map.h"

static struct {
	_Atomic(cl_device_id) device; /* NULL: it was found by a probe, and not used yet */
	_Atomic device_handle agent;
	bool is_cpu;
} known_devices[OPENCL_DEVICES_MAX + 1];
static struct pointer_map device_numbers_by_id;
static _Atomic unsigned device_count;

/* "opencl_nvidia_corporation": a name that files of counters can use as a key. */
static void format_architecture_name(const char *vendor, bool is_pocl, char *name, size_t size)
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

static void fill_device_limits(const struct opencl_device_facts *facts, struct device_agent *agent)
{
	agent->vendor_id = facts->vendor_id;
	agent->compute_units = facts->compute_units;
	agent->clock_mhz = facts->clock_mhz;
	agent->memory_bytes = facts->memory_bytes;
	agent->local_memory_kib = (uint32_t)(facts->local_memory_bytes >> 10);
	agent->group_size = (uint32_t)facts->group_size;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t items = facts->group_dimensions_max[i];

		agent->group_dimensions_max[i] = items > UINT32_MAX ? UINT32_MAX : (uint32_t)items;
		agent->grid_dimensions_max[i] = UINT32_MAX;
	}
	agent->simds_per_unit = 1;
	agent->shader_engines = 1;
	agent->wave_size = 1;
}

static bool is_cpu_as_gpu_requested(void)
{
	const char *asked = secure_getenv("KYMO_OPENCL_CPU_AS_GPU");
	bool are = false;

	return asked != NULL &&
	       setting_parse_bool(setting_slice_from_text(asked), &are) == SETTING_VALID && are;
}

static device_handle emit_agent_of_device(const struct device_sink *sink,
					  const struct opencl_device_facts *facts)
{
	const cl_uint *pci = facts->pci; /* domain, bus, device, function */
	struct device_agent agent = {.runtime = DEVICE_RUNTIME_OPENCL,
				     .runtime_ordinal = atomic_load(&device_count)};
	char name[128];

	format_architecture_name(facts->vendor,
				 strstr(facts->version, "pocl") != NULL ||
					 strstr(facts->version, "PoCL") != NULL,
				 name, sizeof(name));
	agent.is_gpu = (facts->type & CL_DEVICE_TYPE_CPU) == 0 || is_cpu_as_gpu_requested();
	agent.name = name;
	agent.vendor_name = facts->vendor;
	agent.product_name = facts->model;
	agent.model_name = facts->version;
	agent.pci_domain = pci[0];
	agent.pci_location = pci[1] << 8 | pci[2] << 3 | pci[3];
	memcpy(agent.uuid, facts->uuid, sizeof(agent.uuid));
	fill_device_limits(facts, &agent);
	return sink->agent(&agent);
}

/* 0: there are too many. */
static unsigned add_device(cl_device_id device, const struct opencl_device_facts *facts,
			   device_handle agent)
{
	unsigned number = atomic_fetch_add(&device_count, 1) + 1;

	if (number > OPENCL_DEVICES_MAX)
		return 0;
	known_devices[number].is_cpu = (facts->type & CL_DEVICE_TYPE_CPU) != 0;
	atomic_store(&known_devices[number].device, device);
	atomic_store(&known_devices[number].agent, agent);
	return number;
}

/* What a tool has asked for by the agent goes by its number. 0: no probe has found it. */
static unsigned take_number_of_probed_device(cl_device_id device, device_handle agent)
{
	for (unsigned number = 1; agent != DEVICE_HANDLE_NONE && number <= OPENCL_DEVICES_MAX;
	     number++) {
		cl_device_id none = NULL;

		if (atomic_load(&known_devices[number].agent) == agent &&
		    atomic_compare_exchange_strong(&known_devices[number].device, &none, device))
			return number;
	}
	return 0;
}

unsigned opencl_device_find_or_add(cl_device_id device)
{
	const struct device_sink *sink = device_get_sink();
	uint64_t number = pointer_map_get(&device_numbers_by_id, device);
	struct opencl_device_facts facts;
	device_handle agent;

	if (number != 0 || device == NULL || sink == NULL)
		return (unsigned)number;
	opencl_read_device_facts(opencl_next_functions.clGetDeviceInfo, device, &facts);
	agent = emit_agent_of_device(sink, &facts);
	number = take_number_of_probed_device(device, agent);
	if (number == 0)
		number = add_device(device, &facts, agent);
	if (number != 0)
		pointer_map_set(&device_numbers_by_id, device, number);
	return (unsigned)number;
}

void opencl_device_add_probed(const struct opencl_device_facts *facts)
{
	const struct device_sink *sink = device_get_sink();

	if (sink != NULL)
		add_device(NULL, facts, emit_agent_of_device(sink, facts));
}

/* Where the program has used OpenCL its devices are asked for here, and known. */
void device_find_opencl_devices_of_unused_runtime(void)
{
	static _Atomic bool has_been_done;
	struct opencl_device_facts *facts;
	unsigned count;

	if (opencl_layer_is_installed() || atomic_exchange(&has_been_done, true))
		return;
	facts = calloc(OPENCL_DEVICES_MAX, sizeof(*facts));
	count = facts != NULL ? opencl_probe_devices(facts) : 0;
	for (unsigned i = 0; i < count && !opencl_layer_is_installed(); i++)
		opencl_device_add_probed(&facts[i]);
	free(facts);
}

device_handle opencl_device_get_agent(unsigned number)
{
	return number != 0 && number <= OPENCL_DEVICES_MAX
		       ? atomic_load(&known_devices[number].agent)
		       : DEVICE_HANDLE_NONE;
}

cl_device_id opencl_device_find_by_number(unsigned number)
{
	return number != 0 && number <= OPENCL_DEVICES_MAX
		       ? atomic_load(&known_devices[number].device)
		       : NULL;
}

bool opencl_device_is_cpu(unsigned number)
{
	return number != 0 && number <= OPENCL_DEVICES_MAX && known_devices[number].is_cpu;
}

unsigned opencl_device_find_number_of_agent(device_handle agent)
{
	for (unsigned number = 1; agent != DEVICE_HANDLE_NONE && number <= OPENCL_DEVICES_MAX;
	     number++) {
		if (atomic_load(&known_devices[number].agent) == agent)
			return number;
	}
	return 0;
}

unsigned opencl_context_to_device_number(cl_context context)
{
	cl_device_id found[OPENCL_DEVICES_MAX] = {NULL};

	if (opencl_next_functions.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(found),
						   found, NULL) != CL_SUCCESS)
		return 0;
	return opencl_device_find_or_add(found[0]);
}

/* All devices of all platforms, through the functions below us: the loader is up. */
static void backend_discover_agents(const struct device_sink *sink)
{
	cl_platform_id platforms[16];
	cl_uint platform_count = 0;

	(void)sink;
	if (!opencl_layer_is_installed() ||
	    opencl_next_functions.clGetPlatformIDs(16, platforms, &platform_count) != CL_SUCCESS)
		return;
	for (cl_uint i = 0; i < platform_count && i < 16; i++) {
		cl_device_id found[OPENCL_DEVICES_MAX];
		cl_uint count = 0;

		if (opencl_next_functions.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL,
							 OPENCL_DEVICES_MAX, found,
							 &count) != CL_SUCCESS)
			continue;
		for (cl_uint j = 0; j < count && j < OPENCL_DEVICES_MAX; j++)
			opencl_device_find_or_add(found[j]);
	}
}

static void opencl_ignore_wanted_data_change(const struct device_sink *sink)
{
	(void)sink; /* every call asks */
}

static void backend_wait_until_idle_if_asked(bool wait, uint64_t wait_ns)
{
	if (wait)
		opencl_wait_until_idle(wait_ns);
}

static void backend_complete_failed_commands(void)
{
	opencl_wait_until_idle(0);
}

static void backend_read_losses(struct device_record_loss_counts *out)
{
	*out = opencl_losses;
	out->incomplete_work_count = opencl_get_in_flight_command_count();
}

static void backend_handle_fork(void)
{
	opencl_reset_in_flight_counts();
	opencl_forget_svm_allocations();
	user_events_reset_forked();
	serializer_reset_forked();
}

const struct device_backend device_backend_opencl = {"opencl",
						     DEVICE_RUNTIME_OPENCL,
						     backend_discover_agents,
						     opencl_ignore_wanted_data_change,
						     backend_wait_until_idle_if_asked,
						     backend_complete_failed_commands,
						     backend_handle_fork,
						     backend_read_losses,
						     &opencl_counting};
