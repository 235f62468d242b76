/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where threads block, for how long, and who wakes them (--off-cpu). A thread blocks from when it
 * leaves its CPU, unless it was preempted, until another thread or an interrupt wakes it; from then
 * on it waits for a CPU. Both are samples of real time with the stack that it left its CPU with.
 * Waits are added up by stack and waker besides, and are records at the end of the process.
 */
#ifndef KYMO_OUTSIDE_BLOCKING_H
#define KYMO_OUTSIDE_BLOCKING_H

#include "outside/records.h"

/* A stack that is kept. */
struct outside_stack {
	uint64_t *frames;
	uint32_t count, capacity;
	enum spool_stack_end end;
};

struct outside_waker {
	enum spool_waker kind;
	uint32_t pid, image, tid; /* image: of which the stack is */
	char name[OUTSIDE_NAME_BYTES];
	struct outside_stack stack; /* count 0: not known */
};

/* Of a thread that is not running. */
struct outside_block {
	uint64_t sampled_ns; /* when its stack was seen; 0: it was not */
	uint64_t left_ns;    /* its CPU; 0: it runs, or nothing is known */
	uint64_t woken_ns;   /* 0: not yet */
	bool is_preempted;
	struct outside_stack stack;
	struct outside_waker waker;
};

/* Its stack, as it leaves its CPU. The context switch itself is reported a moment later. */
void outside_block_handle_sample(struct outside_world *world, const struct outside_sample *sample);
void outside_block_leave_cpu(struct outside_world *world, uint32_t tid, uint64_t time_ns,
			     bool is_preempted);
void outside_block_return_to_cpu(struct outside_world *world, uint32_t tid, uint64_t time_ns);
/* The sample is of who wakes, or of what was interrupted; `raw` are the tracepoint's data. */
void outside_block_handle_wakeup(struct outside_world *world, const struct outside_sample *sample);
/* The thread executes another program, or ends. */
void outside_block_free(struct outside_thread *thread);
/* Records were lost: what threads do now is not known before they leave their CPUs again. */
void outside_blocks_forget(struct outside_world *world);
/* Nobody is waited for any longer. */
void outside_blocks_end(struct outside_world *world, uint64_t time_ns);

/* Writes the sums of a process that ends (waits.c). */
void outside_waits_add(struct outside_thread *thread, uint64_t ns);
void outside_waits_write(struct outside_process *process);

#endif
