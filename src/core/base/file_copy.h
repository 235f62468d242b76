/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files that the program needs in memory are read, not mapped: who shortens a mapped file ends the
 * program by SIGBUS, and takes away the pages of it that were written to as well.
 */
#ifndef KYMO_CORE_FILE_COPY_H
#define KYMO_CORE_FILE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "common/syscalls.h"

/* Pages of its own, to be unmapped by the same size; NULL: no memory, or the file is shorter.
 * Signal-safe. */
static inline void *file_copy_to_memory(int fd, size_t size)
{
	uint8_t *memory =
		sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_mmap_failed(memory))
		return NULL;
	for (size_t done = 0; done < size;) {
		long got = sys_pread(fd, memory + done, size - done, done);

		if (got <= 0) {
			sys_munmap(memory, size);
			return NULL;
		}
		done += (size_t)got;
	}
	return memory;
}

#endif
