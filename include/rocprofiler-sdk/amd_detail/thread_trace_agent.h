/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A part of thread_trace.h.
 */
#ifndef ROCPROFILER_SDK_AMD_DETAIL_THREAD_TRACE_AGENT_H
#define ROCPROFILER_SDK_AMD_DETAIL_THREAD_TRACE_AGENT_H

#include <rocprofiler-sdk/amd_detail/thread_trace.h>

#endif
