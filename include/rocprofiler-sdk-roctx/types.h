/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Types of roctx.
 */
#ifndef ROCPROFILER_SDK_ROCTX_TYPES_H
#define ROCPROFILER_SDK_ROCTX_TYPES_H

#include <rocprofiler-sdk-roctx/defines.h>

#include <stdint.h>

typedef uint64_t roctx_range_id_t;

/* As gettid(2) has it. */
typedef uint64_t roctx_thread_id_t;

#endif
