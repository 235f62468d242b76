/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See tracee.h.
 *
 * System calls: a stop ends a blocking call inside the kernel. When the thread is let go with the
 * registers that it was found with, the kernel makes the call again by itself (it left one of the
 * -ERESTART codes in rax); for the calls that it never restarts (signal(7)) it left -EINTR, and
 * here the thread is put back in front of the instruction. The timeout of such a call begins again.
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

#include "common/monotonic.h"
#include "inject/process.h"

#define STOP_TIMEOUT_NS           200000000ull
#define INJECTION_STEP_TIMEOUT_NS 5000000000ull
#define SIGNAL_BIT(n)             (1ull << ((n)-1))
#define FAULT_SIGNAL_BITS                                                                          \
	(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGFPE) |      \
	 SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS))

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif
#define EVENT_STOP 128 /* PTRACE_EVENT_STOP */

static void pause_briefly(void)
{
	static const struct timespec moment = {.tv_nsec = 50000};

	nanosleep(&moment, NULL);
}

#ifndef PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG
#define PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG 0x4211
#endif

/* `data` is read or written, as the request is (ptrace(2)). */
static long ptrace_request(int request, pid_t tid, void *address, void *data)
{
	return ptrace((enum __ptrace_request)request, tid, address, data) ? -errno : 0;
}

/* The next stop, or end, of the thread. 1 with *ret_status, 0 for none in time, or negative errno.
 */
static int wait_for_stop(pid_t tid, uint64_t timeout_ns, int *ret_status)
{
	uint64_t end = monotonic_ns() + timeout_ns;

	for (;;) {
		pid_t got = waitpid(tid, ret_status, __WALL | WNOHANG);

		if (got == tid)
			return WIFSTOPPED(*ret_status) ? 1 : -ESRCH;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (monotonic_ns() >= end)
			return 0;
		pause_briefly();
	}
}

static bool status_is_event_stop(int status)
{
	return status >> 16 == EVENT_STOP;
}

/* Stopped by SIGSTOP or its like, with all of its process. */
static bool status_is_group_stop(int status)
{
	return status_is_event_stop(status) && WSTOPSIG(status) != SIGTRAP;
}

/* Until the thread stops because we asked for it; signals that come first are delivered. */
static int wait_for_requested_stop(pid_t tid, uint64_t timeout_ns)
{
	int status, got;

	while ((got = wait_for_stop(tid, timeout_ns, &status)) > 0) {
		if (status_is_group_stop(status))
			return -EBUSY;
		if (status_is_event_stop(status))
			return 0;
		if (ptrace_request(PTRACE_CONT, tid, NULL, (void *)(long)WSTOPSIG(status)))
			return -ESRCH;
	}
	return got ? got : -ETIMEDOUT;
}

/* In a system call that no signal ends, nobody knows for how long. */
static bool tracee_is_uninterruptible(const struct tracee *tracee)
{
	char path[64], status[4096], state[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)tracee->pid, (int)tracee->tid);
	if (process_read_proc_file(path, status, sizeof(status)) < 0)
		return true;
	process_read_status_field(status, "State", state, sizeof(state));
	return state[0] == 'D';
}

/* A thread that is not stopped cannot be let go either, and would stop when nobody looks: whoever
 * merely waits for a processor, which takes its time on a busy machine, is waited for. */
static int interrupt_tracee_and_wait_for_stop(const struct tracee *tracee)
{
	uint64_t end = monotonic_ns() + INJECTION_STEP_TIMEOUT_NS;
	int error = (int)ptrace_request(PTRACE_INTERRUPT, tracee->tid, NULL, NULL);

	if (error)
		return error;
	do {
		error = wait_for_requested_stop(tracee->tid, STOP_TIMEOUT_NS);
	} while (error == -ETIMEDOUT && !tracee_is_uninterruptible(tracee) && monotonic_ns() < end);
	return error;
}

