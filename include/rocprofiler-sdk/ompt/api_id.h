/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Operations of the kinds OMPT.
 */
#ifndef ROCPROFILER_SDK_OMPT_API_ID_H
#define ROCPROFILER_SDK_OMPT_API_ID_H

typedef enum rocprofiler_ompt_operation_t {
	ROCPROFILER_OMPT_ID_NONE = -1,
#define ROCP_F(name, args) ROCPROFILER_OMPT_ID_##name,
#include <rocprofiler-sdk/ompt/api_list.h>
#undef ROCP_F
	ROCPROFILER_OMPT_ID_callback_functions,
	ROCPROFILER_OMPT_ID_LAST
} rocprofiler_ompt_operation_t;

#endif
