/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Categories of Perfetto for kinds of tracing, and annotations of events, for tools that write with
 * Perfetto's own library: its perfetto.h is the tool's to bring along. Defines the categories of
 * the program (PERFETTO_DEFINE_CATEGORIES), as upstream does.
 */
#ifndef ROCPROFILER_SDK_CXX_PERFETTO_HPP
#define ROCPROFILER_SDK_CXX_PERFETTO_HPP

#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include <rocprofiler-sdk/fwd.h>

#include <perfetto.h>

namespace rocprofiler
{
namespace sdk
{
template <typename Category> struct perfetto_category;

#define ROCPROFILER_SDK_CATEGORY(its_name, text)                                                   \
	namespace category                                                                         \
	{                                                                                          \
	struct its_name {                                                                          \
	};                                                                                         \
	}                                                                                          \
	template <> struct perfetto_category<category::its_name> {                                 \
		static constexpr const char *name = #its_name;                                     \
		static constexpr const char *description = text;                                   \
	};
ROCPROFILER_SDK_CATEGORY(hsa_api, "Functions of HSA")
ROCPROFILER_SDK_CATEGORY(hip_api, "Functions of HIP")
ROCPROFILER_SDK_CATEGORY(marker_api, "Marks and ranges")
ROCPROFILER_SDK_CATEGORY(rccl_api, "Functions of RCCL")
ROCPROFILER_SDK_CATEGORY(openmp, "OpenMP")
ROCPROFILER_SDK_CATEGORY(kernel_dispatch, "Kernels")
ROCPROFILER_SDK_CATEGORY(memory_copy, "Copies")
ROCPROFILER_SDK_CATEGORY(memory_allocation, "Memory that is taken and given back")
ROCPROFILER_SDK_CATEGORY(rocdecode_api, "Functions of rocDecode")
ROCPROFILER_SDK_CATEGORY(rocjpeg_api, "Functions of rocJPEG")
ROCPROFILER_SDK_CATEGORY(counter_collection, "Counters")
ROCPROFILER_SDK_CATEGORY(kfd_events, "Events of the kernel driver")
ROCPROFILER_SDK_CATEGORY(none, "Anything else")
#undef ROCPROFILER_SDK_CATEGORY
} // namespace sdk
} // namespace rocprofiler

#define ROCPROFILER_SDK_CATEGORY(its_name)                                                         \
	::perfetto::Category(::rocprofiler::sdk::perfetto_category<                                \
				     ::rocprofiler::sdk::category::its_name>::name)                \
		.SetDescription(::rocprofiler::sdk::perfetto_category<                             \
				::rocprofiler::sdk::category::its_name>::description)
PERFETTO_DEFINE_CATEGORIES(ROCPROFILER_SDK_CATEGORY(hsa_api), ROCPROFILER_SDK_CATEGORY(hip_api),
			   ROCPROFILER_SDK_CATEGORY(marker_api), ROCPROFILER_SDK_CATEGORY(rccl_api),
			   ROCPROFILER_SDK_CATEGORY(openmp),
			   ROCPROFILER_SDK_CATEGORY(kernel_dispatch),
			   ROCPROFILER_SDK_CATEGORY(memory_copy),
			   ROCPROFILER_SDK_CATEGORY(memory_allocation),
			   ROCPROFILER_SDK_CATEGORY(rocdecode_api),
			   ROCPROFILER_SDK_CATEGORY(rocjpeg_api),
			   ROCPROFILER_SDK_CATEGORY(counter_collection),
			   ROCPROFILER_SDK_CATEGORY(kfd_events), ROCPROFILER_SDK_CATEGORY(none));
#undef ROCPROFILER_SDK_CATEGORY

