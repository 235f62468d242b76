/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Structs into archives of cereal (<cereal/cereal.hpp>, which must be installed):
 *   archive(cereal::make_nvp("dispatch", *record));
 * Members keep their names; handles are {"handle": number}. Tools that define
 * ROCPROFILER_SDK_CEREAL_NAMESPACE_BEGIN and ..._END have cereal in a namespace of their own.
 */
#ifndef ROCPROFILER_SDK_CXX_SERIALIZATION_HPP
#define ROCPROFILER_SDK_CXX_SERIALIZATION_HPP

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/counters.h>
#include <rocprofiler-sdk/cxx/name_info.hpp>
#include <rocprofiler-sdk/cxx/utility.hpp>
#include <rocprofiler-sdk/device_counting_service.h>
#include <rocprofiler-sdk/dispatch_counting_service.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/pc_sampling.h>
#include <rocprofiler-sdk/rocprofiler.h>

/* All of cereal's that tools expect of this header. */
#include <cereal/archives/binary.hpp>
#include <cereal/archives/json.hpp>
#include <cereal/archives/portable_binary.hpp>
#include <cereal/cereal.hpp>
#include <cereal/types/array.hpp>
#include <cereal/types/atomic.hpp>
#include <cereal/types/bitset.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/common.hpp>
#include <cereal/types/complex.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/functional.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/queue.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/stack.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>

#include <string>
#include <string_view>
#include <vector>

