/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See keep_loaded.h.
 */
#include "libkymo-sdk/keep_loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* glibc takes RTLD_NODELETE for what is loaded already, too: then no dlclose() unloads it, not even
 * one too many. */
void sdk_keep_loaded(void (*function)(void))
{
	struct link_map *map = NULL;
	Dl_info where;
	void *address;

	memcpy(&address, &function, sizeof(address));
	if (!address || !dladdr1(address, &where, (void **)&map, RTLD_DL_LINKMAP) || !map ||
	    !*map->l_name)
		return;
	/* The handle is not given back: elsewhere than in glibc, it is what keeps the library. */
	if (!dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
		dlerror();
}
