/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include "opencl_numbers.h"

#include "device/opencl/opencl.h"

#define X(ours, theirs) const long opencl_number_##ours = (long)(ours);
OPENCL_NUMBERS(X)
#undef X
const size_t opencl_number_calls = OPENCL_CALL_COUNT;
const size_t opencl_size_properties = sizeof(cl_command_queue_properties);
const size_t opencl_size_queue_properties = sizeof(cl_queue_properties);
const size_t opencl_size_context_properties = sizeof(cl_context_properties);
const size_t opencl_size_mem_flags = sizeof(cl_mem_flags);
const size_t opencl_size_bool = sizeof(cl_bool);