#if !defined(ROCPROFILER_SDK_CEREAL_NAMESPACE_BEGIN)
#define ROCPROFILER_SDK_CEREAL_NAMESPACE_BEGIN                                                     \
	namespace cereal                                                                           \
	{
#endif
#if !defined(ROCPROFILER_SDK_CEREAL_NAMESPACE_END)
#define ROCPROFILER_SDK_CEREAL_NAMESPACE_END }
#endif

namespace rocprofiler
{
namespace sdk
{
namespace serialization
{
/* An argument of a call that is in a record. */
struct buffer_tracing_args {
	std::string type = {};
	std::string name = {};
	std::string value = {};
};

template <typename Tp> std::vector<buffer_tracing_args> get_buffer_tracing_args(Tp &data)
{
	std::vector<buffer_tracing_args> all;
	rocprofiler_record_header_t record = {};

	record.hash = rocprofiler_record_header_compute_hash(ROCPROFILER_BUFFER_CATEGORY_TRACING,
							     data.kind);
	record.payload = &data;
	rocprofiler_iterate_buffer_tracing_record_args(
		record,
		[](rocprofiler_buffer_tracing_kind_t, rocprofiler_tracing_operation_t, uint32_t,
		   const void *const, int32_t, const char *type, const char *name,
		   const char *value, void *list) {
			static_cast<std::vector<buffer_tracing_args> *>(list)->push_back(
				{type, name, value});
			return 0;
		},
		&all);
	return all;
}

template <typename Tp> std::vector<Tp> list_of(const Tp *first, size_t count)
{
	return first != nullptr ? std::vector<Tp>(first, first + count) : std::vector<Tp>();
}
} // namespace serialization
} // namespace sdk
} // namespace rocprofiler

/* The members of a struct, one by one: as they are, under another name, strings, bits. */
#define ROCP_SDK_SAVE(TYPE, MEMBERS)                                                               \
	template <typename ArchiveT> void save(ArchiveT &ar, const TYPE &data)                     \
	{                                                                                          \
		MEMBERS                                                                            \
	}
#define ROCP_SDK_M(NAME)         ar(make_nvp(#NAME, data.NAME));
#define ROCP_SDK_AS(NAME, VALUE) ar(make_nvp(NAME, data.VALUE));
#define ROCP_SDK_S(NAME)         ar(make_nvp(#NAME, std::string(data.NAME ? data.NAME : "")));
#define ROCP_SDK_B(NAME, VALUE)  ar(make_nvp(NAME, static_cast<uint64_t>(data.VALUE)));
#define ROCP_SDK_CALL                                                                              \
	ROCP_SDK_M(size)                                                                           \
	ROCP_SDK_M(kind)                                                                           \
	ROCP_SDK_M(operation)                                                                      \
	ROCP_SDK_M(correlation_id)                                                                 \
	ROCP_SDK_M(start_timestamp) ROCP_SDK_M(end_timestamp) ROCP_SDK_M(thread_id)
#define ROCP_SDK_WORK                                                                              \
	ROCP_SDK_M(size)                                                                           \
	ROCP_SDK_M(kind)                                                                           \
	ROCP_SDK_M(operation)                                                                      \
	ROCP_SDK_M(thread_id)                                                                      \
	ROCP_SDK_M(correlation_id) ROCP_SDK_M(start_timestamp) ROCP_SDK_M(end_timestamp)
#define ROCP_SDK_EVENT                                                                             \
	ROCP_SDK_M(size)                                                                           \
	ROCP_SDK_M(kind) ROCP_SDK_M(operation) ROCP_SDK_M(timestamp) ROCP_SDK_M(pid)

ROCPROFILER_SDK_CEREAL_NAMESPACE_BEGIN

ROCP_SDK_SAVE(::rocprofiler::sdk::serialization::buffer_tracing_args,
	      ROCP_SDK_M(type) ROCP_SDK_M(name) ROCP_SDK_M(value))

/* ---- handles and ids ---- */

ROCP_SDK_SAVE(rocprofiler_context_id_t, ROCP_SDK_M(handle))
ROCP_SDK_SAVE(rocprofiler_agent_id_t, ROCP_SDK_M(handle))
ROCP_SDK_SAVE(rocprofiler_queue_id_t, ROCP_SDK_M(handle))
ROCP_SDK_SAVE(rocprofiler_stream_id_t, ROCP_SDK_M(handle))
ROCP_SDK_SAVE(rocprofiler_buffer_id_t, ROCP_SDK_M(handle))
ROCP_SDK_SAVE(rocprofiler_counter_id_t, ROCP_SDK_M(handle))
ROCP_SDK_SAVE(rocprofiler_counter_config_id_t, ROCP_SDK_M(handle))
ROCP_SDK_SAVE(rocprofiler_address_t, ROCP_SDK_M(handle))
ROCP_SDK_SAVE(rocprofiler_correlation_id_t,
	      ROCP_SDK_M(internal) ROCP_SDK_AS("external", external.value) ROCP_SDK_M(ancestor))
ROCP_SDK_SAVE(rocprofiler_async_correlation_id_t,
	      ROCP_SDK_M(internal) ROCP_SDK_AS("external", external.value))
ROCP_SDK_SAVE(rocprofiler_dim3_t, ROCP_SDK_M(x) ROCP_SDK_M(y) ROCP_SDK_M(z))
ROCP_SDK_SAVE(rocprofiler_version_triplet_t, ROCP_SDK_M(major) ROCP_SDK_M(minor) ROCP_SDK_M(patch))

/* ---- callbacks ---- */

ROCP_SDK_SAVE(rocprofiler_callback_tracing_record_t,
	      ROCP_SDK_M(context_id) ROCP_SDK_M(thread_id) ROCP_SDK_M(kind) ROCP_SDK_M(operation)
		      ROCP_SDK_M(correlation_id) ROCP_SDK_M(phase))
template <typename ArchiveT>
void save(ArchiveT &ar, const rocprofiler_callback_tracing_code_object_load_data_t &data)
{
	ROCP_SDK_M(size)
	ROCP_SDK_M(code_object_id)
	ROCP_SDK_M(agent_id)
	ROCP_SDK_S(uri)
	ROCP_SDK_M(load_base)
	ROCP_SDK_M(load_size)
	ROCP_SDK_M(load_delta)
	ROCP_SDK_M(storage_type)
	if (data.storage_type == ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_FILE) {
		ROCP_SDK_M(storage_file)
	} else if (data.storage_type == ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY) {
		ROCP_SDK_M(memory_base)
		ROCP_SDK_M(memory_size)
	}
}
ROCP_SDK_SAVE(rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(kernel_id) ROCP_SDK_M(code_object_id)
		      ROCP_SDK_S(kernel_name) ROCP_SDK_M(kernel_object)
			      ROCP_SDK_M(kernarg_segment_size) ROCP_SDK_M(kernarg_segment_alignment)
				      ROCP_SDK_M(group_segment_size)
					      ROCP_SDK_M(private_segment_size)
						      ROCP_SDK_M(sgpr_count)
							      ROCP_SDK_M(arch_vgpr_count)
								      ROCP_SDK_M(accum_vgpr_count))
ROCP_SDK_SAVE(rocprofiler_kernel_dispatch_info_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(agent_id) ROCP_SDK_M(queue_id) ROCP_SDK_M(kernel_id)
		      ROCP_SDK_M(dispatch_id) ROCP_SDK_M(private_segment_size)
			      ROCP_SDK_M(group_segment_size) ROCP_SDK_M(workgroup_size)
				      ROCP_SDK_M(grid_size))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_kernel_dispatch_data_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(start_timestamp) ROCP_SDK_M(end_timestamp)
		      ROCP_SDK_M(dispatch_info))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_memory_copy_data_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(start_timestamp) ROCP_SDK_M(end_timestamp)
		      ROCP_SDK_M(dst_agent_id) ROCP_SDK_M(src_agent_id) ROCP_SDK_M(bytes))
