/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes the demangling of names and, with it, the bound on the output.
 */
#include "binary/demangle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1);
	if (!name)
		return 0;
	memcpy(name, data, size);
	name[size] = 0;
	char *readable = demangle(name);
	if (readable && strlen(readable) > DEMANGLED_NAME_BYTES_MAX + 8)
		abort();
	free(readable);
	free(name);
	return 0;
}
