/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See breakpoint_check.h.
 */
#include "common/breakpoint_check.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>

#include "common/syscalls.h"

__attribute__((noinline)) static void run_into_breakpoint(void)
{
	__asm__ volatile("" : : : "memory");
}

static int open_own_breakpoint(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
				       .size = sizeof(attr),
				       .bp_type = HW_BREAKPOINT_X,
				       .bp_addr = (uint64_t)(uintptr_t)run_into_breakpoint,
				       .bp_len = sizeof(long),
				       .exclude_kernel = 1,
				       .exclude_hv = 1};

	return (int)sys_call6(SYS_perf_event_open, (long)&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
}

static bool own_breakpoint_fires(void)
{
	uint64_t count = 1;
	int fd = open_own_breakpoint();

	if (fd < 0)
		return true;
	run_into_breakpoint();
	sys_read(fd, &count, sizeof(count));
	sys_close(fd);
	return count != 0;
}

bool breakpoints_fire(void)
{
	static enum { UNKNOWN, FIRE, DO_NOT } answer;

	if (answer == UNKNOWN)
		answer = own_breakpoint_fires() ? FIRE : DO_NOT;
	return answer == FIRE;
}