template <typename ArchiveT>
void save(ArchiveT &ar, const rocprofiler_callback_tracing_memory_allocation_data_t &data)
{
	ROCP_SDK_M(size)
	ROCP_SDK_M(start_timestamp)
	ROCP_SDK_M(end_timestamp)
	ROCP_SDK_M(agent_id)
	ar(make_nvp("address", ::rocprofiler::sdk::utility::as_hex(data.address.handle, 16)));
	ROCP_SDK_M(allocation_size)
}
ROCP_SDK_SAVE(rocprofiler_callback_tracing_runtime_initialization_data_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(version) ROCP_SDK_M(instance))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_scratch_memory_data_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(agent_id) ROCP_SDK_M(queue_id) ROCP_SDK_M(flags)
		      ROCP_SDK_M(args_kind))
/* Arguments are told by rocprofiler_iterate_callback_tracing_kind_operation_args(). */
ROCP_SDK_SAVE(rocprofiler_hsa_api_retval_t, ROCP_SDK_M(uint64_t_retval))
ROCP_SDK_SAVE(rocprofiler_hip_api_retval_t, ROCP_SDK_M(uint64_t_retval))
ROCP_SDK_SAVE(rocprofiler_marker_api_retval_t, ROCP_SDK_M(int64_t_retval))
ROCP_SDK_SAVE(rocprofiler_rocdecode_api_retval_t, ROCP_SDK_M(uint64_t_retval))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_hsa_api_data_t, ROCP_SDK_M(size) ROCP_SDK_M(retval))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_hip_api_data_t, ROCP_SDK_M(size) ROCP_SDK_M(retval))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_marker_api_data_t, ROCP_SDK_M(size) ROCP_SDK_M(retval))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_rocdecode_api_data_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(retval))
ROCP_SDK_SAVE(rocprofiler_rccl_api_retval_t, ROCP_SDK_M(ncclResult_t_retval))
ROCP_SDK_SAVE(rocprofiler_rocjpeg_api_retval_t, ROCP_SDK_M(rocJpegStatus_retval))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_rccl_api_data_t, ROCP_SDK_M(size) ROCP_SDK_M(retval))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_rocjpeg_api_data_t, ROCP_SDK_M(size) ROCP_SDK_M(retval))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_ompt_data_t, ROCP_SDK_M(size))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_hip_stream_data_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(stream_id) ROCP_SDK_M(stream_value))
ROCP_SDK_SAVE(rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(host_function_id) ROCP_SDK_M(kernel_id)
		      ROCP_SDK_M(code_object_id) ROCP_SDK_M(host_function) ROCP_SDK_M(modules)
			      ROCP_SDK_S(device_function) ROCP_SDK_M(thread_limit)
				      ROCP_SDK_M(thread_ids) ROCP_SDK_M(block_ids)
					      ROCP_SDK_M(block_dims) ROCP_SDK_M(grid_dims)
						      ROCP_SDK_M(workgroup_size))

