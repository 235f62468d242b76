/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See kernel.h.
 */
#include "outside/kernel.h"

#include <stdio.h>
#include <string.h>

uint64_t outside_kernel_find_start(void)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	unsigned long long address = 0;
	char line[512], name[256] = "";

	while (file && strcmp(name, "_stext") && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %*c %255s", &address, name) != 2)
			name[0] = '\0';
	}
	if (file)
		fclose(file);
	return strcmp(name, "_stext") ? 0 : address;
}
