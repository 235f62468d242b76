/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of the loader's functions, so that objects opened later are rewritten as well. They are
 * there whenever anything is wrapped; TRACE_LOADER makes them record.
 *
 * dlopen and dlsym take their return address for the caller: its search path (DT_RUNPATH, $ORIGIN)
 * and its place in the order of objects count (dlopen(3)). Where that matters, and where another
 * library's function stands before libc's (tools that observe devices answer the CUDA runtime and
 * others differently), the original is jumped to, so that it sees the caller itself; new objects
 * are then found at the next dlsym. Where it does not, the original is called from here and new
 * objects are rewritten before dlopen returns, though after their constructors.
 */
#include <dlfcn.h>
#include <string.h>

#include "common/time_units.h"
#include "core/background.h"
#include "wrappers/got/engine.h"
#include "wrappers/wrapped.h"
#include "wrappers/wrappers.h"

DEFINE_WRAPPED_FUNCTION_STATE(dlopen, REGION_LOADER);
DEFINE_WRAPPED_FUNCTION_STATE(dlsym, REGION_LOADER);
DEFINE_WRAPPED_FUNCTION_STATE(dlclose, REGION_LOADER);

#define MODULES_WAIT_MAX_NS (100 * MILLISECOND_NS)

static bool loader_calls_recorded_flag;
static void (*opened_objects_listener)(void);
/* Stacks are walked that must not miss an object, however short it is there. */
static bool new_objects_are_looked_at_flag;
/* Someone opened objects behind our back: every dlsym looks for them. */
static atomic_bool unseen_loads_flag;

void *wrapped_dlopen(const char *path, int mode);
void *wrapped_dlsym(void *handle, const char *symbol);
void *tail_dlopen(const char *path, int mode, uint64_t, uint64_t, const void *caller);
void *tail_dlsym(void *handle, const char *symbol, uint64_t, uint64_t, const void *caller);

/* Whoever opens an object waits until it is known: else what it does first has no stack, and what
 * it did has no name where it is gone again by the next time that modules are looked at. */
static void scan_and_look_at_new_objects(void)
{
	uint64_t before = got_get_object_change_count();

	got_scan_and_rewrite();
	if (opened_objects_listener && got_get_object_change_count() != before)
		opened_objects_listener();
	if (new_objects_are_looked_at_flag && got_get_object_change_count() != before &&
	    runtime_is_active() && !process_has_seccomp_thread() &&
	    kymo_wrapped_control->background)
		background_request_modules_and_wait(kymo_wrapped_control->background,
						    MODULES_WAIT_MAX_NS);
}

void wrappers_loader_set_listener(void (*opened)(void))
{
	opened_objects_listener = opened;
}

static void *open_object_and_rewrite_got(const char *path, int mode)
{
	region_id region =
		loader_calls_recorded_flag ? wrapped_get_region_if_recording(&call_dlopen) : 0;
	void *handle;
	int error;

	if (region)
		wrapped_begin_region(region, wrapped_text_to_value("path", path));
	got_count_load_begin();
	handle = ORIGINAL(dlopen)(path, mode);
	got_count_load_end();
	error = errno;
	if (region)
		wrapped_end_region_with_result(region, "handle", (int64_t)handle);
	scan_and_look_at_new_objects();
	errno = error;
	return handle;
}

void *tail_dlopen(const char *path, int mode, uint64_t third, uint64_t fourth, const void *caller)
{
	int error = errno;
	region_id region;

	(void)mode;
	(void)third;
	(void)fourth;
	if (!got_name_has_foreign_interposer("dlopen") &&
	    (!path || (strchr(path, '/') && !strchr(path, '$')) ||
	     !got_caller_has_search_path(caller))) {
		errno = error;
		return (void *)open_object_and_rewrite_got;
	}
	region = loader_calls_recorded_flag ? wrapped_get_region_if_recording(&call_dlopen) : 0;
	if (region)
		wrapped_record_mark(region, wrapped_text_to_value("path", path));
	atomic_store_explicit(&unseen_loads_flag, true, memory_order_relaxed);
	errno = error;
	return (void *)ORIGINAL(dlopen);
}

static void *find_symbol_or_replacement(void *handle, const char *symbol)
{
	return got_find_replacement(symbol, ORIGINAL(dlsym)(handle, symbol));
}

static __thread void *next_replacement;

/* The look-up itself is made as well, for what it does to dlerror(3). */
static void *find_next_replacement(void *handle, const char *symbol)
{
	(void)handle;
	ORIGINAL(dlsym)(RTLD_DEFAULT, symbol);
	return next_replacement;
}

/* Programs that look wrapped functions up by name get the replacement, if that is what the look-up
 * finds from here as well. What comes next (RTLD_NEXT) depends on the caller. */
void *tail_dlsym(void *handle, const char *symbol, uint64_t third, uint64_t fourth,
		 const void *caller)
{
	int error = errno;
	void *function;

	(void)third;
	(void)fourth;
	if (atomic_load_explicit(&unseen_loads_flag, memory_order_relaxed))
		scan_and_look_at_new_objects();
	if (symbol && got_name_is_wrapped(symbol) && !got_name_has_foreign_interposer("dlsym")) {
		if (handle == RTLD_NEXT) {
			next_replacement = got_find_next_replacement(symbol, caller);
			errno = error;
			return next_replacement ? (void *)find_next_replacement
						: (void *)ORIGINAL(dlsym);
		}
		function = ORIGINAL(dlsym)(handle, symbol);
		errno = error;
		if (function && got_find_replacement(symbol, function) != function)
			return (void *)find_symbol_or_replacement;
	}
	errno = error;
	return (void *)ORIGINAL(dlsym);
}

static int wrapped_dlclose(void *handle)
{
	region_id region = wrapped_get_region_if_recording(&call_dlclose);
	int result;

	if (!region)
		return ORIGINAL(dlclose)(handle);
	wrapped_begin_region(region, wrapped_address_to_value("handle", handle));
	result = ORIGINAL(dlclose)(handle);
	wrapped_end_region_with_error(region, result);
	return result;
}

int wrappers_loader_add_dlopen_wrappers(void)
{
	static struct got_wrapper rows[] = {WRAPPER_TABLE_ROW(dlopen), WRAPPER_TABLE_ROW(dlsym)};
	static bool followed;
	int error = followed ? 0 : got_add_wrappers(rows, 2);

	followed = true;
	return error;
}

int wrappers_loader_add_for_attachment(const struct wrapper_options *options)
{
	new_objects_are_looked_at_flag = options->wrap_memory;
	return wrappers_loader_add_dlopen_wrappers();
}

int wrappers_loader_add(const struct wrapper_options *options)
{
	static struct got_wrapper recorded[] = {WRAPPER_TABLE_ROW(dlclose)};
	int error = wrappers_loader_add_dlopen_wrappers();

	loader_calls_recorded_flag = options->wrap_loader;
	new_objects_are_looked_at_flag = options->wrap_memory;
	return error || !loader_calls_recorded_flag ? error : got_add_wrappers(recorded, 1);
}
