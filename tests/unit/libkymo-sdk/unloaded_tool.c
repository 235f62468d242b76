/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A tool that is a library which is closed while its contexts are active: by the program, which
 * opened it, once and once too often, by itself from within a function of its own, and one whose
 * functions are in a library that the real tool closes. Events are told all the same, and it is
 * finalized at the end.
 *
 *   unloaded_tool WAY ROCTX PLUGIN
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#include "common/array.h"
#include "unloaded_tool.h"

static struct unloaded_shared shared;
static const char *plugin_path;

static void fail(const char *what)
{
	const char *why = dlerror();

	fprintf(stderr, "%s: %s\n", what, why ? why : "");
	exit(1);
}

static void *symbol_of(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		fail(name);
	return found;
}

static void *open_plugin(void)
{
	void *plugin = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
	void (*share)(struct unloaded_shared *);

	if (!plugin)
		fail(plugin_path);
	*(void **)&share = symbol_of(plugin, "unloaded_share");
	share(&shared);
	return plugin;
}

/* A tool of the program's, whose context has the library's function; it closes it at once. */
static int borrow(rocprofiler_client_finalize_t finalizer, void *data)
{
	void *plugin = open_plugin();
	int (*initialize)(rocprofiler_client_finalize_t, void *);
	int error;

	*(void **)&initialize = symbol_of(plugin, "unloaded_initialize");
	error = initialize(finalizer, data);
	dlclose(plugin);
	return error;
}

static rocprofiler_tool_configure_result_t *
borrowing(uint32_t version, const char *text, uint32_t priority, rocprofiler_client_id_t *id)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), borrow, NULL, NULL};

	(void)version;
	(void)text;
	(void)priority;
	id->name = "borrowing";
	return &result;
}

static void begin(const char *way)
{
	rocprofiler_configure_func_t configure = NULL;
	void *plugin = NULL;

	if (strcmp(way, "borrowed") == 0)
		configure = borrowing;
	else
		plugin = open_plugin();
	if (strcmp(way, "given") == 0)
		*(void **)&configure = symbol_of(plugin, "rocprofiler_configure");
	if (strcmp(way, "named") == 0)
		setenv("ROCP_TOOL_LIBRARIES", plugin_path, 1);
	if (rocprofiler_force_configure(configure) != ROCPROFILER_STATUS_SUCCESS)
		fail("rocprofiler_force_configure");
	shared.own_handle = strcmp(way, "itself") == 0 ? plugin : NULL;
	for (int i = 0; plugin && !shared.own_handle && i < 20; i++)
		dlclose(plugin);
}

static void mark(const char *way, const char *roctx)
{
	void *library = dlopen(roctx, RTLD_NOW);
	void (*roctx_mark)(const char *);

	if (!library)
		fail(roctx);
	*(void **)&roctx_mark = symbol_of(library, "roctxMarkA");
	for (int i = 0; i < 10; i++)
		roctx_mark(way);
}

static void check(void)
{
	if (shared.marks == 10 && shared.finalized == shared.has_finalize)
		return;
	fprintf(stderr, "%d marks, finalized %d times\n", shared.marks, shared.finalized);
	_exit(1);
}

static int run_all(char **arguments)
{
	static const char *const ways[] = {"found", "given", "named", "itself", "borrowed"};
	int failed = 0, status;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		pid_t child = fork();

		if (!child) {
			execl("/proc/self/exe", arguments[0], arguments[1], arguments[2], ways[i],
			      (char *)NULL);
			_exit(127);
		}
		if (waitpid(child, &status, 0) == child && !status)
			continue;
		fprintf(stderr, "%s: status 0x%x\n", ways[i], (unsigned)status);
		failed = 1;
	}
	return failed;
}

int main(int count, char **arguments)
{
	if (count < 3)
		return 2;
	if (count == 3)
		return run_all(arguments);
	plugin_path = arguments[2];
	shared.has_finalize = strcmp(arguments[3], "borrowed") != 0;
	/* The library's own end was registered later, and comes before. */
	atexit(check);
	begin(arguments[3]);
	mark(arguments[3], arguments[1]);
	return 0;
}
