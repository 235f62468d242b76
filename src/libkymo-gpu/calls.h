/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which calls of runtimes are recorded.
 */
#ifndef KYMO_LIBKYMO_GPU_CALLS_H
#define KYMO_LIBKYMO_GPU_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include <rocprofiler-sdk/rocprofiler.h>

void calls_configure_tracing(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer);
bool calls_recording_is_disabled_by_env(void); /* KYMO_GPU_CALLS=none */
bool calls_is_recorded_call_kind(uint32_t kind);

#endif
