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

#include "common/settings_value.h"
#include "libkymo-dl/environment.h"
#include "libkymo-dl/publish.h"

static _Atomic(const struct kymo_runtime_api *) dl_api;
static _Atomic bool dl_tried;

/* Beside this library: where both are installed, and in the build tree. */
static const char *const runtime_places[] = {"/libkymo.so", "/../libkymo/libkymo.so"};

typedef const struct kymo_runtime_api *runtime_table_function(void);

const struct kymo_runtime_api *dl_runtime(void)
{
	return atomic_load_explicit(&dl_api, memory_order_acquire);
}

bool dl_runtime_wanted(void)
{
	const char *session = getenv("KYMO_SPOOL_DIRECTORY"), *own = getenv("KYMO_ENABLED");
	bool on = false;

	if (!environment_on(SETTING_ENABLED))
		return false;
	return (session && *session) || (own && !setting_parse_bool(setting_slice(own), &on) && on);
}

/* The table behind a handle, if it has all that this library calls. */
static const struct kymo_runtime_api *runtime_table(void *handle)
{
	union {
		void *symbol;
		runtime_table_function *function;
	} found = {.symbol = dlsym(handle, KYMO_RUNTIME_API_NAME)};
	const struct kymo_runtime_api *table = found.symbol ? found.function() : NULL;

	if (!found.symbol)
		dlerror(); /* our vain look-up is not the program's to find */

	return table && table->size >= sizeof(struct kymo_runtime_api) ? table : NULL;
}

static bool runtime_beside(const char *place, char path[PATH_MAX])
{
	Dl_info own;
	const char *slash;
	size_t length;

	if (!dladdr((const void *)runtime_places, &own) || !own.dli_fname)
		return false;
	slash = strrchr(own.dli_fname, '/');
	length = slash ? (size_t)(slash - own.dli_fname) : 0;
	if (!slash || length + strlen(place) >= PATH_MAX)
		return false;
	memcpy(path, own.dli_fname, length);
	memcpy(path + length, place, strlen(place) + 1);
	return true;
}

static void *runtime_open(int flags)
{
	const char *given = secure_getenv("KYMO_LIBRARY");
	char path[PATH_MAX];
	void *handle = given && *given ? dlopen(given, flags) : NULL;

	for (unsigned i = 0; !handle && i < sizeof(runtime_places) / sizeof(*runtime_places); i++)
		handle = runtime_beside(runtime_places[i], path) ? dlopen(path, flags) : NULL;
	/* What the loader has to say about a path that was merely tried is not the program's to
	 * find. */
	if (!handle)
		dlerror();
	return handle;
}

static const struct kymo_runtime_api *runtime_announce(const struct kymo_runtime_api *table)
{
	static _Atomic bool announced;

	if (!table || atomic_exchange(&announced, true))
		return dl_runtime();
	publish_prepare(table);
	atomic_store_explicit(&dl_api, table, memory_order_release);
	publish_runtime(table);
	return table;
}

const struct kymo_runtime_api *dl_runtime_find(void)
{
	const struct kymo_runtime_api *table = dl_runtime();
	void *handle;

	if (table)
		return table;
	table = runtime_table(RTLD_DEFAULT);
	if (!table) {
		handle = runtime_open(RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
		table = handle ? runtime_table(handle) : NULL;
	}
	/* The environment does not count where somebody has started it (kymo attach). */
	return table && (dl_runtime_wanted() || table->active()) ? runtime_announce(table) : NULL;
}

const struct kymo_runtime_api *dl_runtime_load(void)
{
	const struct kymo_runtime_api *table = dl_runtime();
	int error = errno;
	void *handle;

	if (table || atomic_load_explicit(&dl_tried, memory_order_relaxed) ||
	    atomic_exchange(&dl_tried, true))
		return table;
	table = dl_runtime_find();
	if (!table && dl_runtime_wanted()) {
		handle = runtime_open(RTLD_NOW | RTLD_LOCAL);
		table = runtime_announce(handle ? runtime_table(handle) : NULL);
	}
	errno = error;
	return table;
}
