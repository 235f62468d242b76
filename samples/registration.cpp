/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The full sample of rocprofiler_configure() in the documentation of ROCprofiler-SDK, as it stands
 * there but for what no compiler takes: its includes are complete, client_id is a pointer, as it is
 * initialized from one, and the functions that it only declares are defined, below. Where it says
 * "associate services" marks are traced too, so that there is something to see without a device.
 */
// clang-format off
#include <rocprofiler-sdk/registration.h>
#include <cstdint>
#include <vector>

namespace
{
struct rocp_tool_data
{
    uint32_t                              version;
    const char*                           runtime_version;
    uint32_t                              priority;
    rocprofiler_client_id_t*              client_id;
    rocprofiler_client_finalize_t         finalizer;
    std::vector<rocprofiler_context_id_t> contexts;
};

void
tool_tracing_callback(rocprofiler_callback_tracing_record_t record,
                      rocprofiler_user_data_t*              user_data,
                      void*                                 callback_data);

int
tool_init(rocprofiler_client_finalize_t fini_func,
          void* tool_data_v)
{
    rocp_tool_data* tool_data = static_cast<rocp_tool_data*>(tool_data_v);

    // save the finalizer function
    tool_data->finalizer = fini_func;

    // create a context
    auto ctx = rocprofiler_context_id_t{};
    rocprofiler_create_context(&ctx);

    // save your contexts
    tool_data->contexts.emplace_back(ctx);

    // associate code object tracing with this context
    rocprofiler_configure_callback_tracing_service(
        ctx,
        ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT,
        nullptr,
        0,
        tool_tracing_callback,
        tool_data);

    // ... associate services with contexts ...
    rocprofiler_configure_callback_tracing_service(
        ctx, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, nullptr, 0, tool_tracing_callback, tool_data);
    rocprofiler_start_context(ctx);

    return 0;
}

void
tool_fini(void* tool_data);
}

extern "C"
{
rocprofiler_tool_configure_result_t*
rocprofiler_configure(uint32_t                 version,
                      const char*              runtime_version,
                      uint32_t                 priority,
                      rocprofiler_client_id_t* client_id)
{
    // if not first tool to register, indicate tool doesn't want to do anything
    if(priority > 0) return nullptr;

    // (optional) provide a name for this tool to rocprofiler
    client_id->name = "ExampleTool";

    // info provided back to tool_init and tool_fini
    auto* my_tool_data = new rocp_tool_data{ version,
                                             runtime_version,
                                             priority,
                                             client_id,
                                             nullptr };

    // create configure data
    static auto cfg =
        rocprofiler_tool_configure_result_t{ sizeof(rocprofiler_tool_configure_result_t),
                                             &tool_init,
                                             &tool_fini,
                                             my_tool_data };

    return &cfg;
}
}
// clang-format on

/* What the documentation leaves to the reader. */
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace
{
std::atomic<unsigned> loads{0}, unloads{0}, kernels{0}, marks{0};

void tool_tracing_callback(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *,
			   void *)
{
	if (record.kind == ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API)
		marks += record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER;
	else if (record.operation == ROCPROFILER_CODE_OBJECT_LOAD)
		(record.phase == ROCPROFILER_CALLBACK_PHASE_LOAD ? loads : unloads)++;
	else if (record.phase == ROCPROFILER_CALLBACK_PHASE_LOAD)
		kernels++;
}

void tool_fini(void *tool_data)
{
	auto *data = static_cast<rocp_tool_data *>(tool_data);
	const char *path = std::getenv("SAMPLE_OUTPUT");
	FILE *output = path && *path ? fopen(path, "w") : stderr;

	if (output) {
		fprintf(output, "%s: version %u (%s), %zu context\n", data->client_id->name,
			data->version, data->runtime_version, data->contexts.size());
		fprintf(output, "code objects %u, unloaded %u, kernels %u, marks %u\n",
			loads.load(), unloads.load(), kernels.load(), marks.load());
		if (output != stderr)
			fclose(output);
	}
	delete data;
}
} // namespace
