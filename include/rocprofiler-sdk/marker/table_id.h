/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tables of functions of roctx.
 */
#ifndef ROCPROFILER_SDK_MARKER_TABLE_ID_H
#define ROCPROFILER_SDK_MARKER_TABLE_ID_H

typedef enum rocprofiler_marker_table_id_t {
	ROCPROFILER_MARKER_TABLE_ID_NONE = -1,
	ROCPROFILER_MARKER_TABLE_ID_RoctxCore = 0,
	ROCPROFILER_MARKER_TABLE_ID_RoctxControl = 1,
	ROCPROFILER_MARKER_TABLE_ID_RoctxName = 2,
	ROCPROFILER_MARKER_TABLE_ID_RoctxCoreRange = 3,
	ROCPROFILER_MARKER_TABLE_ID_LAST = 4
} rocprofiler_marker_table_id_t;

#endif
