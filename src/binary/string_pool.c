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

#define TEXT_BLOCK_BYTES    ((size_t)64 << 10)
#define TABLE_SLOTS_INITIAL 1024u

struct text_block {
	struct text_block *next;
	size_t used, size;
	char text[];
};

struct text_slot {
	uint64_t hash;
	const char *text;
};

struct string_pool {
	struct text_block *blocks;
	struct text_slot *table;
	size_t capacity, count; /* capacity is a power of two */
};

int string_pool_create(struct string_pool **ret)
{
	struct string_pool *pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->capacity = TABLE_SLOTS_INITIAL;
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
		struct text_block *next = pool->blocks->next;
		free(pool->blocks);
		pool->blocks = next;
	}
	free(pool->table);
	free(pool);
}

/* FNV-1a over 8 bytes at a time with a final mix: names are long and share their beginnings. */
static uint64_t hash_text(const char *text, size_t length)
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

static bool grow_text_table(struct string_pool *pool)
{
	size_t capacity = pool->capacity * 2;
	struct text_slot *table = calloc(capacity, sizeof(*table));
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

static const char *copy_text_to_block(struct string_pool *pool, const char *text, size_t length)
{
	struct text_block *block = pool->blocks;
	if (!block || block->size - block->used <= length) {
		size_t size = length >= TEXT_BLOCK_BYTES ? length + 1 : TEXT_BLOCK_BYTES;
		block = malloc(sizeof(*block) + size);
		if (!block)
			return NULL;
		*block = (struct text_block){.next = pool->blocks, .size = size};
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
	uint64_t hash = hash_text(text, length);
	if (pool->count * 2 >= pool->capacity && !grow_text_table(pool))
		return NULL;
	size_t at = hash & (pool->capacity - 1);
	for (; pool->table[at].text; at = (at + 1) & (pool->capacity - 1)) {
		if (pool->table[at].hash == hash && strcmp(pool->table[at].text, text) == 0)
			return pool->table[at].text;
	}
	const char *copy = copy_text_to_block(pool, text, length);
	if (!copy)
		return NULL;
	pool->table[at] = (struct text_slot){hash, copy};
	pool->count++;
	return copy;
}
