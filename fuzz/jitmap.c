/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes what run-time compilers write about their code: the input is taken as a jitdump if it is
 * one, and as a perf map in any case.
 */
#include <stdint.h>
#include <stdlib.h>

#include "binary/jit/jit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jitmap *map;
	if (jitmap_create(&map))
		return 0;
	jitmap_add_perf_map_memory(map, data, size);
	jitmap_add_jitdump_memory(map, data, size);
	if (jitmap_sort_entries(map) == 0) {
		uint64_t address = 0;
		for (unsigned i = 0; i < 256; i++, address = address * 2 + i) {
			const struct jitmap_code *code = jitmap_find_code(map, address, i * 1000);
			const char *file;
			uint32_t line;
			if (!code)
				continue;
			if (address - code->address >= code->size)
				abort();
			jitmap_find_line(code, address, &file, &line);
		}
	}
	jitmap_destroy(map);
	return 0;
}
