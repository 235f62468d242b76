/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is known of an allocation of scratch memory.
 */
#ifndef ROCPROFILER_SDK_HSA_SCRATCH_MEMORY_ARGS_H
#define ROCPROFILER_SDK_HSA_SCRATCH_MEMORY_ARGS_H

#include <rocprofiler-sdk/defines.h>

ROCPROFILER_EXTERN_C_INIT

/* C and C++ do not agree on the size of a struct without members. */
typedef struct rocprofiler_scratch_memory_no_args {
	char empty;
} rocprofiler_scratch_memory_no_args;

typedef union rocprofiler_scratch_memory_args_t {
	struct {
		uint64_t dispatch_id;
	} alloc_start;
	struct {
		uint64_t dispatch_id;
		size_t size;
		size_t num_slots;
	} alloc_end;
	struct {
		rocprofiler_scratch_memory_no_args no_args;
	} free_start;
	struct {
		rocprofiler_scratch_memory_no_args no_args;
	} free_end;
	struct {
		rocprofiler_scratch_memory_no_args no_args;
	} async_reclaim_start;
	struct {
		rocprofiler_scratch_memory_no_args no_args;
	} async_reclaim_end;
} rocprofiler_scratch_memory_args_t;

ROCPROFILER_EXTERN_C_FINI

#endif
