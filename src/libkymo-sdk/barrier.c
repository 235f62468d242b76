/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See barrier.h.
 */
#include "libkymo-sdk/barrier.h"

#include <linux/membarrier.h>

#include "common/syscalls.h"

bool sdk_barrier_is_dear;

void sdk_barrier_start(void)
{
	sdk_barrier_is_dear =
		sys_call2(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) != 0;
}

void sdk_barrier_all(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!sdk_barrier_is_dear)
		sys_call2(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
}
