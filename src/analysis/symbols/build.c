/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Building a symbolizer_request_result: frames, function ids, readable names.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/symbols/private.h"
#include "binary/demangle.h"

struct function_slot {
	const char *function; /* NULL: empty */
	uint64_t address;
	uint32_t line, function_id;
};

struct name_slot {
	const char *symbol_name; /* from the pool; NULL: empty */
	const char *readable_name;
};

void symbolizer_storage_destroy(struct symbolizer_storage *storage)
{
	if (!storage)
		return;
	string_pool_destroy(storage->string_pool);
	free(storage->bytes);
	free(storage->advice);
	free(storage);
}

int symbolizer_builder_init(struct symbolizer_result_builder *builder, size_t chain_count)
{
	*builder = (struct symbolizer_result_builder){0};
	builder->result.chains = calloc(chain_count + 1, sizeof(*builder->result.chains));
	if (!builder->result.chains)
		return -ENOMEM;
	builder->result.chain_count = chain_count;
	builder->storage = calloc(1, sizeof(*builder->storage));
	int error = builder->storage ? string_pool_create(&builder->storage->string_pool) : -ENOMEM;
	if (error)
		symbolizer_builder_deinit(builder);
	return error;
}

void symbolizer_builder_deinit(struct symbolizer_result_builder *builder)
{
	free(builder->result.chains);
	free(builder->result.frames);
	free(builder->functions);
	free(builder->names);
	symbolizer_storage_destroy(builder->storage);
	*builder = (struct symbolizer_result_builder){0};
}

void symbolizer_builder_finish(struct symbolizer_result_builder *builder,
			       struct symbolizer_request_result *ret)
{
	struct symbolizer_request_result *result = &builder->result;
	result->unresolved_chain_count = 0;
	for (size_t i = 0; i < result->chain_count; i++)
		result->unresolved_chain_count += result->chains[i].count == 0;
	result->string_storage = builder->storage;
	*ret = *result;
	free(builder->functions);
	free(builder->names);
	*builder = (struct symbolizer_result_builder){0};
}

void symbolizer_result_deinit(struct symbolizer_request_result *result)
{
	free(result->chains);
	free(result->frames);
	symbolizer_storage_destroy(result->string_storage);
	*result = (struct symbolizer_request_result){0};
}

int symbolizer_builder_append_frame(struct symbolizer_result_builder *builder,
				    const struct symbolizer_frame *frame)
{
	struct symbolizer_request_result *result = &builder->result;
	if (result->frame_count == builder->frame_capacity) {
		size_t capacity = builder->frame_capacity ? builder->frame_capacity * 2 : 1024;
		struct symbolizer_frame *frames =
			capacity < UINT32_MAX ? realloc(result->frames, capacity * sizeof(*frames))
					      : NULL;
		if (!frames)
			return -ENOMEM;
		result->frames = frames;
		builder->frame_capacity = capacity;
	}
	result->frames[result->frame_count++] = *frame;
	return 0;
}

static size_t hash_function_slot_key(const struct function_slot *slot)
{
	uint64_t hash = (uint64_t)(uintptr_t)slot->function * 0x9e3779b97f4a7c15u;
	hash = (hash ^ slot->address ^ (uint64_t)slot->line << 40) * 0xff51afd7ed558ccdu;
	return (size_t)(hash >> 24);
}

static int grow_function_slots(struct symbolizer_result_builder *builder)
{
	size_t capacity = builder->function_capacity ? builder->function_capacity * 2 : 1024;
	struct function_slot *functions = calloc(capacity, sizeof(*functions));
	if (!functions)
		return -ENOMEM;
	for (size_t i = 0; i < builder->function_capacity; i++) {
		if (!builder->functions[i].function)
			continue;
		size_t at = hash_function_slot_key(&builder->functions[i]) & (capacity - 1);
		while (functions[at].function)
			at = (at + 1) & (capacity - 1);
		functions[at] = builder->functions[i];
	}
	free(builder->functions);
	builder->functions = functions;
	builder->function_capacity = capacity;
	return 0;
}

