/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * AMD's HSA runtime. It gives its tables of functions to librocprofiler-register and, through its
 * tools interface, to the libraries of HSA_TOOLS_LIB, both at the end of hsa_init(). What is taken
 * from there are the devices; its functions are reported by the tool library (api_tables.h), which
 * gets the tables either way. Kernels and copies are not followed: where ROCm is installed AMD's
 * own tool library does that, and kymo's tool is loaded by it.
 *
 * Layouts and numbers are those of hsa_api_trace.h, hsa.h and hsa_ext_amd.h. None of this has been
 * run on an AMD device.
 */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

enum hsa_agent_attribute { /* hsa_agent_info_t, hsa_amd_agent_info_t */
			   AGENT_INFO_NAME = 0,
			   AGENT_INFO_VENDOR = 1,
			   AGENT_INFO_WAVE_SIZE = 6,
			   AGENT_INFO_DEVICE_TYPE = 17,
			   AGENT_INFO_COMPUTE_UNITS = 0xa002,
			   AGENT_INFO_CLOCK_MHZ = 0xa003,
			   AGENT_INFO_PCI_BDF = 0xa006,
			   AGENT_INFO_PRODUCT = 0xa009,
			   AGENT_INFO_PCI_DOMAIN = 0xa00f,
			   AGENT_INFO_UUID = 0xa011
};

enum { HSA_DEVICE_TYPE_GPU = 1, AGENT_INFO_TEXT_MAX = 64, AGENTS_MAX = 64 };

struct hsa_agent {
	uint64_t handle;
};

typedef int function(void);
typedef int iterate_agents(int (*each)(struct hsa_agent agent, void *context), void *context);
typedef int agent_get_info(struct hsa_agent agent, unsigned what, void *value);

struct api_table_version {
	uint32_t major, minor, step, reserved; /* minor: bytes of the table */
};

struct hsa_core_table_layout {
	struct api_table_version version;
	function *init, *shut_down, *system_get_info, *system_extension_supported,
		*system_get_extension_table;
	iterate_agents *iterate_agents;
	agent_get_info *agent_get_info;
};

struct hsa_api_table_layout {
	struct api_table_version version;
	const struct hsa_core_table_layout *core;
};

/* As they are in the runtime: what its tables get later tells tools. */
static struct {
	iterate_agents *iterate_agents;
	agent_get_info *agent_get_info;
} hsa;

static void read_agent_text(struct hsa_agent agent, enum hsa_agent_attribute what,
			    char text[AGENT_INFO_TEXT_MAX + 1])
{
	memset(text, 0, AGENT_INFO_TEXT_MAX + 1);
	if (hsa.agent_get_info(agent, what, text) != 0)
		text[0] = '\0';
	text[AGENT_INFO_TEXT_MAX] = '\0';
}

static uint32_t read_agent_attribute_number(struct hsa_agent agent, enum hsa_agent_attribute what)
{
	uint32_t value = 0;

	return hsa.agent_get_info(agent, what, &value) == 0 ? value : 0;
}

/* "GPU-" and 16 hexadecimal digits. */
static void read_agent_uuid(struct hsa_agent agent, uint8_t uuid[16])
{
	char text[AGENT_INFO_TEXT_MAX + 1];
	uint64_t value;

	read_agent_text(agent, AGENT_INFO_UUID, text);
	if (strncmp(text, "GPU-", 4) != 0)
		return;
	value = strtoull(text + 4, NULL, 16);
	memcpy(uuid, &value, sizeof(value));
}

