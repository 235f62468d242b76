/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Real-time sampling: where threads wait. No signal is sent to a waiting thread, so no system call
 * of the program is disturbed: a thread of ours looks at each thread's CPU clock; when that stands
 * still, the thread's stack does too, and is walked from outside, from the registers in
 * /proc/self/task/T/syscall (proc(5)). While the same wait lasts, time is added up and one sample
 * written now and then. Time on the CPU comes from the CPU-time source, so both together make real
 * time.
 */
#ifndef KYMO_CORE_WALL_SAMPLER_H
#define KYMO_CORE_WALL_SAMPLER_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/own_thread.h"

struct runtime;
struct thread;

struct wall_sampler {
	_Atomic uint32_t stop;    /* 1 end, 2 write what is owed, 3 written */
	_Atomic uint32_t changes; /* futex word: of `stop` and of the window */
	struct own_thread thread;
	struct thread *own;          /* its registry entry */
	struct thread *stream;       /* where its samples go, in spans of the threads it watches */
	struct wall_watch **watches; /* slabs, by block index */
	uint32_t starts;             /* of this process and of those that it is a fork of */
};

/* Starts the sampling thread. 0 or negative errno. */
int wall_sampler_start(struct runtime *runtime);
/* Has what is owed written; waits a little for it. */
void wall_sampler_finish(struct runtime *runtime);
/* `stop` or the window has changed. Signal-safe. */
void wall_sampler_wake(struct wall_sampler *sampler);

#endif
