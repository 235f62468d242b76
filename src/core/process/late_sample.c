/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See late_sample.h.
 *
 * Where the thread was when the signal came tells how it was let in. A system call leaves its
 * return address in rcx (the instruction SYSCALL), so a thread with rcx at its program counter has
 * just returned from one; behind it by the size of the instruction, the kernel is to make it again.
 * rt_sigprocmask(2) is known by its arguments, which are still there; calls that wait with another
 * mask (ppoll, sigsuspend) end with EINTR. What is left is the end of a handler: it leads back to
 * anywhere, and to the end of the call that raised its signal.
 */
#include "core/process/late_sample.h"

#include <errno.h>
#include <signal.h>

#define SYSCALL_INSTRUCTION_SIZE         2 /* of the instruction */
#define KERNEL_SIGNAL_SET_SIZE           8 /* bytes, the kernel's */
#define LATE_SAMPLE_MISSED_PERIODS_LEAST 2

static bool syscall_unblocks_signals(const greg_t *registers)
{
	greg_t how = registers[REG_RDI];

	return registers[REG_RAX] == 0 && registers[REG_R10] == KERNEL_SIGNAL_SET_SIZE &&
	       (how == SIG_UNBLOCK || how == SIG_SETMASK);
}

/* kill(2) and tgkill(2): the handler has run before the call is over. */
static bool syscall_sent_signal_to_own_process(const struct late_sample_conditions *source,
					       const greg_t *registers)
{
	return registers[REG_RAX] == 0 && registers[REG_RDI] == (greg_t)source->pid;
}

static bool signal_was_blocked_until_now(const struct late_sample_conditions *source,
					 const greg_t *registers)
{
	greg_t behind = registers[REG_RCX] - registers[REG_RIP];

	if (behind == SYSCALL_INSTRUCTION_SIZE)
		return true;
	if (behind == 0)
		return registers[REG_RAX] == -EINTR || syscall_unblocks_signals(registers) ||
		       (source->handlers_block &&
			syscall_sent_signal_to_own_process(source, registers));
	return source->handlers_block;
}

uint64_t late_sample_compute_uncovered_ns(const struct late_sample_conditions *source,
					  const ucontext_t *context, uint64_t passed)
{
	uint64_t period = source->period > source->tick ? source->period : source->tick;

	if (passed <= LATE_SAMPLE_MISSED_PERIODS_LEAST * period ||
	    !signal_was_blocked_until_now(source, context->uc_mcontext.gregs))
		return 0;
	return passed - period;
}
