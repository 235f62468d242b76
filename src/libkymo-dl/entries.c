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

static void entries_begin_nothing(region_id region)
{
	(void)region;
}

static bool entries_end_nothing(region_id region)
{
	(void)region;
	return true;
}

static void (*_Atomic entries_begin)(region_id region) = entries_begin_nothing;
static bool (*_Atomic entries_end)(region_id region) = entries_end_nothing;

void entries_connect(const struct kymo_runtime_api *api)
{
	/* end first: what began is ended */
	atomic_store_explicit(&entries_end, api->region_end, memory_order_release);
	atomic_store_explicit(&entries_begin, api->region_begin, memory_order_release);
}

EXPORTED void kymo_dl_enter(uint32_t region)
{
	atomic_load_explicit(&entries_begin, memory_order_relaxed)(region);
}

EXPORTED void kymo_dl_leave(uint32_t region)
{
	atomic_load_explicit(&entries_end, memory_order_relaxed)(region);
}
