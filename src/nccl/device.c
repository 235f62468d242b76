/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See device.h. Nothing is loaded for it: a program without a CUDA driver has no GPU of CUDA's.
 */
#include "nccl/device.h"

#include "common/array.h"
#include "common/loader.h"

typedef int (*cuda_get_current_device)(int *device);
typedef int (*cuda_get_pci_bus_id)(char *text, int size, int device);

void device_write_current_to_record(struct nccl_communicator_record *record)
{
	static const char *const names[] = {"cuCtxGetDevice", "cuDeviceGetPCIBusId"};
	void *found[ARRAY_SIZE(names)];
	int device = 0;

	loader_find_symbols(LOADER_SCOPE_ANY_OBJECT, NULL, names, found, ARRAY_SIZE(names));
	if (!found[0] || !found[1] || ((cuda_get_current_device)found[0])(&device))
		return;
	if (((cuda_get_pci_bus_id)found[1])(record->device_address, sizeof(record->device_address),
					    device)) {
		record->device_address[0] = '\0';
		return;
	}
	record->device_address[sizeof(record->device_address) - 1] = '\0';
	record->device = device;
}
