/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * _dl_find_object (glibc 2.35), by which libgcc finds the tables of an address: ours knows arenas.
 * The loader's own is found when we start, since this is called in signal handlers too.
 */
#include "libkymo/find_object.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "instrument/unwind.h"
#include "libkymo/real.h"

typedef int find_object_function(void *, struct dl_find_object *);

static find_object_function *_Atomic real;

static find_object_function *find_real(void)
{
	find_object_function *function = atomic_load_explicit(&real, memory_order_relaxed);

	if (!function) {
		function = (find_object_function *)dlsym(RTLD_NEXT, "_dl_find_object");
		atomic_store_explicit(&real, function, memory_order_relaxed);
	}
	return function;
}

void find_object_start(void)
{
	find_real();
}

EXPORTED int _dl_find_object(void *address, struct dl_find_object *result)
{
	uint64_t caller = (uint64_t)(uintptr_t)__builtin_return_address(0);
	struct unwind_tables tables;
	find_object_function *next;

	if (instrument_unwind_tables((uint64_t)(uintptr_t)address, caller, &tables)) {
		*result = (struct dl_find_object){.dlfo_map_start = (void *)(uintptr_t)tables.start,
						  .dlfo_map_end = (void *)(uintptr_t)tables.end,
						  .dlfo_eh_frame =
							  (void *)(uintptr_t)tables.eh_frame_hdr};
		return 0;
	}
	next = find_real();
	return next ? next(address, result) : -1;
}
