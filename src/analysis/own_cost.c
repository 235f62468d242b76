/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See own_cost.h.
 */
#include "analysis/own_cost.h"

/* What the kernel counted for the program and the children that it waited for; else what their
 * threads told. The helper is in neither: it is nobody's child. */
static uint64_t compute_process_tree_cpu_ns(const struct session *session)
{
	const struct model_program_launch *launch = &session->launch;
	bool whole = !launch->attached && !session->has_only_part_of_threads &&
		     !session->has_only_part_of_time;
	uint64_t counted = whole ? launch->user_ns + launch->system_ns : 0, threads = 0;

	for (uint32_t i = 0; i < session->thread_count; i++)
		threads += session->threads[i].how == 3 ? 0 : session->threads[i].cpu_ns;
	return counted > threads ? counted : threads;
}

struct own_cost compute_profiler_own_cost(const struct session *session)
{
	struct own_cost cost = {.handler_ns = 0};

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		cost.handler_ns += process->handler_ns;
		cost.helper_process_ns += process->helper_cpu_ns;
		cost.start_fork_exec_end_ns += process->kymo_work_ns;
		cost.kernel_overhead_ns += process->perf_event_switch_cost_ns;
		cost.signal_count += process->signals;
		cost.executed_image_count += process->origin == SPOOL_IMAGE_EXECUTED;
		cost.fork_count += process->origin == SPOOL_IMAGE_FORKED;
	}
	cost.kernel_overhead_ns += cost.signal_count * session->launch.signal_ns;
	cost.kernel_overhead_ns += cost.fork_count * session->launch.fork_ns;
	cost.load_ns = cost.executed_image_count * session->launch.load_ns;
	cost.total_ns = cost.handler_ns + cost.helper_process_ns + cost.start_fork_exec_end_ns +
			cost.load_ns + cost.kernel_overhead_ns;
	cost.process_tree_cpu_ns = compute_process_tree_cpu_ns(session) + cost.helper_process_ns;
	return cost;
}
