/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What makes the runtimes of devices load the tool library, and that one kymo's tool: CUDA and NVTX
 * take a library to inject, OpenCL's loader a list of layers, the tool library a list of tools. A
 * program that uses no device loads none of them.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "launch/launch.h"
#include "launch/parts.h"

static const char *const device_runtime_variable_names[] = {"OPENCL_LAYERS", "ROCP_TOOL_LIBRARIES"};

bool launch_is_device_runtime_variable(const char *variable)
{
	for (size_t i = 0; i < ARRAY_SIZE(device_runtime_variable_names); i++) {
		size_t length = strlen(device_runtime_variable_names[i]);

		if (!strncmp(variable, device_runtime_variable_names[i], length) &&
		    variable[length] == '=')
			return true;
	}
	return false;
}

bool launch_find_opencl_library_to_preload(const struct launch *launch, char *path)
{
	path[0] = '\0';
	return effective_setting_bool(launch->settings, SETTING_USE_GPU) &&
	       effective_setting_bool(launch->settings, SETTING_OPENCL_PRELOAD) &&
	       part_find_or_link_preload_path(PART_LIBKYMO_OPENCL, PATH_MAX, path);
}

bool launch_find_tool_library_to_preload(const struct launch *launch, char *path)
{
	path[0] = '\0';
	return launch->loads_tool_library_early &&
	       effective_setting_bool(launch->settings, SETTING_USE_GPU) &&
	       part_find_or_link_preload_path(PART_LIBKYMO_SDK, PATH_MAX, path);
}

static const char *find_environment_value(char *const *environment, const char *name)
{
	size_t length = strlen(name);

	for (; *environment; environment++) {
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	}
	return NULL;
}

static bool append_environment_list_entry(char **list, size_t *count, const char *name,
					  const char *before, const char *value)
{
	char *entry;

	if (before && *before && strstr(before, value)) /* kymo under kymo */
		value = "";
	if (asprintf(&entry, "%s=%s%s%s", name, before ? before : "",
		     before && *before && *value ? ":" : "", value) < 0)
		return false;
	list[(*count)++] = entry;
	return true;
}

bool launch_add_device_runtime_variables(const struct launch *launch, char *const *environment,
					 char **list, size_t *count)
{
	char sdk[PATH_MAX], tool[PATH_MAX];
	bool wanted = effective_setting_bool(launch->settings, SETTING_USE_GPU) &&
		      part_find_or_link_preload_path(PART_LIBKYMO_SDK, PATH_MAX, sdk) &&
		      part_find_or_link_preload_path(PART_LIBKYMO_GPU, PATH_MAX, tool);

	for (size_t i = 0; i < ARRAY_SIZE(device_runtime_variable_names); i++) {
		const char *before =
			find_environment_value(environment, device_runtime_variable_names[i]);

		if ((wanted || before) &&
		    !append_environment_list_entry(list, count, device_runtime_variable_names[i],
						   before,
						   !wanted  ? ""
						   : i == 0 ? sdk
							    : tool))
			return false;
	}
	if (!wanted)
		return true;
	if (launch->loads_tool_library_early &&
	    !find_environment_value(environment, "ROCPROFILER_LIBRARY_CTOR") &&
	    !append_environment_list_entry(list, count, "ROCPROFILER_LIBRARY_CTOR", NULL, "1"))
		return false;
	return (find_environment_value(environment, "CUDA_INJECTION64_PATH") ||
		append_environment_list_entry(list, count, "CUDA_INJECTION64_PATH", NULL, sdk)) &&
	       (find_environment_value(environment, "NVTX_INJECTION64_PATH") ||
		append_environment_list_entry(list, count, "NVTX_INJECTION64_PATH", NULL, sdk));
}
