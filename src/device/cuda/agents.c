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

#include "common/hot.h"
#include "device/cuda/counting.h"

#define DEVICES_MAX 64

static _Atomic device_handle by_ordinal[DEVICES_MAX];
static struct {
	_Atomic device_handle agent;
	_Atomic uint16_t capability;
} known[DEVICES_MAX];

static device_handle tell(const struct device_sink *sink, const struct device_agent *agent,
			  unsigned capability)
{
	device_handle handle = sink->agent(agent);

	for (unsigned i = 0; i < DEVICES_MAX && handle != DEVICE_NONE; i++) {
		device_handle none = DEVICE_NONE;

		if (!atomic_compare_exchange_strong(&known[i].agent, &none, handle) &&
		    none != handle)
			continue;
		atomic_store(&known[i].capability, (uint16_t)capability);
		break;
	}
	return handle;
}

uint16_t cuda_agent_capability(device_handle agent)
{
	for (unsigned i = 0; i < DEVICES_MAX && agent != DEVICE_NONE; i++) {
		if (atomic_load(&known[i].agent) == agent)
			return atomic_load(&known[i].capability);
	}
	return 0;
}

bool cuda_agent_ordinal(device_handle agent, uint32_t *ordinal)
{
	for (*ordinal = 0; *ordinal < DEVICES_MAX && agent != DEVICE_NONE; ++*ordinal) {
		if (atomic_load(&by_ordinal[*ordinal]) == agent)
			return true;
	}
	return false;
}

/* What a multiprocessor has, by compute capability (CUDA C programming guide, "technical
 * specifications per compute capability"). */
static const struct {
	uint16_t capability;
	uint16_t cores, threads, shared_kib;
} architectures[] = {
	{70, 64, 2048, 96},    {72, 64, 2048, 96},    {75, 64, 1024, 64},    {80, 64, 2048, 164},
	{86, 128, 1536, 100},  {87, 128, 1536, 164},  {89, 128, 1536, 100},  {90, 128, 2048, 228},
	{100, 128, 2048, 228}, {103, 128, 2048, 228}, {120, 128, 1536, 100}, {121, 128, 1536, 100},
};

static void describe_architecture(unsigned capability, unsigned cores, struct device_agent *agent,
				  char name[16])
{
	snprintf(name, 16, "sm_%u", capability);
	agent->runtime = DEVICE_RUNTIME_CUDA;
	agent->is_gpu = true;
	agent->name = name;
	agent->vendor_name = "NVIDIA";
	agent->vendor_id = 0x10de;
	agent->wave_size = 32;
	agent->simds_per_unit = 4;
	agent->engines = 1;
	agent->group_size = 1024;
	agent->group_dimensions[0] = agent->group_dimensions[1] = 1024;
	agent->group_dimensions[2] = 64;
	agent->grid_dimensions[0] = INT32_MAX;
	agent->grid_dimensions[1] = agent->grid_dimensions[2] = 65535;
	for (size_t i = 0; i < sizeof(architectures) / sizeof(*architectures); i++) {
		if (architectures[i].capability != capability)
			continue;
		if (cores != 0)
			agent->compute_units = cores / architectures[i].cores;
		agent->waves_per_unit = architectures[i].threads / 32u;
		agent->local_memory_kib = architectures[i].shared_kib;
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

struct nvml {
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

static bool load_nvml(struct nvml *nvml)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	if (library == NULL)
		return false;
#define FIND(name) *(void **)&nvml->name = dlsym(library, "nvml" #name)
	FIND(Init_v2);
	FIND(DeviceGetCount_v2);
	FIND(DeviceGetHandleByIndex_v2);
	FIND(DeviceGetName);
	FIND(DeviceGetUUID);
	FIND(DeviceGetPciInfo_v3);
	FIND(DeviceGetMemoryInfo);
	FIND(DeviceGetMaxClockInfo);
	FIND(DeviceGetNumGpuCores);
	FIND(DeviceGetCudaComputeCapability);
#undef FIND
	return nvml->Init_v2 != NULL && nvml->DeviceGetCount_v2 != NULL &&
	       nvml->DeviceGetHandleByIndex_v2 != NULL && nvml->DeviceGetName != NULL &&
	       nvml->DeviceGetUUID != NULL && nvml->DeviceGetPciInfo_v3 != NULL &&
	       nvml->DeviceGetMemoryInfo != NULL && nvml->DeviceGetMaxClockInfo != NULL &&
	       nvml->DeviceGetCudaComputeCapability != NULL && nvml->Init_v2() == 0;
}

static void tell_nvml_device(const struct device_sink *sink, const struct nvml *nvml,
			     unsigned index, void *device)
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
	describe_architecture((unsigned)(major * 10 + minor), cores, &agent, name);
	nvml->DeviceGetMaxClockInfo(device, 1, &agent.clock_mhz);
	parse_uuid(uuid, agent.uuid);
	agent.product_name = agent.model_name = product;
	agent.device_id = pci.device_id >> 16;
	agent.pci_domain = pci.domain;
	agent.pci_location = pci.bus << 8 | pci.device << 3;
	agent.memory_bytes = memory.total;
	tell(sink, &agent, (unsigned)(major * 10 + minor));
}

void cuda_discover(const struct device_sink *sink)
{
	struct nvml nvml = {0};
	unsigned count = 0;

	if (!load_nvml(&nvml) || nvml.DeviceGetCount_v2(&count) != 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		void *device = NULL;

		if (nvml.DeviceGetHandleByIndex_v2(i, &device) == 0)
			tell_nvml_device(sink, &nvml, i, device);
	}
}

/* ---- the driver (cuda.h) ---- */

enum attribute {
	ATTRIBUTE_MULTIPROCESSORS = 16,
	ATTRIBUTE_CLOCK_KHZ = 13,
	ATTRIBUTE_PCI_BUS = 33,
	ATTRIBUTE_PCI_DEVICE = 34,
	ATTRIBUTE_PCI_DOMAIN = 50,
	ATTRIBUTE_CAPABILITY_MAJOR = 75,
	ATTRIBUTE_CAPABILITY_MINOR = 76
};

struct driver {
	int (*get_count)(int *count);
	int (*get)(int *device, int ordinal);
	int (*get_uuid)(uint8_t uuid[16], int device);
	int (*get_name)(char *name, int size, int device);
	int (*get_attribute)(int *value, int attribute, int device);
	int (*total_memory)(size_t *bytes, int device);
};

static bool load_driver(struct driver *driver)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (library == NULL)
		return false;
	*(void **)&driver->get_count = dlsym(library, "cuDeviceGetCount");
	*(void **)&driver->get = dlsym(library, "cuDeviceGet");
	*(void **)&driver->get_uuid = dlsym(library, "cuDeviceGetUuid_v2");
	if (driver->get_uuid == NULL)
		*(void **)&driver->get_uuid = dlsym(library, "cuDeviceGetUuid");
	*(void **)&driver->get_name = dlsym(library, "cuDeviceGetName");
	*(void **)&driver->get_attribute = dlsym(library, "cuDeviceGetAttribute");
	*(void **)&driver->total_memory = dlsym(library, "cuDeviceTotalMem_v2");
	return driver->get_count != NULL && driver->get != NULL && driver->get_uuid != NULL &&
	       driver->get_name != NULL && driver->get_attribute != NULL &&
	       driver->total_memory != NULL;
}

