/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_map.h. Stretches (causal_stretches.h) get lists of targets; equal lists are stored
 * once, and neighbours with the same list become one range.
 */
#include "binary/causal_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/causal_chain.h"
#include "kymo/causal.h"

struct list_slot {
	uint32_t at, count; /* count 0: free */
};

struct map_builder {
	struct causal_module *module;
	uint64_t base, end; /* offsets in the file */
	uint32_t *starts, *lists;
	size_t count, capacity;
	uint32_t *ids;
	size_t id_count, id_capacity;
	struct list_slot *slots; /* of known lists; open addressing */
	size_t slot_count, slots_used;
};

static uint64_t list_hash(const uint32_t *ids, size_t count)
{
	uint64_t hash = count;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ ids[i]) * 0x9e3779b97f4a7c15u;
	return hash >> 27;
}

static struct list_slot *list_slot(const struct map_builder *builder, const uint32_t *ids,
				   size_t count)
{
	for (size_t at = (size_t)list_hash(ids, count);; at++) {
		struct list_slot *slot = &builder->slots[at & (builder->slot_count - 1)];

		if (!slot->count || (slot->count == count &&
				     !memcmp(builder->ids + slot->at, ids, count * sizeof(*ids))))
			return slot;
	}
}

static int lists_grow(struct map_builder *builder)
{
	struct list_slot *old = builder->slots;
	size_t old_count = builder->slot_count;

	builder->slot_count = old_count ? old_count * 2 : 1024;
	builder->slots = calloc(builder->slot_count, sizeof(*builder->slots));
	if (!builder->slots) {
		builder->slots = old;
		builder->slot_count = old_count;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old_count; i++) {
		if (old[i].count)
			*list_slot(builder, builder->ids + old[i].at, old[i].count) = old[i];
	}
	free(old);
	return 0;
}

static int ids_append(struct map_builder *builder, const uint32_t *ids, size_t count)
{
	if (builder->id_count + count + 1 > builder->id_capacity) {
		size_t capacity = (builder->id_capacity + count) * 2 + 1024;
		uint32_t *larger = capacity <= UINT32_MAX
					   ? reallocarray(builder->ids, capacity, sizeof(*larger))
					   : NULL;

		if (!larger)
			return -ENOMEM;
		builder->ids = larger;
		builder->id_capacity = capacity;
	}
	if (count)
		memcpy(builder->ids + builder->id_count, ids, count * sizeof(*ids));
	builder->ids[builder->id_count + count] = 0;
	builder->id_count += count + 1;
	return 0;
}

/* Where the list is among the ids. */
static int list_find(struct map_builder *builder, const uint32_t *ids, size_t count, uint32_t *ret)
{
	struct list_slot *slot;
	int error;

	*ret = 0;
	if (!count)
		return 0;
	if (builder->slots_used * 2 >= builder->slot_count && lists_grow(builder))
		return -ENOMEM;
	slot = list_slot(builder, ids, count);
	if (!slot->count) {
		uint32_t at = (uint32_t)builder->id_count;

		error = ids_append(builder, ids, count);
		if (error)
			return error;
		*slot = (struct list_slot){at, (uint32_t)count};
		builder->slots_used++;
	}
	*ret = slot->at;
	return 0;
}

/* A range from `offset` on. Offsets that do not rise (damaged files) are left out. */
static int range_append(struct map_builder *builder, uint64_t offset, uint32_t list)
{
	if (!builder->count) {
		if (!list)
			return 0;
		builder->base = offset;
	}
	if (offset < builder->base || offset - builder->base > UINT32_MAX)
		return 0;
	if (builder->count) {
		if (builder->lists[builder->count - 1] == list ||
		    builder->starts[builder->count - 1] >= offset - builder->base)
			return 0;
	}
	if (builder->count == builder->capacity) {
		size_t capacity = builder->capacity ? builder->capacity * 2 : 1024;
		uint32_t *starts = reallocarray(builder->starts, capacity, sizeof(*starts)),
			 *lists = starts ? reallocarray(builder->lists, capacity, sizeof(*lists))
					 : NULL;

		if (starts)
			builder->starts = starts;
		if (!lists)
			return -ENOMEM;
		builder->lists = lists;
		builder->capacity = capacity;
	}
	builder->starts[builder->count] = (uint32_t)(offset - builder->base);
	builder->lists[builder->count++] = list;
	return 0;
}

