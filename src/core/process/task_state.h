/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the kernel says about a thread of this process from outside of it: whether it runs, waits
 * for a processor or is blocked, and where (proc(5)). Each call opens, reads and closes one file:
 * 5 us for the times, 6 us for the place, 11 us for the switches.
 */
#ifndef KYMO_CORE_PROCESS_TASK_STATE_H
#define KYMO_CORE_PROCESS_TASK_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* The helper, which is another process: where it sees this one from. */
void task_state_set_program_proc_fd(int directory);

enum task_run_state {
	TASK_GONE,     /* there is no such thread, or nothing may be known about it */
	TASK_RUNNABLE, /* on a processor, or waiting for one */
	TASK_BLOCKED   /* in a system call, a page fault or a stop; its registers stand still */
};

struct task_registers {
	uint64_t sp, pc;
	uint64_t first_argument; /* of the system call that it waits in; 0: it is in none */
};

/* The user registers of a blocked thread. */
enum task_run_state task_read_registers_if_blocked(uint32_t tid, struct task_registers *ret);

/* The run queue's counts of a thread. A wait for a processor is added to `queued_ns` when it ends;
 * `arrivals` counts how often the thread came onto a processor after such a wait. */
struct task_run_queue_counts {
	uint64_t queued_ns, arrivals;
};

/* False: this kernel keeps no such counts (CONFIG_SCHED_INFO). */
bool task_read_run_queue_counts(uint32_t tid, struct task_run_queue_counts *ret);

/* How often the thread has given up its processor to wait for something. */
bool task_read_voluntary_switch_count(uint32_t tid, uint64_t *ret);

/* When the thread was made, in ns of CLOCK_BOOTTIME, cut to the 10 ms that the kernel tells. A new
 * thread may be made long before it runs for the first time. */
bool task_read_creation_time(uint32_t tid, uint64_t *ret_ns);

#endif
