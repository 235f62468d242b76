/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions for the tables of the HSA runtime. See api_wrappers.h.
 */
#include <rocprofiler-sdk/rocprofiler.h>

#define API_DATA   rocprofiler_callback_tracing_hsa_api_data_t
#define API_STATUS hsa_status_t

#define SET        hsa_core
#define LIST       <rocprofiler-sdk/hsa/core_api_list.h>
#define API_DOMAIN SDK_DOMAIN_HSA_CORE
#include "libkymo-sdk/api_set.h"

#define SET        hsa_amd_ext
#define LIST       <rocprofiler-sdk/hsa/amd_ext_api_list.h>
#define API_DOMAIN SDK_DOMAIN_HSA_AMD_EXT
#include "libkymo-sdk/api_set.h"

#define SET        hsa_image_ext
#define LIST       <rocprofiler-sdk/hsa/image_ext_api_list.h>
#define API_DOMAIN SDK_DOMAIN_HSA_IMAGE_EXT
#include "libkymo-sdk/api_set.h"

#define SET        hsa_finalize_ext
#define LIST       <rocprofiler-sdk/hsa/finalize_ext_api_list.h>
#define API_DOMAIN SDK_DOMAIN_HSA_FINALIZE_EXT
#include "libkymo-sdk/api_set.h"
