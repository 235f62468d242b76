/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Arguments of the functions of RCCL, and what they return.
 */
#ifndef ROCPROFILER_SDK_RCCL_API_ARGS_H
#define ROCPROFILER_SDK_RCCL_API_ARGS_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/rccl/types.h>

ROCPROFILER_EXTERN_C_INIT

/* C and C++ do not agree on the size of a struct without members. */
typedef struct rocprofiler_rccl_api_no_args {
	char empty;
} rocprofiler_rccl_api_no_args;

typedef union rocprofiler_rccl_api_retval_t {
	int32_t ncclResult_t_retval;
	const char *const_charp_retval;
} rocprofiler_rccl_api_retval_t;

#define ROCP_F(name, args)                                                                         \
	struct {                                                                                   \
		args                                                                               \
	} name;
#define ROCP_A(type, name)             type name;
#define ROCP_P(type, name, parameters) type(*name) parameters;
#define ROCP_N(name)                   rocprofiler_rccl_api_no_args name;
typedef union rocprofiler_rccl_api_args_t {
#include <rocprofiler-sdk/rccl/api_list.h>
} rocprofiler_rccl_api_args_t;
#undef ROCP_F
#undef ROCP_A
#undef ROCP_P
#undef ROCP_N

ROCPROFILER_EXTERN_C_FINI

#endif
