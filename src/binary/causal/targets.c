/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See targets.h. Strings are interned, so that equal keys have equal pointers; names are
 * made readable once, when a target is new.
 */
#include "binary/causal/targets.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "binary/demangle.h"
#include "binary/string_pool.h"
#include "kymo/causal.h"

struct target_key {
	const char *symbol, *file, *module;
	uint32_t line;
};

struct target_hash_slot {
	struct target_key key;
	uint32_t id; /* 0: free */
};

struct causal_targets {
	pthread_mutex_t lock;
	struct string_pool *string_pool;
	struct causal_target *list; /* list[id - 1] */
	size_t count, capacity;
	struct target_hash_slot *slots; /* open addressing */
	size_t slot_count;              /* power of two */
};

int causal_targets_create(struct causal_targets **ret)
{
	struct causal_targets *targets = calloc(1, sizeof(*targets));
	int error = targets ? string_pool_create(&targets->string_pool) : -ENOMEM;

	if (error) {
		free(targets);
		return error;
	}
	pthread_mutex_init(&targets->lock, NULL);
	*ret = targets;
	return 0;
}

void causal_targets_destroy(struct causal_targets *targets)
{
	if (!targets)
		return;
	pthread_mutex_destroy(&targets->lock);
	string_pool_destroy(targets->string_pool);
	free(targets->list);
	free(targets->slots);
	free(targets);
}

static size_t hash_target_key(const struct target_key *key)
{
	uint64_t hash = (uintptr_t)key->symbol;

	hash = hash * 0x9e3779b97f4a7c15u + (uintptr_t)key->file;
	hash = hash * 0x9e3779b97f4a7c15u + (uintptr_t)key->module;
	hash = (hash + key->line) * 0x9e3779b97f4a7c15u;
	return (size_t)(hash >> 29);
}

/* The key's slot, or the free one where it would be. */
static struct target_hash_slot *find_target_slot(const struct causal_targets *targets,
						 const struct target_key *key)
{
	size_t at = hash_target_key(key);

	for (;; at++) {
		struct target_hash_slot *slot = &targets->slots[at & (targets->slot_count - 1)];

		if (!slot->id || (slot->key.symbol == key->symbol && slot->key.file == key->file &&
				  slot->key.module == key->module && slot->key.line == key->line))
			return slot;
	}
}

static int grow_target_slots(struct causal_targets *targets)
{
	struct causal_targets larger = {.slot_count = targets->slot_count ? targets->slot_count * 2
									  : 1024};

	larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < targets->slot_count; i++) {
		if (targets->slots[i].id)
			*find_target_slot(&larger, &targets->slots[i].key) = targets->slots[i];
	}
	free(targets->slots);
	targets->slots = larger.slots;
	targets->slot_count = larger.slot_count;
	return 0;
}

static int append_target(struct causal_targets *targets, const struct causal_target *target)
{
	if (targets->count + 1 >= CAUSAL_TARGETS)
		return -ENOSPC;
	if (targets->count == targets->capacity) {
		size_t capacity = targets->capacity ? targets->capacity * 2 : 256;
		struct causal_target *larger =
			reallocarray(targets->list, capacity, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		targets->list = larger;
		targets->capacity = capacity;
	}
	targets->list[targets->count++] = *target;
	return 0;
}

static const char *intern_text(struct causal_targets *targets, const char *text)
{
	return text ? string_pool_intern(targets->string_pool, text) : NULL;
}

static const char *intern_demangled_symbol_name(struct causal_targets *targets, const char *symbol)
{
	char *readable = symbol ? demangle(symbol) : NULL;
	const char *name = intern_text(targets, readable ? readable : symbol);

	free(readable);
	return name;
}

/* What counts of the key is given; `more` is what else a new target is given. */
static uint32_t find_or_add_target(struct causal_targets *targets, const struct target_key *key,
				   const struct causal_target *more, const char *symbol)
{
	struct target_hash_slot *slot;
	uint32_t id = 0;

	if (targets->count * 2 >= targets->slot_count && grow_target_slots(targets))
		return 0;
	slot = find_target_slot(targets, key);
	if (slot->id)
		return slot->id;
	struct causal_target target = *more;
	target.name = intern_demangled_symbol_name(targets, symbol);
	if (!append_target(targets, &target)) {
		id = (uint32_t)targets->count;
		*slot = (struct target_hash_slot){*key, id};
	}
	return id;
}

uint32_t causal_targets_find_or_add_function(struct causal_targets *targets, const char *module,
					     const char *symbol, const char *file, uint32_t line)
{
	bool mangled = !strncmp(symbol, "_Z", 2) || !strncmp(symbol, "_R", 2);
	uint32_t id;

	pthread_mutex_lock(&targets->lock);
	struct causal_target more = {.file = intern_text(targets, file),
				     .module = intern_text(targets, module),
				     .line = line};
	struct target_key key = {.symbol = intern_text(targets, symbol),
				 .file = mangled ? NULL : more.file,
				 .module = more.module};
	id = key.symbol ? find_or_add_target(targets, &key, &more, symbol) : 0;
	pthread_mutex_unlock(&targets->lock);
	return id;
}

uint32_t causal_targets_find_or_add_line(struct causal_targets *targets, const char *module,
					 const char *symbol, const char *file, uint32_t line)
{
	uint32_t id;

	pthread_mutex_lock(&targets->lock);
	struct causal_target more = {.file = intern_text(targets, file),
				     .module = intern_text(targets, module),
				     .line = line};
	struct target_key key = {.file = more.file, .line = line};
	id = key.file ? find_or_add_target(targets, &key, &more, symbol) : 0;
	pthread_mutex_unlock(&targets->lock);
	return id;
}

uint32_t causal_targets_get_count(struct causal_targets *targets)
{
	uint32_t count;

	pthread_mutex_lock(&targets->lock);
	count = (uint32_t)targets->count;
	pthread_mutex_unlock(&targets->lock);
	return count;
}

bool causal_targets_copy_target(struct causal_targets *targets, uint32_t id,
				struct causal_target *ret)
{
	bool found;

	pthread_mutex_lock(&targets->lock);
	found = id > 0 && id <= targets->count;
	if (found)
		*ret = targets->list[id - 1];
	pthread_mutex_unlock(&targets->lock);
	return found;
}