/* ---- records in buffers ---- */

ROCP_SDK_SAVE(rocprofiler_buffer_tracing_hsa_api_record_t, ROCP_SDK_CALL)
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_hip_api_record_t, ROCP_SDK_CALL)
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_marker_api_record_t, ROCP_SDK_CALL)
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_rccl_api_record_t, ROCP_SDK_CALL)
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_rocdecode_api_record_t, ROCP_SDK_CALL)
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_rocjpeg_api_record_t, ROCP_SDK_CALL)
template <typename ArchiveT>
void save(ArchiveT &ar, const rocprofiler_buffer_tracing_hip_api_ext_record_t &data)
{
	auto copy = data;

	ROCP_SDK_CALL
	ar(make_nvp("args", ::rocprofiler::sdk::serialization::get_buffer_tracing_args(copy)));
	ROCP_SDK_M(retval)
}
template <typename ArchiveT>
void save(ArchiveT &ar, const rocprofiler_buffer_tracing_rocdecode_api_ext_record_t &data)
{
	auto copy = data;

	ROCP_SDK_CALL
	ar(make_nvp("args", ::rocprofiler::sdk::serialization::get_buffer_tracing_args(copy)));
	ROCP_SDK_M(retval)
}
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_ompt_target_t,
	      ROCP_SDK_M(kind) ROCP_SDK_AS("device", device_num) ROCP_SDK_M(task_id)
		      ROCP_SDK_M(target_id))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_ompt_target_data_op_t,
	      ROCP_SDK_M(host_op_id) ROCP_SDK_M(optype) ROCP_SDK_M(src_device_num)
		      ROCP_SDK_M(dst_device_num) ROCP_SDK_M(bytes))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_ompt_target_kernel_t,
	      ROCP_SDK_M(host_op_id) ROCP_SDK_M(device_num) ROCP_SDK_M(requested_num_teams))
template <typename ArchiveT>
void save(ArchiveT &ar, const rocprofiler_buffer_tracing_ompt_record_t &data)
{
	ROCP_SDK_CALL
	if (data.operation == ROCPROFILER_OMPT_ID_target_emi) {
		ROCP_SDK_M(target)
	} else if (data.operation == ROCPROFILER_OMPT_ID_target_data_op_emi) {
		ROCP_SDK_M(target_data_op)
	} else if (data.operation == ROCPROFILER_OMPT_ID_target_submit_emi) {
		ROCP_SDK_M(target_kernel)
	}
}
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_kernel_dispatch_record_t,
	      ROCP_SDK_WORK ROCP_SDK_M(dispatch_info))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_memory_copy_record_t,
	      ROCP_SDK_WORK ROCP_SDK_M(dst_agent_id) ROCP_SDK_M(src_agent_id) ROCP_SDK_M(bytes))
template <typename ArchiveT>
void save(ArchiveT &ar, const rocprofiler_buffer_tracing_memory_allocation_record_t &data)
{
	ROCP_SDK_WORK
	ROCP_SDK_M(agent_id)
	ar(make_nvp("address", ::rocprofiler::sdk::utility::as_hex(data.address.handle, 16)));
	ROCP_SDK_M(allocation_size)
}
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_scratch_memory_record_t,
	      ROCP_SDK_WORK ROCP_SDK_M(agent_id) ROCP_SDK_M(queue_id) ROCP_SDK_M(flags))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_correlation_id_retirement_record_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(kind) ROCP_SDK_M(timestamp)
		      ROCP_SDK_M(internal_correlation_id))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_runtime_initialization_record_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(kind) ROCP_SDK_M(operation) ROCP_SDK_M(correlation_id)
		      ROCP_SDK_M(timestamp) ROCP_SDK_M(thread_id) ROCP_SDK_M(version)
			      ROCP_SDK_M(instance))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_kfd_event_page_migrate_record_t,
	      ROCP_SDK_EVENT ROCP_SDK_M(start_address) ROCP_SDK_M(end_address) ROCP_SDK_M(src_agent)
		      ROCP_SDK_M(dst_agent) ROCP_SDK_M(prefetch_agent) ROCP_SDK_M(preferred_agent)
			      ROCP_SDK_M(error_code))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_kfd_event_page_fault_record_t,
	      ROCP_SDK_EVENT ROCP_SDK_M(agent_id) ROCP_SDK_M(address))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_kfd_event_queue_record_t,
	      ROCP_SDK_EVENT ROCP_SDK_M(agent_id))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_kfd_event_unmap_from_gpu_record_t,
	      ROCP_SDK_EVENT ROCP_SDK_M(agent_id) ROCP_SDK_M(start_address) ROCP_SDK_M(end_address))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_kfd_event_dropped_events_record_t,
	      ROCP_SDK_EVENT ROCP_SDK_M(count))

