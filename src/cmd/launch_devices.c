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

#include "cmd/launch.h"

static const char *const lists[] = {"OPENCL_LAYERS", "ROCP_TOOL_LIBRARIES"};

bool launch_is_device_list(const char *variable)
{
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		size_t length = strlen(lists[i]);

		if (!strncmp(variable, lists[i], length) && variable[length] == '=')
			return true;
	}
	return false;
}

bool launch_find_beside(const char *library, const char *name, char *found)
{
	const char *slash = strrchr(library, '/');
	char path[PATH_MAX * 2];

	if (!slash)
		return false;
	snprintf(path, sizeof(path), "%.*s/lib%s.so", (int)(slash - library), library, name);
	if (realpath(path, found))
		return true;
	snprintf(path, sizeof(path), "%.*s/../lib%s/lib%s.so", (int)(slash - library), library,
		 name, name);
	return realpath(path, found) != NULL;
}

int launch_find_sdk(char *sdk, struct problem *problem)
{
	char *library;
	int error = launch_find_library(&library, problem);

	if (error)
		return error;
	if (!launch_find_beside(library, "kymo-sdk", sdk))
		error = problem_set(problem, -ENOENT,
				    "cannot find libkymo-sdk.so (looked beside '%s')", library);
	free(library);
	return error;
}

bool launch_opencl_library(const struct launch *launch, const char *library, char *path)
{
	path[0] = '\0';
	return resolved_bool(launch->settings, SETTING_USE_GPU) &&
	       resolved_bool(launch->settings, SETTING_OPENCL_PRELOAD) &&
	       launch_find_beside(library, "kymo-opencl", path);
}

bool launch_early_library(const struct launch *launch, const char *library, char *path)
{
	path[0] = '\0';
	return launch->counts_early && resolved_bool(launch->settings, SETTING_USE_GPU) &&
	       launch_find_beside(library, "kymo-sdk", path);
}

static const char *value_of(char *const *environment, const char *name)
{
	size_t length = strlen(name);

	for (; *environment; environment++) {
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	}
	return NULL;
}

static bool add(char **list, size_t *count, const char *name, const char *before, const char *value)
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

bool launch_add_devices(const struct launch *launch, char *const *environment, const char *library,
			char **list, size_t *count)
{
	char sdk[PATH_MAX], tool[PATH_MAX];
	bool wanted = resolved_bool(launch->settings, SETTING_USE_GPU) &&
		      launch_find_beside(library, "kymo-sdk", sdk) &&
		      launch_find_beside(library, "kymo-gpu", tool);

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		const char *before = value_of(environment, lists[i]);

		if ((wanted || before) && !add(list, count, lists[i], before,
					       !wanted  ? ""
					       : i == 0 ? sdk
							: tool))
			return false;
	}
	if (!wanted)
		return true;
	if (launch->counts_early && !value_of(environment, "ROCPROFILER_LIBRARY_CTOR") &&
	    !add(list, count, "ROCPROFILER_LIBRARY_CTOR", NULL, "1"))
		return false;
	return (value_of(environment, "CUDA_INJECTION64_PATH") ||
		add(list, count, "CUDA_INJECTION64_PATH", NULL, sdk)) &&
	       (value_of(environment, "NVTX_INJECTION64_PATH") ||
		add(list, count, "NVTX_INJECTION64_PATH", NULL, sdk));
}
