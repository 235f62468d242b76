/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernels of NCCL's that were timed by the GPU's own records (kymo/gpu_records.h), and which
 * operations they ran: NCCL tells when it begins to launch (KERNEL_LAUNCH) and, behind that and in
 * the same thread, the operations that the launch holds. So the call that launched a kernel lies
 * between the two. Where calls were not recorded, or NCCL does not tell launches (before 2.28),
 * nothing is joined.
 *
 * Times are ns of the process's own CLOCK_BOOTTIME. Not thread-safe.
 */
#ifndef KYMO_ANALYSIS_NCCL_KERNELS_H
#define KYMO_ANALYSIS_NCCL_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/gpu/gpu.h"

struct nccl_kernel {
	uint64_t launch_call_start_ns; /* start of the call that launched it */
	uint64_t start_ns, duration_ns;
	uint32_t thread;
	uint32_t operations; /* that it ran */
};

struct nccl_kernels {
	struct nccl_kernel *kernels; /* by thread and call */
	size_t count, capacity;
};

/* Adds what a file of the same process has; calls may be in any order. 0 or -ENOMEM. */
int nccl_kernels_add_from_process(struct nccl_kernels *kernels,
				  const struct gpu_records_of_process *process);
/* The kernel of an operation that was told at `started_ns`, after a launch that began at
 * `launched_ns`; NULL: not known. */
struct nccl_kernel *nccl_kernels_find_by_launch(const struct nccl_kernels *kernels, uint32_t thread,
						uint64_t launched_ns, uint64_t started_ns);
void nccl_kernels_deinit(struct nccl_kernels *kernels);

#endif
