/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What makes NCCL and RCCL load kymo's profiler plugin: they take one, by NCCL_PROFILER_PLUGIN, so
 * the user's stays. Where CUPTI times kernels anyway, the plugin does not ask for kernel channels
 * (KYMO_NCCL_EVENTS=light), which cost NCCL microseconds an operation and more in CUDA graphs.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/launch.h"

#define VARIABLE "NCCL_PROFILER_PLUGIN"
/* NCCL cuts longer names without a word (MAX_STR_LEN of src/plugin/plugin_open.cc). */
#define NCCL_NAME_MAX 254

/* Beside libkymo.so, or where the build tree has it. */
static bool find_plugin(const char *library, char *found)
{
	static const char *const places[] = {"", "/../nccl"};
	const char *slash = strrchr(library, '/');

	for (unsigned i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		char path[PATH_MAX * 2];

		snprintf(path, sizeof(path), "%.*s%s/libnccl-profiler-kymo.so",
			 (int)(slash - library), library, places[i]);
		if (realpath(path, found))
			return strlen(found) <= NCCL_NAME_MAX;
	}
	return false;
}

static bool has(char *const *environment, const char *name)
{
	size_t length = strlen(name);

	for (; *environment; environment++) {
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return true;
	}
	return false;
}

static bool add(char **list, size_t *count, const char *name, const char *value)
{
	char *entry;

	if (asprintf(&entry, "%s=%s", name, value) < 0)
		return false;
	list[(*count)++] = entry;
	return true;
}

/* kymo's own library is what CUDA loads. */
static bool times_kernels(const struct launch *launch, char *const *environment,
			  const char *library)
{
	char path[PATH_MAX];

	return resolved_bool(launch->settings, SETTING_USE_GPU) &&
	       !has(environment, "CUDA_INJECTION64_PATH") &&
	       launch_find_beside(library, "kymo-sdk", path) &&
	       launch_find_beside(library, "kymo-gpu", path);
}

bool launch_add_nccl(const struct launch *launch, char *const *environment, const char *library,
		     char **list, size_t *count)
{
	char plugin[PATH_MAX];

	if (!resolved_bool(launch->settings, SETTING_NCCL_PLUGIN))
		return true;
	if (!has(environment, VARIABLE) && find_plugin(library, plugin) &&
	    !add(list, count, VARIABLE, plugin))
		return false;
	return !resolved_is_default(launch->settings, SETTING_NCCL_EVENTS) ||
	       !times_kernels(launch, environment, library) ||
	       add(list, count, "KYMO_NCCL_EVENTS", "light");
}
