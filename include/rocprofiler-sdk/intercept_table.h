/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tables of functions of runtimes, handed to tools that want to change them.
 */
#ifndef ROCPROFILER_SDK_INTERCEPT_TABLE_H
#define ROCPROFILER_SDK_INTERCEPT_TABLE_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

/* The tool may replace functions in the tables; what is traced then are its own. */
typedef void (*rocprofiler_intercept_library_cb_t)(rocprofiler_intercept_table_t type,
						   uint64_t lib_version, uint64_t lib_instance,
						   void **tables, uint64_t num_tables,
						   void *user_data);

rocprofiler_status_t rocprofiler_query_intercept_table_name(rocprofiler_intercept_table_t kind,
							    const char **name,
							    uint64_t *name_len) ROCPROFILER_API;

/* "libs": rocprofiler_intercept_table_t bits, 0 for all. ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED:
 * only runtimes without such tables were asked for. */
rocprofiler_status_t
rocprofiler_at_intercept_table_registration(rocprofiler_intercept_library_cb_t callback, int libs,
					    void *data) ROCPROFILER_API;

ROCPROFILER_EXTERN_C_FINI

#endif
