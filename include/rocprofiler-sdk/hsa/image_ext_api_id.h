/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Operations of the kinds HSA_IMAGE_EXT_API.
 */
#ifndef ROCPROFILER_SDK_HSA_IMAGE_EXT_API_ID_H
#define ROCPROFILER_SDK_HSA_IMAGE_EXT_API_ID_H

#include <rocprofiler-sdk/hsa/api_trace_version.h>

typedef enum rocprofiler_hsa_image_ext_api_id_t {
	ROCPROFILER_HSA_IMAGE_EXT_API_ID_NONE = -1,
#define ROCP_F(name, args) ROCPROFILER_HSA_IMAGE_EXT_API_ID_##name,
#include <rocprofiler-sdk/hsa/image_ext_api_list.h>
#undef ROCP_F
	ROCPROFILER_HSA_IMAGE_EXT_API_ID_LAST
} rocprofiler_hsa_image_ext_api_id_t;

#endif
