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

#include "launch/launch.h"
#include "launch/parts.h"

#define NCCL_PLUGIN_VARIABLE "NCCL_PROFILER_PLUGIN"
/* NCCL cuts longer names without a word (MAX_STR_LEN of src/plugin/plugin_open.cc). */
#define NCCL_PLUGIN_NAME_BYTES_MAX 254

static bool environment_has_variable(char *const *environment, const char *name)
{
	size_t length = strlen(name);

	for (; *environment; environment++) {
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return true;
	}
	return false;
}

static bool append_environment_variable(char **list, size_t *count, const char *name,
					const char *value)
{
	char *entry;

	if (asprintf(&entry, "%s=%s", name, value) < 0)
		return false;
	list[(*count)++] = entry;
	return true;
}

/* kymo's own library is what CUDA loads. */
static bool launch_can_time_kernels(const struct launch *launch, char *const *environment)
{
	char path[PATH_MAX];

	return effective_setting_bool(launch->settings, SETTING_USE_GPU) &&
	       !environment_has_variable(environment, "CUDA_INJECTION64_PATH") &&
	       part_find_path(PART_LIBKYMO_SDK, path) && part_find_path(PART_LIBKYMO_GPU, path);
}

bool launch_add_nccl_variables(const struct launch *launch, char *const *environment, char **list,
			       size_t *count)
{
	char plugin[PATH_MAX];

	if (!effective_setting_bool(launch->settings, SETTING_NCCL_PLUGIN))
		return true;
	if (!environment_has_variable(environment, NCCL_PLUGIN_VARIABLE) &&
	    part_find_or_link_preload_path(PART_NCCL_PLUGIN, NCCL_PLUGIN_NAME_BYTES_MAX, plugin) &&
	    !append_environment_variable(list, count, NCCL_PLUGIN_VARIABLE, plugin))
		return false;
	return !effective_setting_is_default(launch->settings, SETTING_NCCL_EVENTS) ||
	       !launch_can_time_kernels(launch, environment) ||
	       append_environment_variable(list, count, "KYMO_NCCL_EVENTS", "light");
}
