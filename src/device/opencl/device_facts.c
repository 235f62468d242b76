/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See device_facts.h.
 */
#include "device/opencl/device_facts.h"

#include <string.h>

struct device_reader {
	opencl_get_device_info_function *get_info;
	cl_device_id device;
};

static bool read_property(const struct device_reader *reader, cl_device_info what, void *value,
			  size_t size)
{
	return reader->get_info(reader->device, what, size, value, NULL) == CL_SUCCESS;
}

static void read_text(const struct device_reader *reader, cl_device_info what, char *text,
		      size_t size)
{
	if (!read_property(reader, what, text, size))
		text[0] = '\0';
	text[size - 1] = '\0';
}

static void read_limits(const struct device_reader *reader, struct opencl_device_facts *facts)
{
	size_t group = 0, items[8] = {0};

	read_property(reader, CL_DEVICE_VENDOR_ID, &facts->vendor_id, sizeof(cl_uint));
	read_property(reader, CL_DEVICE_MAX_COMPUTE_UNITS, &facts->compute_units, sizeof(cl_uint));
	read_property(reader, CL_DEVICE_MAX_CLOCK_FREQUENCY, &facts->clock_mhz, sizeof(cl_uint));
	read_property(reader, CL_DEVICE_GLOBAL_MEM_SIZE, &facts->memory_bytes, sizeof(cl_ulong));
	read_property(reader, CL_DEVICE_LOCAL_MEM_SIZE, &facts->local_memory_bytes,
		      sizeof(cl_ulong));
	if (read_property(reader, CL_DEVICE_MAX_WORK_GROUP_SIZE, &group, sizeof(group)))
		facts->group_size = group;
	read_property(reader, CL_DEVICE_MAX_WORK_ITEM_SIZES, items, sizeof(items));
	for (unsigned i = 0; i < 3; i++)
		facts->group_dimensions_max[i] = items[i];
}

void opencl_read_device_facts(opencl_get_device_info_function *get_info, cl_device_id device,
			      struct opencl_device_facts *facts)
{
	const struct device_reader reader = {get_info, device};

	memset(facts, 0, sizeof(*facts)); /* padding as well: it is written to a pipe */
	read_property(&reader, CL_DEVICE_TYPE, &facts->type, sizeof(facts->type));
	read_text(&reader, CL_DEVICE_VENDOR, facts->vendor, sizeof(facts->vendor));
	read_text(&reader, CL_DEVICE_NAME, facts->model, sizeof(facts->model));
	read_text(&reader, CL_DEVICE_VERSION, facts->version, sizeof(facts->version));
	if (!read_property(&reader, CL_DEVICE_PCI_BUS_INFO_KHR, facts->pci, sizeof(facts->pci)))
		memset(facts->pci, 0, sizeof(facts->pci));
	if (!read_property(&reader, CL_DEVICE_UUID_KHR, facts->uuid, sizeof(facts->uuid)))
		memset(facts->uuid, 0, sizeof(facts->uuid));
	read_limits(&reader, facts);
}
