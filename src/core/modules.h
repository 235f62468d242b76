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
 * Background thread only, except modules_get_unwind_view, modules_are_stale,
 * modules_request_refresh (anywhere).
 */
#ifndef KYMO_CORE_MODULES_H
#define KYMO_CORE_MODULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/spool/process_records.h"
#include "core/unwind/unwind.h"

#define MODULE_BUILD_ID_MAX 32
#define UNWIND_CACHE_CLEAR_GENERATION_MASK                                                         \
	0xfffu /* half of what the cache keeps of a view's generation                              \
		*/

struct module {
	uint64_t start, end, offset, device, inode;
	uint64_t bias;
	const struct unwind_table *table;
	uint32_t id;
	bool seen;
};

#define MODULES_UNMAPPED_KEPT 64u

struct module_range {
	uint64_t start, end;
};

struct loaded_modules {
	_Atomic(struct unwind_all_modules_view *) view;
	_Atomic uint32_t refresh_wanted, stale;
	_Atomic uint32_t has_met_unknown_address; /* a stack had an address that no module holds */
	uint64_t unknown_address_wait_ns; /* how long such an address waits: longer while nothing
				     comes of it */
	struct module *list;              /* reserved address space, sorted by start */
	uint32_t count, next_id;
	uint64_t generation;
	uint64_t unmapped_count; /* modules that were unmapped so far ... */
	struct module_range unmapped[MODULES_UNMAPPED_KEPT]; /* ... the last of them, going round */
	struct unwind_all_modules_view *retired;             /* waits for handlers to leave */
	uint64_t last_refresh_ns;
	char *maps_buffer; /* buffer for /proc/self/maps */
	uint64_t maps_buffer_size;
	const char *cache_directory;
	struct unwind_cache *cache; /* cleared before generations repeat */
};

int modules_init(struct loaded_modules *modules, const char *cache_directory,
		 struct unwind_cache *cache);
/* Re-reads the mappings; writes MODULE and MODULE_GONE records; publishes. `quiescent` says whether
 * no handler can still use a view that was replaced before this call. */
void modules_refresh(struct loaded_modules *modules, struct process_records *track, bool quiescent);
/* After fork, in the child: all modules must be described again in the new spool file. */
void modules_reset_for_new_run(struct loaded_modules *modules);
/* Nothing is sampled any more: gives back what only refreshing needs. */
void modules_free_maps_buffer(struct loaded_modules *modules);

static inline const struct unwind_all_modules_view *
modules_get_unwind_view(const struct loaded_modules *modules)
{
	/* seq_cst: ordered after the handler's mark in its thread block, which reclaiming looks at
	 */
	return atomic_load_explicit(&modules->view, memory_order_seq_cst);
}

static inline bool modules_are_stale(const struct loaded_modules *modules)
{
	return atomic_load_explicit(&modules->stale, memory_order_relaxed);
}

/* Code came without a word: of a run-time compiler, or opened where nobody looks. */
static inline void modules_note_unknown_address(struct loaded_modules *modules)
{
	if (!atomic_load_explicit(&modules->has_met_unknown_address, memory_order_relaxed))
		atomic_store_explicit(&modules->has_met_unknown_address, 1, memory_order_relaxed);
}

/* When modules_refresh() is due, by the monotonic clock; UINT64_MAX: nothing asks for it. */
uint64_t modules_get_refresh_due_ns(const struct loaded_modules *modules);

static inline void modules_request_refresh(struct loaded_modules *modules)
{
	atomic_store_explicit(&modules->refresh_wanted, 1, memory_order_relaxed);
}

#endif
