/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters of a whole device, read when the tool wants them.
 */
#ifndef ROCPROFILER_SDK_DEVICE_COUNTING_SERVICE_H
#define ROCPROFILER_SDK_DEVICE_COUNTING_SERVICE_H

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

typedef rocprofiler_status_t (*rocprofiler_device_counting_agent_cb_t)(
	rocprofiler_context_id_t context_id, rocprofiler_counter_config_id_t config_id);

/* Called when the context is started: "set_config" says what is to be counted. */
typedef void (*rocprofiler_device_counting_service_cb_t)(
	rocprofiler_context_id_t context_id, rocprofiler_agent_id_t agent_id,
	rocprofiler_device_counting_agent_cb_t set_config, void *user_data);

/* Once an agent. buffer_id may be 0. */
rocprofiler_status_t rocprofiler_configure_device_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_agent_id_t agent_id, rocprofiler_device_counting_service_cb_t cb,
	void *user_data) ROCPROFILER_API ROCPROFILER_NONNULL(4);

/* Values since the context was started, into the buffer and, unless NULL, output_records.
 * *rec_count is how many fit there; ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES writes how many there
 * are. */
rocprofiler_status_t rocprofiler_sample_device_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_user_data_t user_data,
	rocprofiler_counter_flag_t flags, rocprofiler_counter_record_t *output_records,
	size_t *rec_count) ROCPROFILER_API;

#if ROCPROFILER_SDK_BETA_COMPAT > 0
/* Names of releases before 1.0. */
typedef rocprofiler_device_counting_agent_cb_t rocprofiler_agent_set_profile_callback_t;
typedef rocprofiler_device_counting_service_cb_t rocprofiler_device_counting_service_callback_t;
#endif

ROCPROFILER_EXTERN_C_FINI

#endif
