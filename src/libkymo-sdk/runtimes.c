/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See runtimes.h. A runtime's first call finds tools and initializes them, so that a context that
 * is started there sees everything the runtime does after it.
 */
#include "libkymo-sdk/runtimes.h"
#include "libkymo-sdk/keep_loaded.h"

#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "libkymo-sdk/api_tables.h"
#include "libkymo-sdk/clients.h"
#include "libkymo-sdk/domains.h"
#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/start.h"
#include "libkymo-sdk/state.h"

#define RUNTIME_TABLES_MAX 16
#define INTERCEPTS_MAX     64

struct runtime_library {
	const char *name;
	int initialization; /* operation of RUNTIME_INITIALIZATION, 0: none */
	int tables[4];      /* bits of rocprofiler_intercept_table_t, in the order of its tables */
	bool all_in_one;    /* all of its tables are one for tools */
};

static const struct runtime_library runtime_libraries[] = {
	{"hsa", ROCPROFILER_RUNTIME_INITIALIZATION_HSA, {ROCPROFILER_HSA_TABLE}, true},
	{"hip", ROCPROFILER_RUNTIME_INITIALIZATION_HIP, {ROCPROFILER_HIP_RUNTIME_TABLE}, false},
	{"hip_compiler", 0, {ROCPROFILER_HIP_COMPILER_TABLE}, false},
	{"roctx",
	 ROCPROFILER_RUNTIME_INITIALIZATION_MARKER,
	 {ROCPROFILER_MARKER_CORE_TABLE, ROCPROFILER_MARKER_CONTROL_TABLE,
	  ROCPROFILER_MARKER_NAME_TABLE},
	 false},
	{"rccl", ROCPROFILER_RUNTIME_INITIALIZATION_RCCL, {ROCPROFILER_RCCL_TABLE}, false},
	{"rocdecode",
	 ROCPROFILER_RUNTIME_INITIALIZATION_ROCDECODE,
	 {ROCPROFILER_ROCDECODE_TABLE},
	 false},
	{"rocjpeg", ROCPROFILER_RUNTIME_INITIALIZATION_ROCJPEG, {ROCPROFILER_ROCJPEG_TABLE}, false},
};

#define RUNTIME_LIBRARIES (sizeof(runtime_libraries) / sizeof(runtime_libraries[0]))

struct runtime {
	const struct runtime_library *library;
	uint64_t version, instance, count;
	void *tables[RUNTIME_TABLES_MAX];
	bool is_passed_on;
};

struct intercept {
	rocprofiler_intercept_library_cb_t callback;
	int libraries;
	void *data;
};

static struct runtime runtimes[RUNTIME_LIBRARIES * SDK_RUNTIME_INSTANCES];
static unsigned runtime_count;
static struct intercept intercepts[INTERCEPTS_MAX];
static _Atomic unsigned intercept_count;

static const struct runtime_library *runtime_library(const char *name)
{
	for (unsigned i = 0; name && i < RUNTIME_LIBRARIES; i++) {
		if (!strcmp(runtime_libraries[i].name, name))
			return &runtime_libraries[i];
	}
	return NULL;
}

/* HSA announces itself to the register library and to the libraries of HSA_TOOLS_LIB, and once more
 * when it was shut down and is initialized again: always with the same table, which by then has
 * functions of its own in it. With the lock held. */
static struct runtime *runtime_again(const struct runtime_library *library, void **tables)
{
	for (unsigned i = 0; i < runtime_count && library->all_in_one; i++) {
		struct runtime *runtime = &runtimes[i];

		if (runtime->library != library || runtime->tables[0] != tables[0])
			continue;
		if (!sdk_api_tables_are_wrapped(tables[0]))
			runtime->is_passed_on = false;
		return runtime;
	}
	return NULL;
}

/* With the lock held. NULL: too many of the kind. */
static struct runtime *runtime_keep(const struct runtime_library *library, uint64_t version,
				    void **tables, uint64_t count)
{
	struct runtime *runtime = &runtimes[runtime_count];
	uint64_t instance = 0;

	for (unsigned i = 0; i < runtime_count; i++)
		instance += runtimes[i].library == library;
	if (instance == SDK_RUNTIME_INSTANCES || count > RUNTIME_TABLES_MAX)
		return NULL;
	*runtime = (struct runtime){
		.library = library, .version = version, .instance = instance, .count = count};
	memcpy(runtime->tables, tables, count * sizeof(*tables));
	runtime_count++;
	return runtime;
}

static void runtime_show_tables(struct runtime *runtime)
{
	const int *kinds = runtime->library->tables;
	unsigned shown = atomic_load(&intercept_count);

	for (unsigned i = 0; i < shown; i++) {
		for (unsigned table = 0; table < 4 && kinds[table]; table++) {
			bool all = runtime->library->all_in_one;

			if (table >= runtime->count || !(intercepts[i].libraries & kinds[table]))
				continue;
			intercepts[i].callback((rocprofiler_intercept_table_t)kinds[table],
					       runtime->version, runtime->instance,
					       &runtime->tables[all ? 0 : table],
					       all ? runtime->count : 1, intercepts[i].data);
		}
	}
}

