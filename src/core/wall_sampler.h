/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Real-time sampling: where threads wait, and whether for a processor or for something else. No
 * signal is sent to a waiting thread, so no system call of the program is disturbed: a thread of
 * ours looks at each thread's CPU clock; when that stands still, the thread is blocked or waits for
 * a processor. The stack of a blocked one stands still as well, and is walked from outside, from
 * the registers in /proc/self/task/T/syscall (proc(5)). While the same wait lasts, time is added up
 * and one sample written now and then. Time on the CPU comes from the CPU-time source; all three
 * together make real time. What one look does is in wall_watch.h.
 */
#ifndef KYMO_CORE_WALL_SAMPLER_H
#define KYMO_CORE_WALL_SAMPLER_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/own_thread.h"

struct runtime;
struct thread;

struct wall_sampler {
	_Atomic uint32_t stop;              /* 1 end, 2 write unrecorded time, 3 written */
	_Atomic uint32_t change_futex_word; /* futex word: of `stop` and of the window */
	struct own_thread thread;
	struct thread *own;    /* its registry entry */
	struct thread *stream; /* where its samples go, in spans of the threads it watches */
	struct wall_watch **watch_slabs; /* slabs, by block index */
	uint32_t starts;                 /* of this process and of those that it is a fork of */
	uint64_t window_opened_ticks;    /* since when the window has been open; 0: not yet */
	/* The thread that started the sampler, at that time. */
	struct {
		uint32_t tid;
		uint64_t ticks, sampler_start_ns, cpu_ns, blocks;
	} starter_thread;
};

/* Starts the sampling thread. 0 or negative errno. */
int wall_sampler_start(struct runtime *runtime);
/* Has the unrecorded time written; waits a little for it. */
void wall_sampler_flush_with_timeout(struct runtime *runtime);
/* The thread is about to end (it says so itself), or has ended without a word (the background
 * thread does), and its block will be used again. */
void wall_sampler_record_thread_end(struct runtime *runtime, struct thread *thread);
/* `stop` or the window has changed. Signal-safe. */
void wall_sampler_wake(struct wall_sampler *sampler);

#endif
