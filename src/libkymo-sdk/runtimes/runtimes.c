/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See known_runtimes.h. A runtime's first call finds tools and initializes them, so that a context
 * that is started there sees everything the runtime does after it.
 */
#include "libkymo-sdk/runtimes/runtimes.h"
#include "libkymo-sdk/base/keep_loaded.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "device/device.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/runtimes/api_tables.h"
#include "libkymo-sdk/runtimes/clients.h"
#include "libkymo-sdk/runtimes/start.h"
#include "libkymo-sdk/tables/domains.h"

#define RUNTIME_TABLES_MAX   16
#define TABLE_INTERCEPTS_MAX 64

struct runtime_library {
	const char *name;
	int initialization_operation; /* operation of RUNTIME_INITIALIZATION, 0: none */
	int table_bits[4]; /* bits of rocprofiler_intercept_table_t, in the order of its tables */
	bool has_one_table_for_tools; /* all of its tables are one for tools */
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

#define RUNTIME_LIBRARY_COUNT ARRAY_SIZE(runtime_libraries)

struct known_runtime {
	const struct runtime_library *library;
	uint64_t version, instance_index, table_count;
	void *tables[RUNTIME_TABLES_MAX];
	bool is_passed_on_to_tools;
};

struct table_intercept_callback {
	rocprofiler_intercept_library_cb_t callback;
	int table_bits;
	void *data;
};

static struct known_runtime known_runtimes[RUNTIME_LIBRARY_COUNT * SDK_RUNTIME_INSTANCES_MAX];
static unsigned known_runtime_count;
static struct table_intercept_callback table_intercept_callbacks[TABLE_INTERCEPTS_MAX];
static _Atomic unsigned table_intercept_callback_count;

static const struct runtime_library *find_runtime_library_row_by_name(const char *name)
{
	for (unsigned i = 0; name && i < RUNTIME_LIBRARY_COUNT; i++) {
		if (!strcmp(runtime_libraries[i].name, name))
			return &runtime_libraries[i];
	}
	return NULL;
}

/* HSA announces itself to the register library and to the libraries of HSA_TOOLS_LIB, and once more
 * when it was shut down and is initialized again: always with the same table, which by then has
 * functions of its own in it. With the lock held. */
static struct known_runtime *find_runtime_announced_again(const struct runtime_library *library,
							  void **tables)
{
	for (unsigned i = 0; i < known_runtime_count && library->has_one_table_for_tools; i++) {
		struct known_runtime *runtime = &known_runtimes[i];

		if (runtime->library != library || runtime->tables[0] != tables[0])
			continue;
		if (!sdk_is_hsa_table_wrapped(tables[0]))
			runtime->is_passed_on_to_tools = false;
		return runtime;
	}
	return NULL;
}

/* With the lock held. NULL: too many of the kind. */
static struct known_runtime *add_known_runtime(const struct runtime_library *library,
					       uint64_t version, void **tables, uint64_t count)
{
	struct known_runtime *runtime = &known_runtimes[known_runtime_count];
	uint64_t instance = 0;

	for (unsigned i = 0; i < known_runtime_count; i++)
		instance += known_runtimes[i].library == library;
	if (instance == SDK_RUNTIME_INSTANCES_MAX || count > RUNTIME_TABLES_MAX)
		return NULL;
	*runtime = (struct known_runtime){.library = library,
					  .version = version,
					  .instance_index = instance,
					  .table_count = count};
	memcpy(runtime->tables, tables, count * sizeof(*tables));
	known_runtime_count++;
	return runtime;
}

static void call_table_intercepts(struct known_runtime *runtime)
{
	const int *kinds = runtime->library->table_bits;
	unsigned shown = atomic_load(&table_intercept_callback_count);

	for (unsigned i = 0; i < shown; i++) {
		for (unsigned table = 0; table < 4 && kinds[table]; table++) {
			bool all = runtime->library->has_one_table_for_tools;

			if (table >= runtime->table_count ||
			    !(table_intercept_callbacks[i].table_bits & kinds[table]))
				continue;
			table_intercept_callbacks[i].callback(
				(rocprofiler_intercept_table_t)kinds[table], runtime->version,
				runtime->instance_index, &runtime->tables[all ? 0 : table],
				all ? runtime->table_count : 1, table_intercept_callbacks[i].data);
		}
	}
}

/* Tools have seen its tables, and what they have put there is what the program calls. */
static void wrap_runtime_tables(struct known_runtime *runtime)
{
	const char *name = runtime->library->name;

	if (!strcmp(name, "roctx"))
		sdk_marker_tables_wrap(runtime->instance_index, runtime->tables,
				       runtime->table_count);
	else if (runtime->instance_index)
		sdk_print_log_line(SDK_LOG_WARNING, "calls of a second copy of %s are not traced",
				   name);
	else
		sdk_api_tables_wrap(name, runtime->tables, runtime->table_count);
	if (runtime->library->has_one_table_for_tools)
		sdk_print_log_line(SDK_LOG_ERROR,
				   "kernels and copies of HSA are recorded by AMD's own tool "
				   "library alone: install rocprofiler-sdk");
}

static void pass_on_runtime_tables(struct known_runtime *runtime)
{
	call_table_intercepts(runtime);
	wrap_runtime_tables(runtime);
	if (runtime->library->initialization_operation)
		sdk_report_runtime_ready((rocprofiler_runtime_initialization_operation_t)
						 runtime->library->initialization_operation,
					 runtime->version, runtime->instance_index);
}

static bool is_any_client_ready(void)
{
	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++) {
		if (atomic_load(&sdk_clients[i].state) == SDK_CLIENT_INITIALIZED)
			return true;
	}
	return false;
}

