/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See interrupted_call.h. The kernel leaves the arguments in place and -EINTR in rax; the number of
 * the call is taken from the `mov $number,%eax` that stands before `syscall` in libc's stubs: right
 * before, or with a `mov N(%rsp),%edi` in between (pselect, epoll_pwait, msgrcv and recvmmsg of
 * programs that have threads).
 * Restarting a relative timeout from the beginning is right to within the time the call ran:
 * sources that count CPU time only fire while the thread runs, which in such a call is its first
 * and last microseconds.
 *
 * "Only our signal": the program has installed no handler for an asynchronous signal (then none of
 * its signals can return from a call with EINTR), and no other signal is pending. Programs with
 * handlers must expect EINTR and are left alone.
 */
#include "core/process/interrupted_call.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "common/syscalls.h"

static bool syscall_is_restartable(uint32_t number)
{
	switch (number) {
	case SYS_poll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_ppoll:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_pause:
	case SYS_futex:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_rt_sigtimedwait:
	case SYS_rt_sigsuspend:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_io_getevents:
		return true;
	default:
		return false;
	}
}

static bool other_signals_are_pending(int ours)
{
	uint64_t pending = ~0ull;

	sys_call2(SYS_rt_sigpending, (long)&pending, sizeof(pending));
	return pending & ~signal_to_mask_bit(ours);
}

/* Where the number of the call before `ip` stands; NULL: not known. */
static const uint8_t *find_syscall_number_operand_before(const uint8_t *ip)
{
	static const uint8_t load_edi[] = {0x8b, 0x7c, 0x24};

	if (((uintptr_t)ip & 4095) < 7 || ip[-2] != 0x0f || ip[-1] != 0x05)
		return NULL; /* the bytes before must be on the same page */
	if (ip[-7] == 0xb8)
		return ip - 6;
	return ((uintptr_t)ip & 4095) >= 11 && ip[-11] == 0xb8 &&
			       !memcmp(ip - 6, load_edi, sizeof(load_edi))
		       ? ip - 10
		       : NULL;
}

void interrupted_call_restart_if_by_us(const struct program_signals *signals, void *context)
{
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t *at;
	uint32_t number;

	if (gregs[REG_RAX] != -EINTR)
		return;
	at = find_syscall_number_operand_before((const uint8_t *)gregs[REG_RIP]);
	if (!at)
		return;
	memcpy(&number, at, sizeof(number));
	if (!syscall_is_restartable(number) ||
	    atomic_load_explicit(&signals->has_program_handlers, memory_order_relaxed) ||
	    other_signals_are_pending(signals->signal))
		return;
	gregs[REG_RAX] = number;
	gregs[REG_RIP] -= 2;
}
