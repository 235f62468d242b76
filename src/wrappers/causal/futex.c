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

#include "wrappers/causal/descriptors.h"
#include "wrappers/causal/paced.h"

enum futex_role { ROLE_NONE, ROLE_WAITS, ROLE_WAITS_UNTIL, ROLE_WAKES };

static enum futex_role futex_operation_to_role(int operation)
{
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
		return ROLE_WAITS;
	case FUTEX_WAIT_BITSET:
	case FUTEX_LOCK_PI:
	case 13: /* FUTEX_LOCK_PI2 */
	case FUTEX_WAIT_REQUEUE_PI:
		return ROLE_WAITS_UNTIL;
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
	case FUTEX_WAKE_OP:
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
	case FUTEX_CMP_REQUEUE_PI:
	case FUTEX_UNLOCK_PI:
		return ROLE_WAKES;
	default:
		return ROLE_NONE;
	}
}

/* futex(2): which clock a deadline is on makes no difference to putting it off. */
static long pace_futex_wait(__typeof__(&syscall) original, long number, const long *argument,
			    enum futex_role role, uint64_t site)
{
	const struct timespec *end = (const struct timespec *)argument[3];
	struct causal_wait_state wait;
	struct timespec space;
	long result;

	causal_apply_delay_and_begin_wait(&wait);
	if (role == ROLE_WAITS_UNTIL)
		end = paced_extend_deadline(CLOCK_MONOTONIC, end, &space);
	result = original(number, argument[0], argument[1], argument[2], end, argument[4],
			  argument[5]);
	causal_end_wait_at_site(
		&wait, paced_woken_by_us_to_waker_kind(result >= 0 || errno == EAGAIN), site);
	return result;
}

static enum futex_role publish_wakeup_and_classify_syscall(long number, const long *argument)
{
	switch (number) {
	case SYS_futex:
		return futex_operation_to_role((int)argument[1]);
	case SYS_tgkill:
	case SYS_tkill:
	case SYS_kill:
		causal_publish_wakeup_to_session(causal_hash_signals_to_pid(
			number == SYS_tkill ? kymo_process.pid : (uint32_t)argument[0]));
		return ROLE_WAKES;
	case SYS_close:
		causal_descriptor_forget((int)argument[0]);
		return ROLE_NONE;
	default:
		return ROLE_NONE;
	}
}

DEFINE_ORIGINAL_POINTER(syscall);
static long paced_syscall(long number, ...)
{
	enum futex_role role = ROLE_NONE;
	long argument[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	if (causal_is_active())
		role = publish_wakeup_and_classify_syscall(number, argument);
	if (role == ROLE_WAITS || role == ROLE_WAITS_UNTIL)
		return pace_futex_wait(ORIGINAL(syscall), number, argument, role,
				       CAUSAL_GET_CALL_SITE);
	if (role == ROLE_WAKES)
		causal_pay_delay_at_site(CAUSAL_GET_CALL_SITE);
	return ORIGINAL(syscall)(number, argument[0], argument[1], argument[2], argument[3],
				 argument[4], argument[5]);
}

int causal_add_futex_wrappers(void)
{
	static struct got_wrapper rows[] = {PACED_TABLE_ROW(syscall)};

	return got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));
}
