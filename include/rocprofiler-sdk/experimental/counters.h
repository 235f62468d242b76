/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Definitions of counters that a tool brings along.
 */
#ifndef ROCPROFILER_SDK_EXPERIMENTAL_COUNTERS_H
#define ROCPROFILER_SDK_EXPERIMENTAL_COUNTERS_H

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

/* "yaml" is the text itself, before any counter is asked for.
 * ROCPROFILER_COUNTER_FLAG_APPEND_DEFINITION adds to what there is, otherwise it is replaced. */
rocprofiler_status_t
rocprofiler_load_counter_definition(const char *yaml, size_t size,
				    rocprofiler_counter_flag_t flags) ROCPROFILER_API;

ROCPROFILER_EXTERN_C_FINI

#endif
