/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The layout of all public structs and the values of all enumerators are upstream's, so that tools
 * compiled with its headers work. It is checked while compiling, in any C and C++: headers.py.
 */
#include <kymo/tools.h>
#include <rocprofiler-sdk/experimental/thread_trace.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>
#include <rocprofiler-sdk/spm.h>

#include <rocprofiler-sdk-rocpd/rocpd.h>
#include <rocprofiler-sdk-roctx/api_trace.h>

#include <stddef.h>

#define SIZE(type, bytes) extern char layout_is_upstreams[sizeof(type) == (bytes) ? 1 : -1];
#define FIELD(type, member, bytes)                                                                 \
	extern char layout_is_upstreams[offsetof(type, member) == (bytes) ? 1 : -1];
#include "layout_table.h"
#include "more_layout_table.h"
#undef SIZE
#undef FIELD

#define VALUE(name, number) extern char value_is_upstreams[(int)(name) == (number) ? 1 : -1];
#include "hip_id_table.h"
#include "more_value_table.h"
#include "value_table.h"
#undef VALUE

/* Strings lie in tables by this. */
extern char
	versions_agree[ROCPROFILER_VERSION == 10000 && ROCPROFILER_SDK_VERSION == 10000 ? 1 : -1];

/* "size" of a launch tells where its padding begins. */
extern char launch_has_room[offsetof(rocprofiler_kernel_dispatch_info_t, reserved_padding) == 72
				    ? 1
				    : -1];
