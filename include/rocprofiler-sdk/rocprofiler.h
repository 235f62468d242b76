/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * ROCprofiler-SDK's interface of tools, on any device.
 *
 * Everything that a tool calls; what it defines is in registration.h. All functions answer with a
 * rocprofiler_status_t unless said otherwise, and can be called on any thread.
 */
#ifndef ROCPROFILER_SDK_ROCPROFILER_H
#define ROCPROFILER_SDK_ROCPROFILER_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/version.h>

ROCPROFILER_EXTERN_C_INIT

/* Of the library. Each pointer may be NULL. */
rocprofiler_status_t rocprofiler_get_version(uint32_t *major, uint32_t *minor,
					     uint32_t *patch) ROCPROFILER_API;
rocprofiler_status_t
rocprofiler_get_version_triplet(rocprofiler_version_triplet_t *info) ROCPROFILER_API
	ROCPROFILER_NONNULL(1);

/* On the clock of all records. */
rocprofiler_status_t rocprofiler_get_timestamp(rocprofiler_timestamp_t *ts) ROCPROFILER_API
	ROCPROFILER_NONNULL(1);
rocprofiler_status_t rocprofiler_get_thread_id(rocprofiler_thread_id_t *tid) ROCPROFILER_API
	ROCPROFILER_NONNULL(1);

/* NULL for what is no status. */
const char *rocprofiler_get_status_name(rocprofiler_status_t status) ROCPROFILER_API;
const char *rocprofiler_get_status_string(rocprofiler_status_t status) ROCPROFILER_API;

ROCPROFILER_EXTERN_C_FINI

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/buffer.h>
#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/context.h>
#include <rocprofiler-sdk/counter_config.h>
#include <rocprofiler-sdk/counters.h>
#include <rocprofiler-sdk/device_counting_service.h>
#include <rocprofiler-sdk/dispatch_counting_service.h>
#include <rocprofiler-sdk/external_correlation.h>
#include <rocprofiler-sdk/hip.h>
#include <rocprofiler-sdk/hsa.h>
#include <rocprofiler-sdk/intercept_table.h>
#include <rocprofiler-sdk/internal_threading.h>
#include <rocprofiler-sdk/marker.h>
#include <rocprofiler-sdk/ompt.h>
#include <rocprofiler-sdk/pc_sampling.h>
#include <rocprofiler-sdk/rccl.h>
#include <rocprofiler-sdk/rocdecode.h>
#include <rocprofiler-sdk/rocjpeg.h>

/* Names of releases before 1.0. */
#include <rocprofiler-sdk/deprecated/counting_services.h>
#include <rocprofiler-sdk/deprecated/page_migration.h>
#include <rocprofiler-sdk/deprecated/pc_sampling.h>
#include <rocprofiler-sdk/deprecated/profile_config.h>

#endif
