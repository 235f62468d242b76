/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * All wrapped functions of causal profiling. They are there only where it is asked for.
 */
#include <sys/uio.h>

#include "common/syscalls.h"
#include "wrappers/causal_paced.h"
#include "wrappers/wrappers.h"

bool paced_read_memory(void *ret, const void *from, size_t size)
{
	struct iovec local = {ret, size}, remote = {(void *)(uintptr_t)from, size};

	if (kymo_runtime.sealed)
		return false;
	return sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&local, 1, (long)&remote, 1,
			 0) == (long)size;
}

int wrappers_causal_add(void)
{
	static int (*const groups[])(void) = {
		causal_locks_add,  causal_conditions_add, causal_processes_add, causal_sleeps_add,
		causal_futex_add,  causal_bytes_add,      causal_ready_add,     causal_messages_add,
		causal_closes_add, causal_openmp_add,
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		int error = groups[i]();
		if (error)
			return error;
	}
	return 0;
}
