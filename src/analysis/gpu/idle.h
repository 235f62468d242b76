/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Idle time of devices: when nothing of a process ran on a device, between its first and its last
 * work there. A gap counts for the launch of the work that ended it. What passed before that call
 * began is the host's: nothing was launched that could run. The rest the work was queued, or waited
 * for what it depends on.
 */
#ifndef KYMO_ANALYSIS_GPU_IDLE_H
#define KYMO_ANALYSIS_GPU_IDLE_H

#include <stddef.h>
#include <stdint.h>

struct gpu_records_of_process;

/* By the call path of the launch that ended gaps. */
struct gpu_idle_row {
	uint32_t process; /* in gpu_data.processes */
	uint32_t launch_path;
	uint64_t gaps, ns, longest_ns;
	uint64_t before_launch_ns; /* of ns: before the call began */
};

struct gpu_idle {
	struct gpu_idle_row *rows;
	size_t count, capacity;
	/* Of all devices: from first to last work; with work; without; the host's part of that;
	 * idle time whose end is by a call that was not recorded. */
	uint64_t span_ns, busy_ns, idle_ns, before_launch_ns, unknown_launch_ns;
};

/* Adds what one process recorded. 0 or -ENOMEM. */
int gpu_idle_add_process(struct gpu_idle *idle, uint32_t number,
			 const struct gpu_records_of_process *process);
void gpu_idle_deinit(struct gpu_idle *idle);

#endif
