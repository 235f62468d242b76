/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See real.h.
 */
#include "libkymo/real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#define DEFINE(name) _Atomic(void *) real_##name;
REAL_FUNCTIONS(DEFINE)

void *real_find(_Atomic(void *) *slot, const char *name)
{
	void *function = atomic_load_explicit(slot, memory_order_relaxed);

	if (!function) {
		function = dlsym(RTLD_NEXT, name);
		if (!function)
			abort();
		atomic_store_explicit(slot, function, memory_order_relaxed);
	}
	return function;
}
