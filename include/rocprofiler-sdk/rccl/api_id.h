/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Operations of the kind RCCL_API.
 */
#ifndef ROCPROFILER_SDK_RCCL_API_ID_H
#define ROCPROFILER_SDK_RCCL_API_ID_H

#include <rocprofiler-sdk/rccl/types.h>

typedef enum rocprofiler_rccl_api_id_t {
	ROCPROFILER_RCCL_API_ID_NONE = -1,
#define ROCP_F(name, args) ROCPROFILER_RCCL_API_ID_##name,
#include <rocprofiler-sdk/rccl/api_list.h>
#undef ROCP_F
	ROCPROFILER_RCCL_API_ID_LAST
} rocprofiler_rccl_api_id_t;

#endif
