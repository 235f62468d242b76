/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names for code that a run-time compiler made, as it wrote them down itself: perf maps
 * (/tmp/perf-<pid>.map: text, no times) and jitdump (jit-<pid>.dump: binary, with times, moves and
 * source lines).
 *
 * Compilers reuse addresses, so an address has an owner only at a time. Later entries override
 * earlier ones where they overlap; where entries have a time, the last one that is not younger than
 * the sample counts.
 *
 * Life: jitmap_create(), add what there is, jitmap_sort_entries(), lookups. The program may still
 * be writing, or may have died while writing: a torn end is left out, and so is what cannot be
 * parsed.
 */
#ifndef KYMO_BINARY_JIT_JIT_H
#define KYMO_BINARY_JIT_JIT_H

#include <stddef.h>
#include <stdint.h>

#include "common/foreign_file.h"

struct jitmap;

struct jitmap_code {
	uint64_t address, size;
	uint64_t from_ns; /* CLOCK_MONOTONIC; 0: unknown */
	const char *name; /* owned by the map */
};

int jitmap_create(struct jitmap **ret);
/* Earlier additions are overridden by later ones of the same time. Anybody can put a file where
 * they are looked for: `how` says whose counts (foreign_open_file()). -ENOENT, -EPERM, …: cannot be
 * read; -EINVAL: a jitdump of another kind of machine, or none at all; -ENOMEM. */
int jitmap_add_perf_map(struct jitmap *map, const char *path,
			const struct foreign_open_policy *how);
int jitmap_add_jitdump(struct jitmap *map, const char *path, const struct foreign_open_policy *how);
/* The same from memory, which is copied. */
int jitmap_add_perf_map_memory(struct jitmap *map, const void *text, size_t size);
int jitmap_add_jitdump_memory(struct jitmap *map, const void *bytes, size_t size);
int jitmap_sort_entries(struct jitmap *map);
void jitmap_destroy(struct jitmap *map);

/* The code at `address` at a time (0: whatever was there last), or NULL. O(log n + entries that
 * ever overlapped there). */
const struct jitmap_code *jitmap_find_code(const struct jitmap *map, uint64_t address,
					   uint64_t time_ns);
/* The source line of an address in that code, if the compiler told; file NULL: it did not. */
void jitmap_find_line(const struct jitmap_code *code, uint64_t address, const char **ret_file,
		      uint32_t *ret_line);
/* The times (ascending, malloc'ed) at which code came that shares an address with other code.
 * Count 0: the time of a lookup does not matter. 0 or -ENOMEM. */
int jitmap_list_address_reuse_times(const struct jitmap *map, uint64_t **ret, size_t *ret_count);
size_t jitmap_get_entry_count(const struct jitmap *map);

#endif
