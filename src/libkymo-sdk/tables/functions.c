/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of the runtimes that upstream knows, with their arguments, from the lists of the public
 * headers. See names.h.
 */
#include <rocprofiler-sdk/rocprofiler.h>

#include "common/array.h"
#include "libkymo-sdk/tables/names.h"

/* Compilers' classes of types: gcc's typeclass.h, and clang has the same numbers. Integers,
 * characters, enumerations and truth values are the first four. */
#define TYPE_CLASS_INTEGER_LAST 4
#define TYPE_CLASS_POINTER      5
#define TYPE_CLASS_REAL         8

#define TYPE_CLASS_OF(type) __builtin_classify_type(*(type *)NULL)
#define STRUCT_TYPE_TO_SDK_VALUE_KIND(type)                                                        \
	(sizeof(type) == sizeof(uint64_t) ? SDK_VALUE_HANDLE : SDK_VALUE_BYTES)
#define INTEGER_TYPE_TO_SDK_VALUE_KIND(type)                                                       \
	_Generic((type *)NULL, signed char *                                                       \
		 : SDK_VALUE_SIGNED, short *                                                       \
		 : SDK_VALUE_SIGNED, int *                                                         \
		 : SDK_VALUE_SIGNED, long *                                                        \
		 : SDK_VALUE_SIGNED, long long *                                                   \
		 : SDK_VALUE_SIGNED, default                                                       \
		 : SDK_VALUE_UNSIGNED)
#define NON_STRING_TYPE_TO_SDK_VALUE_KIND(type)                                                    \
	(TYPE_CLASS_OF(type) == TYPE_CLASS_POINTER        ? SDK_VALUE_POINTER                      \
	 : TYPE_CLASS_OF(type) == TYPE_CLASS_REAL         ? SDK_VALUE_FLOAT                        \
	 : TYPE_CLASS_OF(type) <= TYPE_CLASS_INTEGER_LAST ? INTEGER_TYPE_TO_SDK_VALUE_KIND(type)   \
							  : STRUCT_TYPE_TO_SDK_VALUE_KIND(type))
#define TYPE_TO_SDK_VALUE_KIND(type)                                                               \
	_Generic((type *)NULL, const char ** : SDK_VALUE_STRING, default : NON_STRING_TYPE_TO_SDK_VALUE_KIND(type))

#define ARRAY_LENGTH_AS_INT(array) ((int32_t)ARRAY_SIZE(array))

