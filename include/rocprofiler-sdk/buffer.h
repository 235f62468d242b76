/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Buffers: records are collected and handed over in bulk, on a thread of the library.
 */
#ifndef ROCPROFILER_SDK_BUFFER_H
#define ROCPROFILER_SDK_BUFFER_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

/* Records come in the order in which they were stored, and live until the callback returns.
 * "drop_count" is how many records found no room since the last time. */
typedef void (*rocprofiler_buffer_tracing_cb_t)(rocprofiler_context_id_t context,
						rocprofiler_buffer_id_t buffer_id,
						rocprofiler_record_header_t **headers,
						size_t num_headers, void *data,
						uint64_t drop_count);

/* The callback is called when "watermark" of the "size" bytes are used (0: with each record). While
 * the tool is initialized, otherwise ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED. */
rocprofiler_status_t rocprofiler_create_buffer(rocprofiler_context_id_t context, size_t size,
					       size_t watermark, rocprofiler_buffer_policy_t policy,
					       rocprofiler_buffer_tracing_cb_t callback,
					       void *callback_data,
					       rocprofiler_buffer_id_t *buffer_id) ROCPROFILER_API
	ROCPROFILER_NONNULL(5, 7);

rocprofiler_status_t rocprofiler_destroy_buffer(rocprofiler_buffer_id_t buffer_id) ROCPROFILER_API;

/* Returns when the callback has had everything that was stored before. An empty buffer causes no
 * call. */
rocprofiler_status_t rocprofiler_flush_buffer(rocprofiler_buffer_id_t buffer_id) ROCPROFILER_API;

ROCPROFILER_EXTERN_C_FINI

#endif
