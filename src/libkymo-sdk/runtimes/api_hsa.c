/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions for the tables of the HSA runtime. See api_wrappers.h.
 */
#include <rocprofiler-sdk/rocprofiler.h>

#define API_CALL_DATA_TYPE rocprofiler_callback_tracing_hsa_api_data_t
#define API_STATUS_TYPE    hsa_status_t

#define API_LIST_NAME         hsa_core
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/core_api_list.h>
#define API_DOMAIN            SDK_DOMAIN_HSA_CORE
#include "libkymo-sdk/runtimes/api_set.h"

#define API_LIST_NAME         hsa_amd_ext
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/amd_ext_api_list.h>
#define API_DOMAIN            SDK_DOMAIN_HSA_AMD_EXT
#include "libkymo-sdk/runtimes/api_set.h"

#define API_LIST_NAME         hsa_image_ext
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/image_ext_api_list.h>
#define API_DOMAIN            SDK_DOMAIN_HSA_IMAGE_EXT
#include "libkymo-sdk/runtimes/api_set.h"

#define API_LIST_NAME         hsa_finalize_ext
#define API_LIST_INCLUDE_FILE <rocprofiler-sdk/hsa/finalize_ext_api_list.h>
#define API_DOMAIN            SDK_DOMAIN_HSA_FINALIZE_EXT
#include "libkymo-sdk/runtimes/api_set.h"
