/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes the search for kernels in device code, which comes from the program.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_length(void *context, const char *name)
{
	*(size_t *)context += strlen(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static volatile size_t result;
	uint8_t *copy = malloc(size + !size); /* no larger than said */
	size_t length = 0;

	if (copy == NULL)
		return 0;
	memcpy(copy, data, size);
	cubin_for_each_kernel(copy, size, add_length, &length);
	result = result + length;
	free(copy);
	return 0;
}