/* Signals that wait for the thread and are not blocked. */
static bool tracee_has_pending_signals(const struct tracee *tracee)
{
	static const char *const fields[] = {"SigPnd", "ShdPnd"};
	char path[64], status[4096], value[64];
	uint64_t pending = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)tracee->pid, (int)tracee->tid);
	if (process_read_proc_file(path, status, sizeof(status)) < 0)
		return true;
	for (int i = 0; i < 2; i++) {
		process_read_status_field(status, fields[i], value, sizeof(value));
		pending |= strtoull(value, NULL, 16);
	}
	return pending & ~tracee->mask;
}

/* Calls that end with EINTR whenever a thread is stopped in them. All can be made again. */
static bool syscall_number_is_cut_short_by_stops(uint64_t number)
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
void tracee_restart_syscall_if_cut_short(struct tracee *tracee)
{
	struct user_regs_struct *registers = &tracee->registers;

	if ((int64_t)registers->orig_rax < 0 || (int64_t)registers->rax != -EINTR ||
	    !syscall_number_is_cut_short_by_stops(registers->orig_rax) ||
	    tracee_has_pending_signals(tracee))
		return;
	registers->rax = registers->orig_rax;
	registers->rip -= 2; /* the length of `syscall` */
	registers->orig_rax = (unsigned long long)-1;
	ptrace_request(PTRACE_SETREGS, tracee->tid, NULL, (void *)(uintptr_t)registers);
}

int tracee_stop(struct tracee *tracee, pid_t pid, pid_t tid, int memory)
{
	int error;

	memset(tracee, 0, offsetof(struct tracee, vector_state));
	tracee->pid = pid;
	tracee->tid = tid;
	tracee->memory = memory;
	error = (int)ptrace_request(PTRACE_SEIZE, tid, NULL, NULL);
	if (error)
		return error;
	error = interrupt_tracee_and_wait_for_stop(tracee);
	if (!error)
		error = (int)ptrace_request(PTRACE_GETREGS, tid, NULL, &tracee->registers);
	if (!error)
		error = (int)ptrace_request(PTRACE_GETSIGMASK, tid, (void *)sizeof(tracee->mask),
					    &tracee->mask);
	if (error) {
		ptrace_request(PTRACE_DETACH, tid, NULL, NULL);
		return error;
	}
	return 0;
}

bool tracee_dispatches_own_calls(const struct tracee *tracee)
{
	struct { /* struct ptrace_sud_config, Linux 6.4 */
		uint64_t mode, selector, offset, length;
	} dispatch = {.mode = 0};

	return !ptrace_request(PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, tracee->tid,
			       (void *)sizeof(dispatch), &dispatch) &&
	       dispatch.mode == 1;
}

int tracee_save_state(struct tracee *tracee)
{
	uint64_t blocked = ~FAULT_SIGNAL_BITS;
	struct iovec vector = {tracee->vector_state, sizeof(tracee->vector_state)};
	long error = ptrace_request(PTRACE_GETREGSET, tracee->tid, (void *)NT_X86_XSTATE, &vector);

	if (error) { /* processors without XSAVE */
		vector.iov_len = sizeof(tracee->vector_state);
		error = ptrace_request(PTRACE_GETREGSET, tracee->tid, (void *)NT_PRFPREG, &vector);
	}
	tracee->vector_state_bytes = error ? 0 : vector.iov_len;
	if (!error)
		error = ptrace_request(PTRACE_SETSIGMASK, tracee->tid, (void *)sizeof(blocked),
				       &blocked);
	return (int)error;
}

int tracee_restore_state(struct tracee *tracee)
{
	struct iovec vector = {tracee->vector_state, tracee->vector_state_bytes};
	int kind = tracee->vector_state_bytes > 512 ? NT_X86_XSTATE : NT_PRFPREG;
	long error = ptrace_request(PTRACE_SETREGSET, tracee->tid, (void *)(long)kind, &vector);

	if (!error)
		error = ptrace_request(PTRACE_SETREGS, tracee->tid, NULL, &tracee->registers);
	if (!error)
		error = ptrace_request(PTRACE_SETSIGMASK, tracee->tid, (void *)sizeof(tracee->mask),
				       &tracee->mask);
	return (int)error;
}

