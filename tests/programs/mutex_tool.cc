// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// A tool with one mutex around what its functions share: those that get buffers, those that are
// called back, and finalize.
#include <mutex>
#include <unistd.h>

#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

namespace
{
std::mutex &mutex = *new std::mutex;
long &seen = *new long;

void take(rocprofiler_context_id_t, rocprofiler_buffer_id_t, rocprofiler_record_header_t **,
	  size_t count, void *, uint64_t)
{
	std::lock_guard<std::mutex> guard(mutex);

	seen += static_cast<long>(count);
	usleep(200);
}

void called(rocprofiler_callback_tracing_record_t, rocprofiler_user_data_t *, void *)
{
	std::lock_guard<std::mutex> guard(mutex);

	seen++;
}

int initialize(rocprofiler_client_finalize_t, void *)
{
	rocprofiler_context_id_t context{0};
	rocprofiler_buffer_id_t buffer{0};

	rocprofiler_create_context(&context);
	rocprofiler_create_buffer(context, 4096, 2048, ROCPROFILER_BUFFER_POLICY_LOSSLESS, take,
				  nullptr, &buffer);
	rocprofiler_configure_buffer_tracing_service(
		context, ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API, nullptr, 0, buffer);
	rocprofiler_configure_callback_tracing_service(
		context, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, nullptr, 0, called, nullptr);
	return rocprofiler_start_context(context);
}

void finalize(void *)
{
	std::lock_guard<std::mutex> guard(mutex);

	seen = 0;
}
} // namespace

extern "C" rocprofiler_tool_configure_result_t *
rocprofiler_configure(uint32_t, const char *, uint32_t, rocprofiler_client_id_t *client)
{
	static rocprofiler_tool_configure_result_t result{sizeof(result), initialize, finalize,
							  nullptr};

	client->name = "mutex";
	return &result;
}
