/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See program_timers.h.
 */
#include "core/process/program_timers.h"

#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/process/program_signals.h"

#define SENT_SIGNALS_MAX 4

uint64_t program_timers_hold_deadly_signals(void)
{
	static const int signals[] = {SIGALRM, SIGVTALRM, SIGPROF};
	uint64_t deadly = 0, before = 0;

	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct kernel_sigaction_layout action = {.handler = (void *)SIG_IGN};

		call_rt_sigaction(signals[i], NULL, &action);
		if (action.handler == (void *)SIG_DFL)
			deadly |= signal_to_mask_bit(signals[i]);
	}
	if (!deadly || call_rt_sigprocmask(SIG_BLOCK, &deadly, &before))
		return 0;
	return deadly & ~before;
}

/* setitimer(2) and alarm(2): from the kernel. */
static bool is_from_timer(const siginfo_t *signal)
{
	return signal->si_code == SI_KERNEL || signal->si_code == SI_TIMER;
}

void program_timers_release_signals(uint64_t held)
{
	struct timespec now = {0, 0};
	siginfo_t sent[SENT_SIGNALS_MAX];
	unsigned count = 0;

	if (!held)
		return;
	while (count < SENT_SIGNALS_MAX &&
	       sys_call4(SYS_rt_sigtimedwait, (long)&held, (long)&sent[count], (long)&now,
			 sizeof(held)) > 0)
		count += !is_from_timer(&sent[count]);
	for (unsigned i = 0; i < count; i++)
		sys_call4(SYS_rt_tgsigqueueinfo, sys_getpid(), sys_gettid(), sent[i].si_signo,
			  (long)&sent[i]);
	call_rt_sigprocmask(SIG_UNBLOCK, &held, NULL);
}
