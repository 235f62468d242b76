/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Memory that lives as long as its session: strings and other small blocks, freed all at once.
 * Interned strings are equal exactly if their pointers are, which makes them cheap keys.
 */
#ifndef KYMO_ANALYSIS_ARENA_H
#define KYMO_ANALYSIS_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_block;

struct arena {
	struct arena_block *blocks;
	const char **strings; /* open addressing, power of two */
	size_t string_slot_count, string_count;
};

void arena_deinit(struct arena *arena);
/* 16-byte aligned, zeroed; NULL when out of memory. */
void *arena_allocate(struct arena *arena, size_t size);
/* A zero-terminated copy of `size` bytes; NULL when out of memory. */
char *arena_copy_bytes(struct arena *arena, const void *bytes, size_t size);
char *arena_format_text(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The one copy of this string (up to its first zero byte); NULL when out of memory. */
const char *arena_intern_string(struct arena *arena, const char *text);

/* Makes room for one more element of `size` bytes in a malloc'ed array. *capacity counts elements.
 * Returns 0 or -ENOMEM. */
int array_reserve_one_more(void **array, size_t *capacity, size_t count, size_t size);

#endif
