/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The clock of one GPU, brought to the host's: what to add to a GPU time is bounded from below by
 * launches (no kernel begins before its launch was called) and from above by what the host heard
 * of (nothing is heard of before it was). The bounds of windows of time are kept, each with the
 * moment it was seen, a drift is fitted through them, and what then lies between lower and upper
 * bound is the error.
 *
 * The upper bound is nearly always close: NCCL's own thread looks all the time. The lower one is
 * far off where the program enqueues ahead of the GPU. So times are put just below the upper one,
 * unless both are close.
 */
#ifndef KYMO_ANALYSIS_NCCL_GPU_CLOCK_H
#define KYMO_ANALYSIS_NCCL_GPU_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_GPU_UPPER_BOUNDS_MAX 8

/* Host minus GPU, and when: in GPU time. A GPU's stamp is read from its memory while it goes on,
 * and now and then (one in some ten thousand) is that of a later moment: an upper bound that lies
 * below the lower one is not used, so more than one is kept, the least first. */
struct nccl_gpu_clock_window {
	uint64_t low_bound_at_gpu_ns, high_bounds_at_gpu_ns[NCCL_GPU_UPPER_BOUNDS_MAX];
	int64_t host_minus_gpu_low_ns, host_minus_gpu_high_ns[NCCL_GPU_UPPER_BOUNDS_MAX];
};

struct nccl_gpu_clock_model {
	uint64_t origin_gpu_ns, window_length_ns;
	struct nccl_gpu_clock_window *windows;
	size_t window_count, window_capacity;
	double drift_ns_per_ns; /* ns a ns */
	bool any, is_solved;
	bool is_contradicted; /* bounds crossed: one of the clocks was set */
};

/* Where a GPU time is on the host. */
struct nccl_gpu_time_on_host {
	uint64_t time_ns;
	uint64_t error_ns; /* to both sides; UINT64_MAX: not known, bounded from one side only */
};

void nccl_gpu_clock_deinit(struct nccl_gpu_clock_model *clock);
/* The host was at `host_ns` before (`is_before`) or after the GPU was at `gpu_ns`. 0 or -ENOMEM. */
int nccl_gpu_clock_add_bound(struct nccl_gpu_clock_model *clock, uint64_t gpu_ns, uint64_t host_ns,
			     bool is_before);
/* After the last bound and before the first question. */
void nccl_gpu_clock_compute_drift(struct nccl_gpu_clock_model *clock);
/* false: nothing is known of this clock. */
bool nccl_gpu_clock_to_host_time(const struct nccl_gpu_clock_model *clock, uint64_t gpu_ns,
				 struct nccl_gpu_time_on_host *ret);

#endif
