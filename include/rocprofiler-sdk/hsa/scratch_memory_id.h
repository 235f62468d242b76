/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Flags of scratch memory.
 */
#ifndef ROCPROFILER_SDK_HSA_SCRATCH_MEMORY_ID_H
#define ROCPROFILER_SDK_HSA_SCRATCH_MEMORY_ID_H

#include <rocprofiler-sdk/hsa/types.h>

typedef enum rocprofiler_scratch_alloc_flag_t {
	ROCPROFILER_SCRATCH_ALLOC_FLAG_NONE = 0,
	ROCPROFILER_SCRATCH_ALLOC_FLAG_USE_ONCE = 1, /* freed after the launch */
	ROCPROFILER_SCRATCH_ALLOC_FLAG_ALT = 2       /* for launches with few work groups */
} rocprofiler_scratch_alloc_flag_t;

#endif
