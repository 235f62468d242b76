/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of a process's kernels as in the source, each demangled once.
 */
#ifndef KYMO_OUTPUT_GPU_NAMES_H
#define KYMO_OUTPUT_GPU_NAMES_H

#include "analysis/gpu.h"

struct gpu_names {
	const struct gpu_process *process;
	char **plain; /* by string; NULL: not looked at */
};

/* 0 or -ENOMEM. */
int gpu_names_init(struct gpu_names *names, const struct gpu_process *process);
void gpu_names_deinit(struct gpu_names *names);
/* Never NULL. */
const char *gpu_names_kernel(struct gpu_names *names, uint32_t shape);
/* The string of the shape's kernel, which tells kernels of a process apart; 0: not known. */
uint32_t gpu_names_kernel_id(const struct gpu_names *names, uint32_t shape);
/* "Agent 2"; "" where it is not known. */
struct gpu_agent_label {
	char text[24];
} gpu_names_agent(const struct gpu_process *process, uint32_t agent);

/* A value of a counter, without digits that say nothing; "" for what is no finite number. By value,
 * to be printed at once. */
struct gpu_number {
	char text[40];
} gpu_number(double value);

#endif
