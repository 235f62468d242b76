/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of kinds and operations, and what arguments functions have: one table a kind, which all
 * queries of tools are answered from. The lists that the tables are made of are those that the
 * public headers make their enumerators and structs of (rocprofiler-sdk/hip/runtime_api_list.h and
 * so on), so they cannot disagree.
 */
#ifndef KYMO_LIBKYMO_SDK_TABLES_NAMES_H
#define KYMO_LIBKYMO_SDK_TABLES_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

/* What a value is, for printing it. */
enum sdk_value_kind {
	SDK_VALUE_NONE, /* the end of arguments, and no arguments */
	SDK_VALUE_SIGNED,
	SDK_VALUE_UNSIGNED,
	SDK_VALUE_FLOAT,
	SDK_VALUE_POINTER,
	SDK_VALUE_STRING,
	SDK_VALUE_HANDLE, /* a struct of one 64-bit member */
	SDK_VALUE_BYTES   /* any other struct */
};

struct sdk_argument_layout {
	uint16_t size;
	uint8_t alignment;
	uint8_t value; /* enum sdk_value_kind */
};

struct sdk_argument_description {
	const char *type, *name;
	uint16_t size, alignment;
	enum sdk_value_kind value;
};

/* Arguments lie behind each other as in a struct. Their types and names follow the function's name,
 * each with its '\0': a pointer in a table costs the loader a relocation in every process. */
struct sdk_function_description {
	const char *name;
	const struct sdk_argument_layout *arguments;
	uint32_t count;
};

struct sdk_function_description_list {
	const struct sdk_function_description *list;
	int32_t count;
};

extern const struct sdk_function_description_list sdk_function_list_of_hsa_core,
	sdk_function_list_of_hsa_amd_ext, sdk_function_list_of_hsa_image_ext,
	sdk_function_list_of_hsa_finalize_ext, sdk_function_list_of_hip_runtime,
	sdk_function_list_of_hip_compiler, sdk_function_list_of_marker_core,
	sdk_function_list_of_marker_control, sdk_function_list_of_marker_name,
	sdk_function_list_of_marker_core_range, sdk_function_list_of_rccl,
	sdk_function_list_of_ompt, sdk_function_list_of_rocdecode, sdk_function_list_of_rocjpeg;

/* A kind: its name, and its operations from one of three sources. Arguments lie at arguments_offset
 * of the payload where arguments can be told. */
struct sdk_tracing_kind_info {
	const char *name;
	const struct sdk_function_description_list *functions;
	const char *const *operation_names; /* numbered from 0, which is NONE */
	int32_t operation_names_count;
	enum device_service_kind device_service; /* functions of a backend, where is_device */
	bool has_device_service, has_arguments;
	uint16_t arguments_offset;
};

/* NULL: no such kind. Kinds of ours too (domains.h). */
const struct sdk_tracing_kind_info *sdk_find_callback_kind_by_number(int kind);
const struct sdk_tracing_kind_info *sdk_find_buffer_kind_by_number(int kind);

/* NULL: no such operation. */
const char *sdk_kind_get_operation_name(const struct sdk_tracing_kind_info *kind,
					int32_t operation);
/* One more than the last operation. */
int32_t sdk_kind_get_operation_count(const struct sdk_tracing_kind_info *kind);

/* `number`: from 0, below the function's count. */
void sdk_function_get_argument(const struct sdk_function_description *function, uint32_t number,
			       struct sdk_argument_description *ret);

/* How often a C type is a pointer; those that are none by their spelling count once. */
int sdk_argument_get_pointer_depth(const struct sdk_argument_description *argument);

#endif
