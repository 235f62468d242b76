/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Versions of the tables of HSA, by which functions are in or out.
 */
#ifndef ROCPROFILER_SDK_HSA_API_TRACE_VERSION_H
#define ROCPROFILER_SDK_HSA_API_TRACE_VERSION_H

#include <rocprofiler-sdk/hsa/types.h>

#if !defined(HSA_AMD_EXT_API_TABLE_STEP_VERSION)
#define HSA_AMD_EXT_API_TABLE_STEP_VERSION 0
#endif

#endif
