/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * getauxval(3) says where the vDSO begins, /proc/self/maps where it ends: its section headers lie
 * behind its only segment, in the same mapping.
 */
#include "analysis/symbols/vdso.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/auxv.h>

static size_t read_vdso_mapping_size(uint64_t address)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	size_t size = 0;
	while (maps && size == 0 && fgets(line, sizeof(line), maps)) {
		uint64_t start, end;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && start == address &&
		    end > start)
			size = (size_t)(end - start);
	}
	if (maps)
		fclose(maps);
	return size;
}

int vdso_elf_open(struct elf_file **ret)
{
	uint64_t address = getauxval(AT_SYSINFO_EHDR);
	size_t size = address ? read_vdso_mapping_size(address) : 0;
	if (size == 0)
		return -ENOENT;
	return elf_open_memory((const void *)(uintptr_t)address, size, "[vdso]", ret, NULL);
}