#define ROCP_SDK_INTERVAL                                                                          \
	ROCP_SDK_M(size)                                                                           \
	ROCP_SDK_M(kind)                                                                           \
	ROCP_SDK_M(operation)                                                                      \
	ROCP_SDK_M(start_timestamp) ROCP_SDK_M(end_timestamp) ROCP_SDK_M(pid)
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_kfd_page_migrate_record_t,
	      ROCP_SDK_INTERVAL ROCP_SDK_M(start_address) ROCP_SDK_M(end_address)
		      ROCP_SDK_M(src_agent) ROCP_SDK_M(dst_agent) ROCP_SDK_M(prefetch_agent)
			      ROCP_SDK_M(preferred_agent) ROCP_SDK_M(error_code))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_kfd_page_fault_record_t,
	      ROCP_SDK_INTERVAL ROCP_SDK_M(agent_id) ROCP_SDK_M(address))
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_kfd_queue_record_t, ROCP_SDK_INTERVAL ROCP_SDK_M(agent_id))
#if ROCPROFILER_SDK_BETA_COMPAT > 0
ROCP_SDK_SAVE(rocprofiler_buffer_tracing_page_migration_record_t, ROCP_SDK_INTERVAL)
#endif
#undef ROCP_SDK_INTERVAL

/* ---- counters ---- */

ROCP_SDK_SAVE(rocprofiler_counter_record_t,
	      ROCP_SDK_M(id) ROCP_SDK_M(counter_value) ROCP_SDK_M(dispatch_id))
ROCP_SDK_SAVE(rocprofiler_dispatch_counting_service_data_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(correlation_id) ROCP_SDK_M(start_timestamp)
		      ROCP_SDK_M(end_timestamp) ROCP_SDK_M(dispatch_info))
ROCP_SDK_SAVE(rocprofiler_dispatch_counting_service_record_t,
	      ROCP_SDK_M(size) ROCP_SDK_M(num_records) ROCP_SDK_M(correlation_id)
		      ROCP_SDK_M(start_timestamp) ROCP_SDK_M(end_timestamp)
			      ROCP_SDK_M(dispatch_info))
ROCP_SDK_SAVE(rocprofiler_counter_info_v0_t,
	      ROCP_SDK_M(id) ROCP_SDK_B("is_constant", is_constant)
		      ROCP_SDK_B("is_derived", is_derived) ROCP_SDK_S(name) ROCP_SDK_S(description)
			      ROCP_SDK_S(block) ROCP_SDK_S(expression))
ROCP_SDK_SAVE(rocprofiler_counter_record_dimension_info_t,
	      ROCP_SDK_M(id) ROCP_SDK_M(instance_size) ROCP_SDK_S(name))

ROCP_SDK_SAVE(rocprofiler_counter_dimension_info_t, ROCP_SDK_S(dimension_name) ROCP_SDK_M(index))
ROCP_SDK_SAVE(rocprofiler_counter_info_v1_t,
	      ROCP_SDK_M(id) ROCP_SDK_B("is_constant", is_constant)
		      ROCP_SDK_B("is_derived", is_derived) ROCP_SDK_S(name) ROCP_SDK_S(description)
			      ROCP_SDK_S(block) ROCP_SDK_S(expression) ROCP_SDK_M(dimensions_count)
				      ROCP_SDK_M(dimensions_instances_count))

