/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of the runtimes that upstream knows, with their arguments, from the lists of the public
 * headers. See names.h.
 */
#include <rocprofiler-sdk/rocprofiler.h>

#include "libkymo-sdk/names.h"

/* Compilers' classes of types: gcc's typeclass.h, and clang has the same numbers. Integers,
 * characters, enumerations and truth values are the first four. */
#define CLASS_INTEGER_LAST 4
#define CLASS_POINTER      5
#define CLASS_REAL         8

#define CLASS_OF(type)  __builtin_classify_type(*(type *)NULL)
#define RECORD_OF(type) (sizeof(type) == sizeof(uint64_t) ? SDK_VALUE_HANDLE : SDK_VALUE_BYTES)
#define INTEGER_OF(type)                                                                           \
	_Generic((type *)NULL, signed char *                                                       \
		 : SDK_VALUE_SIGNED, short *                                                       \
		 : SDK_VALUE_SIGNED, int *                                                         \
		 : SDK_VALUE_SIGNED, long *                                                        \
		 : SDK_VALUE_SIGNED, long long *                                                   \
		 : SDK_VALUE_SIGNED, default                                                       \
		 : SDK_VALUE_UNSIGNED)
#define CLASSIFIED(type)                                                                           \
	(CLASS_OF(type) == CLASS_POINTER        ? SDK_VALUE_POINTER                                \
	 : CLASS_OF(type) == CLASS_REAL         ? SDK_VALUE_FLOAT                                  \
	 : CLASS_OF(type) <= CLASS_INTEGER_LAST ? INTEGER_OF(type)                                 \
						: RECORD_OF(type))
#define VALUE_OF(type)                                                                             \
	_Generic((type *)NULL, const char ** : SDK_VALUE_STRING, default : CLASSIFIED(type))

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof((array)[0])))

