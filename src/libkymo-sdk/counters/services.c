/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters of agents: no agent has any here, and the functions answer as they do for an agent that
 * has none. Arguments are looked at first, so that a mistake is told as one.
 */
#include <rocprofiler-sdk/experimental/counters.h>
#include <rocprofiler-sdk/rocprofiler.h>

#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/context.h"
#include "libkymo-sdk/state.h"

SDK_EXPORT rocprofiler_status_t rocprofiler_iterate_agent_supported_counters(
	rocprofiler_agent_id_t agent_id, rocprofiler_available_counters_cb_t cb, void *user_data)
{
	(void)user_data;
	if (!cb)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sdk_agent_find(agent_id.handle))
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	return ROCPROFILER_STATUS_ERROR_AGENT_ARCH_NOT_SUPPORTED;
}

SDK_EXPORT rocprofiler_status_t
rocprofiler_query_counter_info(rocprofiler_counter_id_t counter_id,
			       rocprofiler_counter_info_version_id_t version, void *info)
{
	(void)counter_id;
	if (!info)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (version != ROCPROFILER_COUNTER_INFO_VERSION_0 &&
	    version != ROCPROFILER_COUNTER_INFO_VERSION_1)
		return ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI;
	return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_record_counter_id(
	rocprofiler_counter_instance_id_t id, rocprofiler_counter_id_t *counter_id)
{
	(void)id;
	if (!counter_id)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_record_dimension_position(
	rocprofiler_counter_instance_id_t id, rocprofiler_counter_dimension_id_t dim, size_t *pos)
{
	(void)id;
	(void)dim;
	if (!pos)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*pos = 0;
	return ROCPROFILER_STATUS_ERROR_DIM_NOT_FOUND;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_create_counter(const char *name, size_t name_len,
							   const char *expr, size_t expr_len,
							   const char *description,
							   size_t description_len,
							   rocprofiler_agent_id_t agent,
							   rocprofiler_counter_id_t *counter_id)
{
	(void)description;
	(void)description_len;
	if (!name || !name_len || !expr || !expr_len || !counter_id)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sdk_agent_find(agent.handle))
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	return ROCPROFILER_STATUS_ERROR_AST_GENERATION_FAILED;
}

SDK_EXPORT rocprofiler_status_t
rocprofiler_load_counter_definition(const char *yaml, size_t size, rocprofiler_counter_flag_t flags)
{
	(void)flags;
	if (!yaml && size)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_iterate_counter_dimensions(
	rocprofiler_counter_id_t id, rocprofiler_available_dimensions_cb_t info_cb, void *user_data)
{
	(void)id;
	(void)user_data;
	if (!info_cb)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_counter_instance_count(
	rocprofiler_agent_id_t agent_id, rocprofiler_counter_id_t counter_id,
	size_t *instance_count)
{
	(void)agent_id;
	(void)counter_id;
	if (!instance_count)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*instance_count = 0;
	return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_create_counter_config(
	rocprofiler_agent_id_t agent_id, rocprofiler_counter_id_t *counters_list,
	size_t counters_count, rocprofiler_counter_config_id_t *config_id)
{
	if (!config_id || (!counters_list && counters_count))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sdk_agent_find(agent_id.handle))
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	if (counters_count)
		return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
	return ROCPROFILER_STATUS_ERROR_AGENT_ARCH_NOT_SUPPORTED;
}

SDK_EXPORT rocprofiler_status_t
rocprofiler_destroy_counter_config(rocprofiler_counter_config_id_t config_id)
{
	(void)config_id;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_buffer_dispatch_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_dispatch_counting_service_cb_t callback, void *callback_data_args)
{
	(void)callback_data_args;
	if (!callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sdk_context_find(context_id.handle))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	if (!sdk_buffer_find(buffer_id.handle))
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_callback_dispatch_counting_service(
	rocprofiler_context_id_t context_id,
	rocprofiler_dispatch_counting_service_cb_t dispatch_callback, void *dispatch_callback_args,
	rocprofiler_dispatch_counting_record_cb_t record_callback, void *record_callback_args)
{
	(void)dispatch_callback_args;
	(void)record_callback_args;
	if (!dispatch_callback || !record_callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sdk_context_find(context_id.handle))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_device_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_agent_id_t agent_id, rocprofiler_device_counting_service_cb_t cb,
	void *user_data)
{
	(void)user_data;
	if (!cb)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sdk_context_find(context_id.handle))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	if (buffer_id.handle && !sdk_buffer_find(buffer_id.handle))
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	if (!sdk_agent_find(agent_id.handle))
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_sample_device_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_user_data_t user_data,
	rocprofiler_counter_flag_t flags, rocprofiler_counter_record_t *output_records,
	size_t *rec_count)
{
	int is_active = 0;

	(void)user_data;
	if (!sdk_context_find(context_id.handle))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (output_records && (!rec_count || flags == ROCPROFILER_COUNTER_FLAG_ASYNC))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (sdk_fini_status())
		return ROCPROFILER_STATUS_ERROR_FINALIZED;
	rocprofiler_context_is_active(context_id, &is_active);
	return is_active ? ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID
			 : ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_STARTED;
}
