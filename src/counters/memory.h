/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Memory that is taken piece by piece and given back all at once. A piece that could not be had is
 * NULL, and `failed` stays set, so that a caller may look once at the end.
 */
#ifndef KYMO_COUNTERS_MEMORY_H
#define KYMO_COUNTERS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_chunk;

struct memory_pool {
	struct memory_chunk *chunks;
	bool failed;
};

/* Zeroed. */
void *memory_pool_allocate(struct memory_pool *memory, size_t size);
/* An array of `count` elements; NULL where the product is too large. */
void *memory_pool_allocate_array(struct memory_pool *memory, size_t count, size_t size);
char *memory_pool_copy_text(struct memory_pool *memory, const char *text, size_t length);
void memory_pool_free_all(struct memory_pool *memory);

#endif
