/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of a process's kernels as in the source, each demangled once.
 */
#ifndef KYMO_OUTPUT_GPU_NAMES_H
#define KYMO_OUTPUT_GPU_NAMES_H

#include "analysis/gpu/gpu.h"

struct gpu_demangled_name_cache {
	const struct gpu_records_of_process *process;
	char **demangled_names; /* by string; NULL: not looked at */
};

/* 0 or -ENOMEM. */
int gpu_names_init(struct gpu_demangled_name_cache *names,
		   const struct gpu_records_of_process *process);
void gpu_names_deinit(struct gpu_demangled_name_cache *names);
/* Never NULL. */
const char *gpu_names_get_demangled_kernel_name(struct gpu_demangled_name_cache *names,
						uint32_t shape);
/* The string of the shape's kernel, which tells kernels of a process apart; 0: not known. */
uint32_t gpu_names_get_kernel_name_string_id(const struct gpu_demangled_name_cache *names,
					     uint32_t shape);
/* "Agent 2"; "" where it is not known. */
struct gpu_agent_label {
	char text[24];
} gpu_names_format_agent_label(const struct gpu_records_of_process *process, uint32_t agent);

/* A value of a counter, without digits that say nothing; "" for what is no finite number. By value,
 * to be printed at once. */
struct gpu_counter_value_text {
	char text[40];
} gpu_format_counter_value(double value);

#endif
