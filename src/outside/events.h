/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Perf events of tasks that kymo did not get into (perf_event_open(2)), and the rings that the
 * kernel writes them to: one ring a CPU. For each task and CPU there are two events, both inherited
 * by children: a dummy that reports mappings, names, forks and ends, and owns the CPU's ring, and a
 * CPU clock that samples. Samples can so be had with a larger piece of the stack later, without
 * missing what the others report.
 */
#ifndef KYMO_OUTSIDE_EVENTS_H
#define KYMO_OUTSIDE_EVENTS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/problem.h"
#include "outside/tracepoint.h"

/* Bits of sample_regs_user (asm/perf_regs.h): ax to ip, then r8 to r15. */
#define OUTSIDE_REGISTERS      0xff01ffull
#define OUTSIDE_REGISTER_COUNT 17u

struct outside_ring {
	struct perf_event_mmap_page *page;
	size_t data_size;
	int owner; /* event descriptor */
	uint64_t head;
	uint64_t tail;    /* what was handled */
	uint8_t *wrapped; /* room for a record that goes on at the ring's start */
};

/* An event, and the task that it was opened for: descendants inherit it, and lose it when it is
 * closed. */
struct outside_event {
	int descriptor;
	uint32_t tid;
};

/* Rings of a kind lie one after the other, one a CPU: a record's ring says what it is. */
enum outside_ring_kind {
	OUTSIDE_RING_MAIN,     /* CPU samples; mappings, names, forks, ends, context switches */
	OUTSIDE_RING_SWITCHES, /* samples of threads that leave their CPU */
	OUTSIDE_RING_WAKEUPS,  /* samples of threads that wake others, with raw data */
	OUTSIDE_RING_KINDS
};

struct outside_events {
	struct outside_ring *rings;
	uint32_t ring_count;
	bool with_switches;                /* where threads block is recorded */
	struct outside_tracepoint wakeups; /* id 0: who wakes them is not */
	bool is_whole_machine; /* all tasks of each CPU, instead of chosen tasks on all CPUs */
	uint32_t cpu_count;
	uint64_t period_ns;
	uint32_t stack_bytes_max; /* that are wanted of each sample */
	uint32_t stack_bytes;     /* that fit the rings; a multiple of 8; 0: no ring yet */
	bool with_kernel_frames;
	bool without_kernel; /* CPU time in the kernel must not be sampled (perf_event_paranoid) */
	struct outside_event *list; /* but for the owners of rings */
	uint32_t count, capacity;
};

/* Tries what is permitted. 0, or negative errno with what forbids it. The period, the wanted bytes
 * of stacks and is_whole_machine are set. */
int outside_events_init(struct outside_events *events, struct problem *problem);
void outside_events_deinit(struct outside_events *events);
/* Events of one task and of all that it will start; with `on_exec` they begin when it executes a
 * program. 0 or negative errno. */
int outside_events_open_task(struct outside_events *events, pid_t tid, bool on_exec);

/* Events of all that runs on any CPU; with `cgroup`, the descriptor of a control group's directory,
 * samples of what runs in that group alone. -1: of everything. 0 or negative errno. */
int outside_events_open_machine(struct outside_events *events, int cgroup);

/* Closes those opened for a task of which `is_needed` says no. */
void outside_events_close_unneeded(struct outside_events *events,
				   bool (*is_needed)(void *context, uint32_t tid), void *context);

/* The next record of a ring before `head`, whole; NULL when there is none. It is valid until the
 * next call, and handed back to the kernel by outside_ring_release(). */
const struct perf_event_header *outside_ring_peek(struct outside_ring *ring);
void outside_ring_advance(struct outside_ring *ring, const struct perf_event_header *record);
void outside_ring_update_head(struct outside_ring *ring);
void outside_ring_release(struct outside_ring *ring);

#endif
