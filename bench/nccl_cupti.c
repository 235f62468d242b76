/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernel times by CUPTI, to compare the NCCL plugin's with: built by bench/nccl_device on a machine
 * that has CUPTI's headers, loaded by libcuda through CUDA_INJECTION64_PATH. Writes a line a kernel
 * of NCCL's to NCCL_CUPTI_OUT: device, start, end, name; times are CUPTI's, in ns.
 */
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE (8u << 20)

static FILE *out;

static void request(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = aligned_alloc(8, BUFFER_SIZE);
	*size = BUFFER_SIZE;
	*records = 0;
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context;
	(void)stream;
	(void)size;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		const NCCL_CUPTI_KERNEL *kernel = (const NCCL_CUPTI_KERNEL *)record;

		if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
		    strstr(kernel->name, "nccl"))
			fprintf(out, "%u %llu %llu %s\n", kernel->deviceId,
				(unsigned long long)kernel->start, (unsigned long long)kernel->end,
				kernel->name);
	}
	free(buffer);
}

static void finish(void)
{
	cuptiActivityFlushAll(1);
	fclose(out);
}

int InitializeInjection(void)
{
	const char *path = getenv("NCCL_CUPTI_OUT");

	out = path ? fopen(path, "w") : NULL;
	if (!out)
		return 1;
	cuptiActivityRegisterCallbacks(request, complete);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	atexit(finish);
	return 1;
}
