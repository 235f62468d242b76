/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See map.h. Stretches (address_ranges.h) get lists of targets; equal lists are stored
 * once, and neighbours with the same list become one range.
 */
#include "binary/causal/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/causal/chain.h"
#include "kymo/causal.h"

struct target_list_slot {
	uint32_t first_id_index, count; /* count 0: free */
};

struct causal_target_map_builder {
	struct causal_module *module;
	uint64_t base_offset, end_offset; /* offsets in the file */
	uint32_t *range_start_offsets, *target_list_by_range;
	size_t count, capacity;
	uint32_t *target_ids;
	size_t target_id_count, target_id_capacity;
	struct target_list_slot *slots; /* of known lists; open addressing */
	size_t slot_count, used_slot_count;
};

static uint64_t hash_target_list(const uint32_t *ids, size_t count)
{
	uint64_t hash = count;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ ids[i]) * 0x9e3779b97f4a7c15u;
	return hash >> 27;
}

static struct target_list_slot *
find_target_list_slot(const struct causal_target_map_builder *builder, const uint32_t *ids,
		      size_t count)
{
	for (size_t at = (size_t)hash_target_list(ids, count);; at++) {
		struct target_list_slot *slot = &builder->slots[at & (builder->slot_count - 1)];

		if (!slot->count ||
		    (slot->count == count && !memcmp(builder->target_ids + slot->first_id_index,
						     ids, count * sizeof(*ids))))
			return slot;
	}
}

static int grow_target_list_table(struct causal_target_map_builder *builder)
{
	struct target_list_slot *old = builder->slots;
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
			*find_target_list_slot(builder, builder->target_ids + old[i].first_id_index,
					       old[i].count) = old[i];
	}
	free(old);
	return 0;
}

static int append_target_ids(struct causal_target_map_builder *builder, const uint32_t *ids,
			     size_t count)
{
	if (builder->target_id_count + count + 1 > builder->target_id_capacity) {
		size_t capacity = (builder->target_id_capacity + count) * 2 + 1024;
		uint32_t *larger = capacity <= UINT32_MAX ? reallocarray(builder->target_ids,
									 capacity, sizeof(*larger))
							  : NULL;

		if (!larger)
			return -ENOMEM;
		builder->target_ids = larger;
		builder->target_id_capacity = capacity;
	}
	if (count)
		memcpy(builder->target_ids + builder->target_id_count, ids, count * sizeof(*ids));
	builder->target_ids[builder->target_id_count + count] = 0;
	builder->target_id_count += count + 1;
	return 0;
}

/* Where the list is among the ids. */
static int find_or_append_target_list(struct causal_target_map_builder *builder,
				      const uint32_t *ids, size_t count, uint32_t *ret)
{
	struct target_list_slot *slot;
	int error;

	*ret = 0;
	if (!count)
		return 0;
	if (builder->used_slot_count * 2 >= builder->slot_count && grow_target_list_table(builder))
		return -ENOMEM;
	slot = find_target_list_slot(builder, ids, count);
	if (!slot->count) {
		uint32_t at = (uint32_t)builder->target_id_count;

		error = append_target_ids(builder, ids, count);
		if (error)
			return error;
		*slot = (struct target_list_slot){at, (uint32_t)count};
		builder->used_slot_count++;
	}
	*ret = slot->first_id_index;
	return 0;
}

/* A range from `offset` on. Offsets that do not rise (damaged files) are left out. */
static int append_target_map_range(struct causal_target_map_builder *builder, uint64_t offset,
				   uint32_t list)
{
	if (!builder->count) {
		if (!list)
			return 0;
		builder->base_offset = offset;
	}
	if (offset < builder->base_offset || offset - builder->base_offset > UINT32_MAX)
		return 0;
	if (builder->count) {
		if (builder->target_list_by_range[builder->count - 1] == list ||
		    builder->range_start_offsets[builder->count - 1] >=
			    offset - builder->base_offset)
			return 0;
	}
	if (builder->count == builder->capacity) {
		size_t capacity = builder->capacity ? builder->capacity * 2 : 1024;
		uint32_t *starts = reallocarray(builder->range_start_offsets, capacity,
						sizeof(*starts)),
			 *lists = starts ? reallocarray(builder->target_list_by_range, capacity,
							sizeof(*lists))
					 : NULL;

		if (starts)
			builder->range_start_offsets = starts;
		if (!lists)
			return -ENOMEM;
		builder->target_list_by_range = lists;
		builder->capacity = capacity;
	}
	builder->range_start_offsets[builder->count] = (uint32_t)(offset - builder->base_offset);
	builder->target_list_by_range[builder->count++] = list;
	return 0;
}

