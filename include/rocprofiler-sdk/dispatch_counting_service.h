/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters of single kernels.
 */
#ifndef ROCPROFILER_SDK_DISPATCH_COUNTING_SERVICE_H
#define ROCPROFILER_SDK_DISPATCH_COUNTING_SERVICE_H

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/counter_config.h>
#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

typedef struct rocprofiler_dispatch_counting_service_data_t {
	uint64_t size;
	rocprofiler_async_correlation_id_t correlation_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_kernel_dispatch_info_t dispatch_info;
} rocprofiler_dispatch_counting_service_data_t;

/* In a buffer, num_records values follow it. */
typedef struct rocprofiler_dispatch_counting_service_record_t {
	uint64_t size;
	uint64_t num_records;
	rocprofiler_async_correlation_id_t correlation_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_kernel_dispatch_info_t dispatch_info;
} rocprofiler_dispatch_counting_service_record_t;

/* Called for each launch: what *config is set to is counted; nothing where it stays 0. */
typedef void (*rocprofiler_dispatch_counting_service_cb_t)(
	rocprofiler_dispatch_counting_service_data_t dispatch_data,
	rocprofiler_counter_config_id_t *config, rocprofiler_user_data_t *user_data,
	void *callback_data_args);

typedef void (*rocprofiler_dispatch_counting_record_cb_t)(
	rocprofiler_dispatch_counting_service_data_t dispatch_data,
	rocprofiler_counter_record_t *record_data, size_t record_count,
	rocprofiler_user_data_t user_data, void *callback_data_args);

/* One of the two, once a context. */
rocprofiler_status_t rocprofiler_configure_buffer_dispatch_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_dispatch_counting_service_cb_t callback,
	void *callback_data_args) ROCPROFILER_API;
rocprofiler_status_t rocprofiler_configure_callback_dispatch_counting_service(
	rocprofiler_context_id_t context_id,
	rocprofiler_dispatch_counting_service_cb_t dispatch_callback, void *dispatch_callback_args,
	rocprofiler_dispatch_counting_record_cb_t record_callback,
	void *record_callback_args) ROCPROFILER_API;

#if ROCPROFILER_SDK_BETA_COMPAT > 0
/* Names of releases before 1.0. */
typedef rocprofiler_dispatch_counting_service_cb_t rocprofiler_dispatch_counting_service_callback_t;
typedef rocprofiler_dispatch_counting_record_cb_t rocprofiler_dispatch_counting_record_callback_t;
#endif

ROCPROFILER_EXTERN_C_FINI

#endif
