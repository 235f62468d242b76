/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One thread of another process, stopped and let go again so that it does not notice: ptrace(2)
 * with PTRACE_SEIZE, which sends no signal.
 */
#ifndef KYMO_INJECT_TRACEE_H
#define KYMO_INJECT_TRACEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define TRACEE_VECTOR_BYTES_MAX 16384 /* AMX state is about 11 KiB */

struct tracee {
	pid_t pid, tid;
	int memory; /* /proc/PID/mem */
	struct user_regs_struct registers;
	uint64_t mask; /* blocked signals */
	uint8_t vector_state[TRACEE_VECTOR_BYTES_MAX] __attribute__((aligned(64)));
	size_t vector_state_bytes;
};

/* Stops the thread. 0, or negative errno: -ESRCH it is gone, -EPERM not permitted, -EBUSY it does
 * not stop (or the process is stopped by job control). */
int tracee_stop(struct tracee *tracee, pid_t pid, pid_t tid, int memory);
/* Saves what tracee_restore_state() puts back. */
int tracee_save_state(struct tracee *tracee);
/* Do its system calls come back to it as SIGSYS (prctl(2), PR_SET_SYSCALL_USER_DISPATCH)? */
bool tracee_dispatches_own_calls(const struct tracee *tracee);
int tracee_restore_state(struct tracee *tracee);
/* What the thread is to go on with, where the stop cut a system call short: the call once more. */
void tracee_restart_syscall_if_cut_short(struct tracee *tracee);
/* Lets it go. */
void tracee_detach(struct tracee *tracee);

/* In a stopped and saved thread: */
/* Makes one system call by the `syscall` instruction at `instruction`. */
int tracee_make_syscall(struct tracee *tracee, uint64_t instruction, const uint64_t arguments[6],
			long number, int64_t *ret);
/* Is it at an instruction in [start, start + size)? */
bool tracee_pc_is_within(const struct tracee *tracee, uint64_t start, uint64_t size);
/* Lets it run with these registers until *word (in its memory) is not 0. 0; -ETIMEDOUT; -ESRCH; or
 * -EFAULT with the signal that the code ended with in *ret_signal. */
int tracee_run_code(struct tracee *tracee, const struct user_regs_struct *registers, uint64_t word,
		    uint64_t timeout_ns, int *ret_signal);

#endif
