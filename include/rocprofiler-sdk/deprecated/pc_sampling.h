/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The record of PC samples before 1.0. Programs that know it compile; it is not reported.
 */
#ifndef ROCPROFILER_SDK_DEPRECATED_PC_SAMPLING_H
#define ROCPROFILER_SDK_DEPRECATED_PC_SAMPLING_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/pc_sampling.h>

#if ROCPROFILER_SDK_BETA_COMPAT > 0

ROCPROFILER_EXTERN_C_INIT

/* Of no kind that there is now. */
#define ROCPROFILER_PC_SAMPLING_RECORD_SAMPLE 0x1000

typedef struct rocprofiler_pc_sampling_header_v1_t {
	__extension__ uint8_t valid : 1;
	__extension__ uint8_t type : 4;
	__extension__ uint8_t has_stall_reason : 1;
	__extension__ uint8_t has_wave_cnt : 1;
	__extension__ uint8_t reserved : 1;
} rocprofiler_pc_sampling_header_v1_t;

typedef struct rocprofiler_pc_sampling_snapshot_v1_t {
	uint32_t dual_issue_valu : 1;
	uint32_t inst_type : 4;
	uint32_t reason_not_issued : 7;
	uint32_t arb_state_issue : 10;
	uint32_t arb_state_stall : 10;
} rocprofiler_pc_sampling_snapshot_v1_t;

typedef struct rocprofiler_pc_sampling_record_t {
	uint64_t size;
	rocprofiler_pc_sampling_header_v1_t flags;
	uint8_t chiplet;
	uint8_t wave_id;
	__extension__ uint8_t wave_issued : 1;
	__extension__ uint8_t reserved : 7;
	uint32_t hw_id;
	rocprofiler_pc_t pc;
	uint64_t exec_mask;
	rocprofiler_dim3_t workgroup_id;
	uint32_t wave_count;
	uint64_t timestamp;
	rocprofiler_async_correlation_id_t correlation_id;
	rocprofiler_pc_sampling_snapshot_v1_t snapshot;
	uint32_t reserved2;
} rocprofiler_pc_sampling_record_t;

ROCPROFILER_EXTERN_C_FINI

#if defined(__cplusplus)
/* Before it had flags. */
inline rocprofiler_status_t rocprofiler_configure_pc_sampling_service(
	rocprofiler_context_id_t context_id, rocprofiler_agent_id_t agent_id,
	rocprofiler_pc_sampling_method_t method, rocprofiler_pc_sampling_unit_t unit,
	uint64_t interval, rocprofiler_buffer_id_t buffer_id)
{
	return rocprofiler_configure_pc_sampling_service(context_id, agent_id, method, unit,
							 interval, buffer_id, 0);
}
#endif

#endif

#endif
