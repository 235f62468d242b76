/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Contexts: what a tool wants to have, switched on and off together.
 */
#ifndef ROCPROFILER_SDK_CONTEXT_H
#define ROCPROFILER_SDK_CONTEXT_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

#define ROCPROFILER_CONTEXT_NONE ROCPROFILER_HANDLE_LITERAL(rocprofiler_context_id_t, 0UL)

/* While the tool is initialized, otherwise ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED.
 * *context_id must be 0. */
rocprofiler_status_t
rocprofiler_create_context(rocprofiler_context_id_t *context_id) ROCPROFILER_API
	ROCPROFILER_NONNULL(1);

/* Starting an active context again is fine. */
rocprofiler_status_t rocprofiler_start_context(rocprofiler_context_id_t context_id) ROCPROFILER_API;

/* What has begun is still delivered. ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND: it is not active.
 */
rocprofiler_status_t rocprofiler_stop_context(rocprofiler_context_id_t context_id) ROCPROFILER_API;

/* Both write 1 for yes. */
rocprofiler_status_t rocprofiler_context_is_active(rocprofiler_context_id_t context_id,
						   int *status) ROCPROFILER_API
	ROCPROFILER_NONNULL(2);
rocprofiler_status_t rocprofiler_context_is_valid(rocprofiler_context_id_t context_id,
						  int *status) ROCPROFILER_API
	ROCPROFILER_NONNULL(2);

ROCPROFILER_EXTERN_C_FINI

#endif
