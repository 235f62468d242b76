/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What tools in C++ do with the helpers of rocprofiler-sdk/cxx. Compiled only; serialization where
 * cereal is installed.
 */
#include <rocprofiler-sdk/cxx/enum_string.hpp>
#include <rocprofiler-sdk/cxx/hash.hpp>
#include <rocprofiler-sdk/cxx/name_info.hpp>
#include <rocprofiler-sdk/cxx/operators.hpp>
#include <rocprofiler-sdk/cxx/utility.hpp>
#include <rocprofiler-sdk/cxx/version.hpp>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#if __has_include(<cereal/cereal.hpp>)
#include <rocprofiler-sdk/cxx/serialization.hpp>
#define WITH_CEREAL 1
#else
#define WITH_CEREAL 0
#endif

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>

namespace
{
struct tool {
	std::unordered_map<rocprofiler_agent_id_t, rocprofiler_agent_v0_t> agents;
	std::map<rocprofiler_queue_id_t, std::string> queues;
	std::set<rocprofiler_dim3_t> grids;
	rocprofiler::sdk::callback_name_info callbacks;
	rocprofiler::sdk::buffer_name_info_t<std::string> buffers;
};

std::string name_of(const tool &all, const rocprofiler_callback_tracing_record_t &record)
{
	std::stringstream text;

	text << all.callbacks.at(record.kind) << "/"
	     << all.callbacks.at(record.kind, record.operation) << " "
	     << rocprofiler::sdk::utility::as_hex(record.thread_id);
	for (const auto *kind : all.callbacks.items())
		for (auto [number, name] : kind->items())
			text << number << *name;
	return text.str();
}

#if WITH_CEREAL
template <typename Record> std::string json_of(const Record &record)
{
	std::stringstream text;

	{
		cereal::JSONOutputArchive archive(text);
		archive(cereal::make_nvp("record", record));
	}
	return text.str();
}

std::string all_of_them(const tool &all)
{
	std::string text = json_of(all.callbacks) + json_of(all.buffers);

	for (const auto &[id, agent] : all.agents)
		text += json_of(agent) + json_of(id);
	text += json_of(rocprofiler_callback_tracing_record_t{});
	text += json_of(rocprofiler_callback_tracing_code_object_load_data_t{});
	text += json_of(rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t{});
	text += json_of(rocprofiler_callback_tracing_kernel_dispatch_data_t{});
	text += json_of(rocprofiler_callback_tracing_hip_api_data_t{});
	text += json_of(rocprofiler_callback_tracing_marker_api_data_t{});
	text += json_of(rocprofiler_buffer_tracing_hsa_api_record_t{});
	text += json_of(rocprofiler_buffer_tracing_hip_api_ext_record_t{});
	text += json_of(rocprofiler_buffer_tracing_ompt_record_t{});
	text += json_of(rocprofiler_buffer_tracing_kernel_dispatch_record_t{});
	text += json_of(rocprofiler_buffer_tracing_memory_copy_record_t{});
	text += json_of(rocprofiler_buffer_tracing_memory_allocation_record_t{});
	text += json_of(rocprofiler_buffer_tracing_scratch_memory_record_t{});
	text += json_of(rocprofiler_buffer_tracing_correlation_id_retirement_record_t{});
	text += json_of(rocprofiler_buffer_tracing_runtime_initialization_record_t{});
	text += json_of(rocprofiler_callback_tracing_rccl_api_data_t{});
	text += json_of(rocprofiler_callback_tracing_rocdecode_api_data_t{});
	text += json_of(rocprofiler_callback_tracing_rocjpeg_api_data_t{});
	text += json_of(rocprofiler_callback_tracing_hip_stream_data_t{});
	text += json_of(
		rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t{});
	text += json_of(rocprofiler_buffer_tracing_kfd_page_migrate_record_t{});
	text += json_of(rocprofiler_buffer_tracing_kfd_page_fault_record_t{});
	text += json_of(rocprofiler_buffer_tracing_kfd_queue_record_t{});
	text += json_of(rocprofiler_buffer_tracing_page_migration_record_t{});
	text += json_of(rocprofiler_pc_sampling_record_host_trap_v0_t{});
	text += json_of(rocprofiler_pc_sampling_record_stochastic_v0_t{});
	text += json_of(rocprofiler_pc_sampling_record_invalid_t{});
	text += json_of(rocprofiler_counter_info_v1_t{});
	text += json_of(rocprofiler_counter_dimension_info_t{});
	text += json_of(rocprofiler_counter_record_t{});
	text += json_of(rocprofiler_dispatch_counting_service_record_t{});
	text += json_of(rocprofiler_counter_info_v0_t{});
	return text;
}
#else
std::string all_of_them(const tool &)
{
	return {};
}
#endif
} // namespace

std::string use_helpers(const rocprofiler_callback_tracing_record_t &record);

std::string use_helpers(const rocprofiler_callback_tracing_record_t &record)
{
	tool all = {};

	all.callbacks = rocprofiler::sdk::get_callback_tracing_names();
	all.buffers = rocprofiler::sdk::get_buffer_tracing_names<std::string>();
	all.grids.insert(rocprofiler_dim3_t{1, 2, 3});
	return name_of(all, record) + all_of_them(all);
}
