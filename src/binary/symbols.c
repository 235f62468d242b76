/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The finished symbol table: sorted, one name an address, and flattened to disjoint ranges, so that
 * a lookup is one binary search whatever the nesting.
 *
 * Where sized symbols overlap, the one that begins last counts while it lasts, then the one around
 * it again. Symbols without a size only fill what no sized one covers: a bare label inside a
 * function must not take half of it.
 */
#include "binary/symbols.h"

#include <errno.h>
#include <stdlib.h>

#include "binary/symbols_internal.h"

int symbols_create(struct symbols **ret)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));
	if (!symbols)
		return -ENOMEM;
	*ret = symbols;
	return 0;
}

void symbols_destroy(struct symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->buffer_count; i++)
		free(symbols->buffers[i]);
	free(symbols->buffers);
	free(symbols->candidates);
	free(symbols->ranges);
	free(symbols->slots);
	free(symbols);
}

int symbols_keep(struct symbols *symbols, uint8_t *bytes)
{
	if (symbols->buffer_count == symbols->buffer_capacity) {
		size_t capacity = symbols->buffer_capacity ? symbols->buffer_capacity * 2 : 16;
		uint8_t **buffers = realloc(symbols->buffers, capacity * sizeof(*buffers));
		if (!buffers) {
			free(bytes);
			return -ENOMEM;
		}
		symbols->buffers = buffers;
		symbols->buffer_capacity = capacity;
	}
	symbols->buffers[symbols->buffer_count++] = bytes;
	return 0;
}

int symbols_append(struct symbols *symbols, const struct symbol_candidate *candidate)
{
	if (symbols->count == symbols->capacity) {
		size_t capacity = symbols->capacity ? symbols->capacity * 2 : 1024;
		if (capacity >= SYMBOL_NONE)
			return -ENOMEM;
		struct symbol_candidate *candidates =
			realloc(symbols->candidates, capacity * sizeof(*candidates));
		if (!candidates)
			return -ENOMEM;
		symbols->candidates = candidates;
		symbols->capacity = capacity;
	}
	symbols->candidates[symbols->count++] = *candidate;
	return 0;
}

/* Keeps the best of each address and gives sizes to those without. */
static void choose(struct symbols *symbols)
{
	struct symbol_candidate *candidates = symbols->candidates;
	size_t kept = 0;
	for (size_t i = 0; i < symbols->count; i++) {
		if (kept > 0 && candidates[kept - 1].symbol.address == candidates[i].symbol.address)
			continue;
		candidates[kept++] = candidates[i];
	}
	symbols->count = kept;
	for (size_t i = 0; i < kept; i++) {
		struct symbol_candidate *candidate = &candidates[i];
		if (!candidate->unsized)
			continue;
		uint64_t end = candidate->limit;
		if (i + 1 < kept && candidates[i + 1].symbol.address < end)
			end = candidates[i + 1].symbol.address;
		candidate->symbol.size = end - candidate->symbol.address;
	}
}

static uint64_t candidate_end(const struct symbols *symbols, uint32_t candidate)
{
	const struct symbol *symbol = &symbols->candidates[candidate].symbol;
	return symbol->address + symbol->size;
}

static void range_emit(struct symbols *symbols, uint64_t start, uint32_t candidate)
{
	struct symbol_range *last =
		symbols->range_count ? &symbols->ranges[symbols->range_count - 1] : NULL;
	if (last && last->start == start)
		last->candidate = candidate;
	else
		symbols->ranges[symbols->range_count++] =
			(struct symbol_range){.start = start, .candidate = candidate};
}

/* Ends what ends at or before `until`, innermost first. */
static size_t ranges_close(struct symbols *symbols, const uint32_t *open, size_t depth,
			   uint64_t until)
{
	while (depth > 0 && candidate_end(symbols, open[depth - 1]) <= until) {
		uint64_t end = candidate_end(symbols, open[depth - 1]);
		while (depth > 0 && candidate_end(symbols, open[depth - 1]) <= end)
			depth--;
		range_emit(symbols, end, depth ? open[depth - 1] : SYMBOL_NONE);
	}
	return depth;
}

static int flatten(struct symbols *symbols)
{
	/* Each symbol starts one range and ends at most one. */
	symbols->ranges = malloc((2 * symbols->count + 1) * sizeof(*symbols->ranges));
	uint32_t *open = malloc((symbols->count + 1) * sizeof(*open));
	if (!symbols->ranges || !open) {
		free(open);
		return -ENOMEM;
	}
	size_t depth = 0;
	for (uint32_t i = 0; i < symbols->count; i++) {
		const struct symbol_candidate *candidate = &symbols->candidates[i];
		depth = ranges_close(symbols, open, depth, candidate->symbol.address);
		if (candidate->symbol.size == 0 || (candidate->unsized && depth > 0))
			continue;
		open[depth++] = i;
		range_emit(symbols, candidate->symbol.address, i);
	}
	ranges_close(symbols, open, depth, UINT64_MAX);
	free(open);
	return 0;
}

int symbols_finish(struct symbols *symbols)
{
	int error = symbols_sort(symbols);
	if (!error && symbols->slot_count > 0) {
		error = symbols_name_ifunc_slots(symbols);
		if (!error)
			error = symbols_sort(symbols);
	}
	if (error)
		return error;
	choose(symbols);
	return flatten(symbols);
}

const struct symbol *symbols_find(const struct symbols *symbols, uint64_t vaddr)
{
	size_t low = 0, high = symbols->range_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (symbols->ranges[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || symbols->ranges[low - 1].candidate == SYMBOL_NONE)
		return NULL;
	return &symbols->candidates[symbols->ranges[low - 1].candidate].symbol;
}

enum symbols_origin symbols_origin(const struct symbols *symbols)
{
	if (symbols->has_symtab)
		return SYMBOLS_FULL;
	if (symbols->has_minidebug)
		return SYMBOLS_MINI;
	return symbols->has_dynsym ? SYMBOLS_EXPORTS : SYMBOLS_NONE;
}

size_t symbols_count(const struct symbols *symbols)
{
	return symbols->count;
}

const struct symbol *symbols_at(const struct symbols *symbols, size_t index)
{
	return &symbols->candidates[index].symbol;
}
