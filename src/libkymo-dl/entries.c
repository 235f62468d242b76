/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Entering and leaving regions: a load and a jump. Compiled without vector registers, as libkymo's
 * side of it is, because instrumented code does not save them.
 */
#include <stdatomic.h>

#include "libkymo-dl/kymo_dl.h"
#include "libkymo-dl/publish.h"

#define EXPORTED __attribute__((visibility("default")))

static void entries_begin_stub_without_runtime(region_id region)
{
	(void)region;
}

static bool entries_end_stub_without_runtime(region_id region)
{
	(void)region;
	return true;
}

static void (*_Atomic entries_begin_function)(region_id region) =
	entries_begin_stub_without_runtime;
static bool (*_Atomic entries_end_function)(region_id region) = entries_end_stub_without_runtime;

void entries_set_runtime_api(const struct runtime_api *api)
{
	/* end first: what began is ended */
	atomic_store_explicit(&entries_end_function, api->region_end, memory_order_release);
	atomic_store_explicit(&entries_begin_function, api->region_begin, memory_order_release);
}

EXPORTED void kymo_dl_enter(uint32_t region)
{
	atomic_load_explicit(&entries_begin_function, memory_order_relaxed)(region);
}

EXPORTED void kymo_dl_leave(uint32_t region)
{
	atomic_load_explicit(&entries_end_function, memory_order_relaxed)(region);
}
