/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Arguments of the functions of rocDecode, and what they return.
 */
#ifndef ROCPROFILER_SDK_ROCDECODE_API_ARGS_H
#define ROCPROFILER_SDK_ROCDECODE_API_ARGS_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/rocdecode/types.h>

ROCPROFILER_EXTERN_C_INIT

/* C and C++ do not agree on the size of a struct without members. */
typedef struct rocprofiler_rocdecode_api_no_args {
	char empty;
} rocprofiler_rocdecode_api_no_args;

typedef union rocprofiler_rocdecode_api_retval_t {
	uint64_t uint64_t_retval;
	int32_t rocDecStatus_retval;
	const char *const_charp_retval;
} rocprofiler_rocdecode_api_retval_t;

#define ROCP_F(name, args)                                                                         \
	struct {                                                                                   \
		args                                                                               \
	} name;
#define ROCP_A(type, name)             type name;
#define ROCP_P(type, name, parameters) type(*name) parameters;
#define ROCP_N(name)                   rocprofiler_rocdecode_api_no_args name;
typedef union rocprofiler_rocdecode_api_args_t {
#include <rocprofiler-sdk/rocdecode/api_list.h>
} rocprofiler_rocdecode_api_args_t;
#undef ROCP_F
#undef ROCP_A
#undef ROCP_P
#undef ROCP_N

ROCPROFILER_EXTERN_C_FINI

#endif
