/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Text lies in blocks that never move; an open-addressing table of pointers finds it.
 */
#include "binary/string_pool.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE    ((size_t)64 << 10)
#define TABLE_INITIAL 1024u

struct block {
	struct block *next;
	size_t used, size;
	char text[];
};

struct slot {
	uint64_t hash;
	const char *text;
};

struct string_pool {
	struct block *blocks;
	struct slot *table;
	size_t capacity, count; /* capacity is a power of two */
};

int string_pool_create(struct string_pool **ret)
{
	struct string_pool *pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->capacity = TABLE_INITIAL;
	pool->table = calloc(pool->capacity, sizeof(*pool->table));
	if (!pool->table) {
		free(pool);
		return -ENOMEM;
	}
	*ret = pool;
	return 0;
}

void string_pool_destroy(struct string_pool *pool)
{
	if (!pool)
		return;
	while (pool->blocks) {
		struct block *next = pool->blocks->next;
		free(pool->blocks);
		pool->blocks = next;
	}
	free(pool->table);
	free(pool);
}

/* FNV-1a over 8 bytes at a time with a final mix: names are long and share their beginnings. */
static uint64_t hash_of(const char *text, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325u ^ length;
	for (; length >= 8; text += 8, length -= 8) {
		uint64_t word;
		memcpy(&word, text, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	for (; length > 0; text++, length--)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
	return hash ^ hash >> 32;
}

static bool table_grow(struct string_pool *pool)
{
	size_t capacity = pool->capacity * 2;
	struct slot *table = calloc(capacity, sizeof(*table));
	if (!table)
		return false;
	for (size_t i = 0; i < pool->capacity; i++) {
		if (!pool->table[i].text)
			continue;
		size_t at = pool->table[i].hash & (capacity - 1);
		while (table[at].text)
			at = (at + 1) & (capacity - 1);
		table[at] = pool->table[i];
	}
	free(pool->table);
	pool->table = table;
	pool->capacity = capacity;
	return true;
}

static const char *text_copy(struct string_pool *pool, const char *text, size_t length)
{
	struct block *block = pool->blocks;
	if (!block || block->size - block->used <= length) {
		size_t size = length >= BLOCK_SIZE ? length + 1 : BLOCK_SIZE;
		block = malloc(sizeof(*block) + size);
		if (!block)
			return NULL;
		*block = (struct block){.next = pool->blocks, .size = size};
		pool->blocks = block;
	}
	char *copy = block->text + block->used;
	memcpy(copy, text, length + 1);
	block->used += length + 1;
	return copy;
}

const char *string_pool_intern(struct string_pool *pool, const char *text)
{
	size_t length = strlen(text);
	uint64_t hash = hash_of(text, length);
	if (pool->count * 2 >= pool->capacity && !table_grow(pool))
		return NULL;
	size_t at = hash & (pool->capacity - 1);
	for (; pool->table[at].text; at = (at + 1) & (pool->capacity - 1)) {
		if (pool->table[at].hash == hash && strcmp(pool->table[at].text, text) == 0)
			return pool->table[at].text;
	}
	const char *copy = text_copy(pool, text, length);
	if (!copy)
		return NULL;
	pool->table[at] = (struct slot){hash, copy};
	pool->count++;
	return copy;
}
