/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Bump allocation from a list of blocks, and string interning on top; see arena.h.
 */
#include "analysis/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK_BYTES_LEAST ((size_t)64 << 10)

struct arena_block {
	struct arena_block *next;
	size_t used_bytes, size;
	_Alignas(16) char bytes[];
};

void arena_deinit(struct arena *arena)
{
	struct arena_block *block = arena->blocks;

	while (block) {
		struct arena_block *next = block->next;

		free(block);
		block = next;
	}
	free(arena->strings);
	memset(arena, 0, sizeof(*arena));
}

static struct arena_block *arena_block_create(size_t at_least)
{
	size_t size = at_least > ARENA_BLOCK_BYTES_LEAST ? at_least : ARENA_BLOCK_BYTES_LEAST;
	struct arena_block *block = calloc(1, sizeof(*block) + size);

	if (block)
		block->size = size;
	return block;
}

void *arena_allocate(struct arena *arena, size_t size)
{
	struct arena_block *block = arena->blocks;
	void *memory;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + 15) & ~(size_t)15;
	if (!block || block->size - block->used_bytes < size) {
		block = arena_block_create(size);
		if (!block)
			return NULL;
		block->next = arena->blocks;
		arena->blocks = block;
	}
	memory = block->bytes + block->used_bytes;
	block->used_bytes += size;
	return memory;
}

char *arena_copy_bytes(struct arena *arena, const void *bytes, size_t size)
{
	char *copy = arena_allocate(arena, size + 1);

	if (copy && size)
		memcpy(copy, bytes, size);
	return copy;
}

char *arena_format_text(struct arena *arena, const char *format, ...)
{
	va_list arguments;
	char *text = NULL, *copy;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		return NULL;
	copy = arena_copy_bytes(arena, text, (size_t)length);
	free(text);
	return copy;
}

static uint64_t hash_string(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash ^ hash >> 29;
}

static const char **find_string_slot(const char **slots, size_t count, const char *text)
{
	size_t i = hash_string(text) & (count - 1);

	while (slots[i] && strcmp(slots[i], text) != 0)
		i = (i + 1) & (count - 1);
	return &slots[i];
}

static int grow_string_table(struct arena *arena)
{
	size_t count = arena->string_slot_count ? arena->string_slot_count * 2 : 1024;
	const char **slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < arena->string_slot_count; i++) {
		if (arena->strings[i])
			*find_string_slot(slots, count, arena->strings[i]) = arena->strings[i];
	}
	free(arena->strings);
	arena->strings = slots;
	arena->string_slot_count = count;
	return 0;
}

const char *arena_intern_string(struct arena *arena, const char *text)
{
	const char **slot;

	if (arena->string_count * 2 >= arena->string_slot_count && grow_string_table(arena) < 0)
		return NULL;
	slot = find_string_slot(arena->strings, arena->string_slot_count, text);
	if (!*slot) {
		*slot = arena_copy_bytes(arena, text, strlen(text));
		if (*slot)
			arena->string_count++;
	}
	return *slot;
}

int array_reserve_one_more(void **array, size_t *capacity, size_t count, size_t size)
{
	size_t wanted = *capacity ? *capacity * 2 : 16;
	void *grown;

	if (count < *capacity)
		return 0;
	if (wanted > SIZE_MAX / size)
		return -ENOMEM;
	grown = realloc(*array, wanted * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*capacity = wanted;
	return 0;
}
