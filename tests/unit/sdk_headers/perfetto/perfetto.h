/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What of Perfetto's library rocprofiler-sdk/cxx/perfetto.hpp uses, for compiling it: the names and
 * types of its public interface, and nothing behind them.
 */
#ifndef STAND_IN_PERFETTO_H
#define STAND_IN_PERFETTO_H

#include <cstdint>
#include <string>

namespace perfetto
{
struct Category {
	const char *name;
	const char *description;

	constexpr explicit Category(const char *its_name) : name(its_name), description(nullptr)
	{
	}
	constexpr Category SetDescription(const char *text) const
	{
		Category described(name);

		described.description = text;
		return described;
	}
};

struct Annotation {
	std::string name, text;

	void set_name(const std::string &its_name)
	{
		name = its_name;
	}
	void set_bool_value(bool value)
	{
		text = value ? "true" : "false";
	}
	void set_int_value(std::int64_t value)
	{
		text = "int " + std::to_string(value);
	}
	void set_uint_value(std::uint64_t value)
	{
		text = "uint " + std::to_string(value);
	}
	void set_double_value(double value)
	{
		text = "double " + std::to_string(value);
	}
	void set_pointer_value(std::uint64_t value)
	{
		text = "pointer " + std::to_string(value);
	}
	void set_string_value(const std::string &value)
	{
		text = "string " + value;
	}
};

struct TrackEvent {
	Annotation last;

	Annotation *add_debug_annotations()
	{
		return &last;
	}
};

struct EventContext {
	TrackEvent track_event;

	TrackEvent *event()
	{
		return &track_event;
	}
};
} // namespace perfetto

#define PERFETTO_DEFINE_CATEGORIES(...)                                                            \
	namespace perfetto                                                                         \
	{                                                                                          \
	constexpr Category categories[] = {__VA_ARGS__};                                           \
	}                                                                                          \
	static_assert(true, "a semicolon belongs behind it")

#endif
