/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The background thread's side of the registry: starting and ending what was announced, finding
 * what was not.
 */
#ifndef KYMO_CORE_LIVE_THREADS_H
#define KYMO_CORE_LIVE_THREADS_H

#include "core/threads.h"

struct runtime;

/* Works off the announcements: records, sources, recycling. */
void live_threads_process_announced(struct runtime *runtime);
/* Compares with /proc/self/task: raw clones and threads from before us are taken in, vanished ones
 * ended. */
void live_threads_scan_tasks(struct runtime *runtime);
/* Writes the THREAD_START record. */
void live_threads_write_start_record(struct runtime *runtime, struct thread *thread);
/* Records names that changed. */
void live_threads_record_changed_names(struct runtime *runtime);
/* Finds the stacks of threads that were not seen at their birth, once they have a sample. */
void live_threads_find_stack_bounds(struct runtime *runtime);
/* Sums into the file header. */
void live_threads_sum_totals_into_header(struct runtime *runtime);
/* THREAD_END records of the threads still alive at the end. */
void live_threads_write_end_records(struct runtime *runtime);

#endif
