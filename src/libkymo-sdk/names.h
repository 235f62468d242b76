/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of kinds and operations, and what arguments functions have: one table a kind, which all
 * queries of tools are answered from. The lists that the tables are made of are those that the
 * public headers make their enumerators and structs of (rocprofiler-sdk/hip/runtime_api_list.h and
 * so on), so they cannot disagree.
 */
#ifndef KYMO_LIBKYMO_SDK_NAMES_H
#define KYMO_LIBKYMO_SDK_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

/* What a value is, for printing it. */
enum sdk_value {
	SDK_VALUE_NONE, /* the end of arguments, and no arguments */
	SDK_VALUE_SIGNED,
	SDK_VALUE_UNSIGNED,
	SDK_VALUE_FLOAT,
	SDK_VALUE_POINTER,
	SDK_VALUE_STRING,
	SDK_VALUE_HANDLE, /* a struct of one 64-bit member */
	SDK_VALUE_BYTES   /* any other struct */
};

struct sdk_argument {
	const char *type, *name;
	uint16_t size, alignment;
	enum sdk_value value;
};

/* Arguments lie behind each other as in a struct. */
struct sdk_function {
	const char *name;
	const struct sdk_argument *arguments;
	uint32_t count;
};

struct sdk_functions {
	const struct sdk_function *list;
	int32_t count;
};

extern const struct sdk_functions sdk_functions_hsa_core, sdk_functions_hsa_amd_ext,
	sdk_functions_hsa_image_ext, sdk_functions_hsa_finalize_ext, sdk_functions_hip_runtime,
	sdk_functions_hip_compiler, sdk_functions_marker_core, sdk_functions_marker_control,
	sdk_functions_marker_name, sdk_functions_marker_core_range, sdk_functions_rccl,
	sdk_functions_ompt, sdk_functions_rocdecode, sdk_functions_rocjpeg;

/* A kind: its name, and its operations from one of three sources. Arguments lie at arguments_offset
 * of the payload where arguments can be told. */
struct sdk_kind {
	const char *name;
	const struct sdk_functions *functions;
	const char *const *names; /* numbered from 0, which is NONE */
	int32_t names_count;
	enum device_service service; /* functions of a backend, where is_device */
	bool is_device, has_arguments;
	uint16_t arguments_offset;
};

/* NULL: no such kind. Kinds of ours too (domains.h). */
const struct sdk_kind *sdk_callback_kind(int kind);
const struct sdk_kind *sdk_buffer_kind(int kind);

/* NULL: no such operation. */
const char *sdk_kind_operation(const struct sdk_kind *kind, int32_t operation);
/* One more than the last operation. */
int32_t sdk_kind_operations(const struct sdk_kind *kind);

/* How often a C type is a pointer; those that are none by their spelling count once. */
int sdk_argument_indirections(const struct sdk_argument *argument);

#endif
