/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Building a symbolize_result: frames, function ids, readable names.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/symbolize_internal.h"
#include "binary/demangle.h"

struct function_slot {
	const char *function; /* NULL: empty */
	uint64_t address;
	uint32_t line, id;
};

struct name_slot {
	const char *symbol; /* from the pool; NULL: empty */
	const char *readable;
};

void symbolize_storage_destroy(struct symbolize_storage *storage)
{
	if (!storage)
		return;
	string_pool_destroy(storage->pool);
	free(storage->bytes);
	free(storage->advice);
	free(storage);
}

int symbolize_builder_init(struct symbolize_builder *builder, size_t chain_count)
{
	*builder = (struct symbolize_builder){0};
	builder->result.chains = calloc(chain_count + 1, sizeof(*builder->result.chains));
	if (!builder->result.chains)
		return -ENOMEM;
	builder->result.chain_count = chain_count;
	builder->storage = calloc(1, sizeof(*builder->storage));
	int error = builder->storage ? string_pool_create(&builder->storage->pool) : -ENOMEM;
	if (error)
		symbolize_builder_deinit(builder);
	return error;
}

void symbolize_builder_deinit(struct symbolize_builder *builder)
{
	free(builder->result.chains);
	free(builder->result.frames);
	free(builder->functions);
	free(builder->names);
	symbolize_storage_destroy(builder->storage);
	*builder = (struct symbolize_builder){0};
}

void symbolize_builder_finish(struct symbolize_builder *builder, struct symbolize_result *ret)
{
	struct symbolize_result *result = &builder->result;
	result->unresolved = 0;
	for (size_t i = 0; i < result->chain_count; i++)
		result->unresolved += result->chains[i].count == 0;
	result->storage = builder->storage;
	*ret = *result;
	free(builder->functions);
	free(builder->names);
	*builder = (struct symbolize_builder){0};
}

void symbolize_result_deinit(struct symbolize_result *result)
{
	free(result->chains);
	free(result->frames);
	symbolize_storage_destroy(result->storage);
	*result = (struct symbolize_result){0};
}

int symbolize_builder_frame(struct symbolize_builder *builder, const struct symbolize_frame *frame)
{
	struct symbolize_result *result = &builder->result;
	if (result->frame_count == builder->frame_capacity) {
		size_t capacity = builder->frame_capacity ? builder->frame_capacity * 2 : 1024;
		struct symbolize_frame *frames =
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

static size_t function_hash(const struct function_slot *slot)
{
	uint64_t hash = (uint64_t)(uintptr_t)slot->function * 0x9e3779b97f4a7c15u;
	hash = (hash ^ slot->address ^ (uint64_t)slot->line << 40) * 0xff51afd7ed558ccdu;
	return (size_t)(hash >> 24);
}

static int functions_grow(struct symbolize_builder *builder)
{
	size_t capacity = builder->function_capacity ? builder->function_capacity * 2 : 1024;
	struct function_slot *functions = calloc(capacity, sizeof(*functions));
	if (!functions)
		return -ENOMEM;
	for (size_t i = 0; i < builder->function_capacity; i++) {
		if (!builder->functions[i].function)
			continue;
		size_t at = function_hash(&builder->functions[i]) & (capacity - 1);
		while (functions[at].function)
			at = (at + 1) & (capacity - 1);
		functions[at] = builder->functions[i];
	}
	free(builder->functions);
	builder->functions = functions;
	builder->function_capacity = capacity;
	return 0;
}

int symbolize_builder_function(struct symbolize_builder *builder, const char *function,
			       uint32_t line, uint64_t address, uint32_t *ret)
{
	struct function_slot key = {function, address, line, builder->result.function_count};
	if ((size_t)key.id * 2 >= builder->function_capacity) {
		int error = functions_grow(builder);
		if (error)
			return error;
	}
	size_t mask = builder->function_capacity - 1;
	size_t at = function_hash(&key) & mask;
	for (; builder->functions[at].function; at = (at + 1) & mask) {
		const struct function_slot *slot = &builder->functions[at];
		if (slot->function == function && slot->line == line && slot->address == address) {
			*ret = slot->id;
			return 0;
		}
	}
	builder->functions[at] = key;
	builder->result.function_count++;
	*ret = key.id;
	return 0;
}

/* The rarely used part of a function that the compiler moved away is that function all the same:
 * "f.cold" and "f.cold.3" are shown as "f". Other parts (.part, .constprop) stay functions of
 * their own, as they are called. */
static char *without_cold(const char *symbol)
{
	const char *cold = strstr(symbol, ".cold");
	if (!cold || cold == symbol || (cold[5] != 0 && cold[5] != '.'))
		return NULL;
	return strndup(symbol, (size_t)(cold - symbol));
}

static size_t name_hash(const char *symbol)
{
	return (size_t)(((uint64_t)(uintptr_t)symbol * 0x9e3779b97f4a7c15u) >> 24);
}

static int names_grow(struct symbolize_builder *builder)
{
	size_t capacity = builder->name_capacity ? builder->name_capacity * 2 : 1024;
	struct name_slot *names = calloc(capacity, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < builder->name_capacity; i++) {
		if (!builder->names[i].symbol)
			continue;
		size_t at = name_hash(builder->names[i].symbol) & (capacity - 1);
		while (names[at].symbol)
			at = (at + 1) & (capacity - 1);
		names[at] = builder->names[i];
	}
	free(builder->names);
	builder->names = names;
	builder->name_capacity = capacity;
	return 0;
}

/* What to show for a symbol, in the pool; NULL: no memory. */
static const char *readable_name(struct symbolize_builder *builder, const char *symbol)
{
	char *hot = without_cold(symbol);
	char *readable = demangle(hot ? hot : symbol);
	const char *shown = readable ? readable : hot ? hot : symbol;
	const char *kept = string_pool_intern(builder->storage->pool, shown);
	free(readable);
	free(hot);
	return kept;
}

/* Demangling costs microseconds and every unit has its own copies of common functions: each name is
 * demangled once. */
int symbolize_builder_name(struct symbolize_builder *builder, const char *symbol,
			   struct symbolize_frame *frame)
{
	symbol = string_pool_intern(builder->storage->pool, symbol);
	if (!symbol || (builder->name_count * 2 >= builder->name_capacity && names_grow(builder)))
		return -ENOMEM;
	size_t at = name_hash(symbol) & (builder->name_capacity - 1);
	while (builder->names[at].symbol && builder->names[at].symbol != symbol)
		at = (at + 1) & (builder->name_capacity - 1);
	if (!builder->names[at].symbol) {
		const char *readable = readable_name(builder, symbol);
		if (!readable)
			return -ENOMEM;
		builder->names[at] = (struct name_slot){symbol, readable};
		builder->name_count++;
	}
	frame->function = builder->names[at].readable;
	frame->linkage_name = symbol == frame->function ? NULL : symbol;
	return 0;
}
