/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NVIDIA's devices. They are described by NVML, which needs no CUDA: tools ask for agents from
 * within cuInit(), where the driver does not answer yet. When it is up, its own numbers of the
 * devices (after CUDA_VISIBLE_DEVICES) are matched by UUID.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hot.h"
#include "common/loader.h"
#include "common/loader_state.h"
#include "device/cuda/counting.h"

#define DEVICES_MAX 64

static _Atomic device_handle agents_by_ordinal[DEVICES_MAX];
static struct {
	_Atomic device_handle agent;
	_Atomic uint16_t compute_capability;
} known_devices[DEVICES_MAX];

static device_handle emit_agent_and_keep_capability(const struct device_sink *sink,
						    const struct device_agent *agent,
						    unsigned capability)
{
	device_handle handle = sink->agent(agent);

	for (unsigned i = 0; i < DEVICES_MAX && handle != DEVICE_HANDLE_NONE; i++) {
		device_handle none = DEVICE_HANDLE_NONE;

		if (!atomic_compare_exchange_strong(&known_devices[i].agent, &none, handle) &&
		    none != handle)
			continue;
		atomic_store(&known_devices[i].compute_capability, (uint16_t)capability);
		break;
	}
	return handle;
}

uint16_t cuda_get_agent_compute_capability(device_handle agent)
{
	for (unsigned i = 0; i < DEVICES_MAX && agent != DEVICE_HANDLE_NONE; i++) {
		if (atomic_load(&known_devices[i].agent) == agent)
			return atomic_load(&known_devices[i].compute_capability);
	}
	return 0;
}

bool cuda_get_agent_ordinal(device_handle agent, uint32_t *ordinal)
{
	for (*ordinal = 0; *ordinal < DEVICES_MAX && agent != DEVICE_HANDLE_NONE; ++*ordinal) {
		if (atomic_load(&agents_by_ordinal[*ordinal]) == agent)
			return true;
	}
	return false;
}

/* What a multiprocessor has, by compute capability (CUDA C programming guide, "technical
 * specifications per compute capability"). */
static const struct {
	uint16_t compute_capability;
	uint16_t cores_per_multiprocessor, threads_per_multiprocessor,
		shared_kib_per_multiprocessor;
} architecture_limits_table[] = {
	{70, 64, 2048, 96},    {72, 64, 2048, 96},    {75, 64, 1024, 64},    {80, 64, 2048, 164},
	{86, 128, 1536, 100},  {87, 128, 1536, 164},  {89, 128, 1536, 100},  {90, 128, 2048, 228},
	{100, 128, 2048, 228}, {103, 128, 2048, 228}, {120, 128, 1536, 100}, {121, 128, 1536, 100},
};

static void fill_agent_from_capability(unsigned capability, unsigned cores,
				       struct device_agent *agent, char name[16])
{
	snprintf(name, 16, "sm_%u", capability);
	agent->runtime = DEVICE_RUNTIME_CUDA;
	agent->is_gpu = true;
	agent->name = name;
	agent->vendor_name = "NVIDIA";
	agent->vendor_id = 0x10de;
	agent->wave_size = 32;
	agent->simds_per_unit = 4;
	agent->shader_engines = 1;
	agent->group_size = 1024;
	agent->group_dimensions_max[0] = agent->group_dimensions_max[1] = 1024;
	agent->group_dimensions_max[2] = 64;
	agent->grid_dimensions_max[0] = INT32_MAX;
	agent->grid_dimensions_max[1] = agent->grid_dimensions_max[2] = 65535;
	for (size_t i = 0; i < ARRAY_SIZE(architecture_limits_table); i++) {
		if (architecture_limits_table[i].compute_capability != capability)
			continue;
		if (cores != 0)
			agent->compute_units =
				cores / architecture_limits_table[i].cores_per_multiprocessor;
		agent->waves_per_unit =
			architecture_limits_table[i].threads_per_multiprocessor / 32u;
		agent->local_memory_kib =
			architecture_limits_table[i].shared_kib_per_multiprocessor;
	}
}

/* "GPU-b2a5..." in groups of hexadecimal digits. */
static void parse_uuid(const char *text, uint8_t uuid[16])
{
	unsigned digits = 0;

	memset(uuid, 0, 16);
	if (strncmp(text, "GPU-", 4) == 0)
		text += 4;
	for (; *text != '\0' && digits < 32; text++) {
		char digit[2] = {*text, '\0'};

		if (strspn(digit, "0123456789abcdefABCDEF") != 1)
			continue;
		uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | strtoul(digit, NULL, 16));
		digits++;
	}
}

/* ---- NVML (nvml.h) ---- */