void tracee_detach(struct tracee *tracee)
{
	ptrace_request(PTRACE_DETACH, tracee->tid, NULL, NULL);
}

int tracee_make_syscall(struct tracee *tracee, uint64_t instruction, const uint64_t arguments[6],
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
	got = (int)ptrace_request(PTRACE_SETREGS, tracee->tid, NULL, &registers);
	if (!got)
		got = (int)ptrace_request(PTRACE_SINGLESTEP, tracee->tid, NULL, NULL);
	if (got)
		return got;
	while ((got = wait_for_stop(tracee->tid, INJECTION_STEP_TIMEOUT_NS, &status)) > 0) {
		if (WSTOPSIG(status) == SIGTRAP && !status_is_event_stop(status))
			break;
		ptrace_request(PTRACE_SINGLESTEP, tracee->tid, NULL, NULL);
	}
	if (got <= 0)
		return got ? got : -ETIMEDOUT;
	got = (int)ptrace_request(PTRACE_GETREGS, tracee->tid, NULL, &registers);
	*ret = (int64_t)registers.rax;
	return got;
}

/* The thread is wanted back: it waits in code of ours, or has gone back by itself. */
static int stop_tracee_again(struct tracee *tracee)
{
	int error = (int)ptrace_request(PTRACE_INTERRUPT, tracee->tid, NULL, NULL);

	return error ? error : wait_for_requested_stop(tracee->tid, INJECTION_STEP_TIMEOUT_NS);
}

bool tracee_pc_is_within(const struct tracee *tracee, uint64_t start, uint64_t size)
{
	struct user_regs_struct registers;

	return !ptrace_request(PTRACE_GETREGS, tracee->tid, NULL, &registers) &&
	       registers.rip >= start && registers.rip - start < size;
}

/* Is the stop a fault of the code that the thread runs for us, or a signal of the program's? Only
 * faults get through as long as that code runs, but a thread that nobody took back in time has gone
 * back by itself. */
static bool stop_is_fault_of_injected_code(const struct tracee *tracee, int status, uint64_t word)
{
	uint64_t value = 0;

	return !status_is_event_stop(status) && SIGNAL_BIT(WSTOPSIG(status)) & FAULT_SIGNAL_BITS &&
	       !(process_read_memory(tracee->memory, word, &value, sizeof(value)) && value);
}

int tracee_run_code(struct tracee *tracee, const struct user_regs_struct *registers, uint64_t word,
		    uint64_t timeout_ns, int *ret_signal)
{
	uint64_t end = monotonic_ns() + timeout_ns, value;
	int status, got = (int)ptrace_request(PTRACE_SETREGS, tracee->tid, NULL,
					      (void *)(uintptr_t)registers);

	*ret_signal = 0;
	if (!got)
		got = (int)ptrace_request(PTRACE_CONT, tracee->tid, NULL, NULL);
	if (got)
		return got;
	for (;;) {
		got = wait_for_stop(tracee->tid, 0, &status);
		if (got < 0)
			return -ESRCH;
		if (got > 0 && stop_is_fault_of_injected_code(tracee, status, word)) {
			*ret_signal = WSTOPSIG(status);
			return -EFAULT;
		}
		if (got > 0)
			ptrace_request(PTRACE_CONT, tracee->tid, NULL,
				       status_is_event_stop(status)
					       ? NULL
					       : (void *)(long)WSTOPSIG(status));
		if (process_read_memory(tracee->memory, word, &value, sizeof(value)) && value)
			return stop_tracee_again(tracee);
		if (monotonic_ns() >= end)
			return -ETIMEDOUT;
		pause_briefly();
	}
}
