/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Waiting and waking on a word of this process (futex(2)). Waking is signal-safe.
 */
#ifndef KYMO_CORE_BASE_FUTEX_H
#define KYMO_CORE_BASE_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "common/syscalls.h"

/* Sleeps while the word holds `value`, at most timeout_ns. */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	struct timespec timeout = {(time_t)(timeout_ns / 1000000000u),
				   (long)(timeout_ns % 1000000000u)};

	sys_call4(SYS_futex, (long)word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, (long)&timeout);
}

static inline void futex_wake_all_waiters(_Atomic uint32_t *word)
{
	sys_call3(SYS_futex, (long)word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX);
}

#endif
