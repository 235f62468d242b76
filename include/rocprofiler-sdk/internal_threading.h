/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads that the library makes: notices of them, and which of them calls a buffer's callback.
 */
#ifndef ROCPROFILER_SDK_INTERNAL_THREADING_H
#define ROCPROFILER_SDK_INTERNAL_THREADING_H

#include <rocprofiler-sdk/buffer.h>
#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

typedef void (*rocprofiler_internal_thread_library_cb_t)(rocprofiler_runtime_library_t, void *);

/* From now on both are called, on the thread that makes another one, before and after. "libs":
 * which libraries' threads, rocprofiler_runtime_library_t bits, 0 for all. Called in
 * rocprofiler_configure() it sees all of them. */
rocprofiler_status_t
rocprofiler_at_internal_thread_create(rocprofiler_internal_thread_library_cb_t precreate,
				      rocprofiler_internal_thread_library_cb_t postcreate, int libs,
				      void *data) ROCPROFILER_API;

typedef struct rocprofiler_callback_thread_t {
	uint64_t handle;
} rocprofiler_callback_thread_t;

/* Buffers share one thread, {0}, unless they are given to another. Not after tools are initialized.
 */
rocprofiler_status_t
rocprofiler_create_callback_thread(rocprofiler_callback_thread_t *cb_thread_id) ROCPROFILER_API
	ROCPROFILER_NONNULL(1);
rocprofiler_status_t
rocprofiler_assign_callback_thread(rocprofiler_buffer_id_t buffer_id,
				   rocprofiler_callback_thread_t cb_thread_id) ROCPROFILER_API;

ROCPROFILER_EXTERN_C_FINI

#endif
