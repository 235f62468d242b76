/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What kymo's tool library has beyond ROCprofiler-SDK's interface: kinds for calls of runtimes that
 * are not AMD's. They are configured, started and asked about like any other; their numbers are the
 * same for callbacks and buffers, and past all of upstream's. Records in buffers are
 * rocprofiler_buffer_tracing_hip_api_record_t, as of all calls.
 *
 * Operations: of CUDA, the numbers that CUPTI has for callbacks (CUPTI_DRIVER_TRACE_CBID_* and
 * CUPTI_RUNTIME_TRACE_CBID_*); of OpenCL, places in the table of the ICD loader (cl_icd_dispatch).
 */
#ifndef KYMO_TOOLS_H
#define KYMO_TOOLS_H

#include <rocprofiler-sdk/rocprofiler.h>

#define KYMO_CALLBACK_TRACING_CUDA_RUNTIME_API ((rocprofiler_callback_tracing_kind_t)0x1000)
#define KYMO_CALLBACK_TRACING_CUDA_DRIVER_API  ((rocprofiler_callback_tracing_kind_t)0x1001)
#define KYMO_CALLBACK_TRACING_OPENCL_API       ((rocprofiler_callback_tracing_kind_t)0x1002)
#define KYMO_BUFFER_TRACING_CUDA_RUNTIME_API   ((rocprofiler_buffer_tracing_kind_t)0x1000)
#define KYMO_BUFFER_TRACING_CUDA_DRIVER_API    ((rocprofiler_buffer_tracing_kind_t)0x1001)
#define KYMO_BUFFER_TRACING_OPENCL_API         ((rocprofiler_buffer_tracing_kind_t)0x1002)

/* What the payload of their callbacks points to. Arguments are told by
 * rocprofiler_iterate_callback_tracing_kind_operation_args(). */
typedef struct kymo_callback_tracing_call_data_t {
	uint64_t size;
	const void
		*arguments; /* CUDA: the struct of CUPTI's generated_cuda*_meta.h; OpenCL: opaque */
	const void *result; /* what the function returns, where it has returned; may be NULL */
} kymo_callback_tracing_call_data_t;

/* Every kind can be configured, and those that nothing here can tell stay silent. Which these are:
 * for one agent, or, with agent.handle 0, for all of them together. Agents of a runtime that the
 * program has not started yet may not be known yet. KIND_NOT_FOUND, AGENT_NOT_FOUND. */
typedef enum kymo_kind_support_t { KYMO_KIND_SILENT, KYMO_KIND_TOLD } kymo_kind_support_t;

/* What a launch has as its external correlation id in a context; asked on the thread that launches,
 * once a launch of a kernel, graph, copy or fill. It may not call any function of this library. */
typedef uint64_t (*kymo_launch_id_callback_t)(void *data);

ROCPROFILER_EXTERN_C_INIT

rocprofiler_status_t kymo_callback_kind_support(rocprofiler_callback_tracing_kind_t kind,
						rocprofiler_agent_id_t agent,
						kymo_kind_support_t *answer) ROCPROFILER_API;
rocprofiler_status_t kymo_buffer_kind_support(rocprofiler_buffer_tracing_kind_t kind,
					      rocprofiler_agent_id_t agent,
					      kymo_kind_support_t *answer) ROCPROFILER_API;

/* From now on records of work on devices have these external correlation ids in the context, in
 * place of pushed and requested ones. NULL: as before. CONTEXT_NOT_FOUND. */
rocprofiler_status_t kymo_configure_launch_id_service(rocprofiler_context_id_t context,
						      kymo_launch_id_callback_t callback,
						      void *data) ROCPROFILER_API;

ROCPROFILER_EXTERN_C_FINI

#endif
