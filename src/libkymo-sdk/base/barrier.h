/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A full barrier that costs only the rare side: membarrier(2) makes every running thread of the
 * process pass one. Where the kernel has no such call, the frequent side pays.
 */
#ifndef KYMO_LIBKYMO_SDK_BASE_BARRIER_H
#define KYMO_LIBKYMO_SDK_BASE_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>

extern bool sdk_membarrier_unavailable_flag; /* set once, by sdk_memory_barrier_init() */

void sdk_memory_barrier_init(void);
void sdk_fence_all_threads(void);

static inline void sdk_fence_calling_thread(void)
{
	if (__builtin_expect(sdk_membarrier_unavailable_flag, 0))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
}

#endif
