/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Finding the profiler, as librocprofiler-register does: it is there already, or a tool wants it.
 *
 * It may also come later, with a tool that is opened by dlopen(3). So that a program which is never
 * profiled does not pay for looking, that is done at the first call, the second, the fourth and so
 * on.
 */
#include "libkymo-sdk-roctx/announce.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <rocprofiler-sdk-roctx/version.h>

#define ANNOUNCE_SUCCESS  0
#define ANNOUNCE_NO_TOOLS 1 /* tables are kept, and passed on to tools that come later */
#define ANNOUNCE_DEADLOCK 2 /* the tool that asks is being initialized; tables are kept */

#define WAIT_MS 1000

typedef int (*register_function)(const char *name, uint32_t (*import)(void), uint32_t version,
				 void **tables, uint64_t count, uint64_t *identifier);

atomic_uint_fast64_t roctx_until_next = 1;
static atomic_uint_fast64_t interval = 1;
/* One thread looks at a time. The profiler calls tools, which may mark things themselves. */
static atomic_flag is_looking = ATOMIC_FLAG_INIT;
static _Thread_local int looks;
static atomic_bool is_first_over; /* or was waited for for too long */
/* The tables are given once, whatever a late count may have left in roctx_until_next. Under
 * is_looking. */
static int is_announced;

/* What the profiler may look up to see whose tables they are. */
static uint32_t announce_import(void)
{
	return ROCTX_VERSION;
}

static int announce_is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0") != 0 && strcasecmp(value, "off") != 0 &&
	       strcasecmp(value, "false") != 0 && strcasecmp(value, "no") != 0;
}

/* Does any tool want a profiler? */
static int announce_has_tools(void)
{
	const char *libraries = getenv("ROCP_TOOL_LIBRARIES");

	return (libraries && *libraries) || announce_is_set("ROCPROFILER_REGISTER_FORCE_LOAD") ||
	       dlsym(RTLD_DEFAULT, "rocprofiler_configure");
}

/* Beside this library, or wherever libraries are. */
static void *announce_open(const char *name, int flags)
{
	char path[4096];
	Dl_info own;
	void *handle = NULL;
	const char *slash;

	if (dladdr((const void *)announce_open, &own) && own.dli_fname &&
	    (slash = strrchr(own.dli_fname, '/'))) {
		int length = snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - own.dli_fname),
				      own.dli_fname, name);

		if (length > 0 && (size_t)length < sizeof(path))
			handle = dlopen(path, flags);
	}
	return handle ? handle : dlopen(name, flags);
}

static register_function announce_find(void)
{
	static const char *const names[] = {"librocprofiler-register.so.0",
					    "librocprofiler-sdk.so.1"};
	const char *symbol = "rocprofiler_register_library_api_table";
	const char *chosen = getenv("ROCPROFILER_REGISTER_LIBRARY");
	void *handle = NULL, *found = dlsym(RTLD_DEFAULT, symbol);
	int flags = RTLD_LAZY | RTLD_GLOBAL;

	if (found)
		return (register_function)found;
	for (size_t i = 0; !found && i < 2; i++) {
		handle = dlopen(names[i], flags | RTLD_NOLOAD);
		found = handle ? dlsym(handle, symbol) : NULL;
	}
	if (found || !announce_has_tools())
		return (register_function)found;
	if (chosen && *chosen)
		handle = dlopen(chosen, flags);
	for (size_t i = 0; !found && i < 2; i++) {
		found = handle ? dlsym(handle, symbol) : NULL;
		if (!found)
			handle = announce_open(names[i], flags);
	}
	return (register_function)(found || !handle ? found : dlsym(handle, symbol));
}

/* What other threads mark while the first one brings the profiler up would be lost. Not for longer
 * than WAIT_MS: it may wait for one of them, which holds the loader's lock, or is a tool's. */
static void wait_for_first(void)
{
	const struct timespec pause = {0, 1000000};
	int error = errno;

	for (int i = 0; !looks && !atomic_load(&is_first_over) && i < WAIT_MS; i++)
		nanosleep(&pause, NULL);
	if (!looks)
		atomic_store(&is_first_over, true);
	errno = error;
}

void roctx_look(void *const *tables, uint64_t count)
{
	uint64_t identifier = 0, next;
	register_function announce;
	int code;

	if (atomic_flag_test_and_set_explicit(&is_looking, memory_order_acquire)) {
		wait_for_first();
		return;
	}
	looks = 1;
	next = atomic_load_explicit(&roctx_until_next, memory_order_relaxed);
	/* Another thread may have looked since. */
	if (next == 1 && !is_announced) {
		announce = announce_find();
		code = announce ? announce("roctx", announce_import, ROCTX_VERSION, (void **)tables,
					   count, &identifier)
				: -1;
		is_announced = code >= ANNOUNCE_SUCCESS && code <= ANNOUNCE_DEADLOCK;
		next = atomic_load_explicit(&interval, memory_order_relaxed) * 2;
		atomic_store_explicit(&interval, next, memory_order_relaxed);
	}
	atomic_store_explicit(&roctx_until_next, is_announced ? 0 : next, memory_order_release);
	looks = 0;
	atomic_store(&is_first_over, true);
	atomic_flag_clear_explicit(&is_looking, memory_order_release);
}
