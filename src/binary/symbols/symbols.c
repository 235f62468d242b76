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
#include "binary/symbols/symbols.h"

#include <errno.h>
#include <stdlib.h>

#include "binary/symbols/private.h"

int symbols_create(struct symbol_table **ret)
{
	struct symbol_table *symbols = calloc(1, sizeof(*symbols));
	if (!symbols)
		return -ENOMEM;
	*ret = symbols;
	return 0;
}

void symbols_destroy(struct symbol_table *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->name_buffer_count; i++)
		free(symbols->name_buffers[i]);
	free(symbols->name_buffers);
	free(symbols->candidates);
	free(symbols->ranges);
	free(symbols->slots);
	free(symbols);
}

int symbols_adopt_name_buffer(struct symbol_table *symbols, uint8_t *bytes)
{
	if (symbols->name_buffer_count == symbols->name_buffer_capacity) {
		size_t capacity =
			symbols->name_buffer_capacity ? symbols->name_buffer_capacity * 2 : 16;
		uint8_t **buffers = realloc(symbols->name_buffers, capacity * sizeof(*buffers));
		if (!buffers) {
			free(bytes);
			return -ENOMEM;
		}
		symbols->name_buffers = buffers;
		symbols->name_buffer_capacity = capacity;
	}
	symbols->name_buffers[symbols->name_buffer_count++] = bytes;
	return 0;
}

int symbols_append_candidate(struct symbol_table *symbols, const struct symbol_candidate *candidate)
{
	if (symbols->count == symbols->capacity) {
		size_t capacity = symbols->capacity ? symbols->capacity * 2 : 1024;
		if (capacity >= SYMBOL_INDEX_NONE)
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
static void keep_best_candidate_per_address(struct symbol_table *symbols)
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
		if (!candidate->has_no_size)
			continue;
		uint64_t end = candidate->limit;
		if (i + 1 < kept && candidates[i + 1].symbol.address < end)
			end = candidates[i + 1].symbol.address;
		candidate->symbol.size = end - candidate->symbol.address;
	}
}

static uint64_t get_candidate_end_address(const struct symbol_table *symbols, uint32_t candidate)
{
	const struct symbol *symbol = &symbols->candidates[candidate].symbol;
	return symbol->address + symbol->size;
}

static void append_or_replace_range(struct symbol_table *symbols, uint64_t start,
				    uint32_t candidate)
{
	struct symbol_range *last =
		symbols->range_count ? &symbols->ranges[symbols->range_count - 1] : NULL;
	if (last && last->start == start)
		last->candidate_index = candidate;
	else
		symbols->ranges[symbols->range_count++] =
			(struct symbol_range){.start = start, .candidate_index = candidate};
}

/* Ends what ends at or before `until`, innermost first. */
static size_t close_ended_ranges(struct symbol_table *symbols, const uint32_t *open, size_t depth,
				 uint64_t until)
{
	while (depth > 0 && get_candidate_end_address(symbols, open[depth - 1]) <= until) {
		uint64_t end = get_candidate_end_address(symbols, open[depth - 1]);
		while (depth > 0 && get_candidate_end_address(symbols, open[depth - 1]) <= end)
			depth--;
		append_or_replace_range(symbols, end, depth ? open[depth - 1] : SYMBOL_INDEX_NONE);
	}
	return depth;
}

static int flatten_symbols_to_ranges(struct symbol_table *symbols)
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
		depth = close_ended_ranges(symbols, open, depth, candidate->symbol.address);
		if (candidate->symbol.size == 0 || (candidate->has_no_size && depth > 0))
			continue;
		open[depth++] = i;
		append_or_replace_range(symbols, candidate->symbol.address, i);
	}
	close_ended_ranges(symbols, open, depth, UINT64_MAX);
	free(open);
	return 0;
}

int symbols_sort_and_flatten(struct symbol_table *symbols)
{
	int error = symbols_sort_candidates(symbols);
	if (!error && symbols->slot_count > 0) {
		error = symbols_add_ifunc_slots(symbols);
		if (!error)
			error = symbols_sort_candidates(symbols);
	}
	if (error)
		return error;
	keep_best_candidate_per_address(symbols);
	return flatten_symbols_to_ranges(symbols);
}

const struct symbol *symbols_find_at_address(const struct symbol_table *symbols, uint64_t vaddr)
{
	size_t low = 0, high = symbols->range_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (symbols->ranges[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || symbols->ranges[low - 1].candidate_index == SYMBOL_INDEX_NONE)
		return NULL;
	return &symbols->candidates[symbols->ranges[low - 1].candidate_index].symbol;
}

enum symbol_table_origin symbols_get_origin(const struct symbol_table *symbols)
{
	if (symbols->has_symtab)
		return SYMBOLS_FROM_SYMTAB;
	if (symbols->has_minidebug)
		return SYMBOLS_FROM_MINIDEBUG;
	return symbols->has_dynsym ? SYMBOLS_FROM_DYNSYM : SYMBOLS_FROM_NONE;
}

size_t symbols_get_count(const struct symbol_table *symbols)
{
	return symbols->count;
}

const struct symbol *symbols_get_nth(const struct symbol_table *symbols, size_t index)
{
	return &symbols->candidates[index].symbol;
}
