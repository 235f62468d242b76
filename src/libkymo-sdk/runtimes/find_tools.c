/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where tools are: the function given to rocprofiler_force_configure(), libraries named in
 * ROCP_TOOL_LIBRARIES, and every loaded object that exports rocprofiler_configure. Of several that
 * export it, the loader shows only the first one, so they are looked up object by object.
 *
 * kymo's own tool is asked last, however it was found: tools that want to be the only one look at
 * how many were asked before.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "common/loader.h"
#include "common/loader_state.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/runtimes/clients.h"

/* The linker exports the program's own function for this reference, without -rdynamic. */
#pragma weak rocprofiler_configure

struct found_tool_list {
	rocprofiler_configure_func_t *found;
	unsigned count, room;
};

/* The search that is going on; for its own thread. */
static struct found_tool_list *current_search_found_tool_list;

static void add_found_tool(struct found_tool_list *list, rocprofiler_configure_func_t function)
{
	for (unsigned i = 0; i < list->count; i++) {
		if (list->found[i] == function)
			return;
	}
	if (function && list->count < list->room)
		list->found[list->count++] = function;
}

static void add_symbol_as_found_tool(void *symbol, void *list)
{
	rocprofiler_configure_func_t function;

	memcpy(&function, &symbol, sizeof(function));
	add_found_tool(list, function);
}

static void load_and_add_tool_library(struct found_tool_list *list, const char *name)
{
	unsigned before = list->count;
	void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD), *symbol;

	if (!handle)
		handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	if (!handle) {
		sdk_print_log_line(SDK_LOG_ERROR, "ROCP_TOOL_LIBRARIES: cannot load '%s': %s", name,
				   dlerror());
		return;
	}
	symbol = loader_find_symbol_in_handle(handle, "rocprofiler_configure");
	if (!symbol)
		sdk_print_log_line(SDK_LOG_ERROR,
				   "ROCP_TOOL_LIBRARIES: '%s' is not a tool: it does not export "
				   "rocprofiler_configure",
				   name);
	else
		add_symbol_as_found_tool(symbol, list);
	if (list->count == before)
		dlclose(handle);
}

static void find_tools_named_in_environment(struct found_tool_list *list)
{
	const char *names = secure_getenv("ROCP_TOOL_LIBRARIES");
	char *copy = names ? strdup(names) : NULL, *rest = copy, *name;

	while ((name = strsep(&rest, ":"))) {
		if (*name)
			load_and_add_tool_library(list, name);
	}
	free(copy);
}

/* The name of the file that a function is in, without its directories. */
static const char *get_file_name_of_function(rocprofiler_configure_func_t function)
{
	const char *slash;
	Dl_info where;
	void *address;

	memcpy(&address, &function, sizeof(address));
	if (!dladdr(address, &where) || !where.dli_fname)
		return "";
	slash = strrchr(where.dli_fname, '/');
	return slash ? slash + 1 : where.dli_fname;
}

/* libkymo-dl only says that it is no tool, to AMD's library; here it would count as one. */
static void move_kymo_tools_last(struct found_tool_list *list)
{
	rocprofiler_configure_func_t own[SDK_CLIENTS_MAX];
	unsigned count = 0, own_count = 0;

	for (unsigned i = 0; i < list->count; i++) {
		const char *file = get_file_name_of_function(list->found[i]);

		if (!strcmp(file, "libkymo-gpu.so"))
			own[own_count++] = list->found[i];
		else if (strcmp(file, "libkymo-dl.so") != 0)
			list->found[count++] = list->found[i];
	}
	memcpy(&list->found[count], own, own_count * sizeof(own[0]));
	list->count = count + own_count;
}

bool sdk_is_any_tool_requested(void)
{
	const char *names = secure_getenv("ROCP_TOOL_LIBRARIES");

	return (names && *names) || rocprofiler_configure ||
	       loader_find_symbol(LOADER_SCOPE_ANY_OBJECT, NULL, "rocprofiler_configure");
}

unsigned sdk_find_tools(rocprofiler_configure_func_t first, rocprofiler_configure_func_t *found,
			unsigned room)
{
	struct found_tool_list list = {found, 0, room};
	struct loader_dlerror_state state;

	current_search_found_tool_list = &list;
	loader_save_dlerror_state(&state);
	add_found_tool(&list, first);
	find_tools_named_in_environment(&list);
	add_found_tool(&list, rocprofiler_configure);
	loader_visit_symbol_definitions("rocprofiler_configure", add_symbol_as_found_tool, &list);
	loader_restore_dlerror_state(&state);
	current_search_found_tool_list = NULL;
	move_kymo_tools_last(&list);
	return list.count;
}

bool sdk_add_tool_to_current_search(rocprofiler_configure_func_t function)
{
	if (!current_search_found_tool_list)
		return false;
	add_found_tool(current_search_found_tool_list, function);
	return true;
}