#define ROCP_A(type, name)                                                                         \
	{#type, #name, sizeof(type), _Alignof(type), TYPE_TO_SDK_VALUE_KIND(type)},
#define ROCP_P(type, name, parameters)                                                             \
	{#type " (*)" #parameters, #name, sizeof(void *), _Alignof(void *), SDK_VALUE_POINTER},
#define ROCP_N(name) {"", "", 0, 1, SDK_VALUE_NONE},

/* clang-format off */

#define ROCP_F(name, args) static const struct sdk_argument_description hsa_core_##name[] = {args};
#include <rocprofiler-sdk/hsa/core_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hsa_core_##name, (uint32_t)ARRAY_LENGTH_AS_INT(hsa_core_##name)},
static const struct sdk_function_description hsa_core_function_descriptions[] = {
#include <rocprofiler-sdk/hsa/core_api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_hsa_core = {hsa_core_function_descriptions, ARRAY_LENGTH_AS_INT(hsa_core_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description hsa_amd_ext_##name[] = {args};
#include <rocprofiler-sdk/hsa/amd_ext_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hsa_amd_ext_##name, (uint32_t)ARRAY_LENGTH_AS_INT(hsa_amd_ext_##name)},
static const struct sdk_function_description hsa_amd_ext_function_descriptions[] = {
#include <rocprofiler-sdk/hsa/amd_ext_api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_hsa_amd_ext = {hsa_amd_ext_function_descriptions, ARRAY_LENGTH_AS_INT(hsa_amd_ext_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description hsa_image_ext_##name[] = {args};
#include <rocprofiler-sdk/hsa/image_ext_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hsa_image_ext_##name, (uint32_t)ARRAY_LENGTH_AS_INT(hsa_image_ext_##name)},
static const struct sdk_function_description hsa_image_ext_function_descriptions[] = {
#include <rocprofiler-sdk/hsa/image_ext_api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_hsa_image_ext = {hsa_image_ext_function_descriptions, ARRAY_LENGTH_AS_INT(hsa_image_ext_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description hsa_finalize_ext_##name[] = {args};
#include <rocprofiler-sdk/hsa/finalize_ext_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hsa_finalize_ext_##name, (uint32_t)ARRAY_LENGTH_AS_INT(hsa_finalize_ext_##name)},
static const struct sdk_function_description hsa_finalize_ext_function_descriptions[] = {
#include <rocprofiler-sdk/hsa/finalize_ext_api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_hsa_finalize_ext = {hsa_finalize_ext_function_descriptions, ARRAY_LENGTH_AS_INT(hsa_finalize_ext_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description hip_runtime_##name[] = {args};
#include <rocprofiler-sdk/hip/runtime_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hip_runtime_##name, (uint32_t)ARRAY_LENGTH_AS_INT(hip_runtime_##name)},
static const struct sdk_function_description hip_runtime_function_descriptions[] = {
#include <rocprofiler-sdk/hip/runtime_api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_hip_runtime = {hip_runtime_function_descriptions, ARRAY_LENGTH_AS_INT(hip_runtime_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description hip_compiler_##name[] = {args};
#include <rocprofiler-sdk/hip/compiler_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hip_compiler_##name, (uint32_t)ARRAY_LENGTH_AS_INT(hip_compiler_##name)},
static const struct sdk_function_description hip_compiler_function_descriptions[] = {
#include <rocprofiler-sdk/hip/compiler_api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_hip_compiler = {hip_compiler_function_descriptions, ARRAY_LENGTH_AS_INT(hip_compiler_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description marker_core_##name[] = {args};
#include <rocprofiler-sdk/marker/core_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, marker_core_##name, (uint32_t)ARRAY_LENGTH_AS_INT(marker_core_##name)},
static const struct sdk_function_description marker_core_function_descriptions[] = {
#include <rocprofiler-sdk/marker/core_api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_marker_core = {marker_core_function_descriptions, ARRAY_LENGTH_AS_INT(marker_core_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description marker_control_##name[] = {args};
#include <rocprofiler-sdk/marker/control_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, marker_control_##name, (uint32_t)ARRAY_LENGTH_AS_INT(marker_control_##name)},
static const struct sdk_function_description marker_control_function_descriptions[] = {
#include <rocprofiler-sdk/marker/control_api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_marker_control = {marker_control_function_descriptions, ARRAY_LENGTH_AS_INT(marker_control_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description marker_name_##name[] = {args};
#include <rocprofiler-sdk/marker/name_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, marker_name_##name, (uint32_t)ARRAY_LENGTH_AS_INT(marker_name_##name)},
static const struct sdk_function_description marker_name_function_descriptions[] = {
#include <rocprofiler-sdk/marker/name_api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_marker_name = {marker_name_function_descriptions, ARRAY_LENGTH_AS_INT(marker_name_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description marker_core_range_##name[] = {args};
#include <rocprofiler-sdk/marker/core_range_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, marker_core_range_##name, (uint32_t)ARRAY_LENGTH_AS_INT(marker_core_range_##name)},
static const struct sdk_function_description marker_core_range_function_descriptions[] = {
#include <rocprofiler-sdk/marker/core_range_api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_marker_core_range = {marker_core_range_function_descriptions, ARRAY_LENGTH_AS_INT(marker_core_range_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description rccl_##name[] = {args};
#include <rocprofiler-sdk/rccl/api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, rccl_##name, (uint32_t)ARRAY_LENGTH_AS_INT(rccl_##name)},
static const struct sdk_function_description rccl_function_descriptions[] = {
#include <rocprofiler-sdk/rccl/api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_rccl = {rccl_function_descriptions, ARRAY_LENGTH_AS_INT(rccl_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description rocdecode_##name[] = {args};
#include <rocprofiler-sdk/rocdecode/api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, rocdecode_##name, (uint32_t)ARRAY_LENGTH_AS_INT(rocdecode_##name)},
static const struct sdk_function_description rocdecode_function_descriptions[] = {
#include <rocprofiler-sdk/rocdecode/api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_rocdecode = {rocdecode_function_descriptions, ARRAY_LENGTH_AS_INT(rocdecode_function_descriptions)};

#define ROCP_F(name, args) static const struct sdk_argument_description rocjpeg_##name[] = {args};
#include <rocprofiler-sdk/rocjpeg/api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, rocjpeg_##name, (uint32_t)ARRAY_LENGTH_AS_INT(rocjpeg_##name)},
static const struct sdk_function_description rocjpeg_function_descriptions[] = {
#include <rocprofiler-sdk/rocjpeg/api_list.h>
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_rocjpeg = {rocjpeg_function_descriptions, ARRAY_LENGTH_AS_INT(rocjpeg_function_descriptions)};

/* Functions of the runtime, which are no arguments that could be told. */
static const struct sdk_argument_description ompt_no_argument_descriptions[] = {ROCP_N(no_args)};

#define ROCP_F(name, args) static const struct sdk_argument_description ompt_##name[] = {args};
#include <rocprofiler-sdk/ompt/api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {"omp_" #name, ompt_##name, (uint32_t)ARRAY_LENGTH_AS_INT(ompt_##name)},
static const struct sdk_function_description ompt_function_descriptions[] = {
#include <rocprofiler-sdk/ompt/api_list.h>
	{"omp_callback_functions", ompt_no_argument_descriptions, 1},
};
#undef ROCP_F
const struct sdk_function_description_list sdk_function_list_of_ompt = {ompt_function_descriptions, ARRAY_LENGTH_AS_INT(ompt_function_descriptions)};