static unsigned attribute_of(const struct driver *driver, int device, enum attribute attribute)
{
	int value = 0;

	driver->get_attribute(&value, (int)attribute, device);
	return value > 0 ? (unsigned)value : 0;
}

static device_handle tell_driver_device(const struct driver *driver, int ordinal)
{
	struct device_agent agent = {.runtime_ordinal = (uint32_t)ordinal};
	char product[96] = "", name[16];
	size_t bytes = 0;
	int device = 0;
	unsigned capability;

	if (driver->get(&device, ordinal) != 0)
		return DEVICE_NONE;
	capability = attribute_of(driver, device, ATTRIBUTE_CAPABILITY_MAJOR) * 10 +
		     attribute_of(driver, device, ATTRIBUTE_CAPABILITY_MINOR);
	describe_architecture(capability, 0, &agent, name);
	driver->get_name(product, sizeof(product), device);
	driver->get_uuid(agent.uuid, device);
	driver->total_memory(&bytes, device);
	agent.product_name = agent.model_name = product;
	agent.compute_units = attribute_of(driver, device, ATTRIBUTE_MULTIPROCESSORS);
	agent.clock_mhz = attribute_of(driver, device, ATTRIBUTE_CLOCK_KHZ) / 1000;
	agent.pci_domain = attribute_of(driver, device, ATTRIBUTE_PCI_DOMAIN);
	agent.pci_location = attribute_of(driver, device, ATTRIBUTE_PCI_BUS) << 8 |
			     attribute_of(driver, device, ATTRIBUTE_PCI_DEVICE) << 3;
	agent.memory_bytes = bytes;
	return tell(device_sink(), &agent, capability);
}

void cuda_driver_is_up(void)
{
	struct driver driver;
	int count = 0;

	if (atomic_load(&by_ordinal[0]) != DEVICE_NONE || !load_driver(&driver) ||
	    driver.get_count(&count) != 0)
		return;
	for (int i = count < DEVICES_MAX ? count : DEVICES_MAX; i-- > 0;)
		atomic_store(&by_ordinal[i], tell_driver_device(&driver, i));
}

KYMO_HOT device_handle cuda_agent(uint32_t ordinal)
{
	return ordinal < DEVICES_MAX ? atomic_load(&by_ordinal[ordinal]) : DEVICE_NONE;
}
