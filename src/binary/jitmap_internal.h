/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What jitmap.c (the map), jitmap_perf.c and jitmap_dump.c (the two formats) share.
 */
#ifndef KYMO_BINARY_JITMAP_INTERNAL_H
#define KYMO_BINARY_JITMAP_INTERNAL_H

#include "binary/jitmap.h"

struct jitmap_entry {
	struct jitmap_code code;
	size_t order;         /* of being added */
	uint64_t reach;       /* largest end of this and all entries before it, once sorted */
	const uint8_t *lines; /* debug entries of a jitdump, checked; or NULL */
	size_t line_size;     /* bytes of them */
	uint64_t moved;       /* what to subtract from an address to compare it with `lines` */
	uint64_t index;       /* jitdump's code index */
};

struct jitmap {
	struct jitmap_entry *entries;
	size_t count, capacity;
	uint8_t **buffers; /* whole files, with a zero byte behind */
	size_t buffer_count, buffer_capacity;
};

int jitmap_append(struct jitmap *map, const struct jitmap_entry *entry);
/* The map's buffers keep the bytes that these parse; perf maps are cut into names in place, and a
 * zero byte follows them. */
int jitmap_parse_perf_map(struct jitmap *map, uint8_t *bytes, size_t size);
int jitmap_parse_jitdump(struct jitmap *map, const uint8_t *bytes, size_t size);

#endif
