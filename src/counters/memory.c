/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See memory.h.
 */
#include "counters/memory.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES     ((size_t)16384)
#define ALIGNMENT_BYTES ((size_t)16)

struct memory_chunk {
	struct memory_chunk *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

void *memory_pool_allocate(struct memory_pool *memory, size_t size)
{
	struct memory_chunk *chunk = memory->chunks;
	size_t needed = (size + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
	void *piece;

	if (needed < size || needed > SIZE_MAX / 2) {
		memory->failed = true;
		return NULL;
	}
	if (chunk == NULL || chunk->size - chunk->used < needed) {
		size_t bytes = needed > CHUNK_BYTES / 4 ? needed : CHUNK_BYTES;

		chunk = calloc(1, sizeof(*chunk) + bytes);
		if (chunk == NULL) {
			memory->failed = true;
			return NULL;
		}
		chunk->size = bytes;
		chunk->next = memory->chunks;
		/* A large piece has its own chunk, behind the one that is being filled. */
		if (bytes != CHUNK_BYTES && memory->chunks != NULL) {
			chunk->next = memory->chunks->next;
			memory->chunks->next = chunk;
		} else {
			memory->chunks = chunk;
		}
	}
	piece = chunk->bytes + chunk->used;
	chunk->used += needed;
	return piece;
}

void *memory_pool_allocate_array(struct memory_pool *memory, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		memory->failed = true;
		return NULL;
	}
	return memory_pool_allocate(memory, bytes);
}

char *memory_pool_copy_text(struct memory_pool *memory, const char *text, size_t length)
{
	char *copy = length == SIZE_MAX ? NULL : memory_pool_allocate(memory, length + 1);

	if (copy != NULL && length != 0)
		memcpy(copy, text, length);
	return copy;
}

void memory_pool_free_all(struct memory_pool *memory)
{
	while (memory->chunks != NULL) {
		struct memory_chunk *next = memory->chunks->next;

		free(memory->chunks);
		memory->chunks = next;
	}
	memory->failed = false;
}
