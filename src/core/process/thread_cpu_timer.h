/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A timer on the CPU clock of the calling thread, whose signal goes to that thread
 * (timer_create(2), SIGEV_THREAD_ID). Signal-safe.
 */
#ifndef KYMO_CORE_PROCESS_THREAD_CPU_TIMER_H
#define KYMO_CORE_PROCESS_THREAD_CPU_TIMER_H

#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "common/syscalls.h"

/* The kernel's struct sigevent, with the member that libc hides. */
struct kernel_sigevent {
	uint64_t value;
	int signal, notify, tid;
	int padding[11];
};

/* The timer's number, or -1. Its signals carry `value`. */
static inline int thread_cpu_timer_create(int signal, uint64_t value)
{
	struct kernel_sigevent event = {
		.value = value, .signal = signal, .notify = SIGEV_THREAD_ID, .tid = sys_gettid()};
	int timer;

	return sys_call3(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, (long)&event, (long)&timer)
		       ? -1
		       : timer;
}

#endif
