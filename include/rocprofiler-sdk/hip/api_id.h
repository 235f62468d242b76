/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Operations of HIP.
 */
#ifndef ROCPROFILER_SDK_HIP_API_ID_H
#define ROCPROFILER_SDK_HIP_API_ID_H

#include <rocprofiler-sdk/hip/compiler_api_id.h>
#include <rocprofiler-sdk/hip/runtime_api_id.h>

#endif
