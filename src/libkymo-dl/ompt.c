/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The OpenMP tool. An OpenMP runtime with the tools interface (LLVM's, Intel's, AMD's; not GCC's
 * libgomp) calls ompt_start_tool() when it starts: first the one in the address space, then, where
 * that declines, those of the libraries in OMP_TOOL_LIBRARIES (OpenMP 5.1, 4.2.2). Declining costs
 * the program nothing.
 *
 * A process has one tool. Where the user names another one in OMP_TOOL_LIBRARIES, that one is
 * wanted: we decline as long as it has not declined itself.
 */
#include "libkymo-dl/ompt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "common/loader.h"
#include "libkymo-dl/environment.h"
#include "libkymo-dl/runtime.h"

#define EXPORTED __attribute__((visibility("default")))

struct ompt_start_tool_result *ompt_start_tool(unsigned version, const char *runtime_version);

static int ompt_initialize(ompt_lookup lookup, int initial_device, union ompt_data *tool_data)
{
	ompt_set_callback set = (ompt_set_callback)lookup("ompt_set_callback");

	(void)initial_device;
	(void)tool_data;
	if (!set)
		return 0;
	ompt_set_host_callbacks(set);
	ompt_set_task_callbacks(set);
	ompt_set_target_callbacks(set);
	return 1; /* stay */
}

static void ompt_finalize(union ompt_data *tool_data)
{
	(void)tool_data;
	ompt_end_all_regions(false);
}

/* Is the first library in the list this one? The list is separated as PATH is. */
static bool ompt_library_is_first_in_list(const char *list)
{
	Dl_info own;
	size_t length = strcspn(list, ":");
	const char *name;

	if (!dladdr((const void *)ompt_library_is_first_in_list, &own) || !own.dli_fname)
		return false;
	if (length == strlen(own.dli_fname) && !strncmp(list, own.dli_fname, length))
		return true;
	/* by another path: the file name decides */
	name = strrchr(own.dli_fname, '/');
	name = name ? name + 1 : own.dli_fname;
	return length >= strlen(name) && !strncmp(list + length - strlen(name), name, strlen(name));
}

/* Is this library's function the one that look-ups find, so that a runtime asks it first? */
static bool ompt_start_tool_is_ours(void)
{
	return loader_find_symbol(LOADER_SCOPE_ANY_OBJECT, NULL, "ompt_start_tool") ==
	       (void *)ompt_start_tool;
}

/* Was this library asked because it is in the address space, and has the user named another one? */
static bool ompt_other_tool_is_wanted(void)
{
	static bool asked; /* runtimes start once, under a lock of their own */
	const char *list = secure_getenv("OMP_TOOL_LIBRARIES");
	bool first_time = !asked;

	asked = true;
	return first_time && list && *list && !ompt_library_is_first_in_list(list) &&
	       ompt_start_tool_is_ours();
}

EXPORTED struct ompt_start_tool_result *ompt_start_tool(unsigned version,
							const char *runtime_version)
{
	static struct ompt_start_tool_result tool = {.initialize = ompt_initialize,
						     .finalize = ompt_finalize};

	(void)version;
	(void)runtime_version;
	if (!environment_setting_is_on(SETTING_USE_OMPT) || ompt_other_tool_is_wanted() ||
	    !dl_runtime_find_or_load())
		return NULL;
	return &tool;
}
