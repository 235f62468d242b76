/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See tracee.h.
 *
 * System calls: a stop ends a blocking call inside the kernel. When the thread is let go with the
 * registers that it was found with, the kernel makes the call again by itself (it left one of the
 * -ERESTART codes in rax); for the calls that it never restarts (signal(7)) it left -EINTR, and
 * here the thread is put back in front of the instruction. The timeout of such a call begins anew.
 *
 * Signals: all but those of the thread's own faults are blocked while it works for us, so none is
 * delivered, and none ends a system call early, until it is back.
 */
#include "inject/tracee.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/process.h"

#define STOP_TIMEOUT_NS 200000000ull
#define STEP_TIMEOUT_NS 5000000000ull
#define SIGNAL_BIT(n)   (1ull << ((n)-1))
#define FAULTS                                                                                     \
	(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGFPE) |      \
	 SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS))

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif
#define EVENT_STOP 128 /* PTRACE_EVENT_STOP */

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static void pause_briefly(void)
{
	static const struct timespec moment = {.tv_nsec = 50000};

	nanosleep(&moment, NULL);
}

static long trace(int request, pid_t tid, void *address, const void *data)
{
	return ptrace((enum __ptrace_request)request, tid, address, data) ? -errno : 0;
}

/* The next stop, or end, of the thread. 1 with *ret_status, 0 for none in time, or negative errno.
 */
static int wait_for(pid_t tid, uint64_t timeout_ns, int *ret_status)
{
	uint64_t end = now_ns() + timeout_ns;

	for (;;) {
		pid_t got = waitpid(tid, ret_status, __WALL | WNOHANG);

		if (got == tid)
			return WIFSTOPPED(*ret_status) ? 1 : -ESRCH;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (now_ns() >= end)
			return 0;
		pause_briefly();
	}
}

static bool is_event_stop(int status)
{
	return status >> 16 == EVENT_STOP;
}

/* Stopped by SIGSTOP or its like, with all of its process. */
static bool is_group_stop(int status)
{
	return is_event_stop(status) && WSTOPSIG(status) != SIGTRAP;
}

/* Until the thread stops because we asked for it; signals that come first are delivered. */
static int wait_for_interrupt(pid_t tid, uint64_t timeout_ns)
{
	int status, got;

	while ((got = wait_for(tid, timeout_ns, &status)) > 0) {
		if (is_group_stop(status))
			return -EBUSY;
		if (is_event_stop(status))
			return 0;
		if (trace(PTRACE_CONT, tid, NULL, (void *)(long)WSTOPSIG(status)))
			return -ESRCH;
	}
	return got ? got : -ETIMEDOUT;
}

/* In a system call that no signal ends, nobody knows for how long. */
static bool is_uninterruptible(const struct tracee *tracee)
{
	char path[64], status[4096], state[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)tracee->pid, (int)tracee->tid);
	if (process_read_file(path, status, sizeof(status)) < 0)
		return true;
	process_status(status, "State", state, sizeof(state));
	return state[0] == 'D';
}

/* A thread that is not stopped cannot be let go either, and would stop when nobody looks: whoever
 * merely waits for a processor, which takes its time on a busy machine, is waited for. */
static int interrupt(const struct tracee *tracee)
{
	uint64_t end = now_ns() + STEP_TIMEOUT_NS;
	int error = (int)trace(PTRACE_INTERRUPT, tracee->tid, NULL, NULL);

	if (error)
		return error;
	do {
		error = wait_for_interrupt(tracee->tid, STOP_TIMEOUT_NS);
	} while (error == -ETIMEDOUT && !is_uninterruptible(tracee) && now_ns() < end);
	return error;
}

/* Signals that wait for the thread and are not blocked. */
static bool has_signals(const struct tracee *tracee)
{
	static const char *const fields[] = {"SigPnd", "ShdPnd"};
	char path[64], status[4096], value[64];
	uint64_t pending = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)tracee->pid, (int)tracee->tid);
	if (process_read_file(path, status, sizeof(status)) < 0)
		return true;
	for (int i = 0; i < 2; i++) {
		process_status(status, fields[i], value, sizeof(value));
		pending |= strtoull(value, NULL, 16);
	}
	return pending & ~tracee->mask;
}

/* Calls that end with EINTR whenever a thread is stopped in them. All can be made again. */
static bool is_cut_short(uint64_t number)
{
	switch (number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_io_uring_enter:
	case SYS_read:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_futex:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
		return true;
	default:
		return false;
	}
}

/* What the thread is to go on with: the system call that was cut short once more. A signal of the
 * program's own may have cut it as well; then EINTR is the program's business. */
void tracee_resume_call(struct tracee *tracee)
{
	struct user_regs_struct *registers = &tracee->registers;

	if ((int64_t)registers->orig_rax < 0 || (int64_t)registers->rax != -EINTR ||
	    !is_cut_short(registers->orig_rax) || has_signals(tracee))
		return;
	registers->rax = registers->orig_rax;
	registers->rip -= 2; /* the length of `syscall` */
	registers->orig_rax = (unsigned long long)-1;
	trace(PTRACE_SETREGS, tracee->tid, NULL, registers);
}

