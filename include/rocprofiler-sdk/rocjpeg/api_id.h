/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Operations of the kind ROCJPEG_API.
 */
#ifndef ROCPROFILER_SDK_ROCJPEG_API_ID_H
#define ROCPROFILER_SDK_ROCJPEG_API_ID_H

#include <rocprofiler-sdk/rocjpeg/types.h>

typedef enum rocprofiler_rocjpeg_api_id_t {
	ROCPROFILER_ROCJPEG_API_ID_NONE = -1,
#define ROCP_F(name, args) ROCPROFILER_ROCJPEG_API_ID_##name,
#include <rocprofiler-sdk/rocjpeg/api_list.h>
#undef ROCP_F
	ROCPROFILER_ROCJPEG_API_ID_LAST
} rocprofiler_rocjpeg_api_id_t;

#endif
