/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * AMD's profiling library looks for this function in every library of the process and asks each one
 * that has it whether it is a tool (rocprofiler-sdk, registration.h). kymo records nothing of AMD's
 * devices, so it says that it is none: NULL is the documented answer for that, and leaves the
 * process to other tools.
 */
#include <stddef.h>
#include <stdint.h>

struct rocprofiler_tool_configure_result;
struct rocprofiler_client_id;

struct rocprofiler_tool_configure_result *
rocprofiler_configure(uint32_t version, const char *runtime_version, uint32_t priority,
		      struct rocprofiler_client_id *client);

__attribute__((visibility("default"))) struct rocprofiler_tool_configure_result *
rocprofiler_configure(uint32_t version, const char *runtime_version, uint32_t priority,
		      struct rocprofiler_client_id *client)
{
	(void)version;
	(void)runtime_version;
	(void)priority;
	(void)client;
	return NULL;
}
