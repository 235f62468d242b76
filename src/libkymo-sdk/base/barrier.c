/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See barrier.h.
 */
#include "libkymo-sdk/base/barrier.h"

#include <linux/membarrier.h>

#include "common/syscalls.h"

bool sdk_membarrier_unavailable_flag;

void sdk_memory_barrier_init(void)
{
	sdk_membarrier_unavailable_flag =
		sys_call2(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) != 0;
}

void sdk_fence_all_threads(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!sdk_membarrier_unavailable_flag)
		sys_call2(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
}