/* ---- samples of program counters ---- */

ROCP_SDK_SAVE(rocprofiler_pc_t, ROCP_SDK_M(code_object_id) ROCP_SDK_M(code_object_offset))
ROCP_SDK_SAVE(rocprofiler_pc_sampling_hw_id_v0_t,
	      ROCP_SDK_B("chiplet", chiplet) ROCP_SDK_B("wave_id", wave_id)
		      ROCP_SDK_B("simd_id", simd_id) ROCP_SDK_B("pipe_id", pipe_id)
			      ROCP_SDK_B("cu_or_wgp_id", cu_or_wgp_id) ROCP_SDK_B("shader_array_id",
										  shader_array_id)
				      ROCP_SDK_B("shader_engine_id", shader_engine_id)
					      ROCP_SDK_B("workgroup_id", workgroup_id)
						      ROCP_SDK_B("vm_id", vm_id)
							      ROCP_SDK_B("queue_id", queue_id))
ROCP_SDK_SAVE(rocprofiler_pc_sampling_record_host_trap_v0_t,
	      ROCP_SDK_M(hw_id) ROCP_SDK_M(pc) ROCP_SDK_M(exec_mask) ROCP_SDK_M(timestamp)
		      ROCP_SDK_M(dispatch_id) ROCP_SDK_M(correlation_id) ROCP_SDK_M(workgroup_id)
			      ROCP_SDK_B("wave_in_group", wave_in_group))
ROCP_SDK_SAVE(rocprofiler_pc_sampling_snapshot_v0_t,
	      ROCP_SDK_B("reason_not_issued", reason_not_issued)
		      ROCP_SDK_B("dual_issue_valu", dual_issue_valu))
ROCP_SDK_SAVE(rocprofiler_pc_sampling_record_stochastic_v0_t,
	      ROCP_SDK_M(hw_id) ROCP_SDK_M(pc) ROCP_SDK_M(exec_mask) ROCP_SDK_M(timestamp)
		      ROCP_SDK_M(dispatch_id) ROCP_SDK_M(correlation_id) ROCP_SDK_M(workgroup_id)
			      ROCP_SDK_M(wave_in_group) ROCP_SDK_B("wave_issued", wave_issued)
				      ROCP_SDK_B("inst_type", inst_type) ROCP_SDK_M(wave_count)
					      ROCP_SDK_M(snapshot))
ROCP_SDK_SAVE(rocprofiler_pc_sampling_record_invalid_t, ROCP_SDK_M(size))
ROCP_SDK_SAVE(rocprofiler_pc_sampling_configuration_t,
	      ROCP_SDK_M(method) ROCP_SDK_M(unit) ROCP_SDK_M(min_interval) ROCP_SDK_M(max_interval)
		      ROCP_SDK_M(flags))

/* ---- agents ---- */

ROCP_SDK_SAVE(HsaCacheType,
	      ROCP_SDK_B("Data", ui32.Data) ROCP_SDK_B("Instruction", ui32.Instruction)
		      ROCP_SDK_B("CPU", ui32.CPU) ROCP_SDK_B("HSACU", ui32.HSACU))
ROCP_SDK_SAVE(rocprofiler_agent_cache_t,
	      ROCP_SDK_M(processor_id_low) ROCP_SDK_M(size) ROCP_SDK_M(level)
		      ROCP_SDK_M(cache_line_size) ROCP_SDK_M(cache_lines_per_tag)
			      ROCP_SDK_M(association) ROCP_SDK_M(latency) ROCP_SDK_M(type))
ROCP_SDK_SAVE(rocprofiler_agent_io_link_t,
	      ROCP_SDK_M(type) ROCP_SDK_M(version_major) ROCP_SDK_M(version_minor)
		      ROCP_SDK_M(node_from) ROCP_SDK_M(node_to) ROCP_SDK_M(weight)
			      ROCP_SDK_M(min_latency) ROCP_SDK_M(max_latency)
				      ROCP_SDK_M(min_bandwidth) ROCP_SDK_M(max_bandwidth)
					      ROCP_SDK_M(recommended_transfer_size))
