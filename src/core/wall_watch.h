/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the real-time sampler knows of one thread between two looks, and what a look does.
 *
 * A look at a thread whose CPU clock stands still costs one reading of that clock, less often the
 * longer it does, and one of its place in /proc each time that its wait is recorded. One whose
 * clock moved is looked at more closely if it was off the processor meanwhile, which happens no
 * more often than the machine's processors change threads.
 *
 * Where time stands: blocked time at the stack of the wait. A wait for a processor after a wake-up
 * at the same stack; after a pre-emption at the stack of the thread's next CPU sample, which is
 * less than a period of its own CPU time away from where it was interrupted. That sample's handler
 * writes it (sampler.c).
 */
#ifndef KYMO_CORE_WALL_WATCH_H
#define KYMO_CORE_WALL_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/process/wall_account.h"
#include "kymo/spool.h"

#define WALL_WATCH_FRAMES_MAX 512

struct runtime;
struct thread;

struct wall_watch {
	uint64_t thread_identity; /* of the thread that the block belonged to; 0: of none */
	uint32_t internal_id, tid;
	struct wall_account time_account;
	bool waiting; /* frames are those of the wait under way, or just over */
	uint32_t count;
	enum spool_stack_end end;
	uint64_t wait_began_ns, next_look_ns; /* of the wait: first found, to be looked at next */
	uint64_t wait_last_recorded_ns;       /* when the wait was last looked at and told */
	uint64_t stackless_time_since_ns; /* since when time of waits lacks a stack; 0: none does */
	/* Time that waits for the thread's next CPU sample: the thread's samples and CPU time when
	 * it was handed over. */
	bool has_lent_queued_time;
	uint64_t lent_at_sample_count, lent_at_cpu_ns;
	/* The thread has ended: written while `ended` is 0. */
	_Atomic uint32_t ended;
	uint64_t ended_thread_identity, ended_ns, ended_cpu_ns, ended_queued_ns;
	uint64_t ended_block_count;  /* UINT64_MAX: not known */
	uint64_t interpreter_thread; /* the interpreter's state of the thread, once it is known */
	enum spool_interpreter_state interpreter_state; /* of the wait */
	uint64_t frames[WALL_WATCH_FRAMES_MAX];
};

/* A look at a live thread, in a sweep over all that began at that time. */
void wall_watch_inspect_thread(struct runtime *runtime, struct thread *thread,
			       struct wall_watch *watch, uint64_t sweep_ns);
/* Writes the unrecorded time of a live thread: nobody will look at it again, or not for a while. */
void wall_watch_write_unrecorded_time(struct runtime *runtime, struct thread *thread,
				      struct wall_watch *watch);
/* The same for one that ended, if `watch` was told. */
void wall_watch_write_time_of_ended_thread(struct runtime *runtime, struct wall_watch *watch);
/* The thread ends or has ended; by itself, or the background thread. */
void wall_watch_record_thread_end(struct runtime *runtime, struct thread *thread,
				  struct wall_watch *watch);

#endif
