/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * HIP.
 */
#ifndef ROCPROFILER_SDK_HIP_H
#define ROCPROFILER_SDK_HIP_H

#include <rocprofiler-sdk/hip/api_args.h>
#include <rocprofiler-sdk/hip/api_id.h>
#include <rocprofiler-sdk/hip/table_id.h>

#endif
