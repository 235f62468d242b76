/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How a tool and the library find each other.
 *
 * A tool defines rocprofiler_configure(). It is found in any loaded object, in those that
 * ROCP_TOOL_LIBRARIES names, or is given to rocprofiler_force_configure(). All tools are asked
 * before any is initialized.
 */
#ifndef ROCPROFILER_SDK_REGISTRATION_H
#define ROCPROFILER_SDK_REGISTRATION_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

/* A tool, for as long as the process lives. It may set its name. */
typedef struct rocprofiler_client_id_t {
	size_t size;
	const char *name;
	const uint32_t handle;
} rocprofiler_client_id_t;

/* Ends the tool: its contexts are stopped, its buffers flushed, and its finalize function called,
 * once. */
typedef void (*rocprofiler_client_finalize_t)(rocprofiler_client_id_t);

/* Makes contexts and configures them. Anything but 0 says that the tool is not to be used; its
 * finalize function is not called then. Functions of the runtimes that are to be traced must not be
 * called here. */
typedef int (*rocprofiler_tool_initialize_t)(rocprofiler_client_finalize_t finalize_func,
					     void *tool_data);

typedef void (*rocprofiler_tool_finalize_t)(void *tool_data);

typedef struct rocprofiler_tool_configure_result_t {
	size_t size;
	rocprofiler_tool_initialize_t initialize;
	rocprofiler_tool_finalize_t finalize;
	void *tool_data;
} rocprofiler_tool_configure_result_t;

/* Writes 0 before, -1 during, and 1 after it. */
rocprofiler_status_t rocprofiler_is_initialized(int *status) ROCPROFILER_API ROCPROFILER_NONNULL(1);
rocprofiler_status_t rocprofiler_is_finalized(int *status) ROCPROFILER_API ROCPROFILER_NONNULL(1);

/* What the tool defines. "priority" is how many tools were asked before. NULL says that it wants
 * nothing. */
rocprofiler_tool_configure_result_t *
rocprofiler_configure(uint32_t version, const char *runtime_version, uint32_t priority,
		      rocprofiler_client_id_t *client_id) ROCPROFILER_PUBLIC_API;

typedef rocprofiler_tool_configure_result_t *(*rocprofiler_configure_func_t)(
	uint32_t version, const char *runtime_version, uint32_t priority,
	rocprofiler_client_id_t *client_id);

/* Registers tools now, this one first. ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED: it has been
 * done. */
rocprofiler_status_t
rocprofiler_force_configure(rocprofiler_configure_func_t configure_func) ROCPROFILER_API;

ROCPROFILER_EXTERN_C_FINI

/* A tool needs little else to begin with. */
#include <rocprofiler-sdk/rocprofiler.h>

#endif