static int emit_agent_if_gpu(struct hsa_agent agent, void *context)
{
	const struct device_sink *sink = context;
	char name[AGENT_INFO_TEXT_MAX + 1], vendor[AGENT_INFO_TEXT_MAX + 1],
		product[AGENT_INFO_TEXT_MAX + 1];
	struct device_agent told = {.runtime = DEVICE_RUNTIME_HSA, .is_gpu = true};
	uint32_t type = read_agent_attribute_number(agent, AGENT_INFO_DEVICE_TYPE);

	if (type != HSA_DEVICE_TYPE_GPU) /* processors are the host's to tell */
		return 0;
	read_agent_text(agent, AGENT_INFO_NAME, name);
	read_agent_text(agent, AGENT_INFO_VENDOR, vendor);
	read_agent_text(agent, AGENT_INFO_PRODUCT, product);
	told.name = name;
	told.vendor_name = vendor;
	told.product_name = product;
	told.model_name = name;
	told.vendor_id = 0x1002;
	told.compute_units = read_agent_attribute_number(agent, AGENT_INFO_COMPUTE_UNITS);
	told.simds_per_unit = 4;
	told.shader_engines = 1;
	told.wave_size = read_agent_attribute_number(agent, AGENT_INFO_WAVE_SIZE);
	told.clock_mhz = read_agent_attribute_number(agent, AGENT_INFO_CLOCK_MHZ);
	told.pci_location = read_agent_attribute_number(agent, AGENT_INFO_PCI_BDF);
	told.pci_domain = read_agent_attribute_number(agent, AGENT_INFO_PCI_DOMAIN);
	read_agent_uuid(agent, told.uuid);
	sink->agent(&told);
	return 0;
}

static void backend_discover_agents(const struct device_sink *sink)
{
	if (hsa.iterate_agents != NULL && hsa.agent_get_info != NULL)
		hsa.iterate_agents(emit_agent_if_gpu, (void *)(uintptr_t)sink);
}

static void hsa_ignore_wanted_change(const struct device_sink *sink)
{
	(void)sink;
}

static void backend_ignore_flush(bool wait, uint64_t wait_ns)
{
	(void)wait;
	(void)wait_ns;
}

static void do_nothing(void)
{
}

static void hsa_leave_losses_zero(struct device_record_loss_counts *out)
{
	(void)out;
}

const struct device_backend device_backend_hsa = {"hsa",
						  DEVICE_RUNTIME_HSA,
						  backend_discover_agents,
						  hsa_ignore_wanted_change,
						  backend_ignore_flush,
						  do_nothing,
						  do_nothing,
						  hsa_leave_losses_zero,
						  NULL};

/* ---- what the runtime calls ---- */

/* A table that is shorter than ours is of a runtime that we do not know. */
static bool api_table_is_known(const struct hsa_api_table_layout *table)
{
	return table != NULL && table->version.minor >= sizeof(*table) && table->core != NULL &&
	       table->core->version.minor >= sizeof(struct hsa_core_table_layout);
}

void device_report_hsa_agents(const void *root)
{
	const struct device_sink *sink = device_get_sink();
	const struct hsa_api_table_layout *table = root;

	if (!api_table_is_known(table))
		return;
	hsa.iterate_agents = table->core->iterate_agents;
	hsa.agent_get_info = table->core->agent_get_info;
	if (sink != NULL)
		backend_discover_agents(sink);
}

__attribute__((visibility("default"))) bool OnLoad(struct hsa_api_table_layout *table,
						   uint64_t version, uint64_t failed_count,
						   const char *const *failed_names);
__attribute__((visibility("default"))) void OnUnload(void);

bool OnLoad(struct hsa_api_table_layout *table, uint64_t version, uint64_t failed_count,
	    const char *const *failed_names)
{
	const struct device_sink *sink;
	void *tables[] = {table};

	(void)failed_count;
	(void)failed_names;
	if (!api_table_is_known(table))
		return false;
	device_report_runtime_found(DEVICE_RUNTIME_HSA);
	sink = device_get_sink();
	if (sink != NULL)
		sink->runtime_tables_ready(DEVICE_RUNTIME_HSA, version, tables, 1);
	return true;
}

void OnUnload(void)
{
	hsa.iterate_agents = NULL;
	hsa.agent_get_info = NULL;
}
