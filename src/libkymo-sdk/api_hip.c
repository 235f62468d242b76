/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions for the tables of the HIP runtime and of what its compiler calls. See api_wrappers.h.
 */
#include <rocprofiler-sdk/rocprofiler.h>

#define API_DATA   rocprofiler_callback_tracing_hip_api_data_t
#define API_STATUS hipError_t

#define SET        hip_runtime
#define LIST       <rocprofiler-sdk/hip/runtime_api_list.h>
#define API_DOMAIN SDK_DOMAIN_HIP_RUNTIME
#include "libkymo-sdk/api_set.h"

#define SET        hip_compiler
#define LIST       <rocprofiler-sdk/hip/compiler_api_list.h>
#define API_DOMAIN SDK_DOMAIN_HIP_COMPILER
#include "libkymo-sdk/api_set.h"
