/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Unwinders of the program learn of arenas.
 */
#ifndef KYMO_LIBKYMO_FIND_OBJECT_H
#define KYMO_LIBKYMO_FIND_OBJECT_H

#include <dlfcn.h>
#include <features.h>

#if !__GLIBC_PREREQ(2, 35)
struct dl_find_object {
	unsigned long long dlfo_flags;
	void *dlfo_map_start, *dlfo_map_end;
	struct link_map *dlfo_link_map;
	void *dlfo_eh_frame;
	unsigned long long dlfo_reserved[7];
};
int _dl_find_object(void *address, struct dl_find_object *result);
#endif

#define LIBGCC_FILE_NAME "libgcc_s.so.1"

/* At the start: what is needed later, in signal handlers too. */
void find_object_resolve_real_function(void);

#endif
