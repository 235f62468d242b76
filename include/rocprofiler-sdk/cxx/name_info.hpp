/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The names of all kinds and operations at once:
 *   auto names = rocprofiler::sdk::get_callback_tracing_names();
 *   names.at(record.kind, record.operation)
 */
#ifndef ROCPROFILER_SDK_CXX_NAME_INFO_HPP
#define ROCPROFILER_SDK_CXX_NAME_INFO_HPP

#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/fwd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rocprofiler
{
namespace sdk
{
namespace utility
{
/* A kind: its name, and those of its operations by their number. */
template <typename EnumT, typename ValueT = std::string_view> struct name_info_impl {
	using enum_type = EnumT;
	using value_type = ValueT;
	using return_type = ValueT;
	using item_type = std::pair<rocprofiler_tracing_operation_t, const value_type *>;
	using item_array_t = std::vector<item_type>;

	return_type operator()() const
	{
		return name;
	}
	return_type operator()(size_t idx) const
	{
		return operations.at(idx);
	}
	return_type operator[](size_t idx) const
	{
		return operations.at(idx);
	}
	item_array_t items() const
	{
		item_array_t all;

		for (const auto &operation : operations)
			all.emplace_back(static_cast<rocprofiler_tracing_operation_t>(all.size()),
					 &operation);
		return all;
	}

	EnumT value = static_cast<EnumT>(0);
	value_type name = {};
	std::vector<value_type> operations = {};
};

template <typename EnumT, typename ValueT = std::string_view> struct name_info {
	using value_type = name_info_impl<EnumT, ValueT>;
	using enum_type = EnumT;
	using return_type = typename value_type::return_type;
	using item_type = const value_type *;
	using item_array_t = std::vector<item_type>;

	void emplace(EnumT idx, const char *name)
	{
		kind(idx).name = ValueT(name);
	}
	void emplace(EnumT idx, rocprofiler_tracing_operation_t opidx, const char *name)
	{
		auto &operations = kind(idx).operations;

		if (operations.size() <= static_cast<size_t>(opidx))
			operations.resize(static_cast<size_t>(opidx) + 1);
		operations.at(static_cast<size_t>(opidx)) = ValueT(name);
	}
	return_type at(EnumT idx) const
	{
		return kinds.at(static_cast<size_t>(idx)).name;
	}
	return_type at(EnumT idx, rocprofiler_tracing_operation_t opidx) const
	{
		return kinds.at(static_cast<size_t>(idx)).operations.at(static_cast<size_t>(opidx));
	}
	item_array_t items() const
	{
		item_array_t all;

		for (const auto &each : kinds)
			all.emplace_back(&each);
		return all;
	}
	size_t size() const
	{
		return kinds.size();
	}
	auto begin()
	{
		return kinds.begin();
	}
	auto begin() const
	{
		return kinds.begin();
	}
	auto end()
	{
		return kinds.end();
	}
	auto end() const
	{
		return kinds.end();
	}
	value_type &operator[](size_t idx)
	{
		return kinds.at(idx);
	}
	const value_type &operator[](size_t idx) const
	{
		return kinds.at(idx);
	}

      private:
	value_type &kind(EnumT idx)
	{
		if (kinds.size() <= static_cast<size_t>(idx))
			kinds.resize(static_cast<size_t>(idx) + 1);
		kinds.at(static_cast<size_t>(idx)).value = idx;
		return kinds.at(static_cast<size_t>(idx));
	}

	std::vector<value_type> kinds = {};
};
} // namespace utility

template <typename Tp = std::string_view>
using callback_name_info_t = utility::name_info<rocprofiler_callback_tracing_kind_t, Tp>;
template <typename Tp = std::string_view>
using buffer_name_info_t = utility::name_info<rocprofiler_buffer_tracing_kind_t, Tp>;
using callback_name_info = callback_name_info_t<std::string_view>;
using buffer_name_info = buffer_name_info_t<std::string_view>;

template <typename Tp = std::string_view>
inline callback_name_info_t<Tp> get_callback_tracing_names()
{
	using kind_t = rocprofiler_callback_tracing_kind_t;
	callback_name_info_t<Tp> names;

	rocprofiler_iterate_callback_tracing_kinds(
		[](kind_t kind, void *data) {
			auto *all = static_cast<callback_name_info_t<Tp> *>(data);
			const char *name = nullptr;

			if (rocprofiler_query_callback_tracing_kind_name(kind, &name, nullptr) ==
			    ROCPROFILER_STATUS_SUCCESS)
				all->emplace(kind, name);
			rocprofiler_iterate_callback_tracing_kind_operations(
				kind,
				[](kind_t of, rocprofiler_tracing_operation_t operation,
				   void *more) {
					const char *text = nullptr;

					if (rocprofiler_query_callback_tracing_kind_operation_name(
						    of, operation, &text, nullptr) ==
					    ROCPROFILER_STATUS_SUCCESS)
						static_cast<callback_name_info_t<Tp> *>(more)
							->emplace(of, operation, text);
					return 0;
				},
				data);
			return 0;
		},
		&names);
	return names;
}

template <typename Tp = std::string_view> inline buffer_name_info_t<Tp> get_buffer_tracing_names()
{
	using kind_t = rocprofiler_buffer_tracing_kind_t;
	buffer_name_info_t<Tp> names;

	rocprofiler_iterate_buffer_tracing_kinds(
		[](kind_t kind, void *data) {
			auto *all = static_cast<buffer_name_info_t<Tp> *>(data);
			const char *name = nullptr;

			if (rocprofiler_query_buffer_tracing_kind_name(kind, &name, nullptr) ==
			    ROCPROFILER_STATUS_SUCCESS)
				all->emplace(kind, name);
			rocprofiler_iterate_buffer_tracing_kind_operations(
				kind,
				[](kind_t of, rocprofiler_tracing_operation_t operation,
				   void *more) {
					const char *text = nullptr;

					if (rocprofiler_query_buffer_tracing_kind_operation_name(
						    of, operation, &text, nullptr) ==
					    ROCPROFILER_STATUS_SUCCESS)
						static_cast<buffer_name_info_t<Tp> *>(more)
							->emplace(of, operation, text);
					return 0;
				},
				data);
			return 0;
		},
		&names);
	return names;
}
} // namespace sdk
} // namespace rocprofiler

#endif
