/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Comparing handles, agents, dimensions and versions.
 */
#ifndef ROCPROFILER_SDK_CXX_OPERATORS_HPP
#define ROCPROFILER_SDK_CXX_OPERATORS_HPP

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/counters.h>
#include <rocprofiler-sdk/experimental/thread-trace/trace_decoder.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/hsa.h>
#include <rocprofiler-sdk/internal_threading.h>

#include <string_view>
#include <tuple>

#define ROCP_RELATIONS(TYPE)                                                                       \
	inline bool operator!=(TYPE lhs, TYPE rhs)                                                 \
	{                                                                                          \
		return !(lhs == rhs);                                                              \
	}                                                                                          \
	inline bool operator>(TYPE lhs, TYPE rhs)                                                  \
	{                                                                                          \
		return rhs < lhs;                                                                  \
	}                                                                                          \
	inline bool operator<=(TYPE lhs, TYPE rhs)                                                 \
	{                                                                                          \
		return !(rhs < lhs);                                                               \
	}                                                                                          \
	inline bool operator>=(TYPE lhs, TYPE rhs)                                                 \
	{                                                                                          \
		return !(lhs < rhs);                                                               \
	}

#define ROCP_HANDLE_OPERATORS(TYPE)                                                                \
	inline bool operator==(TYPE lhs, TYPE rhs)                                                 \
	{                                                                                          \
		return lhs.handle == rhs.handle;                                                   \
	}                                                                                          \
	inline bool operator<(TYPE lhs, TYPE rhs)                                                  \
	{                                                                                          \
		return lhs.handle < rhs.handle;                                                    \
	}                                                                                          \
	ROCP_RELATIONS(TYPE)

ROCP_HANDLE_OPERATORS(rocprofiler_context_id_t)
ROCP_HANDLE_OPERATORS(rocprofiler_agent_id_t)
ROCP_HANDLE_OPERATORS(rocprofiler_queue_id_t)
ROCP_HANDLE_OPERATORS(rocprofiler_stream_id_t)
ROCP_HANDLE_OPERATORS(rocprofiler_buffer_id_t)
ROCP_HANDLE_OPERATORS(rocprofiler_counter_id_t)
ROCP_HANDLE_OPERATORS(rocprofiler_counter_config_id_t)
ROCP_HANDLE_OPERATORS(rocprofiler_callback_thread_t)
ROCP_HANDLE_OPERATORS(rocprofiler_thread_trace_decoder_id_t)
ROCP_HANDLE_OPERATORS(rocprofiler_address_t)
ROCP_HANDLE_OPERATORS(hsa_agent_t)
ROCP_HANDLE_OPERATORS(hsa_signal_t)
ROCP_HANDLE_OPERATORS(hsa_executable_t)
ROCP_HANDLE_OPERATORS(hsa_region_t)
ROCP_HANDLE_OPERATORS(hsa_amd_memory_pool_t)

inline bool operator==(rocprofiler_version_triplet_t lhs, rocprofiler_version_triplet_t rhs)
{
	return std::tie(lhs.major, lhs.minor, lhs.patch) ==
	       std::tie(rhs.major, rhs.minor, rhs.patch);
}
inline bool operator<(rocprofiler_version_triplet_t lhs, rocprofiler_version_triplet_t rhs)
{
	return std::tie(lhs.major, lhs.minor, lhs.patch) <
	       std::tie(rhs.major, rhs.minor, rhs.patch);
}
ROCP_RELATIONS(rocprofiler_version_triplet_t)

/* By the number of threads first. */
inline bool operator==(rocprofiler_dim3_t lhs, rocprofiler_dim3_t rhs)
{
	return std::tie(lhs.x, lhs.y, lhs.z) == std::tie(rhs.x, rhs.y, rhs.z);
}
inline bool operator<(rocprofiler_dim3_t lhs, rocprofiler_dim3_t rhs)
{
	const uint64_t left = uint64_t{lhs.x} * lhs.y * lhs.z,
		       right = uint64_t{rhs.x} * rhs.y * rhs.z;

	return std::tie(left, lhs.x, lhs.y, lhs.z) < std::tie(right, rhs.x, rhs.y, rhs.z);
}
ROCP_RELATIONS(rocprofiler_dim3_t)

inline bool operator==(const rocprofiler_agent_v0_t &lhs, const rocprofiler_agent_v0_t &rhs)
{
	return std::tie(lhs.id) == std::tie(rhs.id);
}
inline bool operator<(const rocprofiler_agent_v0_t &lhs, const rocprofiler_agent_v0_t &rhs)
{
	return std::tie(lhs.id) < std::tie(rhs.id);
}
ROCP_RELATIONS(const rocprofiler_agent_v0_t &)

inline bool operator==(const rocprofiler_counter_record_dimension_info_t &lhs,
		       const rocprofiler_counter_record_dimension_info_t &rhs)
{
	return std::make_tuple(lhs.id, lhs.instance_size, std::string_view{lhs.name}) ==
	       std::make_tuple(rhs.id, rhs.instance_size, std::string_view{rhs.name});
}
inline bool operator<(const rocprofiler_counter_record_dimension_info_t &lhs,
		      const rocprofiler_counter_record_dimension_info_t &rhs)
{
	return std::make_tuple(lhs.id, lhs.instance_size, std::string_view{lhs.name}) <
	       std::make_tuple(rhs.id, rhs.instance_size, std::string_view{rhs.name});
}
ROCP_RELATIONS(const rocprofiler_counter_record_dimension_info_t &)

inline bool operator==(const rocprofiler_counter_dimension_info_t &lhs,
		       const rocprofiler_counter_dimension_info_t &rhs)
{
	return std::make_tuple(std::string_view{lhs.dimension_name}, lhs.index) ==
	       std::make_tuple(std::string_view{rhs.dimension_name}, rhs.index);
}
inline bool operator<(const rocprofiler_counter_dimension_info_t &lhs,
		      const rocprofiler_counter_dimension_info_t &rhs)
{
	return std::make_tuple(std::string_view{lhs.dimension_name}, lhs.index) <
	       std::make_tuple(std::string_view{rhs.dimension_name}, rhs.index);
}
ROCP_RELATIONS(const rocprofiler_counter_dimension_info_t &)

inline bool operator==(const rocprofiler_counter_record_dimension_instance_info_t &lhs,
		       const rocprofiler_counter_record_dimension_instance_info_t &rhs)
{
	return std::tie(lhs.instance_id, lhs.counter_id, lhs.dimensions_count) ==
	       std::tie(rhs.instance_id, rhs.counter_id, rhs.dimensions_count);
}
inline bool operator<(const rocprofiler_counter_record_dimension_instance_info_t &lhs,
		      const rocprofiler_counter_record_dimension_instance_info_t &rhs)
{
	return std::tie(lhs.instance_id, lhs.counter_id, lhs.dimensions_count) <
	       std::tie(rhs.instance_id, rhs.counter_id, rhs.dimensions_count);
}
ROCP_RELATIONS(const rocprofiler_counter_record_dimension_instance_info_t &)

#undef ROCP_HANDLE_OPERATORS
#undef ROCP_RELATIONS

#endif