namespace rocprofiler
{
namespace sdk
{
using perfetto_event_context_t = ::perfetto::EventContext;

/* By the type of the value; what can be written to a stream is written there. */
template <typename Name, typename Value>
void add_perfetto_annotation(perfetto_event_context_t &context, Name &&name, Value &&value)
{
	using type = std::remove_cv_t<std::remove_reference_t<Value>>;
	auto *annotation = context.event()->add_debug_annotations();

	annotation->set_name(std::string(std::forward<Name>(name)));
	if constexpr (std::is_same_v<type, bool>) {
		annotation->set_bool_value(value);
	} else if constexpr (std::is_enum_v<type> ||
			     (std::is_integral_v<type> && std::is_signed_v<type>)) {
		annotation->set_int_value(static_cast<std::int64_t>(value));
	} else if constexpr (std::is_integral_v<type>) {
		annotation->set_uint_value(static_cast<std::uint64_t>(value));
	} else if constexpr (std::is_floating_point_v<type>) {
		annotation->set_double_value(static_cast<double>(value));
	} else if constexpr (std::is_constructible_v<std::string, const type &>) {
		annotation->set_string_value(std::string(value));
	} else if constexpr (std::is_pointer_v<type>) {
		annotation->set_pointer_value(reinterpret_cast<std::uintptr_t>(value));
	} else {
		std::ostringstream text;

		text << value;
		annotation->set_string_value(text.str());
	}
}

/* nullptr: there is no such kind. */
inline const char *get_perfetto_category(rocprofiler_callback_tracing_kind_t kind)
{
	switch (kind) {
	case ROCPROFILER_CALLBACK_TRACING_HSA_CORE_API:
	case ROCPROFILER_CALLBACK_TRACING_HSA_AMD_EXT_API:
	case ROCPROFILER_CALLBACK_TRACING_HSA_IMAGE_EXT_API:
	case ROCPROFILER_CALLBACK_TRACING_HSA_FINALIZE_EXT_API:
		return perfetto_category<category::hsa_api>::name;
	case ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API:
	case ROCPROFILER_CALLBACK_TRACING_HIP_COMPILER_API:
	case ROCPROFILER_CALLBACK_TRACING_HIP_STREAM:
		return perfetto_category<category::hip_api>::name;
	case ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API:
	case ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API:
	case ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API:
	case ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API:
		return perfetto_category<category::marker_api>::name;
	case ROCPROFILER_CALLBACK_TRACING_RCCL_API:
		return perfetto_category<category::rccl_api>::name;
	case ROCPROFILER_CALLBACK_TRACING_OMPT:
		return perfetto_category<category::openmp>::name;
	case ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH:
		return perfetto_category<category::kernel_dispatch>::name;
	case ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY:
		return perfetto_category<category::memory_copy>::name;
	case ROCPROFILER_CALLBACK_TRACING_SCRATCH_MEMORY:
	case ROCPROFILER_CALLBACK_TRACING_MEMORY_ALLOCATION:
		return perfetto_category<category::memory_allocation>::name;
	case ROCPROFILER_CALLBACK_TRACING_ROCDECODE_API:
		return perfetto_category<category::rocdecode_api>::name;
	case ROCPROFILER_CALLBACK_TRACING_ROCJPEG_API:
		return perfetto_category<category::rocjpeg_api>::name;
	default:
		break;
	}
	return kind >= ROCPROFILER_CALLBACK_TRACING_NONE && kind < ROCPROFILER_CALLBACK_TRACING_LAST
		       ? perfetto_category<category::none>::name
		       : nullptr;
}

inline const char *get_perfetto_category(rocprofiler_buffer_tracing_kind_t kind)
{
	switch (kind) {
	case ROCPROFILER_BUFFER_TRACING_HSA_CORE_API:
	case ROCPROFILER_BUFFER_TRACING_HSA_AMD_EXT_API:
	case ROCPROFILER_BUFFER_TRACING_HSA_IMAGE_EXT_API:
	case ROCPROFILER_BUFFER_TRACING_HSA_FINALIZE_EXT_API:
		return perfetto_category<category::hsa_api>::name;
	case ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API:
	case ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API:
	case ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT:
	case ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT:
	case ROCPROFILER_BUFFER_TRACING_HIP_STREAM:
		return perfetto_category<category::hip_api>::name;
	case ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API:
	case ROCPROFILER_BUFFER_TRACING_MARKER_CONTROL_API:
	case ROCPROFILER_BUFFER_TRACING_MARKER_NAME_API:
	case ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API:
		return perfetto_category<category::marker_api>::name;
	case ROCPROFILER_BUFFER_TRACING_RCCL_API:
		return perfetto_category<category::rccl_api>::name;
	case ROCPROFILER_BUFFER_TRACING_OMPT:
		return perfetto_category<category::openmp>::name;
	case ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH:
		return perfetto_category<category::kernel_dispatch>::name;
	case ROCPROFILER_BUFFER_TRACING_MEMORY_COPY:
		return perfetto_category<category::memory_copy>::name;
	case ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY:
	case ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION:
		return perfetto_category<category::memory_allocation>::name;
	case ROCPROFILER_BUFFER_TRACING_ROCDECODE_API:
	case ROCPROFILER_BUFFER_TRACING_ROCDECODE_API_EXT:
		return perfetto_category<category::rocdecode_api>::name;
	case ROCPROFILER_BUFFER_TRACING_ROCJPEG_API:
		return perfetto_category<category::rocjpeg_api>::name;
	default:
		break;
	}
	if (kind >= ROCPROFILER_BUFFER_TRACING_KFD_EVENT_PAGE_MIGRATE &&
	    kind <= ROCPROFILER_BUFFER_TRACING_KFD_QUEUE)
		return perfetto_category<category::kfd_events>::name;
	return kind >= ROCPROFILER_BUFFER_TRACING_NONE && kind < ROCPROFILER_BUFFER_TRACING_LAST
		       ? perfetto_category<category::none>::name
		       : nullptr;
}
} // namespace sdk
} // namespace rocprofiler

#endif
