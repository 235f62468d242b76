/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A tool in C++ that gets records in bulk: a buffer, a thread of its own to hand it over, and the
 * end of the process, where what is left is flushed. It counts records by operation and sums their
 * times, and writes that to the file that SAMPLE_OUTPUT names.
 */
#include <rocprofiler-sdk/cxx/name_info.hpp>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

namespace
{
struct sum {
	uint64_t count = 0;
	uint64_t nanoseconds = 0;
	bool in_order = true;
};

struct tool_data {
	rocprofiler::sdk::buffer_name_info names = {};
	rocprofiler_context_id_t context = {};
	rocprofiler_buffer_id_t buffer = {};
	std::map<std::string, sum> sums = {};
	uint64_t retired = 0, dropped = 0, threads = 0;
};

void check(rocprofiler_status_t status, const char *what)
{
	if (status != ROCPROFILER_STATUS_SUCCESS)
		throw std::runtime_error(std::string(what) + ": " +
					 rocprofiler_get_status_string(status));
}
#define CALL(call) check((call), #call)

template <typename Record> void add(tool_data &data, const void *payload)
{
	const auto *record = static_cast<const Record *>(payload);
	auto &sum = data.sums[std::string(data.names.at(record->kind, record->operation))];

	sum.count++;
	sum.nanoseconds += record->end_timestamp - record->start_timestamp;
	sum.in_order = sum.in_order && record->start_timestamp <= record->end_timestamp;
}

void handed_over(rocprofiler_context_id_t, rocprofiler_buffer_id_t,
		 rocprofiler_record_header_t **headers, size_t count, void *user,
		 uint64_t drop_count)
{
	auto &data = *static_cast<tool_data *>(user);

	data.dropped += drop_count;
	for (size_t i = 0; i < count; i++) {
		if (headers[i]->category != ROCPROFILER_BUFFER_CATEGORY_TRACING)
			continue;
		switch (headers[i]->kind) {
		case ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API:
			add<rocprofiler_buffer_tracing_marker_api_record_t>(data,
									    headers[i]->payload);
			break;
		case ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH:
			add<rocprofiler_buffer_tracing_kernel_dispatch_record_t>(
				data, headers[i]->payload);
			break;
		case ROCPROFILER_BUFFER_TRACING_MEMORY_COPY:
			add<rocprofiler_buffer_tracing_memory_copy_record_t>(data,
									     headers[i]->payload);
			break;
		case ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT:
			data.retired++;
			break;
		default:
			break;
		}
	}
}

/* Threads of the library, so that a tool that watches threads can tell them from the program's. */
void thread_made(rocprofiler_runtime_library_t, void *user)
{
	static_cast<tool_data *>(user)->threads++;
}

int initialize(rocprofiler_client_finalize_t, void *user)
{
	auto &data = *static_cast<tool_data *>(user);
	rocprofiler_callback_thread_t thread = {};

	data.names = rocprofiler::sdk::get_buffer_tracing_names();
	CALL(rocprofiler_create_context(&data.context));
	CALL(rocprofiler_create_buffer(data.context, 64 * 1024, 48 * 1024,
				       ROCPROFILER_BUFFER_POLICY_LOSSLESS, handed_over, &data,
				       &data.buffer));
	for (auto kind :
	     {ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API,
	      ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH, ROCPROFILER_BUFFER_TRACING_MEMORY_COPY,
	      ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT})
		CALL(rocprofiler_configure_buffer_tracing_service(data.context, kind, nullptr, 0,
								  data.buffer));
	CALL(rocprofiler_create_callback_thread(&thread));
	CALL(rocprofiler_assign_callback_thread(data.buffer, thread));
	CALL(rocprofiler_start_context(data.context));
	return 0;
}

void finalize(void *user)
{
	auto &data = *static_cast<tool_data *>(user);
	const char *path = std::getenv("SAMPLE_OUTPUT");
	std::ofstream file;

	rocprofiler_flush_buffer(data.buffer);
	if (path && *path)
		file.open(path);
	auto &output = path && *path ? static_cast<std::ostream &>(file) : std::cerr;
	for (const auto &[name, sum] : data.sums)
		output << name << ' ' << sum.count << ' ' << sum.nanoseconds
		       << (sum.in_order ? " ns\n" : " ns, ends before it begins\n");
	output << "retired " << data.retired << "\ndropped " << data.dropped << "\nthreads "
	       << (data.threads ? "told" : "not told") << '\n';
}
} // namespace

extern "C" rocprofiler_tool_configure_result_t *
rocprofiler_configure(uint32_t, const char *, uint32_t, rocprofiler_client_id_t *client_id)
{
	/* Never destroyed: the end of the process comes after destructors. */
	static auto *data = new tool_data{};
	static auto result = rocprofiler_tool_configure_result_t{
		sizeof(rocprofiler_tool_configure_result_t), &initialize, &finalize, data};

	client_id->name = "buffered tracing";
	rocprofiler_at_internal_thread_create(nullptr, thread_made, ROCPROFILER_LIBRARY, data);
	return &result;
}