static int build_target_map_ranges(struct causal_target_map_builder *builder,
				   const struct causal_code_ranges *stretches,
				   struct causal_inline_target_finder *chain)
{
	const struct elf_file *file = builder->module->file;
	int error = 0;

	for (size_t i = 0; !error && i + 1 < stretches->count; i++) {
		uint64_t offset, end;
		uint32_t list = 0;

		if (!elf_vaddr_to_offset(file, stretches->starts[i], &offset))
			continue;
		if (causal_module_has_code_at(builder->module, stretches->starts[i])) {
			error = causal_inline_target_finder_find_ids(chain, i);
			if (!error)
				error = find_or_append_target_list(builder, chain->target_ids,
								   chain->count, &list);
		}
		end = offset + (stretches->starts[i + 1] - stretches->starts[i]);
		if (!error)
			error = append_target_map_range(builder, offset, list);
		if (list && end > builder->end_offset)
			builder->end_offset = end;
	}
	return error;
}

static int serialize_target_map(const struct causal_target_map_builder *builder, void **ret,
				size_t *ret_size)
{
	struct causal_map_header header = {.magic = CAUSAL_MAP_MAGIC,
					   .version = CAUSAL_MAP_VERSION,
					   .count = (uint32_t)builder->count,
					   .id_count = (uint32_t)builder->target_id_count,
					   .base = builder->base_offset,
					   .end = builder->end_offset};
	size_t arrays = builder->count * sizeof(uint32_t),
	       size = sizeof(header) + 2 * arrays + builder->target_id_count * sizeof(uint32_t);
	uint8_t *image = malloc(size);

	if (!image)
		return -ENOMEM;
	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), builder->range_start_offsets, arrays);
	memcpy(image + sizeof(header) + arrays, builder->target_list_by_range, arrays);
	memcpy(image + sizeof(header) + 2 * arrays, builder->target_ids,
	       builder->target_id_count * sizeof(uint32_t));
	*ret = image;
	*ret_size = size;
	return 0;
}

/* A last range that is empty only says where the one before ends: so does `end`. */
static void drop_empty_last_ranges(struct causal_target_map_builder *builder)
{
	while (builder->count && (!builder->target_list_by_range[builder->count - 1] ||
				  builder->range_start_offsets[builder->count - 1] >=
					  builder->end_offset - builder->base_offset))
		builder->count--;
}

static int build_and_serialize_target_map(struct causal_target_map_builder *builder,
					  const struct causal_scopes *scopes,
					  struct causal_targets *targets,
					  const struct causal_code_ranges *stretches, void **ret,
					  size_t *ret_size)
{
	struct causal_inline_target_finder chain;
	int error = causal_inline_target_finder_init(&chain, builder->module, scopes, targets,
						     stretches);

	if (!error)
		error = append_target_ids(builder, NULL, 0); /* the empty list */
	if (!error)
		error = build_target_map_ranges(builder, stretches, &chain);
	causal_inline_target_finder_deinit(&chain);
	drop_empty_last_ranges(builder);
	if (!error && !builder->count)
		error = -ENOENT;
	if (!error)
		error = serialize_target_map(builder, ret, ret_size);
	free(builder->range_start_offsets);
	free(builder->target_list_by_range);
	free(builder->target_ids);
	free(builder->slots);
	return error;
}

int causal_target_map_build(struct causal_module *module, const struct causal_scopes *scopes,
			    struct causal_targets *targets, void **ret, size_t *ret_size,
			    struct problem *problem)
{
	struct causal_target_map_builder builder = {.module = module};
	struct causal_code_ranges stretches;
	int error = causal_code_ranges_build(module, &stretches);

	if (!error && !stretches.debug &&
	    causal_scopes_get_granularity(scopes) == CAUSAL_GRANULARITY_LINES)
		error = -ENODATA;
	if (!error)
		error = build_and_serialize_target_map(&builder, scopes, targets, &stretches, ret,
						       ret_size);
	causal_code_ranges_deinit(&stretches);
	if (error == -ENODATA)
		return problem_set(
			problem, error,
			"'%s' has no debug information, so its lines are not known: build it with "
			"-g, install its debug symbols, or use --mode function",
			module->path);
	if (error == -ENOENT)
		return problem_set(problem, error, "nothing in '%s' is in scope", module->path);
	if (error)
		return problem_set(problem, error, "no map of '%s': %s", module->path,
				   strerror(-error));
	return 0;
}
