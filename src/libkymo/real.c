/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See real.h.
 */
#include "libkymo/real.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/loader.h"
#include "core/runtime.h"

#define DEFINE_REAL_POINTER(name) _Atomic(void *) real_##name;
FOR_EACH_REAL_FUNCTION(DEFINE_REAL_POINTER)

#define REAL_FUNCTION_NAME_ROW(name) #name,
static const char *const real_function_names[] = {FOR_EACH_REAL_FUNCTION(REAL_FUNCTION_NAME_ROW)};
#define REAL_POINTER_ADDRESS_ROW(name) &real_##name,
static _Atomic(void *) *const real_function_pointers[] = {
	FOR_EACH_REAL_FUNCTION(REAL_POINTER_ADDRESS_ROW)};

#define REAL_FUNCTION_COUNT ARRAY_SIZE(real_function_names)

static enum loader_scope get_real_lookup_scope(void)
{
	return kymo_runtime.opened ? LOADER_SCOPE_ALL_BUT_OWN_OBJECT
				   : LOADER_SCOPE_AFTER_OWN_OBJECT;
}

/* Calls may come before the library's constructor: from those of other preloaded libraries. */
void *real_find_function_or_null(_Atomic(void *) *slot, const char *name)
{
	void *function = atomic_load_explicit(slot, memory_order_relaxed);

	if (!function) {
		function = loader_find_symbol(get_real_lookup_scope(), real_function_names, name);
		atomic_store_explicit(slot, function, memory_order_relaxed);
	}
	return function;
}

void *real_find_function_or_abort(_Atomic(void *) *slot, const char *name)
{
	void *function = real_find_function_or_null(slot, name);

	if (!function)
		abort();
	return function;
}

void real_find_all_functions(void)
{
	void *found[REAL_FUNCTION_COUNT];

	loader_find_symbols(get_real_lookup_scope(), real_function_names, real_function_names,
			    found, REAL_FUNCTION_COUNT);
	for (size_t i = 0; i < REAL_FUNCTION_COUNT; i++) {
		if (found[i] &&
		    !atomic_load_explicit(real_function_pointers[i], memory_order_relaxed))
			atomic_store_explicit(real_function_pointers[i], found[i],
					      memory_order_relaxed);
	}
}
