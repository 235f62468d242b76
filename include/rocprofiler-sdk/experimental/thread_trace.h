/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Traces of instructions, which only AMD's GPUs can make: all functions answer
 * ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED on others.
 */
#ifndef ROCPROFILER_SDK_EXPERIMENTAL_THREAD_TRACE_H
#define ROCPROFILER_SDK_EXPERIMENTAL_THREAD_TRACE_H

#include <rocprofiler-sdk/experimental/thread-trace/agent.h>
#include <rocprofiler-sdk/experimental/thread-trace/core.h>
#include <rocprofiler-sdk/experimental/thread-trace/dispatch.h>
#include <rocprofiler-sdk/experimental/thread-trace/trace_decoder.h>

#endif
