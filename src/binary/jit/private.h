/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What jit.c (the map), perf.c and dump.c (the two formats) share.
 */
#ifndef KYMO_BINARY_JIT_PRIVATE_H
#define KYMO_BINARY_JIT_PRIVATE_H

#include "binary/jit/jit.h"

struct jitmap_entry {
	struct jitmap_code code;
	size_t order; /* of being added */
	uint64_t
		highest_end_so_far; /* largest end of this and all entries before it, once sorted */
	const uint8_t *debug_entries; /* debug entries of a jitdump, checked; or NULL */
	size_t debug_entries_size;    /* bytes of them */
	uint64_t moved; /* what to subtract from an address to compare it with `lines` */
	uint64_t index; /* jitdump's code index */
};

struct jitmap {
	struct jitmap_entry *entries;
	size_t count, capacity;
	uint8_t **buffers; /* whole files, with a zero byte behind */
	size_t buffer_count, buffer_capacity;
};

int jitmap_append_entry(struct jitmap *map, const struct jitmap_entry *entry);
/* The map's buffers keep the bytes that these parse; perf maps are cut into names in place, and a
 * zero byte follows them. */
int jitmap_parse_perf_map(struct jitmap *map, uint8_t *bytes, size_t size);
int jitmap_parse_jitdump(struct jitmap *map, const uint8_t *bytes, size_t size);

#endif
