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

#include "common/loader.h"
#include "common/loader_state.h"

#define REGISTER_RESULT_SUCCESS  0
#define REGISTER_RESULT_NO_TOOLS 1 /* tables are kept, and passed on to tools that come later */
#define REGISTER_RESULT_DEADLOCK 2 /* the tool that asks is being initialized; tables are kept */

#define FIRST_ANNOUNCEMENT_WAIT_MS 1000

typedef int (*register_api_table_function_pointer)(const char *name, uint32_t (*import)(void),
						   uint32_t version, void **tables, uint64_t count,
						   uint64_t *identifier);

atomic_uint_fast64_t roctx_call_count_until_next_lookup = 1;
static atomic_uint_fast64_t lookup_interval_call_count = 1;
/* One thread looks at a time. The profiler calls tools, which may mark things themselves. */
static atomic_flag profiler_lookup_lock = ATOMIC_FLAG_INIT;
static _Thread_local int thread_looking_up_profiler_flag;
static atomic_bool first_announcement_over_flag; /* or was waited for for too long */
/* The tables are given once, whatever a late count may have left in
 * roctx_call_count_until_next_lookup. Under profiler_lookup_lock. */
static int tables_announced_flag;

/* What the profiler may look up to see whose tables they are. */
static uint32_t get_roctx_version(void)
{
	return ROCTX_VERSION;
}

static int is_environment_variable_on(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value && strcmp(value, "0") != 0 && strcasecmp(value, "off") != 0 &&
	       strcasecmp(value, "false") != 0 && strcasecmp(value, "no") != 0;
}

/* Does any tool want a profiler? */
static int is_any_tool_requested(void)
{
	const char *libraries = secure_getenv("ROCP_TOOL_LIBRARIES");

	return (libraries && *libraries) ||
	       is_environment_variable_on("ROCPROFILER_REGISTER_FORCE_LOAD") ||
	       loader_find_symbol(LOADER_SCOPE_ANY_OBJECT, NULL, "rocprofiler_configure");
}

/* Beside this library, or wherever libraries are. */
static void *open_library_beside_own_or_by_name(const char *name, int flags)
{
	char path[4096];
	Dl_info own;
	void *handle = NULL;
	const char *slash;

	if (dladdr((const void *)open_library_beside_own_or_by_name, &own) && own.dli_fname &&
	    (slash = strrchr(own.dli_fname, '/'))) {
		int length = snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - own.dli_fname),
				      own.dli_fname, name);

		if (length > 0 && (size_t)length < sizeof(path))
			handle = loader_dlopen_keeping_dlerror(path, flags);
	}
	return handle ? handle : loader_dlopen_keeping_dlerror(name, flags);
}

static register_api_table_function_pointer find_register_api_table_function(void)
{
	static const char *const names[] = {"librocprofiler-register.so.0",
					    "librocprofiler-sdk.so.1"};
	const char *symbol = "rocprofiler_register_library_api_table";
	const char *chosen = secure_getenv("ROCPROFILER_REGISTER_LIBRARY");
	void *handle = NULL, *found = loader_find_symbol(LOADER_SCOPE_ANY_OBJECT, NULL, symbol);
	int flags = RTLD_LAZY | RTLD_GLOBAL;

	if (found)
		return (register_api_table_function_pointer)found;
	for (size_t i = 0; !found && i < 2; i++) {
		handle = loader_dlopen_keeping_dlerror(names[i], flags | RTLD_NOLOAD);
		found = handle ? loader_find_symbol_in_handle(handle, symbol) : NULL;
	}
	if (found || !is_any_tool_requested())
		return (register_api_table_function_pointer)found;
	if (chosen && *chosen)
		handle = loader_dlopen_keeping_dlerror(chosen, flags);
	for (size_t i = 0; !found && i < 2; i++) {
		found = handle ? loader_find_symbol_in_handle(handle, symbol) : NULL;
		if (!found)
			handle = open_library_beside_own_or_by_name(names[i], flags);
	}
	return (register_api_table_function_pointer)(found || !handle
							     ? found
							     : loader_find_symbol_in_handle(
								       handle, symbol));
}

/* What other threads mark while the first one brings the profiler up would be lost. Not for longer
 * than FIRST_ANNOUNCEMENT_WAIT_MS: it may wait for one of them, which holds the loader's lock, or
 * is a tool's. */
static void wait_for_first_announcement(void)
{
	const struct timespec pause = {0, 1000000};
	int error = errno;

	for (int i = 0;
	     !thread_looking_up_profiler_flag && !atomic_load(&first_announcement_over_flag) &&
	     i < FIRST_ANNOUNCEMENT_WAIT_MS;
	     i++)
		nanosleep(&pause, NULL);
	if (!thread_looking_up_profiler_flag)
		atomic_store(&first_announcement_over_flag, true);
	errno = error;
}

void roctx_find_profiler_and_register_tables(void *const *tables, uint64_t count)
{
	uint64_t identifier = 0, next;
	register_api_table_function_pointer announce;
	int code;

	if (atomic_flag_test_and_set_explicit(&profiler_lookup_lock, memory_order_acquire)) {
		wait_for_first_announcement();
		return;
	}
	thread_looking_up_profiler_flag = 1;
	next = atomic_load_explicit(&roctx_call_count_until_next_lookup, memory_order_relaxed);
	/* Another thread may have looked since. */
	if (next == 1 && !tables_announced_flag) {
		announce = find_register_api_table_function();
		code = announce ? announce("roctx", get_roctx_version, ROCTX_VERSION,
					   (void **)tables, count, &identifier)
				: -1;
		tables_announced_flag =
			code >= REGISTER_RESULT_SUCCESS && code <= REGISTER_RESULT_DEADLOCK;
		next = atomic_load_explicit(&lookup_interval_call_count, memory_order_relaxed) * 2;
		atomic_store_explicit(&lookup_interval_call_count, next, memory_order_relaxed);
	}
	atomic_store_explicit(&roctx_call_count_until_next_lookup, tables_announced_flag ? 0 : next,
			      memory_order_release);
	thread_looking_up_profiler_flag = 0;
	atomic_store(&first_announcement_over_flag, true);
	atomic_flag_clear_explicit(&profiler_lookup_lock, memory_order_release);
}
