/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What rocprofiler_counter_info_v1_t tells at once.
 */
#ifndef ROCPROFILER_SDK_DEPRECATED_COUNTERS_H
#define ROCPROFILER_SDK_DEPRECATED_COUNTERS_H

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

typedef rocprofiler_status_t (*rocprofiler_available_dimensions_cb_t)(
	rocprofiler_counter_id_t id, const rocprofiler_counter_record_dimension_info_t *dim_info,
	size_t num_dims, void *user_data);

ROCPROFILER_SDK_DEPRECATED("see rocprofiler_counter_info_v1_t")
rocprofiler_status_t
rocprofiler_iterate_counter_dimensions(rocprofiler_counter_id_t id,
				       rocprofiler_available_dimensions_cb_t info_cb,
				       void *user_data) ROCPROFILER_API;

ROCPROFILER_SDK_DEPRECATED("see rocprofiler_counter_info_v1_t")
rocprofiler_status_t rocprofiler_query_counter_instance_count(
	rocprofiler_agent_id_t agent_id, rocprofiler_counter_id_t counter_id,
	size_t *instance_count) ROCPROFILER_API ROCPROFILER_NONNULL(3);

#if ROCPROFILER_SDK_BETA_COMPAT > 0
/* Ids of dimensions. Programs can ask for them instead: rocprofiler_query_counter_info(). */
typedef enum rocprofiler_profile_counter_instance_types {
	ROCPROFILER_DIMENSION_NONE = 0,
	ROCPROFILER_DIMENSION_XCC = 1,
	ROCPROFILER_DIMENSION_AID = 2,
	ROCPROFILER_DIMENSION_SHADER_ENGINE = 3,
	ROCPROFILER_DIMENSION_AGENT = 4,
	ROCPROFILER_DIMENSION_SHADER_ARRAY = 5,
	ROCPROFILER_DIMENSION_WGP = 6,
	ROCPROFILER_DIMENSION_INSTANCE = 7,
	ROCPROFILER_DIMENSION_LAST = 8
} rocprofiler_profile_counter_instance_types;
#endif

ROCPROFILER_EXTERN_C_FINI

#endif
