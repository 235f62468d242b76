/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions for the tables of RCCL, rocDecode and rocJPEG. See api_wrappers.h.
 */
#include <rocprofiler-sdk/rocprofiler.h>

#define API_DATA   rocprofiler_callback_tracing_rccl_api_data_t
#define API_STATUS ncclResult_t

#define SET        rccl
#define LIST       <rocprofiler-sdk/rccl/api_list.h>
#define API_DOMAIN SDK_DOMAIN_RCCL
#include "libkymo-sdk/api_set.h"
#undef API_DATA
#undef API_STATUS

#define API_DATA   rocprofiler_callback_tracing_rocdecode_api_data_t
#define API_STATUS rocDecStatus

#define SET        rocdecode
#define LIST       <rocprofiler-sdk/rocdecode/api_list.h>
#define API_DOMAIN SDK_DOMAIN_ROCDECODE
#include "libkymo-sdk/api_set.h"
#undef API_DATA
#undef API_STATUS

#define API_DATA   rocprofiler_callback_tracing_rocjpeg_api_data_t
#define API_STATUS RocJpegStatus

#define SET        rocjpeg
#define LIST       <rocprofiler-sdk/rocjpeg/api_list.h>
#define API_DOMAIN SDK_DOMAIN_ROCJPEG
#include "libkymo-sdk/api_set.h"
#undef API_DATA
#undef API_STATUS