ROCP_SDK_SAVE(rocprofiler_agent_mem_bank_t,
	      ROCP_SDK_M(heap_type) ROCP_SDK_M(width) ROCP_SDK_M(mem_clk_max)
		      ROCP_SDK_M(size_in_bytes))
ROCP_SDK_SAVE(rocprofiler_agent_runtime_visiblity_t,
	      ROCP_SDK_B("hsa", hsa) ROCP_SDK_B("hip", hip) ROCP_SDK_B("rccl", rccl)
		      ROCP_SDK_B("rocdecode", rocdecode))
ROCP_SDK_SAVE(rocprofiler_uuid_t, ROCP_SDK_M(bytes))
template <typename ArchiveT> void save(ArchiveT &ar, const rocprofiler_agent_v0_t &data)
{
	namespace own = ::rocprofiler::sdk::serialization;

/* clang-format off */
#define ROCP_SDK_AGENT(M)                                                                          \
	M(size) M(id) M(type) M(cpu_cores_count) M(simd_count) M(mem_banks_count) M(caches_count)  \
	M(io_links_count) M(cpu_core_id_base) M(simd_id_base) M(max_waves_per_simd)                \
	M(lds_size_in_kb) M(gds_size_in_kb) M(num_gws) M(wave_front_size) M(num_xcc) M(cu_count)   \
	M(array_count) M(num_shader_banks) M(simd_arrays_per_engine) M(cu_per_simd_array)          \
	M(simd_per_cu) M(max_slots_scratch_cu) M(gfx_target_version) M(vendor_id) M(device_id)     \
	M(location_id) M(domain) M(drm_render_minor) M(num_sdma_engines)                           \
	M(num_sdma_xgmi_engines) M(num_sdma_queues_per_engine) M(num_cp_queues)                    \
	M(max_engine_clk_ccompute) M(max_engine_clk_fcompute) M(cu_per_engine) M(max_waves_per_cu) \
	M(family_id) M(workgroup_max_size) M(grid_max_size) M(local_mem_size) M(hive_id) M(gpu_id) \
	M(workgroup_max_dim) M(grid_max_dim)
	/* clang-format on */
	ROCP_SDK_AGENT(ROCP_SDK_M)
#undef ROCP_SDK_AGENT
	ROCP_SDK_S(name)
	ROCP_SDK_S(vendor_name)
	ROCP_SDK_S(product_name)
	ROCP_SDK_S(model_name)
	ROCP_SDK_M(node_id)
	ROCP_SDK_M(logical_node_id)
	ROCP_SDK_M(logical_node_type_id)
	ROCP_SDK_M(runtime_visibility)
	ROCP_SDK_M(uuid)
	ar(make_nvp("mem_banks", own::list_of(data.mem_banks, data.mem_banks_count)));
	ar(make_nvp("caches", own::list_of(data.caches, data.caches_count)));
	ar(make_nvp("io_links", own::list_of(data.io_links, data.io_links_count)));
}

/* ---- names of kinds and operations ---- */

template <typename ArchiveT, typename EnumT, typename ValueT>
void save(ArchiveT &ar, const ::rocprofiler::sdk::utility::name_info_impl<EnumT, ValueT> &data)
{
	std::vector<std::string> operations;

	for (const auto &operation : data.operations)
		operations.emplace_back(operation);
	ar(make_nvp("kind", std::string(data.name)));
	ar(make_nvp("operations", operations));
}

template <typename ArchiveT, typename EnumT, typename ValueT>
void save(ArchiveT &ar, const ::rocprofiler::sdk::utility::name_info<EnumT, ValueT> &data)
{
	ar.makeArray();
	for (const auto &kind : data)
		ar(make_nvp("entry", kind));
}

ROCPROFILER_SDK_CEREAL_NAMESPACE_END

#undef ROCP_SDK_SAVE
#undef ROCP_SDK_M
#undef ROCP_SDK_AS
#undef ROCP_SDK_S
#undef ROCP_SDK_B
#undef ROCP_SDK_CALL
#undef ROCP_SDK_WORK
#undef ROCP_SDK_EVENT

#endif
