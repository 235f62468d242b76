/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Operations of the kinds MARKER_CORE_API, MARKER_CONTROL_API, MARKER_NAME_API and
 * MARKER_CORE_RANGE_API.
 */
#ifndef ROCPROFILER_SDK_MARKER_API_ID_H
#define ROCPROFILER_SDK_MARKER_API_ID_H

typedef enum rocprofiler_marker_core_api_id_t {
	ROCPROFILER_MARKER_CORE_API_ID_NONE = -1,
#define ROCP_F(name, args) ROCPROFILER_MARKER_CORE_API_ID_##name,
#include <rocprofiler-sdk/marker/core_api_list.h>
#undef ROCP_F
	ROCPROFILER_MARKER_CORE_API_ID_LAST
} rocprofiler_marker_core_api_id_t;

typedef enum rocprofiler_marker_control_api_id_t {
	ROCPROFILER_MARKER_CONTROL_API_ID_NONE = -1,
#define ROCP_F(name, args) ROCPROFILER_MARKER_CONTROL_API_ID_##name,
#include <rocprofiler-sdk/marker/control_api_list.h>
#undef ROCP_F
	ROCPROFILER_MARKER_CONTROL_API_ID_LAST
} rocprofiler_marker_control_api_id_t;

typedef enum rocprofiler_marker_name_api_id_t {
	ROCPROFILER_MARKER_NAME_API_ID_NONE = -1,
#define ROCP_F(name, args) ROCPROFILER_MARKER_NAME_API_ID_##name,
#include <rocprofiler-sdk/marker/name_api_list.h>
#undef ROCP_F
	ROCPROFILER_MARKER_NAME_API_ID_LAST
} rocprofiler_marker_name_api_id_t;

typedef enum rocprofiler_marker_core_range_api_id_t {
	ROCPROFILER_MARKER_CORE_RANGE_API_ID_NONE = -1,
#define ROCP_F(name, args) ROCPROFILER_MARKER_CORE_RANGE_API_ID_##name,
#include <rocprofiler-sdk/marker/core_range_api_list.h>
#undef ROCP_F
	ROCPROFILER_MARKER_CORE_RANGE_API_ID_LAST
} rocprofiler_marker_core_range_api_id_t;

#endif
