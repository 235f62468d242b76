/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The plugin's own thread: keeps room ready, decides when operations are over, adds them up,
 * watches for operations that make no progress, and says now and then that it was here.
 */
#ifndef KYMO_NCCL_HELPER_H
#define KYMO_NCCL_HELPER_H

/* 0 or negative errno. */
int helper_start_thread(void);
/* From a callback: room is getting short, or a communicator is finalized. */
void helper_wake(void);
/* From init, which may take its time: keeps the own thread from falling behind where communicators
 * are made by the hundred. */
void helper_refill_ready_chunks(void);
/* One round now, by the calling thread; at the end of the process. Does not wait for long. */
void helper_run_last_round(void);
/* Room for records is at an end, negative errno; by the store, once. */
void helper_report_store_cannot_grow(int error);
/* Less is recorded than was asked for: `why` goes into the file, unless there is a reason already.
 */
void helper_write_first_problem_to_header(const char *why);
/* Around fork. */
void helper_lock_before_fork(void);
void helper_unlock_after_fork(void);

#endif