struct nvml_pci {
	char old_bus_id[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

struct nvml_memory {
	unsigned long long total, unused, used;
};

struct nvml_device_functions {
	int (*Init_v2)(void);
	int (*DeviceGetCount_v2)(unsigned *count);
	int (*DeviceGetHandleByIndex_v2)(unsigned index, void **device);
	int (*DeviceGetName)(void *device, char *name, unsigned size);
	int (*DeviceGetUUID)(void *device, char *uuid, unsigned size);
	int (*DeviceGetPciInfo_v3)(void *device, struct nvml_pci *pci);
	int (*DeviceGetMemoryInfo)(void *device, struct nvml_memory *memory);
	int (*DeviceGetMaxClockInfo)(void *device, int type, unsigned *megahertz);
	int (*DeviceGetNumGpuCores)(void *device, unsigned *cores);
	int (*DeviceGetCudaComputeCapability)(void *device, int *major, int *minor);
};

static bool load_and_initialize_nvml(struct nvml_device_functions *nvml)
{
	void *library = loader_dlopen_keeping_dlerror("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	if (library == NULL)
		return false;
#define LOAD_NVML_FUNCTION(name)                                                                   \
	*(void **)&nvml->name = loader_find_symbol_in_handle(library, "nvml" #name)
	LOAD_NVML_FUNCTION(Init_v2);
	LOAD_NVML_FUNCTION(DeviceGetCount_v2);
	LOAD_NVML_FUNCTION(DeviceGetHandleByIndex_v2);
	LOAD_NVML_FUNCTION(DeviceGetName);
	LOAD_NVML_FUNCTION(DeviceGetUUID);
	LOAD_NVML_FUNCTION(DeviceGetPciInfo_v3);
	LOAD_NVML_FUNCTION(DeviceGetMemoryInfo);
	LOAD_NVML_FUNCTION(DeviceGetMaxClockInfo);
	LOAD_NVML_FUNCTION(DeviceGetNumGpuCores);
	LOAD_NVML_FUNCTION(DeviceGetCudaComputeCapability);
#undef LOAD_NVML_FUNCTION
	return nvml->Init_v2 != NULL && nvml->DeviceGetCount_v2 != NULL &&
	       nvml->DeviceGetHandleByIndex_v2 != NULL && nvml->DeviceGetName != NULL &&
	       nvml->DeviceGetUUID != NULL && nvml->DeviceGetPciInfo_v3 != NULL &&
	       nvml->DeviceGetMemoryInfo != NULL && nvml->DeviceGetMaxClockInfo != NULL &&
	       nvml->DeviceGetCudaComputeCapability != NULL && nvml->Init_v2() == 0;
}

static void emit_nvml_device(const struct device_sink *sink,
			     const struct nvml_device_functions *nvml, unsigned index, void *device)
{
	struct device_agent agent = {.runtime_ordinal = index};
	struct nvml_pci pci = {0};
	struct nvml_memory memory = {0};
	char product[96] = "", uuid[96] = "", name[16];
	int major = 0, minor = 0;
	unsigned cores = 0;

	nvml->DeviceGetName(device, product, sizeof(product));
	nvml->DeviceGetUUID(device, uuid, sizeof(uuid));
	nvml->DeviceGetPciInfo_v3(device, &pci);
	nvml->DeviceGetMemoryInfo(device, &memory);
	nvml->DeviceGetCudaComputeCapability(device, &major, &minor);
	if (nvml->DeviceGetNumGpuCores != NULL)
		nvml->DeviceGetNumGpuCores(device, &cores);
	fill_agent_from_capability((unsigned)(major * 10 + minor), cores, &agent, name);
	nvml->DeviceGetMaxClockInfo(device, 1, &agent.clock_mhz);
	parse_uuid(uuid, agent.uuid);
	agent.product_name = agent.model_name = product;
	agent.device_id = pci.device_id >> 16;
	agent.pci_domain = pci.domain;
	agent.pci_location = pci.bus << 8 | pci.device << 3;
	agent.memory_bytes = memory.total;
	emit_agent_and_keep_capability(sink, &agent, (unsigned)(major * 10 + minor));
}

void cuda_report_nvml_devices(const struct device_sink *sink)
{
	struct nvml_device_functions nvml = {0};
	unsigned count = 0;

	if (!load_and_initialize_nvml(&nvml) || nvml.DeviceGetCount_v2(&count) != 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		void *device = NULL;

		if (nvml.DeviceGetHandleByIndex_v2(i, &device) == 0)
			emit_nvml_device(sink, &nvml, i, device);
	}
}

/* ---- the driver (cuda.h) ---- */

enum cuda_device_attribute_number {
	ATTRIBUTE_MULTIPROCESSORS = 16,
	ATTRIBUTE_CLOCK_KHZ = 13,
	ATTRIBUTE_PCI_BUS = 33,
	ATTRIBUTE_PCI_DEVICE = 34,
	ATTRIBUTE_PCI_DOMAIN = 50,
	ATTRIBUTE_CAPABILITY_MAJOR = 75,
	ATTRIBUTE_CAPABILITY_MINOR = 76
};

struct driver_device_functions {
	int (*get_device_count)(int *count);
	int (*get_device_by_ordinal)(int *device, int ordinal);
	int (*get_uuid)(uint8_t uuid[16], int device);
	int (*get_name)(char *name, int size, int device);
	int (*get_attribute)(int *value, int attribute, int device);
	int (*get_total_memory)(size_t *bytes, int device);
};

static bool load_driver_device_functions(struct driver_device_functions *driver)
{
	void *library = loader_dlopen_keeping_dlerror("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (library == NULL)
		return false;
	*(void **)&driver->get_device_count =
		loader_find_symbol_in_handle(library, "cuDeviceGetCount");
	*(void **)&driver->get_device_by_ordinal =
		loader_find_symbol_in_handle(library, "cuDeviceGet");
	*(void **)&driver->get_uuid = loader_find_symbol_in_handle(library, "cuDeviceGetUuid_v2");
	if (driver->get_uuid == NULL)
		*(void **)&driver->get_uuid =
			loader_find_symbol_in_handle(library, "cuDeviceGetUuid");
	*(void **)&driver->get_name = loader_find_symbol_in_handle(library, "cuDeviceGetName");
	*(void **)&driver->get_attribute =
		loader_find_symbol_in_handle(library, "cuDeviceGetAttribute");
	*(void **)&driver->get_total_memory =
		loader_find_symbol_in_handle(library, "cuDeviceTotalMem_v2");
	return driver->get_device_count != NULL && driver->get_device_by_ordinal != NULL &&
	       driver->get_uuid != NULL && driver->get_name != NULL &&
	       driver->get_attribute != NULL && driver->get_total_memory != NULL;
}

static unsigned read_device_attribute(const struct driver_device_functions *driver, int device,
				      enum cuda_device_attribute_number attribute)
{
	int value = 0;

	driver->get_attribute(&value, (int)attribute, device);
	return value > 0 ? (unsigned)value : 0;
}

static device_handle emit_driver_device(const struct driver_device_functions *driver, int ordinal)
{
	struct device_agent agent = {.runtime_ordinal = (uint32_t)ordinal};
	char product[96] = "", name[16];
	size_t bytes = 0;
	int device = 0;
	unsigned capability;

	if (driver->get_device_by_ordinal(&device, ordinal) != 0)
		return DEVICE_HANDLE_NONE;
	capability = read_device_attribute(driver, device, ATTRIBUTE_CAPABILITY_MAJOR) * 10 +
		     read_device_attribute(driver, device, ATTRIBUTE_CAPABILITY_MINOR);
	fill_agent_from_capability(capability, 0, &agent, name);
	driver->get_name(product, sizeof(product), device);
	driver->get_uuid(agent.uuid, device);
	driver->get_total_memory(&bytes, device);
	agent.product_name = agent.model_name = product;
	agent.compute_units = read_device_attribute(driver, device, ATTRIBUTE_MULTIPROCESSORS);
	agent.clock_mhz = read_device_attribute(driver, device, ATTRIBUTE_CLOCK_KHZ) / 1000;
	agent.pci_domain = read_device_attribute(driver, device, ATTRIBUTE_PCI_DOMAIN);
	agent.pci_location = read_device_attribute(driver, device, ATTRIBUTE_PCI_BUS) << 8 |
			     read_device_attribute(driver, device, ATTRIBUTE_PCI_DEVICE) << 3;
	agent.memory_bytes = bytes;
	return emit_agent_and_keep_capability(device_get_sink(), &agent, capability);
}

void cuda_register_driver_devices(void)
{
	struct driver_device_functions driver;
	int count = 0;

	if (atomic_load(&agents_by_ordinal[0]) != DEVICE_HANDLE_NONE ||
	    !load_driver_device_functions(&driver) || driver.get_device_count(&count) != 0)
		return;
	for (int i = count < DEVICES_MAX ? count : DEVICES_MAX; i-- > 0;)
		atomic_store(&agents_by_ordinal[i], emit_driver_device(&driver, i));
}

KYMO_HOT device_handle cuda_find_agent_by_ordinal(uint32_t ordinal)
{
	return ordinal < DEVICES_MAX ? atomic_load(&agents_by_ordinal[ordinal])
				     : DEVICE_HANDLE_NONE;
}
