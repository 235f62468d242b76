/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sorting symbols by address: a radix sort, since large programs have hundreds of thousands of them
 * and comparing would be a third of the time to load a symbol table. It is stable, so that of equal
 * addresses only short runs remain to be put in order of rank.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/symbols_internal.h"

#define DIGIT_BITS  11u
#define DIGIT_COUNT (1u << DIGIT_BITS)

struct key {
	uint64_t address;
	uint32_t index;
};

/* One pass over one digit; false: all keys have the same, nothing was done. */
static bool sort_digit(const struct key *from, struct key *to, size_t count, unsigned shift)
{
	size_t starts[DIGIT_COUNT] = {0};
	for (size_t i = 0; i < count; i++)
		starts[(from[i].address >> shift) & (DIGIT_COUNT - 1)]++;
	if (starts[(from[0].address >> shift) & (DIGIT_COUNT - 1)] == count)
		return false;
	size_t start = 0;
	for (size_t digit = 0; digit < DIGIT_COUNT; digit++) {
		size_t size = starts[digit];
		starts[digit] = start;
		start += size;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[(from[i].address >> shift) & (DIGIT_COUNT - 1)]++] = from[i];
	return true;
}

static int compare_rank(const void *left, const void *right)
{
	const struct symbol_candidate *a = left, *b = right;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return strcmp(a->symbol.name, b->symbol.name);
}

static void sort_equal(struct symbol_candidate *candidates, size_t count)
{
	for (size_t first = 0, end; first < count; first = end) {
		end = first + 1;
		while (end < count &&
		       candidates[end].symbol.address == candidates[first].symbol.address)
			end++;
		if (end - first > 1)
			qsort(candidates + first, end - first, sizeof(*candidates), compare_rank);
	}
}

int symbols_sort(struct symbols *symbols)
{
	size_t count = symbols->count;
	if (count == 0)
		return 0;
	struct key *keys = malloc(2 * count * sizeof(*keys));
	struct symbol_candidate *sorted = malloc(symbols->capacity * sizeof(*sorted));
	if (!keys || !sorted) {
		free(keys);
		free(sorted);
		return -ENOMEM;
	}
	struct key *from = keys, *to = keys + count;
	for (uint32_t i = 0; i < count; i++)
		from[i] = (struct key){symbols->candidates[i].symbol.address, i};
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		if (!sort_digit(from, to, count, shift))
			continue;
		struct key *other = from;
		from = to;
		to = other;
	}
	for (size_t i = 0; i < count; i++)
		sorted[i] = symbols->candidates[from[i].index];
	free(keys);
	free(symbols->candidates);
	symbols->candidates = sorted;
	sort_equal(sorted, count);
	return 0;
}
