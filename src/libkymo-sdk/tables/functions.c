/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of the runtimes that upstream knows, with their arguments, from the lists of the public
 * headers. See names.h.
 */
#include <rocprofiler-sdk/rocprofiler.h>

#include <string.h>

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

#define FUNCTION_LIST_JOIN(a, b)          FUNCTION_LIST_JOIN_EXPANDED(a, b)
#define FUNCTION_LIST_JOIN_EXPANDED(a, b) a##b

#define FUNCTION_NAME_PREFIX ""

#define FUNCTION_LIST_NAME         hsa_core
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/core_api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         hsa_amd_ext
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/amd_ext_api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         hsa_image_ext
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/image_ext_api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         hsa_finalize_ext
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/finalize_ext_api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         hip_runtime
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/hip/runtime_api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         hip_compiler
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/hip/compiler_api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         marker_core
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/marker/core_api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         marker_control
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/marker/control_api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         marker_name
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/marker/name_api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         marker_core_range
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/marker/core_range_api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         rccl
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/rccl/api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         rocdecode
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/rocdecode/api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#define FUNCTION_LIST_NAME         rocjpeg
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/rocjpeg/api_list.h>
#include "libkymo-sdk/tables/function_list.h"

#undef FUNCTION_NAME_PREFIX
#define FUNCTION_NAME_PREFIX "omp_"

/* Functions of the runtime, which are no arguments that could be told. */
static const struct sdk_argument_layout ompt_no_arguments[] = {{0, 1, SDK_VALUE_NONE}};

#define FUNCTION_LIST_END          {"omp_callback_functions\0\0\0", ompt_no_arguments, 1},
#define FUNCTION_LIST_NAME         ompt
#define FUNCTION_LIST_INCLUDE_FILE <rocprofiler-sdk/ompt/api_list.h>
#include "libkymo-sdk/tables/function_list.h"

void sdk_function_get_argument(const struct sdk_function_description *function, uint32_t number,
			       struct sdk_argument_description *ret)
{
	const struct sdk_argument_layout *layout = &function->arguments[number];
	const char *text = function->name;

	for (uint32_t i = 0; i < 2 * number + 1; i++)
		text += strlen(text) + 1;
	*ret = (struct sdk_argument_description){
		.type = text,
		.name = text + strlen(text) + 1,
		.size = layout->size,
		.alignment = layout->alignment,
		.value = (enum sdk_value_kind)layout->value,
	};
}
