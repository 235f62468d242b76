/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions for the tables of RCCL, rocDecode and rocJPEG. See api_wrappers.h.
 */
#include <rocprofiler-sdk/rocprofiler.h>

#define API_CALL_DATA_TYPE rocprofiler_callback_tracing_rccl_api_data_t
#define API_STATUS_TYPE    ncclResult_t

#define API_LIST_NAME         rccl
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/rccl/api_list.h>
#define API_DOMAIN            SDK_DOMAIN_RCCL
#include "libkymo-sdk/runtimes/api_set.h"
#undef API_CALL_DATA_TYPE
#undef API_STATUS_TYPE

#define API_CALL_DATA_TYPE rocprofiler_callback_tracing_rocdecode_api_data_t
#define API_STATUS_TYPE    rocDecStatus

#define API_LIST_NAME         rocdecode
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/rocdecode/api_list.h>
#define API_DOMAIN            SDK_DOMAIN_ROCDECODE
#include "libkymo-sdk/runtimes/api_set.h"
#undef API_CALL_DATA_TYPE
#undef API_STATUS_TYPE

#define API_CALL_DATA_TYPE rocprofiler_callback_tracing_rocjpeg_api_data_t
#define API_STATUS_TYPE    RocJpegStatus

#define API_LIST_NAME         rocjpeg
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/rocjpeg/api_list.h>
#define API_DOMAIN            SDK_DOMAIN_ROCJPEG
#include "libkymo-sdk/runtimes/api_set.h"
#undef API_CALL_DATA_TYPE
#undef API_STATUS_TYPE
