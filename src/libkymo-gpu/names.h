/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ids in the file of what the tool library has ids of. But for names_add_kernel_name() all are
 * called with the file's lock held.
 */
#ifndef KYMO_LIBKYMO_GPU_NAMES_H
#define KYMO_LIBKYMO_GPU_NAMES_H

#include <stdint.h>

#include <rocprofiler-sdk/rocprofiler.h>

void names_add_kernel_name(uint64_t kernel_id, const char *name);
uint32_t names_find_or_write_launch_shape(const rocprofiler_kernel_dispatch_info_t *info);
uint32_t names_find_or_write_agent(rocprofiler_agent_id_t agent);
uint32_t names_find_or_write_call_kind(rocprofiler_buffer_tracing_kind_t kind);
uint32_t names_find_or_write_call_name(rocprofiler_buffer_tracing_kind_t kind, int32_t operation);
void names_reset_after_fork(void);

#endif
