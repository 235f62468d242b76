/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CUDA's runtime as HIP's: tools that ask for HIP's functions are notified of those of CUDA that
 * HIP has as well.
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_CUDA_AS_HIP_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_CUDA_AS_HIP_H

#include <stdbool.h>
#include <stdint.h>

#include <rocprofiler-sdk/rocprofiler.h>

/* HIP's operation for a function of CUDA's runtime; -1: HIP has none. */
int32_t sdk_cuda_call_to_hip_operation(int32_t call);
/* Does anybody who asks for HIP's functions want it? */
bool sdk_is_cuda_call_wanted_as_hip(int32_t call);

/* The arguments, where they are the same in both. false: they are not, and are left 0. */
bool sdk_cuda_arguments_to_hip(int32_t call, const void *arguments,
			       rocprofiler_callback_tracing_hip_api_data_t *data);
void sdk_cuda_result_to_hip(int32_t call, const void *result,
			    rocprofiler_callback_tracing_hip_api_data_t *data);

#endif
