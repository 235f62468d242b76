/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reads of memory that may not be there.
 */
#ifndef KYMO_CORE_INTERPRETERS_MEMORY_H
#define KYMO_CORE_INTERPRETERS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/syscalls.h"

/* The interpreter's memory is read where sanitizers see red zones. */
#define INTERPRETED_UNSANITIZED __attribute__((no_sanitize("address", "thread")))

#define MEMORY_ADDRESS_BITS 47

/* Can this be the address of an object? */
static inline bool memory_is_plausible_pointer(uint64_t address)
{
	return address >= 4096 && address >> MEMORY_ADDRESS_BITS == 0 && (address & 7) == 0;
}

/* All of it, by the kernel: false where any of it cannot be read. */
static inline bool memory_read_checked(uint64_t address, void *to, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)(uintptr_t)address, size};

	return address >> MEMORY_ADDRESS_BITS == 0 &&
	       sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&here, 1, (long)&there, 1, 0) ==
		       (long)size;
}

/* Words of memory that must be there. */
INTERPRETED_UNSANITIZED
static inline void memory_read_directly(uint64_t address, void *to, size_t size)
{
	for (size_t i = 0; i < size / 8; i++)
		((uint64_t *)to)[i] = ((const uint64_t *)(uintptr_t)address)[i];
}

#endif
