/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See launch_paths.h.
 */
#include "libkymo-gpu/launch_paths.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "kymo/gpu_records.h"
#include "kymo/tools.h"
#include "libkymo/api.h"

/* Only kymo's tool library has it; with another one work has no call paths. */
#pragma weak kymo_configure_launch_id_service

static uint32_t (*find_launch_path)(void);

static uint64_t get_launch_path(void *unused)
{
	(void)unused;
	return find_launch_path != NULL ? find_launch_path() : GPU_LAUNCH_PATH_NO_COLLECTOR;
}

void launch_paths_configure_unless_disabled(rocprofiler_context_id_t context)
{
	const char *asked = secure_getenv("KYMO_GPU_STACKS");
	const struct runtime_api *(*get_api)(void);
	const struct runtime_api *api;

	if ((asked != NULL && strcmp(asked, "off") == 0) ||
	    kymo_configure_launch_id_service == NULL)
		return;
	*(void **)&get_api = dlsym(RTLD_DEFAULT, KYMO_RUNTIME_API_NAME);
	api = get_api != NULL ? get_api() : NULL;
	if (api != NULL && api->size >= offsetof(struct runtime_api, find_launch_path) +
						sizeof(api->find_launch_path))
		find_launch_path = api->find_launch_path;
	kymo_configure_launch_id_service(context, get_launch_path, NULL);
}
