/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The thread trace of before 1.0, under its names. Now: experimental/thread_trace.h. It is not
 * implemented in either form; C++ tools compile with both, C tools with the one for dispatches of
 * 1.0, because that function has kept its name and changed its arguments.
 */
#ifndef ROCPROFILER_SDK_AMD_DETAIL_THREAD_TRACE_H
#define ROCPROFILER_SDK_AMD_DETAIL_THREAD_TRACE_H

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/hsa.h>

#if ROCPROFILER_SDK_BETA_COMPAT > 0

ROCPROFILER_EXTERN_C_INIT

typedef enum {
	ROCPROFILER_ATT_PARAMETER_TARGET_CU = 0,
	ROCPROFILER_ATT_PARAMETER_SHADER_ENGINE_MASK = 1,
	ROCPROFILER_ATT_PARAMETER_BUFFER_SIZE = 2,
	ROCPROFILER_ATT_PARAMETER_SIMD_SELECT = 3,
	ROCPROFILER_ATT_PARAMETER_PERFCOUNTERS_CTRL = 4,
	ROCPROFILER_ATT_PARAMETER_PERFCOUNTER = 5,
	ROCPROFILER_ATT_PARAMETER_LAST = 6
} rocprofiler_att_parameter_type_t;

typedef struct {
	rocprofiler_att_parameter_type_t type;
	__extension__ union {
		uint64_t value;
		__extension__ struct {
			rocprofiler_counter_id_t counter_id;
			__extension__ uint64_t simd_mask : 4;
		};
	};
} rocprofiler_att_parameter_t;

typedef enum {
	ROCPROFILER_ATT_CONTROL_NONE = 0,
	ROCPROFILER_ATT_CONTROL_START_AND_STOP = 3
} rocprofiler_att_control_flags_t;

typedef enum {
	ROCPROFILER_ATT_PARSER_DATA_TYPE_ISA = 0,
	ROCPROFILER_ATT_PARSER_DATA_TYPE_OCCUPANCY = 1
} rocprofiler_att_parser_data_type_t;

typedef struct {
	uint64_t marker_id;
	uint64_t offset;
	uint64_t hitcount;
	uint64_t latency;
} rocprofiler_att_data_type_isa_t;

typedef struct {
	uint64_t marker_id;
	uint64_t offset;
	__extension__ uint64_t timestamp : 63;
	__extension__ uint64_t enabled : 1;
} rocprofiler_att_data_type_occupancy_t;

typedef void (*rocprofiler_att_shader_data_callback_t)(int64_t shader_engine_id, void *data,
						       size_t data_size,
						       rocprofiler_user_data_t userdata);
typedef rocprofiler_att_control_flags_t (*rocprofiler_att_dispatch_callback_t)(
	rocprofiler_queue_id_t queue_id, const rocprofiler_agent_t *agent,
	rocprofiler_correlation_id_t correlation_id, rocprofiler_kernel_id_t kernel_id,
	rocprofiler_dispatch_id_t dispatch_id, rocprofiler_user_data_t *userdata_shader,
	void *userdata_config);
typedef rocprofiler_status_t (*rocprofiler_att_parser_isa_callback_t)(
	char *isa_instruction, uint64_t *isa_memory_size, uint64_t *isa_size, uint64_t marker_id,
	uint64_t offset, void *userdata);
typedef uint64_t (*rocprofiler_att_parser_se_data_callback_t)(int *shader_engine_id,
							      uint8_t **buffer,
							      uint64_t *buffer_size,
							      void *userdata);
typedef void (*rocprofiler_att_parser_trace_callback_t)(rocprofiler_att_parser_data_type_t type,
							void *att_data, void *userdata);

static inline rocprofiler_status_t rocprofiler_configure_agent_thread_trace_service(
	rocprofiler_context_id_t context_id, rocprofiler_att_parameter_t *parameters,
	size_t num_parameters, rocprofiler_agent_id_t agent_id,
	rocprofiler_att_shader_data_callback_t shader_callback, void *callback_userdata)
{
	(void)context_id;
	(void)parameters;
	(void)num_parameters;
	(void)agent_id;
	(void)shader_callback;
	(void)callback_userdata;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

static inline rocprofiler_status_t
rocprofiler_att_parse_data(rocprofiler_att_parser_se_data_callback_t se_data_callback,
			   rocprofiler_att_parser_trace_callback_t trace_callback,
			   rocprofiler_att_parser_isa_callback_t isa_callback, void *userdata)
{
	(void)se_data_callback;
	(void)trace_callback;
	(void)isa_callback;
	(void)userdata;
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}

ROCPROFILER_EXTERN_C_FINI

#if defined(__cplusplus)
inline rocprofiler_status_t rocprofiler_configure_dispatch_thread_trace_service(
	rocprofiler_context_id_t, rocprofiler_att_parameter_t *, size_t,
	rocprofiler_att_dispatch_callback_t, rocprofiler_att_shader_data_callback_t, void *)
{
	return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
}
#endif

#endif

#endif
