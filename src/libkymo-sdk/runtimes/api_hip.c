/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions for the tables of the HIP runtime and of what its compiler calls. See api_wrappers.h.
 */
#include <rocprofiler-sdk/rocprofiler.h>

#define API_CALL_DATA_TYPE rocprofiler_callback_tracing_hip_api_data_t
#define API_STATUS_TYPE    hipError_t

#define API_LIST_NAME         hip_runtime
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hip/runtime_api_list.h>
#define API_DOMAIN            SDK_DOMAIN_HIP_RUNTIME
#include "libkymo-sdk/runtimes/api_set.h"

#define API_LIST_NAME         hip_compiler
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hip/compiler_api_list.h>
#define API_DOMAIN            SDK_DOMAIN_HIP_COMPILER
#include "libkymo-sdk/runtimes/api_set.h"