/* Tools have seen its tables, and what they have put there is what the program calls. */
static void runtime_trace(struct runtime *runtime)
{
	const char *name = runtime->library->name;

	if (!strcmp(name, "roctx"))
		sdk_markers_wrap(runtime->instance, runtime->tables, runtime->count);
	else if (runtime->instance)
		sdk_say(SDK_LOG_WARNING, "calls of a second copy of %s are not traced", name);
	else
		sdk_api_tables_wrap(name, runtime->tables, runtime->count);
	if (runtime->library->all_in_one)
		sdk_say(SDK_LOG_ERROR, "kernels and copies of HSA are recorded by AMD's own tool "
				       "library alone: install rocprofiler-sdk");
}

static void runtime_pass_on(struct runtime *runtime)
{
	runtime_show_tables(runtime);
	runtime_trace(runtime);
	if (runtime->library->initialization)
		sdk_runtime_ready((rocprofiler_runtime_initialization_operation_t)
					  runtime->library->initialization,
				  runtime->version, runtime->instance);
}

static bool any_client(void)
{
	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++) {
		if (atomic_load(&sdk_clients[i].state) == SDK_CLIENT_READY)
			return true;
	}
	return false;
}

void sdk_runtimes_propagate(void)
{
	if (!any_client())
		return;
	for (;;) {
		struct runtime *next = NULL;

		sdk_lock();
		for (unsigned i = 0; i < runtime_count && !next; i++) {
			if (!runtimes[i].is_passed_on)
				next = &runtimes[i];
		}
		if (next)
			next->is_passed_on = true;
		sdk_unlock();
		if (!next)
			return;
		runtime_pass_on(next);
	}
}

enum sdk_runtime_result sdk_runtime_announce(const char *name, uint64_t version, void **tables,
					     uint64_t count, bool only_if_tools, uint64_t *id)
{
	const struct runtime_library *library = runtime_library(name);
	struct runtime *runtime;

	if (!library)
		return SDK_RUNTIME_UNKNOWN;
	if (!tables || !count || (library->all_in_one && !tables[0]))
		return SDK_RUNTIME_NO_TABLES;
	if (library->all_in_one && !sdk_api_tables_are_wrapped(tables[0]))
		device_hsa_found(tables[0]);
	sdk_lock();
	runtime = runtime_again(library, tables);
	if (!runtime)
		runtime = runtime_keep(library, version, tables, count);
	sdk_unlock();
	if (!runtime)
		return SDK_RUNTIME_TOO_MANY;
	*id = (uint64_t)(library - runtime_libraries) * SDK_RUNTIME_INSTANCES + runtime->instance;
	if (only_if_tools && sdk_init_status() == 0 && !sdk_tools_are_asked_for())
		return SDK_RUNTIME_NO_TOOLS;
	if (sdk_register(NULL) == ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED)
		return SDK_RUNTIME_WITHIN;
	sdk_runtimes_propagate();
	return any_client() ? SDK_RUNTIME_TAKEN : SDK_RUNTIME_NO_TOOLS;
}

bool sdk_runtime_at(unsigned number, const char **name, uint64_t *version, uint64_t *count)
{
	bool is;

	sdk_lock();
	is = number < runtime_count;
	if (is) {
		*name = runtimes[number].library->name;
		*version = runtimes[number].version;
		*count = runtimes[number].count;
	}
	sdk_unlock();
	return is;
}

/* ---- what runtimes and tools call ---- */

/* The plug that librocprofiler-register looks for. Declared nowhere: runtimes find it by name. */
int rocprofiler_set_api_table(const char *name, uint64_t lib_version, uint64_t lib_instance,
			      void **tables, uint64_t num_tables);

SDK_EXPORT int rocprofiler_set_api_table(const char *name, uint64_t lib_version,
					 uint64_t lib_instance, void **tables, uint64_t num_tables)
{
	enum sdk_runtime_result result;
	uint64_t id;

	(void)lib_instance; /* counted here: several copies of the register library may call */
	result = sdk_runtime_announce(name, lib_version, tables, num_tables, false, &id);
	return result > SDK_RUNTIME_WITHIN ? -1 : 0;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_at_intercept_table_registration(
	rocprofiler_intercept_library_cb_t callback, int libs, void *data)
{
	unsigned number;

	if (sdk_init_status() > 0)
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (!callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	sdk_keep_loaded((void (*)(void))callback);
	sdk_lock();
	number = atomic_load(&intercept_count);
	if (number < INTERCEPTS_MAX) {
		intercepts[number] = (struct intercept){callback, libs ? libs : ~0, data};
		atomic_store(&intercept_count, number + 1);
	}
	sdk_unlock();
	return number < INTERCEPTS_MAX ? ROCPROFILER_STATUS_SUCCESS
				       : ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
}
