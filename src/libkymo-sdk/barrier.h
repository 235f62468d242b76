/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A full barrier that costs only the rare side: membarrier(2) makes every running thread of the
 * process pass one. Where the kernel has no such call, the frequent side pays.
 */
#ifndef KYMO_LIBKYMO_SDK_BARRIER_H
#define KYMO_LIBKYMO_SDK_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>

extern bool sdk_barrier_is_dear; /* set once, by sdk_barrier_start() */

void sdk_barrier_start(void);
void sdk_barrier_all(void);

static inline void sdk_barrier_own(void)
{
	if (__builtin_expect(sdk_barrier_is_dear, 0))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
}

#endif
