/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Entering a seccomp sandbox. A filter may kill the process for a system call that the program
 * never makes but kymo does, so the thread that enters one is left alone from there on, and a
 * filter for all threads ends collection; both are counted and said in the results. Programs also
 * ask whether there are filters, by calls that can only fail (Firefox, Chromium: with a null
 * pointer): such change nothing.
 *
 * A thread whose system calls come back to the program as SIGSYS (prctl(2),
 * PR_SET_SYSCALL_USER_DISPATCH: Wine) is left alone in the same way, until it ends that: the return
 * from a handler is such a call, too. Its children are not concerned.
 */
#ifndef KYMO_LIBKYMO_SECCOMP_H
#define KYMO_LIBKYMO_SECCOMP_H

#include <stdbool.h>

struct thread;

/* What was stopped for a call, in the case that it fails. */
struct seccomp_entry {
	struct thread *thread;    /* NULL: its sampling was not stopped */
	bool is_collection_ended; /* a filter for all threads was asked for */
	bool is_only_thread;      /* then: collection can begin again */
};

/* Before the call. `mode`: SECCOMP_MODE_*, or 0 for one that enters nothing; `flags`:
 * SECCOMP_FILTER_FLAG_*; `program`: the program's struct sock_fprog, which may be anywhere. */
struct seccomp_entry seccomp_prepare_entry(unsigned long mode, unsigned long flags,
					   const void *program);
/* The same before system calls of the thread come back to the program. */
struct seccomp_entry seccomp_prepare_call_dispatch(void);
/* The thread's system calls are the kernel's again. Keeps errno. */
void seccomp_end_call_dispatch(void);
/* In a forked child: it does not inherit that. */
void seccomp_forget_call_dispatch_in_child(void);
/* After it. Keeps errno; makes no system call where the call succeeded. */
void seccomp_finish_entry(const struct seccomp_entry *entry, bool entered);

#endif