int symbolizer_find_or_add_function_id(struct symbolizer_result_builder *builder,
				       const char *function, uint32_t line, uint64_t address,
				       uint32_t *ret)
{
	struct function_slot key = {function, address, line, builder->result.function_count};
	if ((size_t)key.function_id * 2 >= builder->function_capacity) {
		int error = grow_function_slots(builder);
		if (error)
			return error;
	}
	size_t mask = builder->function_capacity - 1;
	size_t at = hash_function_slot_key(&key) & mask;
	for (; builder->functions[at].function; at = (at + 1) & mask) {
		const struct function_slot *slot = &builder->functions[at];
		if (slot->function == function && slot->line == line && slot->address == address) {
			*ret = slot->function_id;
			return 0;
		}
	}
	builder->functions[at] = key;
	builder->result.function_count++;
	*ret = key.function_id;
	return 0;
}

/* The rarely used part of a function that the compiler moved away is that function all the same:
 * "f.cold" and "f.cold.3" are shown as "f". Other parts (.part, .constprop) stay functions of
 * their own, as they are called. */
static char *copy_symbol_without_cold_suffix(const char *symbol)
{
	const char *cold = strstr(symbol, ".cold");
	if (!cold || cold == symbol || (cold[5] != 0 && cold[5] != '.'))
		return NULL;
	return strndup(symbol, (size_t)(cold - symbol));
}

static size_t hash_symbol_pointer(const char *symbol)
{
	return (size_t)(((uint64_t)(uintptr_t)symbol * 0x9e3779b97f4a7c15u) >> 24);
}

static int grow_name_slots(struct symbolizer_result_builder *builder)
{
	size_t capacity = builder->name_capacity ? builder->name_capacity * 2 : 1024;
	struct name_slot *names = calloc(capacity, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < builder->name_capacity; i++) {
		if (!builder->names[i].symbol_name)
			continue;
		size_t at = hash_symbol_pointer(builder->names[i].symbol_name) & (capacity - 1);
		while (names[at].symbol_name)
			at = (at + 1) & (capacity - 1);
		names[at] = builder->names[i];
	}
	free(builder->names);
	builder->names = names;
	builder->name_capacity = capacity;
	return 0;
}

/* What to show for a symbol, in the pool; NULL: no memory. */
static const char *make_readable_symbol_name(struct symbolizer_result_builder *builder,
					     const char *symbol)
{
	char *hot = copy_symbol_without_cold_suffix(symbol);
	char *readable = demangle(hot ? hot : symbol);
	const char *shown = readable ? readable : hot ? hot : symbol;
	const char *kept = string_pool_intern(builder->storage->string_pool, shown);
	free(readable);
	free(hot);
	return kept;
}

/* Demangling costs microseconds and every unit has its own copies of common functions: each name is
 * demangled once. */
int symbolizer_builder_set_frame_name(struct symbolizer_result_builder *builder, const char *symbol,
				      struct symbolizer_frame *frame)
{
	symbol = string_pool_intern(builder->storage->string_pool, symbol);
	if (!symbol ||
	    (builder->name_count * 2 >= builder->name_capacity && grow_name_slots(builder)))
		return -ENOMEM;
	size_t at = hash_symbol_pointer(symbol) & (builder->name_capacity - 1);
	while (builder->names[at].symbol_name && builder->names[at].symbol_name != symbol)
		at = (at + 1) & (builder->name_capacity - 1);
	if (!builder->names[at].symbol_name) {
		const char *readable = make_readable_symbol_name(builder, symbol);
		if (!readable)
			return -ENOMEM;
		builder->names[at] = (struct name_slot){symbol, readable};
		builder->name_count++;
	}
	frame->function = builder->names[at].readable_name;
	frame->linkage_name = symbol == frame->function ? NULL : symbol;
	return 0;
}
