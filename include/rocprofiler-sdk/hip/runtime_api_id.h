/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Operations of the kinds HIP_RUNTIME_API: ROCPROFILER_HIP_RUNTIME_API_ID_hipMalloc and so on.
 */
#ifndef ROCPROFILER_SDK_HIP_RUNTIME_API_ID_H
#define ROCPROFILER_SDK_HIP_RUNTIME_API_ID_H

#include <rocprofiler-sdk/hip/types.h>

typedef enum rocprofiler_hip_runtime_api_id_t {
	ROCPROFILER_HIP_RUNTIME_API_ID_NONE = -1,
#define ROCP_F(name, args) ROCPROFILER_HIP_RUNTIME_API_ID_##name,
#include <rocprofiler-sdk/hip/runtime_api_list.h>
#undef ROCP_F
	ROCPROFILER_HIP_RUNTIME_API_ID_LAST
} rocprofiler_hip_runtime_api_id_t;

#endif
