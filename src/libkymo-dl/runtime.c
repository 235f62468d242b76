/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Finding libkymo. Under `kymo sample` it is preloaded, and its table is a symbol look-up away. A
 * program that links libkymo-dl (a rewritten one, say) has it opened on first use, from
 * KYMO_LIBRARY or from beside this library; RTLD_LOCAL, so that nothing of it gets in the way of
 * the program's own look-ups.
 *
 * Opening runs libkymo's constructor, which may call functions that are instrumented and call us
 * again. Those calls, and those of other threads meanwhile, do nothing: waiting for the one that
 * opens could close a circle with the loader's lock.
 */
#include "libkymo-dl/runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/loader.h"
#include "common/loader_state.h"
#include "common/settings_value.h"
#include "libkymo-dl/environment.h"
#include "libkymo-dl/publish.h"

static _Atomic(const struct runtime_api *) libkymo_api;
static _Atomic bool libkymo_load_was_tried;

/* Beside this library: where both are installed, and in the build tree. */
static const char *const libkymo_relative_paths[] = {"/libkymo.so", "/../libkymo/libkymo.so"};

typedef const struct runtime_api *runtime_api_getter_function(void);

const struct runtime_api *dl_runtime_get_api(void)
{
	return atomic_load_explicit(&libkymo_api, memory_order_acquire);
}

bool dl_runtime_is_wanted(void)
{
	const char *session = secure_getenv("KYMO_SPOOL_DIRECTORY"),
		   *own = secure_getenv("KYMO_ENABLED");
	bool on = false;

	if (!environment_setting_is_on(SETTING_ENABLED))
		return false;
	return (session && *session) ||
	       (own && !setting_parse_bool(setting_slice_from_text(own), &on) && on);
}

/* The table that a function gives out, if it has all that this library calls. */
static const struct runtime_api *runtime_table_from_symbol(void *symbol)
{
	union {
		void *symbol;
		runtime_api_getter_function *function;
	} found = {.symbol = symbol};
	const struct runtime_api *table = found.symbol ? found.function() : NULL;

	return table && table->size >= sizeof(struct runtime_api) ? table : NULL;
}

static bool make_path_beside_library(const char *place, char path[PATH_MAX])
{
	Dl_info own;
	const char *slash;
	size_t length;

	if (!dladdr((const void *)libkymo_relative_paths, &own) || !own.dli_fname)
		return false;
	slash = strrchr(own.dli_fname, '/');
	length = slash ? (size_t)(slash - own.dli_fname) : 0;
	if (!slash || length + strlen(place) >= PATH_MAX)
		return false;
	memcpy(path, own.dli_fname, length);
	memcpy(path + length, place, strlen(place) + 1);
	return true;
}

static void *open_libkymo(int flags)
{
	const char *given = secure_getenv("KYMO_LIBRARY");
	char path[PATH_MAX];
	void *handle = given && *given ? loader_dlopen_keeping_dlerror(given, flags) : NULL;

	for (unsigned i = 0; !handle && i < ARRAY_SIZE(libkymo_relative_paths); i++)
		handle = make_path_beside_library(libkymo_relative_paths[i], path)
				 ? loader_dlopen_keeping_dlerror(path, flags)
				 : NULL;
	return handle;
}

static const struct runtime_api *publish_runtime_api_once(const struct runtime_api *table)
{
	static _Atomic bool announced;

	if (!table || atomic_exchange(&announced, true))
		return dl_runtime_get_api();
	publish_fill_user_calls_table(table);
	atomic_store_explicit(&libkymo_api, table, memory_order_release);
	publish_set_api_of_entries_and_users(table);
	return table;
}

const struct runtime_api *dl_runtime_find_loaded(void)
{
	const struct runtime_api *table = dl_runtime_get_api();

	if (table)
		return table;
	table = runtime_table_from_symbol(
		loader_find_symbol(LOADER_SCOPE_ANY_OBJECT, NULL, KYMO_RUNTIME_API_NAME));
	/* The environment does not count where somebody has started it (kymo attach). */
	return table && (dl_runtime_is_wanted() || table->active())
		       ? publish_runtime_api_once(table)
		       : NULL;
}

const struct runtime_api *dl_runtime_find_or_load(void)
{
	const struct runtime_api *table = dl_runtime_get_api();
	int error = errno;
	void *handle;

	if (table || atomic_load_explicit(&libkymo_load_was_tried, memory_order_relaxed) ||
	    atomic_exchange(&libkymo_load_was_tried, true))
		return table;
	table = dl_runtime_find_loaded();
	if (!table && dl_runtime_is_wanted()) {
		handle = open_libkymo(RTLD_NOW | RTLD_LOCAL);
		table = publish_runtime_api_once(runtime_table_from_symbol(
			loader_find_symbol_in_handle(handle, KYMO_RUNTIME_API_NAME)));
	}
	errno = error;
	return table;
}
