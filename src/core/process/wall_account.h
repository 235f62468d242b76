/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One thread's real time, divided into three: on a processor, waiting for one, blocked.
 *
 * The thread's CPU clock tells at any time how long it was off the processor. The kernel's count of
 * its waits in the run queue (task_state.h) grows only when a wait ends; so what is off the
 * processor stays open until the thread has run again, which it cannot do before its wait in the
 * queue is over. Then the count is whole, and the rest was blocked.
 *
 * A wait for a processor follows a wake-up (it belongs to where the thread was blocked) or a
 * pre-emption (it belongs to where the thread was computing). How often the thread blocked tells
 * which: every block is followed by one wake-up, and what else arrived on a processor had been
 * pre-empted. Where both happened between two looks, the time is divided by their numbers, and by
 * what each took where it was alone.
 *
 * All sums are exact: what goes in by wall_account_add_elapsed_time() comes out as blocked, woken
 * or pre-empted time, or is still open. No system calls, no clocks: whoever looks brings the
 * readings.
 */
#ifndef KYMO_CORE_PROCESS_WALL_ACCOUNT_H
#define KYMO_CORE_PROCESS_WALL_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/process/task_state.h"

enum wall_thread_state { WALL_STATE_RUNNING, WALL_STATE_QUEUED, WALL_STATE_BLOCKED };

struct wall_account {
	uint64_t last_ns, cpu_ns;     /* at the last look */
	enum wall_thread_state state; /* found at the last settlement */
	/* Time off the processor that is not known yet for what it was. Below 0 where the clock was
	 * read a little later than the time. */
	int64_t unattributed_off_cpu_ns;
	uint64_t off_cpu_since_last_run_ns; /* of that, since the thread last ran */
	struct task_run_queue_counts queue; /* the kernel's counts at the last settlement */
	bool has_queue_counts;              /* they are */
	bool new; /* it began in the run queue; that wait was before its start */
	/* Since the number of blocks was last known: that number, and what has been divided. */
	uint64_t last_known_block_count, arrivals_since_block_count, divided_wakeup_count;
	bool is_block_count_known, was_blocked_at_block_count;
	bool may_have_counted_open_block; /* what is open now may be of a block that was counted */
	uint64_t pending_wakeup_count;    /* wake-ups that have not arrived yet */
	/* What a wait for a processor takes: after a wake-up, after a pre-emption. 0: not known. */
	uint64_t mean_wait_after_wakeup_ns, mean_wait_after_preemption_ns;
	/* The waits to be divided. */
	uint64_t undivided_queued_ns, undivided_off_cpu_ns;
	/* Results; whoever takes them sets them to 0. */
	uint64_t blocked_ns, queued_after_wakeup_ns, queued_after_preemption_ns;
};

/* A thread that is looked at for the first time: since when, and its CPU time then. `new`: it began
 * at that time, and all counts of the kernel begin with it. */
void wall_account_init(struct wall_account *account, uint64_t now_ns, uint64_t cpu_ns, bool new);

/* Time passed; returns how much of it the thread ran. */
uint64_t wall_account_add_elapsed_time(struct wall_account *account, uint64_t now_ns,
				       uint64_t cpu_ns);

/* The thread was blocked, has not run and is still blocked: all of the time was. */
void wall_account_count_open_time_as_blocked(struct wall_account *account);

/* The thread was found in this state; `queue` as read then, or NULL where the kernel does not
 * count. True: the number of blocks is needed to divide the waits,
 * wall_account_divide_waits_by_cause() is to be called. */
bool wall_account_assign_open_time_at_state(struct wall_account *account,
					    enum wall_thread_state state,
					    const struct task_run_queue_counts *queue);

/* Divides the waits; `blocks` is NULL where it cannot be had. */
void wall_account_divide_waits_by_cause(struct wall_account *account, const uint64_t *blocks);

/* The thread has ended, and nothing can be read any more: what is open is taken for what it was
 * last seen doing, or for a wait for a processor if it has not blocked since. Returns the part that
 * it cannot be known of; it is in no result. */
#define WALL_ACCOUNT_BLOCK_COUNT_UNKNOWN UINT64_MAX
uint64_t wall_account_assign_open_time_at_end(struct wall_account *account, uint64_t blocks);

#endif
