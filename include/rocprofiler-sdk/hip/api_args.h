/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Arguments of HIP functions, args.hipMalloc.size and so on, and what they return. dim3 is
 * rocprofiler_dim3_t where it is passed by value.
 */
#ifndef ROCPROFILER_SDK_HIP_API_ARGS_H
#define ROCPROFILER_SDK_HIP_API_ARGS_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/hip/types.h>

ROCPROFILER_EXTERN_C_INIT

/* C and C++ do not agree on the size of a struct without members. */
typedef struct rocprofiler_hip_api_no_args {
	char empty;
} rocprofiler_hip_api_no_args;

typedef union rocprofiler_hip_api_retval_t {
#if defined(__cplusplus)
	rocprofiler_hip_api_retval_t() = default;
	~rocprofiler_hip_api_retval_t() = default;
#endif
	uint64_t uint64_t_retval;
	int int_retval;
	const char *const_charp_retval;
	hipError_t hipError_t_retval;
	hipChannelFormatDesc hipChannelFormatDesc_retval;
	void **voidpp_retval;
} rocprofiler_hip_api_retval_t;

#define ROCP_F(name, args)                                                                         \
	struct {                                                                                   \
		args                                                                               \
	} name;
#define ROCP_A(type, name)             type name;
#define ROCP_P(type, name, parameters) type(*name) parameters;
#define ROCP_N(name)                   rocprofiler_hip_api_no_args name;
typedef union rocprofiler_hip_api_args_t {
#if defined(__cplusplus)
	rocprofiler_hip_api_args_t() = default;
	~rocprofiler_hip_api_args_t() = default;
#endif
#include <rocprofiler-sdk/hip/compiler_api_list.h>
#include <rocprofiler-sdk/hip/runtime_api_list.h>
} rocprofiler_hip_api_args_t;
#undef ROCP_F
#undef ROCP_A
#undef ROCP_P
#undef ROCP_N

ROCPROFILER_EXTERN_C_FINI

#endif
