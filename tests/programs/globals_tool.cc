// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// A tool whose data are ordinary globals of C++, filled when it is initialized and read when it is
// finalized. It writes what it found to the file that TOOL_OUTPUT names, and how many GPUs and
// counters of theirs it saw at its beginning.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

namespace
{
struct Data {
	std::map<std::string, long> counts{{"made", 1}};
	bool alive = true;

	~Data()
	{
		alive = false;
	}
};

Data data;
int gpus, counters;

rocprofiler_status_t see_counters(rocprofiler_agent_id_t, rocprofiler_counter_id_t *, size_t count,
				  void *)
{
	counters += static_cast<int>(count);
	return ROCPROFILER_STATUS_SUCCESS;
}

rocprofiler_status_t see_agents(rocprofiler_agent_version_t, const void **agents, size_t count,
				void *)
{
	for (size_t i = 0; i < count; i++) {
		const auto *agent = static_cast<const rocprofiler_agent_v0_t *>(agents[i]);

		if (agent->type != ROCPROFILER_AGENT_TYPE_GPU)
			continue;
		gpus++;
		rocprofiler_iterate_agent_supported_counters(agent->id, see_counters, nullptr);
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

int initialize(rocprofiler_client_finalize_t, void *)
{
	data.counts["initialized"]++;
	rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, see_agents,
					   sizeof(rocprofiler_agent_v0_t), nullptr);
	return 0;
}

void finalize(void *)
{
	const volatile bool *alive = &data.alive;
	const char *path = std::getenv("TOOL_OUTPUT");
	FILE *output = path ? std::fopen(path, "a") : nullptr;

	if (!output)
		return;
	std::fprintf(output, "%s, made %ld, initialized %ld, GPUs %d, counters %s\n",
		     *alive ? "alive" : "destroyed", *alive ? data.counts["made"] : -1,
		     *alive ? data.counts["initialized"] : -1, gpus, counters ? "some" : "none");
	std::fclose(output);
}
} // namespace

extern "C" rocprofiler_tool_configure_result_t *
rocprofiler_configure(uint32_t, const char *, uint32_t, rocprofiler_client_id_t *client)
{
	static rocprofiler_tool_configure_result_t result{sizeof(result), initialize, finalize,
							  nullptr};

	client->name = "globals";
	return &result;
}
