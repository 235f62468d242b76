/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Agents as tools ask for them (rocprofiler-sdk/agent.h).
 */
#include "device/device.h"
#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/runtimes/runtimes.h"
#include "libkymo-sdk/runtimes/start.h"

/* Those that are known from the start come first, whatever else there is. */
uint32_t sdk_agents_get_count_for_tool(void)
{
	sdk_initialize_library_once();
	sdk_agents_get_count();
	if (sdk_is_configuration_open())
		device_find_opencl_devices_of_unused_runtime();
	return sdk_agents_get_count();
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_available_agents(
	rocprofiler_agent_version_t version, rocprofiler_query_available_agents_cb_t callback,
	size_t agent_size, void *user_data)
{
	const void *pointers[SDK_AGENTS_MAX];
	uint32_t count;

	if (version != ROCPROFILER_AGENT_INFO_VERSION_0 || !callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (agent_size > sizeof(rocprofiler_agent_v0_t))
		return ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI;
	count = sdk_agents_get_count_for_tool();
	for (uint32_t i = 0; i < count; i++)
		pointers[i] = sdk_agent_get_by_number(i);
	return callback(version, pointers, count, user_data);
}
