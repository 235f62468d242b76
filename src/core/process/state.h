/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The process as kymo knows it: whether it collects, whether this still is the process that it was
 * started in, and whether system calls may be made. What kymo_thread is for the thread.
 */
#ifndef KYMO_CORE_PROCESS_STATE_H
#define KYMO_CORE_PROCESS_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum runtime_state {
	RUNTIME_INACTIVE, /* never started, or turned off */
	RUNTIME_STARTING,
	RUNTIME_ACTIVE,
	RUNTIME_FAILED, /* an internal error: the program runs on unprofiled */
	RUNTIME_DORMANT /* announced, and nothing else yet (libkymo/dormant.h) */
};

/* Written by the runtime alone (runtime.c, attach.c), but for `in_seccomp`. */
struct process_state {
	_Atomic uint32_t state; /* enum runtime_state */
	uint32_t pid, parent_pid;
	/* A page that the kernel zeroes in every child that copies memory (MADV_WIPEONFORK): tells
	 * a raw fork, after which nothing here is to be trusted, without a system call. Before the
	 * start a zero that nobody writes. */
	const volatile uint32_t *zeroed_in_forked_child;
	/* A thread entered a seccomp filter: unknown threads are left alone. */
	_Atomic uint32_t in_seccomp;
};

extern struct process_state kymo_process;

static inline bool process_is_where_runtime_started(void)
{
	return *kymo_process.zeroed_in_forked_child;
}

static inline bool process_has_seccomp_thread(void)
{
	return kymo_process.in_seccomp;
}

/* Is this the process that the runtime was started in, and is it collecting? */
static inline bool runtime_is_active(void)
{
	return atomic_load_explicit(&kymo_process.state, memory_order_relaxed) == RUNTIME_ACTIVE &&
	       process_is_where_runtime_started();
}

/* The same, or about to collect: what happens now is written once it does. */
static inline bool runtime_is_active_or_starting(void)
{
	uint32_t state = atomic_load_explicit(&kymo_process.state, memory_order_relaxed);

	return (state == RUNTIME_ACTIVE || state == RUNTIME_STARTING) &&
	       process_is_where_runtime_started();
}

/* Maps the page of `same`. False: memory is short. */
bool process_state_map_fork_detector(void);
/* In a child of the process: it is a process of its own from here on. */
void process_state_reset_fork_detector(void);

#endif
