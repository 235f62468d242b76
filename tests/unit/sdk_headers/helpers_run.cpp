/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What helpers of rocprofiler-sdk/cxx answer: categories of Perfetto, annotations, code objects by
 * address. Prints what is wrong.
 */
#include <rocprofiler-sdk/cxx/codeobj/segment.hpp>
#include <rocprofiler-sdk/cxx/perfetto.hpp>

#include <cstdio>
#include <string>

namespace
{
namespace sdk = rocprofiler::sdk;
int problems;

void is(const char *what, const std::string &got, const std::string &expected)
{
	if (got == expected)
		return;
	std::printf("%s: '%s', not '%s'\n", what, got.c_str(), expected.c_str());
	problems++;
}

template <typename Kind> std::string category(Kind kind)
{
	const char *name = sdk::get_perfetto_category(kind);

	return name != nullptr ? name : "(none)";
}

void categories()
{
	is("dispatches", category(ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH), "kernel_dispatch");
	is("copies", category(ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY), "memory_copy");
	is("ranges", category(ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API), "marker_api");
	is("KFD", category(ROCPROFILER_BUFFER_TRACING_KFD_PAGE_FAULT), "kfd_events");
	is("code", category(ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT), "none");
	is("no kind", category(ROCPROFILER_CALLBACK_TRACING_LAST), "(none)");
	for (int i = 0; i < ROCPROFILER_BUFFER_TRACING_LAST; i++)
		is("known", category((rocprofiler_buffer_tracing_kind_t)i) == "(none)" ? "" : "x",
		   "x");
	is("defined", std::to_string(sizeof(perfetto::categories) / sizeof(perfetto::Category)),
	   "13");
}

template <typename Value> std::string annotated(Value &&value)
{
	perfetto::EventContext context;

	sdk::add_perfetto_annotation(context, "name", std::forward<Value>(value));
	return context.track_event.last.name + " " + context.track_event.last.text;
}

void annotations()
{
	const std::string text = "text";
	int number = -7;

	is("a bool", annotated(true), "name true");
	is("an int", annotated(number), "name int -7");
	is("an unsigned", annotated(7u), "name uint 7");
	is("an enumerator", annotated(ROCPROFILER_AGENT_TYPE_GPU), "name int 2");
	is("a double", annotated(0.5), "name double 0.500000");
	is("a literal", annotated("text"), "name string text");
	is("a string", annotated(text), "name string text");
	is("a pointer", annotated(reinterpret_cast<void *>(16)), "name pointer 16");
}

void code_objects()
{
	namespace segment = sdk::codeobj::segment;
	segment::CodeobjTableTranslator all;
	bool thrown = false;

	all.insert({0x1000, 0x100, 1});
	all.insert({0x2000, 0x100, 2});
	is("overlaps", all.insert({0x10f0, 0x100, 3}).second ? "put in" : "refused", "refused");
	is("first", std::to_string(all.find_codeobj_in_range(0x1000).id), "1");
	is("last byte", std::to_string(all.find_codeobj_in_range(0x20ff).id), "2");
	is("removed", all.remove(0x2050) ? "yes" : "no", "yes");
	try {
		all.find_codeobj_in_range(0x20ff);
	} catch (const std::exception &) {
		thrown = true;
	}
	is("behind it", thrown ? "thrown" : "found", "thrown");
}
} // namespace

int main()
{
	categories();
	annotations();
	code_objects();
	return problems != 0;
}
