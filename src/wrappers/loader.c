/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of the loader's functions, so that objects opened later are rewritten as well. They are
 * there whenever anything is wrapped; TRACE_LOADER makes them record.
 *
 * dlopen and dlsym take their return address for the caller: its search path (DT_RUNPATH, $ORIGIN)
 * and its place in the order of objects count (dlopen(3)). Where that matters the original is
 * jumped to, so that it sees the caller itself; new objects are then found at the next dlsym. Where
 * it does not, the original is called from here and new objects are rewritten before dlopen
 * returns, though after their constructors.
 */
#include <dlfcn.h>
#include <string.h>

#include "wrappers/got_engine.h"
#include "wrappers/wrapped.h"
#include "wrappers/wrappers.h"

WRAPPED_CALL(dlopen, REGION_LOADER);
WRAPPED_CALL(dlsym, REGION_LOADER);
WRAPPED_CALL(dlclose, REGION_LOADER);

static bool records;
/* Someone opened objects behind our back: every dlsym looks for them. */
static atomic_bool loads_unseen;

void *wrapped_dlopen(const char *path, int mode);
void *wrapped_dlsym(void *handle, const char *symbol);
void *tail_dlopen(const char *path, int mode, uint64_t, uint64_t, const void *caller);
void *tail_dlsym(void *handle, const char *symbol);

static void *open_from_here(const char *path, int mode)
{
	region_id region = records ? wrapped_recording(&call_dlopen) : 0;
	void *handle;
	int error;

	if (region)
		wrapped_begin(region, wrapped_text("path", path));
	got_load_begins();
	handle = ORIGINAL(dlopen)(path, mode);
	got_load_ends();
	error = errno;
	if (region)
		wrapped_end_result(region, "handle", (int64_t)handle);
	got_scan();
	errno = error;
	return handle;
}

void *tail_dlopen(const char *path, int mode, uint64_t third, uint64_t fourth, const void *caller)
{
	int error = errno;

	(void)mode;
	(void)third;
	(void)fourth;
	if (!path || (strchr(path, '/') && !strchr(path, '$')) || !got_has_search_path(caller)) {
		errno = error;
		return (void *)open_from_here;
	}
	if (records)
		wrapped_mark(&call_dlopen, wrapped_text("path", path));
	atomic_store_explicit(&loads_unseen, true, memory_order_relaxed);
	errno = error;
	return (void *)ORIGINAL(dlopen);
}

static void *find_from_here(void *handle, const char *symbol)
{
	return got_replacement_of(symbol, ORIGINAL(dlsym)(handle, symbol));
}

/* Programs that look wrapped functions up by name get the replacement, if that is what the look-up
 * finds from here as well. */
void *tail_dlsym(void *handle, const char *symbol)
{
	int error = errno;
	void *function;

	if (atomic_load_explicit(&loads_unseen, memory_order_relaxed))
		got_scan();
	if (handle != RTLD_NEXT && symbol && got_wants(symbol)) {
		function = ORIGINAL(dlsym)(handle, symbol);
		errno = error;
		if (function && got_replacement_of(symbol, function) != function)
			return (void *)find_from_here;
	}
	errno = error;
	return (void *)ORIGINAL(dlsym);
}

static int wrapped_dlclose(void *handle)
{
	region_id region = wrapped_recording(&call_dlclose);
	int result;

	if (!region)
		return ORIGINAL(dlclose)(handle);
	wrapped_begin(region, wrapped_address("handle", handle));
	result = ORIGINAL(dlclose)(handle);
	wrapped_end_error(region, result);
	return result;
}

int wrappers_loader_follow(void)
{
	static struct got_wrapper rows[] = {WRAPPED_ROW(dlopen), WRAPPED_ROW(dlsym)};
	static bool followed;
	int error = followed ? 0 : got_add(rows, 2);

	followed = true;
	return error;
}

int wrappers_loader_add(const struct options_wrappers *options)
{
	static struct got_wrapper recorded[] = {WRAPPED_ROW(dlclose)};
	int error = wrappers_loader_follow();

	records = options->loader;
	return error || !records ? error : got_add(recorded, 1);
}
