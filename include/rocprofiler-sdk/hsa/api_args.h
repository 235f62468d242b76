/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Arguments of HSA functions, args.hsa_queue_create.size and so on, and what they return.
 */
#ifndef ROCPROFILER_SDK_HSA_API_ARGS_H
#define ROCPROFILER_SDK_HSA_API_ARGS_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/hsa/api_trace_version.h>
#include <rocprofiler-sdk/hsa/types.h>

ROCPROFILER_EXTERN_C_INIT

/* C and C++ do not agree on the size of a struct without members. */
typedef struct rocprofiler_hsa_api_no_args {
	char empty;
} rocprofiler_hsa_api_no_args;

typedef union rocprofiler_hsa_api_retval_t {
	uint64_t uint64_t_retval;
	uint32_t uint32_t_retval;
	hsa_signal_value_t hsa_signal_value_t_retval;
	hsa_status_t hsa_status_t_retval;
} rocprofiler_hsa_api_retval_t;

#define ROCP_F(name, args)                                                                         \
	struct {                                                                                   \
		args                                                                               \
	} name;
#define ROCP_A(type, name)             type name;
#define ROCP_P(type, name, parameters) type(*name) parameters;
#define ROCP_N(name)                   rocprofiler_hsa_api_no_args name;
typedef union rocprofiler_hsa_api_args_t {
#include <rocprofiler-sdk/hsa/amd_ext_api_list.h>
#include <rocprofiler-sdk/hsa/core_api_list.h>
#include <rocprofiler-sdk/hsa/finalize_ext_api_list.h>
#include <rocprofiler-sdk/hsa/image_ext_api_list.h>
} rocprofiler_hsa_api_args_t;
#undef ROCP_F
#undef ROCP_A
#undef ROCP_P
#undef ROCP_N

ROCPROFILER_EXTERN_C_FINI

#endif
