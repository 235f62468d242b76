/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the helper (helper.h) reads of the program's process and its threads. Called by a thread of
 * the process itself, these tell the same of that.
 */
#ifndef KYMO_CORE_PROGRAM_H
#define KYMO_CORE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread;

/* Opens /proc/PID/NAME of the program for reading. Descriptor or negative errno. */
long program_open_proc_file(const char *name, int flags);
/* Opens /proc/PID/task/TID/NAME of the program for reading. Descriptor or negative errno. */
long program_open_task_file(uint32_t tid, const char *name);
/* Reads such a file as far as it fits, with a zero behind; its length, 0 when it cannot be read. */
size_t program_read_proc_file(const char *name, char *buffer, size_t size);
size_t program_read_task_file(uint32_t tid, const char *name, char *buffer, size_t size);

/* A clock (clock_gettime(2)); CLOCK_PROCESS_CPUTIME_ID is that of the program's process. */
uint64_t program_read_clock_ns(int clock);

/* CPU time of a thread of the program; 0 when it is gone. The kernel tells CPU clocks to threads of
 * the same process alone; to others it tells what it counted until the thread last gave up its
 * processor, was interrupted by the tick, or took a sample, unless a perf event counts it. */
uint64_t program_get_cpu_ns_by_tid(uint32_t tid);
/* The same, and how often it was given a CPU. Within the helper. */
uint64_t program_read_task_cpu_and_arrivals(uint32_t tid, uint64_t *ret_arrivals);
uint64_t program_thread_get_cpu_ns(struct thread *thread);
/* Is that its time to this moment, though it runs? */
bool program_thread_cpu_is_exact(const struct thread *thread);
/* What its event has counted; false: it has none. */
bool program_thread_read_perf_event_count(struct thread *thread, uint64_t *ret);
/* From here on the thread's event counts its CPU time, which is `cpu_ns` now. */
void program_thread_set_cpu_count_base(struct thread *thread, uint64_t cpu_ns);

#endif
