/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * std::hash for handles.
 */
#ifndef ROCPROFILER_SDK_CXX_HASH_HPP
#define ROCPROFILER_SDK_CXX_HASH_HPP

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/counters.h>
#include <rocprofiler-sdk/experimental/thread-trace/trace_decoder.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/hsa.h>
#include <rocprofiler-sdk/internal_threading.h>

#include <cstddef>
#include <functional>

namespace rocprofiler
{
namespace sdk
{
namespace hash
{
template <typename Tp> struct handle_hasher {
	static_assert(sizeof(Tp) == sizeof(uint64_t), "a handle is one 64-bit number");

	size_t operator()(Tp val) const
	{
		return std::hash<uint64_t>{}(val.handle);
	}
};
} // namespace hash
} // namespace sdk
} // namespace rocprofiler

namespace std
{
template <>
struct hash<rocprofiler_context_id_t>
    : rocprofiler::sdk::hash::handle_hasher<rocprofiler_context_id_t> {
};
template <>
struct hash<rocprofiler_agent_id_t>
    : rocprofiler::sdk::hash::handle_hasher<rocprofiler_agent_id_t> {
};
template <>
struct hash<rocprofiler_queue_id_t>
    : rocprofiler::sdk::hash::handle_hasher<rocprofiler_queue_id_t> {
};
template <>
struct hash<rocprofiler_stream_id_t>
    : rocprofiler::sdk::hash::handle_hasher<rocprofiler_stream_id_t> {
};
template <>
struct hash<rocprofiler_buffer_id_t>
    : rocprofiler::sdk::hash::handle_hasher<rocprofiler_buffer_id_t> {
};
template <>
struct hash<rocprofiler_counter_id_t>
    : rocprofiler::sdk::hash::handle_hasher<rocprofiler_counter_id_t> {
};
template <>
struct hash<rocprofiler_counter_config_id_t>
    : rocprofiler::sdk::hash::handle_hasher<rocprofiler_counter_config_id_t> {
};
template <>
struct hash<rocprofiler_callback_thread_t>
    : rocprofiler::sdk::hash::handle_hasher<rocprofiler_callback_thread_t> {
};
template <>
struct hash<rocprofiler_thread_trace_decoder_id_t>
    : rocprofiler::sdk::hash::handle_hasher<rocprofiler_thread_trace_decoder_id_t> {
};
template <>
struct hash<rocprofiler_address_t> : rocprofiler::sdk::hash::handle_hasher<rocprofiler_address_t> {
};
template <> struct hash<hsa_agent_t> : rocprofiler::sdk::hash::handle_hasher<hsa_agent_t> {
};
template <> struct hash<hsa_signal_t> : rocprofiler::sdk::hash::handle_hasher<hsa_signal_t> {
};
template <>
struct hash<hsa_executable_t> : rocprofiler::sdk::hash::handle_hasher<hsa_executable_t> {
};
template <> struct hash<hsa_region_t> : rocprofiler::sdk::hash::handle_hasher<hsa_region_t> {
};
template <>
struct hash<hsa_amd_memory_pool_t> : rocprofiler::sdk::hash::handle_hasher<hsa_amd_memory_pool_t> {
};
} // namespace std

#endif
