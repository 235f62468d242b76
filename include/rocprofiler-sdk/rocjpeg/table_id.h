/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tables of functions of rocJPEG.
 */
#ifndef ROCPROFILER_SDK_ROCJPEG_TABLE_ID_H
#define ROCPROFILER_SDK_ROCJPEG_TABLE_ID_H

typedef enum rocprofiler_rocjpeg_table_id_t {
	ROCPROFILER_ROCJPEG_TABLE_ID_NONE = -1,
	ROCPROFILER_ROCJPEG_TABLE_ID_CORE = 0,
	ROCPROFILER_ROCJPEG_TABLE_ID_LAST = 1
} rocprofiler_rocjpeg_table_id_t;

#endif
