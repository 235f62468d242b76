/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The counting services under their names before 1.0: "dispatch profile" and "agent profile" (0.0
 * to 0.4), "buffered" (up to 0.6).
 */
#ifndef ROCPROFILER_SDK_DEPRECATED_COUNTING_SERVICES_H
#define ROCPROFILER_SDK_DEPRECATED_COUNTING_SERVICES_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/device_counting_service.h>
#include <rocprofiler-sdk/dispatch_counting_service.h>
#include <rocprofiler-sdk/fwd.h>

#if ROCPROFILER_SDK_BETA_COMPAT > 0

ROCPROFILER_EXTERN_C_INIT

typedef rocprofiler_dispatch_counting_service_data_t rocprofiler_profile_counting_dispatch_data_t;
typedef rocprofiler_dispatch_counting_service_record_t
	rocprofiler_profile_counting_dispatch_record_t;
typedef rocprofiler_dispatch_counting_service_cb_t rocprofiler_profile_counting_dispatch_callback_t;
typedef rocprofiler_dispatch_counting_record_cb_t rocprofiler_profile_counting_record_callback_t;
typedef rocprofiler_device_counting_service_cb_t rocprofiler_agent_profile_callback_t;

ROCPROFILER_SDK_DEPRECATED("renamed to rocprofiler_configure_buffer_dispatch_counting_service")
static inline rocprofiler_status_t rocprofiler_configure_buffered_dispatch_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_dispatch_counting_service_cb_t callback, void *callback_data_args)
{
	return rocprofiler_configure_buffer_dispatch_counting_service(context_id, buffer_id,
								      callback, callback_data_args);
}

ROCPROFILER_SDK_DEPRECATED("renamed to rocprofiler_configure_buffer_dispatch_counting_service")
static inline rocprofiler_status_t rocprofiler_configure_buffered_dispatch_profile_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_dispatch_counting_service_cb_t callback, void *callback_data_args)
{
	return rocprofiler_configure_buffer_dispatch_counting_service(context_id, buffer_id,
								      callback, callback_data_args);
}

ROCPROFILER_SDK_DEPRECATED("renamed to rocprofiler_configure_callback_dispatch_counting_service")
static inline rocprofiler_status_t rocprofiler_configure_callback_dispatch_profile_counting_service(
	rocprofiler_context_id_t context_id,
	rocprofiler_dispatch_counting_service_cb_t dispatch_callback, void *dispatch_callback_args,
	rocprofiler_dispatch_counting_record_cb_t record_callback, void *record_callback_args)
{
	return rocprofiler_configure_callback_dispatch_counting_service(
		context_id, dispatch_callback, dispatch_callback_args, record_callback,
		record_callback_args);
}

ROCPROFILER_SDK_DEPRECATED("renamed to rocprofiler_configure_device_counting_service")
static inline rocprofiler_status_t rocprofiler_configure_agent_profile_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_agent_id_t agent_id, rocprofiler_device_counting_service_cb_t cb,
	void *user_data)
{
	return rocprofiler_configure_device_counting_service(context_id, buffer_id, agent_id, cb,
							     user_data);
}

/* It had three parameters: values came through the buffer only. */
ROCPROFILER_SDK_DEPRECATED("renamed to rocprofiler_sample_device_counting_service")
static inline rocprofiler_status_t
rocprofiler_sample_agent_profile_counting_service(rocprofiler_context_id_t context_id,
						  rocprofiler_user_data_t user_data,
						  rocprofiler_counter_flag_t flags)
{
	return rocprofiler_sample_device_counting_service(context_id, user_data, flags, NULL, NULL);
}

ROCPROFILER_EXTERN_C_FINI

#endif

#endif
