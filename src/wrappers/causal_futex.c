/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * System calls that programs and run times make by syscall(): futexes above all, which is what
 * std::atomic::wait and many a library's own locks are made of.
 */
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wrappers/causal_descriptors.h"
#include "wrappers/causal_paced.h"

enum role { NONE, WAITS, WAITS_UNTIL, WAKES };

static enum role role_of_futex(int operation)
{
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
		return WAITS;
	case FUTEX_WAIT_BITSET:
	case FUTEX_LOCK_PI:
	case 13: /* FUTEX_LOCK_PI2 */
	case FUTEX_WAIT_REQUEUE_PI:
		return WAITS_UNTIL;
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
	case FUTEX_WAKE_OP:
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
	case FUTEX_CMP_REQUEUE_PI:
	case FUTEX_UNLOCK_PI:
		return WAKES;
	default:
		return NONE;
	}
}

/* futex(2): which clock a deadline is on makes no difference to putting it off. */
static long wait_for(__typeof__(&syscall) original, long number, const long *argument,
		     enum role role, uint64_t site)
{
	const struct timespec *end = (const struct timespec *)argument[3];
	struct causal_wait wait;
	struct timespec space;
	long result;

	causal_before_wait(&wait);
	if (role == WAITS_UNTIL)
		end = paced_deadline(CLOCK_MONOTONIC, end, &space);
	result = original(number, argument[0], argument[1], argument[2], end, argument[4],
			  argument[5]);
	causal_after_wait_at(&wait, paced_waker(result >= 0 || errno == EAGAIN), site);
	return result;
}

static enum role role_of(long number, const long *argument)
{
	switch (number) {
	case SYS_futex:
		return role_of_futex((int)argument[1]);
	case SYS_tgkill:
	case SYS_tkill:
	case SYS_kill:
		causal_mark(causal_signal_hash(number == SYS_tkill ? kymo_runtime.pid
								   : (uint32_t)argument[0]));
		return WAKES;
	case SYS_close:
		causal_descriptor_forget((int)argument[0]);
		return NONE;
	default:
		return NONE;
	}
}

PACED_ORIGINAL(syscall);
static long paced_syscall(long number, ...)
{
	enum role role = NONE;
	long argument[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	if (causal_on())
		role = role_of(number, argument);
	if (role == WAITS || role == WAITS_UNTIL)
		return wait_for(ORIGINAL(syscall), number, argument, role, CAUSAL_SITE);
	if (role == WAKES)
		causal_pay_at(CAUSAL_SITE);
	return ORIGINAL(syscall)(number, argument[0], argument[1], argument[2], argument[3],
				 argument[4], argument[5]);
}

int causal_futex_add(void)
{
	static struct got_wrapper rows[] = {PACED_ROW(syscall)};

	return got_add(TABLE(rows));
}
