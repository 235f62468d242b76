/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * All wrapped functions of causal profiling. They are there only where it is asked for.
 */
#include <sys/uio.h>

#include "common/array.h"
#include "common/syscalls.h"
#include "wrappers/causal/descriptors.h"
#include "wrappers/causal/paced.h"
#include "wrappers/causal/wrappers.h"

bool paced_copy_readable_memory(void *ret, const void *from, size_t size)
{
	struct iovec local = {ret, size}, remote = {(void *)(uintptr_t)from, size};

	if (process_has_seccomp_thread())
		return false;
	return sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&local, 1, (long)&remote, 1,
			 0) == (long)size;
}

int wrappers_causal_add(uint64_t ticks_per_second)
{
	static int (*const groups[])(void) = {
		causal_add_lock_wrappers,      causal_add_condition_wrappers,
		causal_add_process_wrappers,   causal_add_sleep_wrappers,
		causal_add_futex_wrappers,     causal_add_transfer_wrappers,
		causal_add_readiness_wrappers, causal_add_message_wrappers,
		causal_add_close_wrappers,     causal_add_openmp_wrappers,
	};

	causal_set_early_wakeup_margin(ticks_per_second);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		int error = groups[i]();
		if (error)
			return error;
	}
	return 0;
}
