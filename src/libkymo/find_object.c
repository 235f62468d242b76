/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * _dl_find_object (glibc 2.35), by which libgcc finds the tables of an address: ours knows arenas.
 * The loader's own is found when we start, since this is called in signal handlers too.
 */
#include "libkymo/find_object.h"

#include "instrument/unwind.h"
#include "libkymo/real.h"

typedef int dl_find_object_function_type(void *, struct dl_find_object *);

static dl_find_object_function_type *find_real_dl_find_object(void)
{
	return (dl_find_object_function_type *)real_find_function_or_null(&real__dl_find_object,
									  "_dl_find_object");
}

void find_object_resolve_real_function(void)
{
	find_real_dl_find_object();
}

EXPORTED int _dl_find_object(void *address, struct dl_find_object *result)
{
	uint64_t caller = (uint64_t)(uintptr_t)__builtin_return_address(0);
	struct unwind_tables tables;
	dl_find_object_function_type *next;

	if (instrument_find_unwind_tables((uint64_t)(uintptr_t)address, caller, &tables)) {
		*result = (struct dl_find_object){.dlfo_map_start = (void *)(uintptr_t)tables.start,
						  .dlfo_map_end = (void *)(uintptr_t)tables.end,
						  .dlfo_eh_frame =
							  (void *)(uintptr_t)tables.eh_frame_hdr};
		return 0;
	}
	next = find_real_dl_find_object();
	return next ? next(address, result) : -1;
}