void sdk_runtimes_pass_on_tables(void)
{
	if (!is_any_client_ready())
		return;
	for (;;) {
		struct known_runtime *next = NULL;

		sdk_acquire_global_lock();
		for (unsigned i = 0; i < known_runtime_count && !next; i++) {
			if (!known_runtimes[i].is_passed_on_to_tools)
				next = &known_runtimes[i];
		}
		if (next)
			next->is_passed_on_to_tools = true;
		sdk_release_global_lock();
		if (!next)
			return;
		pass_on_runtime_tables(next);
	}
}

enum sdk_runtime_announce_result sdk_runtime_announce(const char *name, uint64_t version,
						      void **tables, uint64_t count,
						      bool only_if_tools, uint64_t *id)
{
	const struct runtime_library *library = find_runtime_library_row_by_name(name);
	struct known_runtime *runtime;

	if (!library)
		return SDK_RUNTIME_ANNOUNCE_UNKNOWN_RUNTIME;
	if (!tables || !count || (library->has_one_table_for_tools && !tables[0]))
		return SDK_RUNTIME_ANNOUNCE_NO_TABLES;
	if (library->has_one_table_for_tools && !sdk_is_hsa_table_wrapped(tables[0]))
		device_report_hsa_agents(tables[0]);
	sdk_acquire_global_lock();
	runtime = find_runtime_announced_again(library, tables);
	if (!runtime)
		runtime = add_known_runtime(library, version, tables, count);
	sdk_release_global_lock();
	if (!runtime)
		return SDK_RUNTIME_ANNOUNCE_TOO_MANY_RUNTIMES;
	*id = (uint64_t)(library - runtime_libraries) * SDK_RUNTIME_INSTANCES_MAX +
	      runtime->instance_index;
	if (only_if_tools && sdk_get_init_status() == 0 && !sdk_is_any_tool_requested())
		return SDK_RUNTIME_ANNOUNCE_NO_TOOLS;
	if (sdk_register_tools_once(NULL) == ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED)
		return SDK_RUNTIME_ANNOUNCE_BY_CONFIGURING_TOOL;
	sdk_runtimes_pass_on_tables();
	return is_any_client_ready() ? SDK_RUNTIME_ANNOUNCE_PASSED_TO_TOOLS
				     : SDK_RUNTIME_ANNOUNCE_NO_TOOLS;
}

bool sdk_runtime_query_by_number(unsigned number, const char **name, uint64_t *version,
				 uint64_t *count)
{
	bool is;

	sdk_acquire_global_lock();
	is = number < known_runtime_count;
	if (is) {
		*name = known_runtimes[number].library->name;
		*version = known_runtimes[number].version;
		*count = known_runtimes[number].table_count;
	}
	sdk_release_global_lock();
	return is;
}

/* ---- what runtimes and tools call ---- */

/* The plug that librocprofiler-register looks for. Declared nowhere: runtimes find it by
 * name. */
int rocprofiler_set_api_table(const char *name, uint64_t lib_version, uint64_t lib_instance,
			      void **tables, uint64_t num_tables);

SDK_EXPORT int rocprofiler_set_api_table(const char *name, uint64_t lib_version,
					 uint64_t lib_instance, void **tables, uint64_t num_tables)
{
	enum sdk_runtime_announce_result result;
	uint64_t id;

	(void)lib_instance; /* counted here: several copies of the register library may call */
	result = sdk_runtime_announce(name, lib_version, tables, num_tables, false, &id);
	return result > SDK_RUNTIME_ANNOUNCE_BY_CONFIGURING_TOOL ? -1 : 0;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_at_intercept_table_registration(
	rocprofiler_intercept_library_cb_t callback, int libs, void *data)
{
	unsigned number;

	if (sdk_get_init_status() > 0)
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (!callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	sdk_keep_library_of_function_loaded((void (*)(void))callback);
	sdk_acquire_global_lock();
	number = atomic_load(&table_intercept_callback_count);
	if (number < TABLE_INTERCEPTS_MAX) {
		table_intercept_callbacks[number] =
			(struct table_intercept_callback){callback, libs ? libs : ~0, data};
		atomic_store(&table_intercept_callback_count, number + 1);
	}
	sdk_release_global_lock();
	return number < TABLE_INTERCEPTS_MAX ? ROCPROFILER_STATUS_SUCCESS
					     : ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
}