int tracee_stop(struct tracee *tracee, pid_t pid, pid_t tid, int memory)
{
	int error;

	memset(tracee, 0, offsetof(struct tracee, vector));
	tracee->pid = pid;
	tracee->tid = tid;
	tracee->memory = memory;
	error = (int)trace(PTRACE_SEIZE, tid, NULL, NULL);
	if (error)
		return error;
	error = interrupt(tracee);
	if (!error)
		error = (int)trace(PTRACE_GETREGS, tid, NULL, &tracee->registers);
	if (!error)
		error = (int)trace(PTRACE_GETSIGMASK, tid, (void *)sizeof(tracee->mask),
				   &tracee->mask);
	if (error) {
		trace(PTRACE_DETACH, tid, NULL, NULL);
		return error;
	}
	return 0;
}

int tracee_save(struct tracee *tracee)
{
	uint64_t blocked = ~FAULTS;
	struct iovec vector = {tracee->vector, sizeof(tracee->vector)};
	long error = trace(PTRACE_GETREGSET, tracee->tid, (void *)NT_X86_XSTATE, &vector);

	if (error) { /* processors without XSAVE */
		vector.iov_len = sizeof(tracee->vector);
		error = trace(PTRACE_GETREGSET, tracee->tid, (void *)NT_PRFPREG, &vector);
	}
	tracee->vector_size = error ? 0 : vector.iov_len;
	if (!error)
		error = trace(PTRACE_SETSIGMASK, tracee->tid, (void *)sizeof(blocked), &blocked);
	return (int)error;
}

int tracee_restore(struct tracee *tracee)
{
	struct iovec vector = {tracee->vector, tracee->vector_size};
	int kind = tracee->vector_size > 512 ? NT_X86_XSTATE : NT_PRFPREG;
	long error = trace(PTRACE_SETREGSET, tracee->tid, (void *)(long)kind, &vector);

	if (!error)
		error = trace(PTRACE_SETREGS, tracee->tid, NULL, &tracee->registers);
	if (!error)
		error = trace(PTRACE_SETSIGMASK, tracee->tid, (void *)sizeof(tracee->mask),
			      &tracee->mask);
	return (int)error;
}

void tracee_release(struct tracee *tracee)
{
	trace(PTRACE_DETACH, tracee->tid, NULL, NULL);
}

int tracee_system_call(struct tracee *tracee, uint64_t instruction, const uint64_t arguments[6],
		       long number, int64_t *ret)
{
	struct user_regs_struct registers = tracee->registers;
	int status, got;

	registers.rip = instruction;
	registers.rax = (unsigned long long)number;
	registers.orig_rax = (unsigned long long)-1;
	registers.rdi = arguments[0];
	registers.rsi = arguments[1];
	registers.rdx = arguments[2];
	registers.r10 = arguments[3];
	registers.r8 = arguments[4];
	registers.r9 = arguments[5];
	got = (int)trace(PTRACE_SETREGS, tracee->tid, NULL, &registers);
	if (!got)
		got = (int)trace(PTRACE_SINGLESTEP, tracee->tid, NULL, NULL);
	if (got)
		return got;
	while ((got = wait_for(tracee->tid, STEP_TIMEOUT_NS, &status)) > 0) {
		if (WSTOPSIG(status) == SIGTRAP && !is_event_stop(status))
			break;
		trace(PTRACE_SINGLESTEP, tracee->tid, NULL, NULL);
	}
	if (got <= 0)
		return got ? got : -ETIMEDOUT;
	got = (int)trace(PTRACE_GETREGS, tracee->tid, NULL, &registers);
	*ret = (int64_t)registers.rax;
	return got;
}

/* The thread is wanted back: it waits in code of ours, or has gone back by itself. */
static int take_back(struct tracee *tracee)
{
	int error = (int)trace(PTRACE_INTERRUPT, tracee->tid, NULL, NULL);

	return error ? error : wait_for_interrupt(tracee->tid, STEP_TIMEOUT_NS);
}

bool tracee_is_within(const struct tracee *tracee, uint64_t start, uint64_t size)
{
	struct user_regs_struct registers;

	return !trace(PTRACE_GETREGS, tracee->tid, NULL, &registers) && registers.rip >= start &&
	       registers.rip - start < size;
}

/* Of the code that it runs for us; or does the program have a signal? Only faults get through as
 * long as that code runs, but a thread that nobody took back in time has gone back by itself. */
static bool is_fault(const struct tracee *tracee, int status, uint64_t word)
{
	uint64_t value = 0;

	return !is_event_stop(status) && SIGNAL_BIT(WSTOPSIG(status)) & FAULTS &&
	       !(process_read(tracee->memory, word, &value, sizeof(value)) && value);
}

int tracee_run(struct tracee *tracee, const struct user_regs_struct *registers, uint64_t word,
	       uint64_t timeout_ns, int *ret_signal)
{
	uint64_t end = now_ns() + timeout_ns, value;
	int status, got = (int)trace(PTRACE_SETREGS, tracee->tid, NULL, registers);

	*ret_signal = 0;
	if (!got)
		got = (int)trace(PTRACE_CONT, tracee->tid, NULL, NULL);
	if (got)
		return got;
	for (;;) {
		got = wait_for(tracee->tid, 0, &status);
		if (got < 0)
			return -ESRCH;
		if (got > 0 && is_fault(tracee, status, word)) {
			*ret_signal = WSTOPSIG(status);
			return -EFAULT;
		}
		if (got > 0)
			trace(PTRACE_CONT, tracee->tid, NULL,
			      is_event_stop(status) ? NULL : (void *)(long)WSTOPSIG(status));
		if (process_read(tracee->memory, word, &value, sizeof(value)) && value)
			return take_back(tracee);
		if (now_ns() >= end)
			return -ETIMEDOUT;
		pause_briefly();
	}
}
