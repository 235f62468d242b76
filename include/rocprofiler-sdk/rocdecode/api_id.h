/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Operations of the kind ROCDECODE_API.
 */
#ifndef ROCPROFILER_SDK_ROCDECODE_API_ID_H
#define ROCPROFILER_SDK_ROCDECODE_API_ID_H

#include <rocprofiler-sdk/rocdecode/types.h>

typedef enum rocprofiler_rocdecode_api_id_t {
	ROCPROFILER_ROCDECODE_API_ID_NONE = -1,
#define ROCP_F(name, args) ROCPROFILER_ROCDECODE_API_ID_##name,
#include <rocprofiler-sdk/rocdecode/api_list.h>
#undef ROCP_F
	ROCPROFILER_ROCDECODE_API_ID_LAST
} rocprofiler_rocdecode_api_id_t;

#endif
