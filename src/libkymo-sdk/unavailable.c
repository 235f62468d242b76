/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Services that no device here can give: traces of instructions and streaming counters are AMD's
 * alone, and no backend samples PCs. They say so (docs/reference/tool-library.md), after their
 * arguments have been looked at, so that a mistake is reported as one.
 */
#include <rocprofiler-sdk/experimental/thread_trace.h>
#include <rocprofiler-sdk/rocprofiler.h>
#include <rocprofiler-sdk/spm.h>

#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/context.h"

static rocprofiler_status_t get_unavailable_service_status(uint64_t context, uint64_t agent)
{
	if (!sdk_context_find_by_id(context))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (!sdk_agent_find_by_id(agent))
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_pc_sampling_service(
	rocprofiler_context_id_t context_id, rocprofiler_agent_id_t agent_id,
	rocprofiler_pc_sampling_method_t method, rocprofiler_pc_sampling_unit_t unit,
	uint64_t interval, rocprofiler_buffer_id_t buffer_id, int flags)
{
	(void)method;
	(void)unit;
	(void)interval;
	(void)buffer_id;
	(void)flags;
	return get_unavailable_service_status(context_id.handle, agent_id.handle);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_pc_sampling_agent_configurations(
	rocprofiler_agent_id_t agent_id, rocprofiler_available_pc_sampling_configurations_cb_t cb,
	void *user_data)
{
	(void)user_data;
	if (!cb)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sdk_agent_find_by_id(agent_id.handle))
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_spm_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_counter_config_id_t counter_config, uint64_t interval)
{
	(void)buffer_id;
	(void)counter_config;
	(void)interval;
	if (!sdk_context_find_by_id(context_id.handle))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_device_thread_trace_service(
	rocprofiler_context_id_t context_id, rocprofiler_agent_id_t agent_id,
	rocprofiler_thread_trace_parameter_t *parameters, size_t num_parameters,
	rocprofiler_thread_trace_shader_data_callback_t shader_callback,
	rocprofiler_user_data_t callback_userdata)
{
	(void)callback_userdata;
	if (!shader_callback || (num_parameters && !parameters))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	return get_unavailable_service_status(context_id.handle, agent_id.handle);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_dispatch_thread_trace_service(
	rocprofiler_context_id_t context_id, rocprofiler_agent_id_t agent_id,
	rocprofiler_thread_trace_parameter_t *parameters, size_t num_parameters,
	rocprofiler_thread_trace_dispatch_callback_t dispatch_callback,
	rocprofiler_thread_trace_shader_data_callback_t shader_callback, void *callback_userdata)
{
	(void)callback_userdata;
	if (!dispatch_callback || !shader_callback || (num_parameters && !parameters))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	return get_unavailable_service_status(context_id.handle, agent_id.handle);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_thread_trace_decoder_create(
	rocprofiler_thread_trace_decoder_id_t *handle, const char *path)
{
	if (!handle || !path)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

/* There are none. */
SDK_EXPORT void
rocprofiler_thread_trace_decoder_destroy(rocprofiler_thread_trace_decoder_id_t handle)
{
	(void)handle;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_thread_trace_decoder_codeobj_load(
	rocprofiler_thread_trace_decoder_id_t handle, uint64_t load_id, uint64_t load_addr,
	uint64_t load_size, const void *data, uint64_t size)
{
	(void)handle;
	(void)load_id;
	(void)load_addr;
	(void)load_size;
	(void)size;
	if (!data)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_thread_trace_decoder_codeobj_unload(
	rocprofiler_thread_trace_decoder_id_t handle, uint64_t load_id)
{
	(void)handle;
	(void)load_id;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

SDK_EXPORT rocprofiler_status_t
rocprofiler_trace_decode(rocprofiler_thread_trace_decoder_id_t handle,
			 rocprofiler_thread_trace_decoder_callback_t callback, void *data,
			 uint64_t size, void *userdata)
{
	(void)handle;
	(void)size;
	(void)userdata;
	if (!callback || !data)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

SDK_EXPORT const char *
rocprofiler_thread_trace_decoder_info_string(rocprofiler_thread_trace_decoder_id_t handle,
					     rocprofiler_thread_trace_decoder_info_t info)
{
	(void)handle;
	switch (info) {
	case ROCPROFILER_THREAD_TRACE_DECODER_INFO_DATA_LOST:
		return "Data was lost, the trace has gaps";
	case ROCPROFILER_THREAD_TRACE_DECODER_INFO_STITCH_INCOMPLETE:
		return "Some instructions could not be put to their places";
	default:
		return NULL;
	}
}
