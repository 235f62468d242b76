/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The plugin's own thread: keeps room ready, decides when operations are over, adds them up,
 * watches for operations that make no progress, and says now and then that it was here.
 */
#ifndef KYMO_NCCL_HELPER_H
#define KYMO_NCCL_HELPER_H

/* 0 or negative errno. */
int helper_start(void);
/* From a callback: room is getting short, or a communicator is finalized. */
void helper_wake(void);
/* From init, which may take its time: keeps the own thread from falling behind where communicators
 * are made by the hundred. */
void helper_make_room(void);
/* One round now, by the calling thread; at the end of the process. Does not wait for long. */
void helper_finish(void);
/* Room for records is at an end, negative errno; by the store, once. */
void helper_no_room(int error);
/* Less is recorded than was asked for: `why` goes into the file, unless there is a reason already.
 */
void helper_tell(const char *why);
/* Around fork. */
void helper_before_fork(void);
void helper_after_fork(void);

#endif
