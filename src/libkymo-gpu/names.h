/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ids in the file of what the tool library has ids of. But for names_add_kernel() all are called
 * with the file's lock held.
 */
#ifndef KYMO_LIBKYMO_GPU_NAMES_H
#define KYMO_LIBKYMO_GPU_NAMES_H

#include <stdint.h>

#include <rocprofiler-sdk/rocprofiler.h>

void names_add_kernel(uint64_t kernel_id, const char *name);
uint32_t names_shape(const rocprofiler_kernel_dispatch_info_t *info);
uint32_t names_agent(rocprofiler_agent_id_t agent);
uint32_t names_kind(rocprofiler_buffer_tracing_kind_t kind);
uint32_t names_call(rocprofiler_buffer_tracing_kind_t kind, int32_t operation);
void names_forked(void);

#endif
