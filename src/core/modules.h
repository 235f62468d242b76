/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Executable mappings of the process, their records in the spool, and the unwinder's view of them.
 *
 * The kernel's /proc/self/maps is the source: no loader lock is taken, so nothing the program does
 * in dlopen, dlclose or a constructor can meet us. The background thread re-reads it when a handler
 * met a pc in no known module, when dlclose was called, and now and then. It publishes an immutable
 * view; the one before is freed once no handler that may have seen it is still running.
 *
 * Background thread only, except modules_view, modules_stale, modules_want_refresh (anywhere).
 */
#ifndef KYMO_CORE_MODULES_H
#define KYMO_CORE_MODULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/track.h"
#include "core/unwind.h"

#define MODULE_BUILD_ID_MAX    32
#define UNWIND_GENERATION_MASK 0xfffu /* half of what the cache keeps of a view's generation */

struct module {
	uint64_t start, end, offset, device, inode;
	uint64_t bias;
	const struct unwind_table *table;
	uint32_t id;
	bool seen;
};

struct modules {
	_Atomic(struct unwind_view *) view;
	_Atomic uint32_t refresh_wanted, stale;
	struct module *list; /* reserved address space, sorted by start */
	uint32_t count, next_id;
	uint64_t generation;
	struct unwind_view *retired; /* waits for handlers to leave */
	uint64_t last_refresh_ns;
	char *maps; /* buffer for /proc/self/maps */
	size_t maps_size;
	const char *cache_directory;
	struct unwind_cache *cache; /* cleared before generations repeat */
};

int modules_init(struct modules *modules, const char *cache_directory, struct unwind_cache *cache);
/* Re-reads the mappings; writes MODULE and MODULE_GONE records; publishes. `quiescent` says whether
 * no handler can still use a view that was replaced before this call. */
void modules_refresh(struct modules *modules, struct track *track, bool quiescent);
/* After fork, in the child: all modules must be described again in the new spool file. */
void modules_forget_records(struct modules *modules);
/* Nothing is sampled any more: gives back what only refreshing needs. */
void modules_let_go(struct modules *modules);

static inline const struct unwind_view *modules_view(const struct modules *modules)
{
	/* seq_cst: ordered after the handler's mark in its thread block, which reclaiming looks at
	 */
	return atomic_load_explicit(&modules->view, memory_order_seq_cst);
}

static inline bool modules_stale(const struct modules *modules)
{
	return atomic_load_explicit(&modules->stale, memory_order_relaxed);
}

static inline void modules_want_refresh(struct modules *modules)
{
	atomic_store_explicit(&modules->refresh_wanted, 1, memory_order_relaxed);
}

#endif
