/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ends that run no destructors. Samples and regions are in the file already; what was only counted
 * is in memory, and is written before the process goes.
 */
#include <stdlib.h>
#include <unistd.h>

#include "core/base/fork_state.h"
#include "core/process/program_timers.h"
#include "core/runtime.h"
#include "libkymo/dormant.h"
#include "libkymo/real.h"

KYMO_FORK_CODE EXPORTED void _exit(int status)
{
	bool is_slow = runtime_is_active() && !is_calling_thread_off_limits();
	uint64_t held = is_slow ? program_timers_hold_deadly_signals() : 0;

	dormant_write_process_end();
	runtime_flush_and_wait_if_unwritten();
	runtime_end_helper_if_program_child(true);
	program_timers_release_signals(held);
	REAL(_exit)(status);
	__builtin_unreachable();
}

/* The same, by C's name. */
EXPORTED void _Exit(int status)
{
	_exit(status);
}
