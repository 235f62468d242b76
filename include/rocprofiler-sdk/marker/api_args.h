/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Arguments of roctx functions, and what they return.
 */
#ifndef ROCPROFILER_SDK_MARKER_API_ARGS_H
#define ROCPROFILER_SDK_MARKER_API_ARGS_H

#include <rocprofiler-sdk-roctx/types.h>
#include <rocprofiler-sdk/defines.h>

ROCPROFILER_EXTERN_C_INIT

struct hsa_agent_s;
struct ihipStream_t;

/* C and C++ do not agree on the size of a struct without members. */
typedef struct rocprofiler_marker_api_no_args {
	char empty;
} rocprofiler_marker_api_no_args;

typedef union rocprofiler_marker_api_retval_t {
	int32_t int32_t_retval;
	int64_t int64_t_retval;
	roctx_range_id_t roctx_range_id_t_retval;
} rocprofiler_marker_api_retval_t;

#define ROCP_F(name, args)                                                                         \
	struct {                                                                                   \
		args                                                                               \
	} name;
#define ROCP_A(type, name)             type name;
#define ROCP_P(type, name, parameters) type(*name) parameters;
#define ROCP_N(name)                   rocprofiler_marker_api_no_args name;
typedef union rocprofiler_marker_api_args_t {
#include <rocprofiler-sdk/marker/control_api_list.h>
#include <rocprofiler-sdk/marker/core_api_list.h>
#include <rocprofiler-sdk/marker/name_api_list.h>
	struct {
		const char *message;
	} roctxThreadRangeA;
	struct {
		const char *message;
	} roctxProcessRangeA;
} rocprofiler_marker_api_args_t;
#undef ROCP_F
#undef ROCP_A
#undef ROCP_P
#undef ROCP_N

ROCPROFILER_EXTERN_C_FINI

#endif
