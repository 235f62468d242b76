/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Growing arrays straight from the kernel: the table compiler runs in a thread that must not touch
 * the program's allocator. Zero-initialised is an empty vector. Not for handlers.
 */
#ifndef KYMO_CORE_UNWIND_VECTOR_H
#define KYMO_CORE_UNWIND_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "common/syscalls.h"

struct unwind_vector {
	void *data;
	size_t bytes; /* mapped */
};

/* Anonymous zeroed memory; NULL on failure. */
static inline void *unwind_map_memory(size_t size)
{
	long result = sys_call6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return result < 0 && result > -4096 ? NULL : (void *)result;
}

/* The same, of which a fork copies nothing. */
static inline void *unwind_map_shared_memory(size_t size)
{
	long result = sys_call6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return result < 0 && result > -4096 ? NULL : (void *)result;
}

static inline void unwind_unmap_memory(const void *data, size_t size)
{
	if (data)
		sys_call2(SYS_munmap, (long)data, (long)size);
}

/* Makes room for `bytes` bytes; doubles, so that appending stays linear. */
static inline bool unwind_vector_reserve(struct unwind_vector *vector, size_t bytes)
{
	size_t wanted = vector->bytes ? vector->bytes : 65536;
	long moved;

	if (bytes <= vector->bytes)
		return true;
	while (wanted < bytes)
		wanted *= 2;
	if (!vector->data) {
		vector->data = unwind_map_memory(wanted);
		vector->bytes = vector->data ? wanted : 0;
		return vector->data != NULL;
	}
	moved = sys_call4(SYS_mremap, (long)vector->data, (long)vector->bytes, (long)wanted,
			  MREMAP_MAYMOVE);
	if (moved < 0 && moved > -4096)
		return false;
	vector->data = (void *)moved;
	vector->bytes = wanted;
	return true;
}

static inline void unwind_vector_free(struct unwind_vector *vector)
{
	unwind_unmap_memory(vector->data, vector->bytes);
	vector->data = NULL;
	vector->bytes = 0;
}

#endif
