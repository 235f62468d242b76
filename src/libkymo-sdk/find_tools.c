/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where tools are: the function given to rocprofiler_force_configure(), libraries named in
 * ROCP_TOOL_LIBRARIES, and every loaded object that exports rocprofiler_configure. Of several that
 * export it, symbol lookup shows only the first one; the others are found object by object.
 *
 * kymo's own tool is asked last, however it was found: tools that want to be the only one look at
 * how many were asked before.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "libkymo-sdk/clients.h"
#include "libkymo-sdk/state.h"

#define FIND_OBJECTS_MAX 4096

/* The linker exports the program's own function for this reference, without -rdynamic. */
#pragma weak rocprofiler_configure

struct find_list {
	rocprofiler_configure_func_t *found;
	unsigned count, room;
};

/* The search that is going on; for its own thread. */
static struct find_list *find_current;

static void find_add(struct find_list *list, rocprofiler_configure_func_t function)
{
	for (unsigned i = 0; i < list->count; i++) {
		if (list->found[i] == function)
			return;
	}
	if (function && list->count < list->room)
		list->found[list->count++] = function;
}

static void find_add_symbol(struct find_list *list, void *handle)
{
	void *symbol = dlsym(handle, "rocprofiler_configure");
	rocprofiler_configure_func_t function;

	memcpy(&function, &symbol, sizeof(function));
	find_add(list, function);
}

static void find_load(struct find_list *list, const char *name)
{
	unsigned before = list->count;
	void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);

	if (!handle)
		handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	if (!handle) {
		sdk_say(SDK_LOG_ERROR, "ROCP_TOOL_LIBRARIES: cannot load '%s': %s", name,
			dlerror());
		return;
	}
	if (!dlsym(handle, "rocprofiler_configure"))
		sdk_say(SDK_LOG_ERROR,
			"ROCP_TOOL_LIBRARIES: '%s' is no tool: it does not export "
			"rocprofiler_configure",
			name);
	else
		find_add_symbol(list, handle);
	if (list->count == before)
		dlclose(handle);
}

static void find_named(struct find_list *list)
{
	const char *names = getenv("ROCP_TOOL_LIBRARIES");
	char *copy = names ? strdup(names) : NULL, *rest = copy, *name;

	while ((name = strsep(&rest, ":"))) {
		if (*name)
			find_load(list, name);
	}
	free(copy);
}

struct find_objects {
	char *names[FIND_OBJECTS_MAX];
	unsigned count;
};

static int find_note_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct find_objects *objects = data;

	(void)size;
	if (objects->count < FIND_OBJECTS_MAX && info->dlpi_name && *info->dlpi_name)
		objects->names[objects->count++] = strdup(info->dlpi_name);
	return 0;
}

/* Names first, then looking: dlopen() takes a lock that dl_iterate_phdr() holds. */
static void find_in_objects(struct find_list *list)
{
	struct find_objects *objects = calloc(1, sizeof(*objects));

	if (!objects)
		return;
	dl_iterate_phdr(find_note_object, objects);
	for (unsigned i = 0; i < objects->count; i++) {
		void *handle = objects->names[i]
				       ? dlopen(objects->names[i], RTLD_LAZY | RTLD_NOLOAD)
				       : NULL;
		struct link_map *map = NULL;
		void *symbol = handle ? dlsym(handle, "rocprofiler_configure") : NULL;
		Dl_info where;

		/* dlsym() looks into what the object needs as well; only its own is its own. */
		if (symbol && !dlinfo(handle, RTLD_DI_LINKMAP, &map) && dladdr(symbol, &where) &&
		    where.dli_fbase == (void *)map->l_addr)
			find_add_symbol(list, handle);
		if (handle)
			dlclose(handle);
		free(objects->names[i]);
	}
	free(objects);
}

/* The name of the file that a function is in, without its directories. */
static const char *find_file_of(rocprofiler_configure_func_t function)
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
static void find_put_own_last(struct find_list *list)
{
	rocprofiler_configure_func_t own[SDK_CLIENTS_MAX];
	unsigned count = 0, own_count = 0;

	for (unsigned i = 0; i < list->count; i++) {
		const char *file = find_file_of(list->found[i]);

		if (!strcmp(file, "libkymo-gpu.so"))
			own[own_count++] = list->found[i];
		else if (strcmp(file, "libkymo-dl.so") != 0)
			list->found[count++] = list->found[i];
	}
	memcpy(&list->found[count], own, own_count * sizeof(own[0]));
	list->count = count + own_count;
}

bool sdk_tools_are_asked_for(void)
{
	const char *names = getenv("ROCP_TOOL_LIBRARIES");

	return (names && *names) || rocprofiler_configure ||
	       dlsym(RTLD_DEFAULT, "rocprofiler_configure");
}

unsigned sdk_find_tools(rocprofiler_configure_func_t first, rocprofiler_configure_func_t *found,
			unsigned room)
{
	struct find_list list = {found, 0, room};

	find_current = &list;
	find_add(&list, first);
	find_named(&list);
	find_add(&list, rocprofiler_configure);
	find_add_symbol(&list, RTLD_DEFAULT);
	find_add_symbol(&list, RTLD_NEXT);
	find_in_objects(&list);
	dlerror();
	find_current = NULL;
	find_put_own_last(&list);
	return list.count;
}

bool sdk_find_within(rocprofiler_configure_func_t function)
{
	if (!find_current)
		return false;
	find_add(find_current, function);
	return true;
}
