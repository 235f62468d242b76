/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See keep_loaded.h.
 */
#include "libkymo-sdk/base/keep_loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "common/loader_state.h"

/* glibc takes RTLD_NODELETE for what is loaded already, too: then no dlclose() unloads it, not even
 * one too many. */
void sdk_keep_library_of_function_loaded(void (*function)(void))
{
	struct link_map *map = NULL;
	Dl_info where;
	void *address;

	memcpy(&address, &function, sizeof(address));
	if (!address || !dladdr1(address, &where, (void **)&map, RTLD_DL_LINKMAP) || !map ||
	    !*map->l_name)
		return;
	/* The handle is not given back: elsewhere than in glibc, it is what keeps the library. */
	loader_dlopen_keeping_dlerror(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
