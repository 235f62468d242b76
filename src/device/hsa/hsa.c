/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * AMD's HSA runtime. It gives its tables of functions to librocprofiler-register and, through its
 * tools interface, to the libraries of HSA_TOOLS_LIB, both at the end of hsa_init(). What is taken
 * from there are the devices; its functions are told by the tool library (api_tables.h), which gets
 * the tables either way. Kernels and copies are not followed: where ROCm is installed AMD's own
 * tool library does that, and kymo's tool is loaded by it.
 *
 * Layouts and numbers are those of hsa_api_trace.h, hsa.h and hsa_ext_amd.h. None of this has been
 * run on an AMD device.
 */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

enum info { /* hsa_agent_info_t, hsa_amd_agent_info_t */
	    INFO_NAME = 0,
	    INFO_VENDOR = 1,
	    INFO_WAVE_SIZE = 6,
	    INFO_DEVICE_TYPE = 17,
	    INFO_UNITS = 0xa002,
	    INFO_CLOCK_MHZ = 0xa003,
	    INFO_BDF = 0xa006,
	    INFO_PRODUCT = 0xa009,
	    INFO_DOMAIN = 0xa00f,
	    INFO_UUID = 0xa011
};

enum { DEVICE_GPU = 1, TEXT = 64, AGENTS_MAX = 64 };

struct agent {
	uint64_t handle;
};

typedef int function(void);
typedef int iterate_agents(int (*each)(struct agent agent, void *context), void *context);
typedef int agent_get_info(struct agent agent, unsigned what, void *value);

struct table_version {
	uint32_t major, minor, step, reserved; /* minor: bytes of the table */
};

struct core_table {
	struct table_version version;
	function *init, *shut_down, *system_get_info, *system_extension_supported,
		*system_get_extension_table;
	iterate_agents *iterate_agents;
	agent_get_info *agent_get_info;
};

struct api_table {
	struct table_version version;
	const struct core_table *core;
};

/* As they are in the runtime: what its tables get later tells tools. */
static struct {
	iterate_agents *iterate;
	agent_get_info *get_info;
} hsa;

static void ask_text(struct agent agent, enum info what, char text[TEXT + 1])
{
	memset(text, 0, TEXT + 1);
	if (hsa.get_info(agent, what, text) != 0)
		text[0] = '\0';
	text[TEXT] = '\0';
}

static uint32_t ask_number(struct agent agent, enum info what)
{
	uint32_t value = 0;

	return hsa.get_info(agent, what, &value) == 0 ? value : 0;
}

/* "GPU-" and 16 hexadecimal digits. */
static void ask_uuid(struct agent agent, uint8_t uuid[16])
{
	char text[TEXT + 1];
	uint64_t value;

	ask_text(agent, INFO_UUID, text);
	if (strncmp(text, "GPU-", 4) != 0)
		return;
	value = strtoull(text + 4, NULL, 16);
	memcpy(uuid, &value, sizeof(value));
}

static int tell(struct agent agent, void *context)
{
	const struct device_sink *sink = context;
	char name[TEXT + 1], vendor[TEXT + 1], product[TEXT + 1];
	struct device_agent told = {.runtime = DEVICE_RUNTIME_HSA, .is_gpu = true};
	uint32_t type = ask_number(agent, INFO_DEVICE_TYPE);

	if (type != DEVICE_GPU) /* processors are the host's to tell */
		return 0;
	ask_text(agent, INFO_NAME, name);
	ask_text(agent, INFO_VENDOR, vendor);
	ask_text(agent, INFO_PRODUCT, product);
	told.name = name;
	told.vendor_name = vendor;
	told.product_name = product;
	told.model_name = name;
	told.vendor_id = 0x1002;
	told.compute_units = ask_number(agent, INFO_UNITS);
	told.simds_per_unit = 4;
	told.engines = 1;
	told.wave_size = ask_number(agent, INFO_WAVE_SIZE);
	told.clock_mhz = ask_number(agent, INFO_CLOCK_MHZ);
	told.pci_location = ask_number(agent, INFO_BDF);
	told.pci_domain = ask_number(agent, INFO_DOMAIN);
	ask_uuid(agent, told.uuid);
	sink->agent(&told);
	return 0;
}

static void discover(const struct device_sink *sink)
{
	if (hsa.iterate != NULL && hsa.get_info != NULL)
		hsa.iterate(tell, (void *)(uintptr_t)sink);
}

static void wanted_changed(const struct device_sink *sink)
{
	(void)sink;
}

static void flush(bool wait, uint64_t wait_ns)
{
	(void)wait;
	(void)wait_ns;
}

static void nothing(void)
{
}

static void losses(struct device_losses *out)
{
	(void)out;
}

const struct device_backend device_backend_hsa = {
	"hsa", DEVICE_RUNTIME_HSA, discover, wanted_changed, flush, nothing, nothing, losses, NULL};

/* ---- what the runtime calls ---- */

/* A table that is shorter than ours is of a runtime that we do not know. */
static bool is_known(const struct api_table *table)
{
	return table != NULL && table->version.minor >= sizeof(*table) && table->core != NULL &&
	       table->core->version.minor >= sizeof(struct core_table);
}

void device_hsa_found(const void *root)
{
	const struct device_sink *sink = device_sink();
	const struct api_table *table = root;

	if (!is_known(table))
		return;
	hsa.iterate = table->core->iterate_agents;
	hsa.get_info = table->core->agent_get_info;
	if (sink != NULL)
		discover(sink);
}

__attribute__((visibility("default"))) bool OnLoad(struct api_table *table, uint64_t version,
						   uint64_t failed_count,
						   const char *const *failed_names);
__attribute__((visibility("default"))) void OnUnload(void);

bool OnLoad(struct api_table *table, uint64_t version, uint64_t failed_count,
	    const char *const *failed_names)
{
	const struct device_sink *sink;
	void *tables[] = {table};

	(void)failed_count;
	(void)failed_names;
	if (!is_known(table))
		return false;
	device_runtime_found(DEVICE_RUNTIME_HSA);
	sink = device_sink();
	if (sink != NULL)
		sink->runtime_tables(DEVICE_RUNTIME_HSA, version, tables, 1);
	return true;
}

void OnUnload(void)
{
	hsa.iterate = NULL;
	hsa.get_info = NULL;
}
