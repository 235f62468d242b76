/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Device time by range: kernels, copies and fills belong to the ranges (NVTX, roctx) that were open
 * in the thread that launched them, at that moment. The launch is known by the correlation of the
 * call; what a graph runs belongs to where the graph was launched. A thread without an open range
 * works for another one often (PyTorch computes gradients in a thread of its own, while the thread
 * that asked for them waits): where one thread alone of the process is in a range at that moment,
 * the work is that range's, and is counted apart.
 *
 * Ranges form a tree by the names around them, over all threads and processes. One that is started
 * in one thread and ended in another counts for the first.
 */
#ifndef KYMO_ANALYSIS_GPU_RANGES_H
#define KYMO_ANALYSIS_GPU_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/id_map.h"

struct gpu_records_of_process;

/* The row of a range without one around it. */
#define GPU_RANGE_NONE UINT32_MAX
/* Ranges that are nested deeper count for the one at this depth. */
#define GPU_RANGE_DEPTH_MAX 64u
/* Rows; ranges with further names count for the ones around them. */
#define GPU_RANGE_ROWS_MAX 65536u

struct gpu_work_sums {
	uint64_t kernels, copies, ns;
};

void gpu_work_sums_add(struct gpu_work_sums *to, const struct gpu_work_sums *work);

struct gpu_range_row {
	const char *name; /* in the records of a process */
	uint32_t parent;  /* row, an earlier one; GPU_RANGE_NONE */
	uint32_t depth;   /* of an outermost one 0 */
	uint64_t count;   /* how often it began */
	uint64_t open;    /* of these never ended */
	uint64_t host_ns; /* of those that ended */
	/* Launched right in it, by its thread and by others; with what is in ranges inside. */
	struct gpu_work_sums own, from_other_threads, total;
};

struct gpu_ranges {
	struct gpu_range_row *rows;
	size_t count, capacity;
	struct id_map row_by_name;             /* by a hash of name and parent */
	struct gpu_work_sums outside;          /* launched where no range was open */
	struct gpu_work_sums unknown_launches; /* the call that launched it was not recorded */
	uint64_t unnamed_count;                /* ranges left out by the limits above */
};

/* Adds what one process recorded. 0 or -ENOMEM. */
int gpu_ranges_add_process(struct gpu_ranges *ranges, const struct gpu_records_of_process *process);
/* When all are added: the totals. */
void gpu_ranges_sum_totals(struct gpu_ranges *ranges);
/* Row numbers by total, the most first: ranges before those inside them. malloc'ed; NULL without
 * memory. */
uint32_t *gpu_ranges_sort_by_total(const struct gpu_ranges *ranges);
/* "step > forward", cut at `size`. */
void gpu_range_write_path(const struct gpu_ranges *ranges, uint32_t row, char *text, size_t size);
void gpu_ranges_deinit(struct gpu_ranges *ranges);

#endif