#define ROCP_A(type, name) {#type, #name, sizeof(type), _Alignof(type), VALUE_OF(type)},
#define ROCP_P(type, name, parameters)                                                             \
	{#type " (*)" #parameters, #name, sizeof(void *), _Alignof(void *), SDK_VALUE_POINTER},
#define ROCP_N(name) {"", "", 0, 1, SDK_VALUE_NONE},

/* clang-format off */

#define ROCP_F(name, args) static const struct sdk_argument hsa_core_##name[] = {args};
#include <rocprofiler-sdk/hsa/core_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hsa_core_##name, (uint32_t)COUNT(hsa_core_##name)},
static const struct sdk_function hsa_core_list[] = {
#include <rocprofiler-sdk/hsa/core_api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_hsa_core = {hsa_core_list, COUNT(hsa_core_list)};

#define ROCP_F(name, args) static const struct sdk_argument hsa_amd_ext_##name[] = {args};
#include <rocprofiler-sdk/hsa/amd_ext_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hsa_amd_ext_##name, (uint32_t)COUNT(hsa_amd_ext_##name)},
static const struct sdk_function hsa_amd_ext_list[] = {
#include <rocprofiler-sdk/hsa/amd_ext_api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_hsa_amd_ext = {hsa_amd_ext_list, COUNT(hsa_amd_ext_list)};

#define ROCP_F(name, args) static const struct sdk_argument hsa_image_ext_##name[] = {args};
#include <rocprofiler-sdk/hsa/image_ext_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hsa_image_ext_##name, (uint32_t)COUNT(hsa_image_ext_##name)},
static const struct sdk_function hsa_image_ext_list[] = {
#include <rocprofiler-sdk/hsa/image_ext_api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_hsa_image_ext = {hsa_image_ext_list, COUNT(hsa_image_ext_list)};

#define ROCP_F(name, args) static const struct sdk_argument hsa_finalize_ext_##name[] = {args};
#include <rocprofiler-sdk/hsa/finalize_ext_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hsa_finalize_ext_##name, (uint32_t)COUNT(hsa_finalize_ext_##name)},
static const struct sdk_function hsa_finalize_ext_list[] = {
#include <rocprofiler-sdk/hsa/finalize_ext_api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_hsa_finalize_ext = {hsa_finalize_ext_list, COUNT(hsa_finalize_ext_list)};

#define ROCP_F(name, args) static const struct sdk_argument hip_runtime_##name[] = {args};
#include <rocprofiler-sdk/hip/runtime_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hip_runtime_##name, (uint32_t)COUNT(hip_runtime_##name)},
static const struct sdk_function hip_runtime_list[] = {
#include <rocprofiler-sdk/hip/runtime_api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_hip_runtime = {hip_runtime_list, COUNT(hip_runtime_list)};

#define ROCP_F(name, args) static const struct sdk_argument hip_compiler_##name[] = {args};
#include <rocprofiler-sdk/hip/compiler_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, hip_compiler_##name, (uint32_t)COUNT(hip_compiler_##name)},
static const struct sdk_function hip_compiler_list[] = {
#include <rocprofiler-sdk/hip/compiler_api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_hip_compiler = {hip_compiler_list, COUNT(hip_compiler_list)};

#define ROCP_F(name, args) static const struct sdk_argument marker_core_##name[] = {args};
#include <rocprofiler-sdk/marker/core_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, marker_core_##name, (uint32_t)COUNT(marker_core_##name)},
static const struct sdk_function marker_core_list[] = {
#include <rocprofiler-sdk/marker/core_api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_marker_core = {marker_core_list, COUNT(marker_core_list)};

#define ROCP_F(name, args) static const struct sdk_argument marker_control_##name[] = {args};
#include <rocprofiler-sdk/marker/control_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, marker_control_##name, (uint32_t)COUNT(marker_control_##name)},
static const struct sdk_function marker_control_list[] = {
#include <rocprofiler-sdk/marker/control_api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_marker_control = {marker_control_list, COUNT(marker_control_list)};

#define ROCP_F(name, args) static const struct sdk_argument marker_name_##name[] = {args};
#include <rocprofiler-sdk/marker/name_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, marker_name_##name, (uint32_t)COUNT(marker_name_##name)},
static const struct sdk_function marker_name_list[] = {
#include <rocprofiler-sdk/marker/name_api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_marker_name = {marker_name_list, COUNT(marker_name_list)};

#define ROCP_F(name, args) static const struct sdk_argument marker_core_range_##name[] = {args};
#include <rocprofiler-sdk/marker/core_range_api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, marker_core_range_##name, (uint32_t)COUNT(marker_core_range_##name)},
static const struct sdk_function marker_core_range_list[] = {
#include <rocprofiler-sdk/marker/core_range_api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_marker_core_range = {marker_core_range_list, COUNT(marker_core_range_list)};

#define ROCP_F(name, args) static const struct sdk_argument rccl_##name[] = {args};
#include <rocprofiler-sdk/rccl/api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, rccl_##name, (uint32_t)COUNT(rccl_##name)},
static const struct sdk_function rccl_list[] = {
#include <rocprofiler-sdk/rccl/api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_rccl = {rccl_list, COUNT(rccl_list)};

#define ROCP_F(name, args) static const struct sdk_argument rocdecode_##name[] = {args};
#include <rocprofiler-sdk/rocdecode/api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, rocdecode_##name, (uint32_t)COUNT(rocdecode_##name)},
static const struct sdk_function rocdecode_list[] = {
#include <rocprofiler-sdk/rocdecode/api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_rocdecode = {rocdecode_list, COUNT(rocdecode_list)};

#define ROCP_F(name, args) static const struct sdk_argument rocjpeg_##name[] = {args};
#include <rocprofiler-sdk/rocjpeg/api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {#name, rocjpeg_##name, (uint32_t)COUNT(rocjpeg_##name)},
static const struct sdk_function rocjpeg_list[] = {
#include <rocprofiler-sdk/rocjpeg/api_list.h>
};
#undef ROCP_F
const struct sdk_functions sdk_functions_rocjpeg = {rocjpeg_list, COUNT(rocjpeg_list)};

/* Functions of the runtime, which are no arguments that could be told. */
static const struct sdk_argument ompt_callback_functions[] = {ROCP_N(no_args)};

#define ROCP_F(name, args) static const struct sdk_argument ompt_##name[] = {args};
#include <rocprofiler-sdk/ompt/api_list.h>
#undef ROCP_F
#define ROCP_F(name, args) {"omp_" #name, ompt_##name, (uint32_t)COUNT(ompt_##name)},
static const struct sdk_function ompt_list[] = {
#include <rocprofiler-sdk/ompt/api_list.h>
	{"omp_callback_functions", ompt_callback_functions, 1},
};
#undef ROCP_F
const struct sdk_functions sdk_functions_ompt = {ompt_list, COUNT(ompt_list)};
