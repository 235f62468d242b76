/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See scheduling.h.
 */
#include "core/process/scheduling.h"

#include <sched.h>
#include <stdint.h>

#include "common/syscalls.h"

#define SCHEDULER_SLICE_NS    100000ull
#define REALTIME_PRIORITY_MAX 99u

/* The kernel's struct sched_attr, first version (sched_setattr(2)). */
struct scheduling_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

/* Who asks for less at a time is let in earlier, and takes no more in all: on a busy machine a
 * thread would come late else, by what all others take at a time (Linux 6.12 on; before that it is
 * not looked at). */
void scheduling_request_prompt_turns(bool before_realtime)
{
	struct scheduling_attributes attributes = {.size = sizeof(attributes)};

	if (sys_call4(SYS_sched_getattr, 0, (long)&attributes, sizeof(attributes), 0))
		return;
	if (attributes.policy == SCHED_OTHER)
		attributes.runtime_ns = SCHEDULER_SLICE_NS;
	else if (before_realtime && attributes.priority < REALTIME_PRIORITY_MAX &&
		 (attributes.policy == SCHED_FIFO || attributes.policy == SCHED_RR))
		attributes.priority++;
	else
		return;
	attributes.deadline_ns = attributes.period_ns = 0;
	sys_call3(SYS_sched_setattr, 0, (long)&attributes, 0);
}
