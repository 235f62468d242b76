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

struct memory {
	struct memory_chunk *chunks;
	bool failed;
};

/* Zeroed. */
void *memory_take(struct memory *memory, size_t size);
/* Of `count` elements; NULL where the product is too large. */
void *memory_array(struct memory *memory, size_t count, size_t size);
char *memory_text(struct memory *memory, const char *text, size_t length);
void memory_release(struct memory *memory);

#endif
