/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenMP. A tool may hand what the OpenMP runtime asks it on to rocprofiler_ompt_start_tool().
 */
#ifndef ROCPROFILER_SDK_OMPT_H
#define ROCPROFILER_SDK_OMPT_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/ompt/api_args.h>
#include <rocprofiler-sdk/ompt/api_id.h>
#include <rocprofiler-sdk/ompt/omp-tools.h>

ROCPROFILER_EXTERN_C_INIT

/* Writes 0 before, -1 during, and 1 after it. */
rocprofiler_status_t rocprofiler_ompt_is_initialized(int *status) ROCPROFILER_API
	ROCPROFILER_NONNULL(1);
rocprofiler_status_t rocprofiler_ompt_is_finalized(int *status) ROCPROFILER_API
	ROCPROFILER_NONNULL(1);

/* What ompt_start_tool() of the tool returns. NULL: nobody wants to know. */
ompt_start_tool_result_t *rocprofiler_ompt_start_tool(unsigned int omp_version,
						      const char *runtime_version) ROCPROFILER_API;

ROCPROFILER_EXTERN_C_FINI

#endif