static int build_ranges(struct map_builder *builder, const struct causal_stretches *stretches,
			struct causal_chain *chain)
{
	const struct elf_file *file = builder->module->file;
	int error = 0;

	for (size_t i = 0; !error && i + 1 < stretches->count; i++) {
		uint64_t offset, end;
		uint32_t list = 0;

		if (!elf_vaddr_to_offset(file, stretches->starts[i], &offset))
			continue;
		if (causal_module_is_code(builder->module, stretches->starts[i])) {
			error = causal_chain_find(chain, i);
			if (!error)
				error = list_find(builder, chain->ids, chain->count, &list);
		}
		end = offset + (stretches->starts[i + 1] - stretches->starts[i]);
		if (!error)
			error = range_append(builder, offset, list);
		if (list && end > builder->end)
			builder->end = end;
	}
	return error;
}

static int build_image(const struct map_builder *builder, void **ret, size_t *ret_size)
{
	struct causal_map_header header = {.magic = CAUSAL_MAP_MAGIC,
					   .version = CAUSAL_MAP_VERSION,
					   .count = (uint32_t)builder->count,
					   .id_count = (uint32_t)builder->id_count,
					   .base = builder->base,
					   .end = builder->end};
	size_t arrays = builder->count * sizeof(uint32_t),
	       size = sizeof(header) + 2 * arrays + builder->id_count * sizeof(uint32_t);
	uint8_t *image = malloc(size);

	if (!image)
		return -ENOMEM;
	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), builder->starts, arrays);
	memcpy(image + sizeof(header) + arrays, builder->lists, arrays);
	memcpy(image + sizeof(header) + 2 * arrays, builder->ids,
	       builder->id_count * sizeof(uint32_t));
	*ret = image;
	*ret_size = size;
	return 0;
}

/* A last range that is empty only says where the one before ends: so does `end`. */
static void build_finish(struct map_builder *builder)
{
	while (builder->count &&
	       (!builder->lists[builder->count - 1] ||
		builder->starts[builder->count - 1] >= builder->end - builder->base))
		builder->count--;
}

static int map_make(struct map_builder *builder, const struct causal_scopes *scopes,
		    struct causal_targets *targets, const struct causal_stretches *stretches,
		    void **ret, size_t *ret_size)
{
	struct causal_chain chain;
	int error = causal_chain_init(&chain, builder->module, scopes, targets, stretches);

	if (!error)
		error = ids_append(builder, NULL, 0); /* the empty list */
	if (!error)
		error = build_ranges(builder, stretches, &chain);
	causal_chain_deinit(&chain);
	build_finish(builder);
	if (!error && !builder->count)
		error = -ENOENT;
	if (!error)
		error = build_image(builder, ret, ret_size);
	free(builder->starts);
	free(builder->lists);
	free(builder->ids);
	free(builder->slots);
	return error;
}

int causal_map_make(struct causal_module *module, const struct causal_scopes *scopes,
		    struct causal_targets *targets, void **ret, size_t *ret_size,
		    struct problem *problem)
{
	struct map_builder builder = {.module = module};
	struct causal_stretches stretches;
	int error = causal_stretches_make(module, &stretches);

	if (!error && !stretches.debug && causal_scopes_granularity(scopes) == CAUSAL_LINES)
		error = -ENODATA;
	if (!error)
		error = map_make(&builder, scopes, targets, &stretches, ret, ret_size);
	causal_stretches_deinit(&stretches);
	if (error == -ENODATA)
		return problem_set(problem, error,
				   "'%s' has no debug information, without which there are no "
				   "lines: build it with -g, or install its debug symbols, or use "
				   "--mode function",
				   module->path);
	if (error == -ENOENT)
		return problem_set(problem, error, "nothing in '%s' is in scope", module->path);
	if (error)
		return problem_set(problem, error, "no map of '%s': %s", module->path,
				   strerror(-error));
	return 0;
}
