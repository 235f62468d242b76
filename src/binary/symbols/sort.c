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

#include "binary/symbols/private.h"

#define RADIX_DIGIT_BITS   11u
#define RADIX_DIGIT_VALUES (1u << RADIX_DIGIT_BITS)

struct address_sort_key {
	uint64_t address;
	uint32_t index;
};

/* One pass over one digit; false: all keys have the same, nothing was done. */
static bool sort_keys_by_radix_digit(const struct address_sort_key *from,
				     struct address_sort_key *to, size_t count, unsigned shift)
{
	size_t starts[RADIX_DIGIT_VALUES] = {0};
	for (size_t i = 0; i < count; i++)
		starts[(from[i].address >> shift) & (RADIX_DIGIT_VALUES - 1)]++;
	if (starts[(from[0].address >> shift) & (RADIX_DIGIT_VALUES - 1)] == count)
		return false;
	size_t start = 0;
	for (size_t digit = 0; digit < RADIX_DIGIT_VALUES; digit++) {
		size_t size = starts[digit];
		starts[digit] = start;
		start += size;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[(from[i].address >> shift) & (RADIX_DIGIT_VALUES - 1)]++] = from[i];
	return true;
}

static int compare_candidate_by_rank(const void *left, const void *right)
{
	const struct symbol_candidate *a = left, *b = right;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return strcmp(a->symbol.name, b->symbol.name);
}

static void sort_equal_addresses_by_rank(struct symbol_candidate *candidates, size_t count)
{
	for (size_t first = 0, end; first < count; first = end) {
		end = first + 1;
		while (end < count &&
		       candidates[end].symbol.address == candidates[first].symbol.address)
			end++;
		if (end - first > 1)
			qsort(candidates + first, end - first, sizeof(*candidates),
			      compare_candidate_by_rank);
	}
}

int symbols_sort_candidates(struct symbol_table *symbols)
{
	size_t count = symbols->count;
	if (count == 0)
		return 0;
	struct address_sort_key *keys = malloc(2 * count * sizeof(*keys));
	struct symbol_candidate *sorted = malloc(symbols->capacity * sizeof(*sorted));
	if (!keys || !sorted) {
		free(keys);
		free(sorted);
		return -ENOMEM;
	}
	struct address_sort_key *from = keys, *to = keys + count;
	for (uint32_t i = 0; i < count; i++)
		from[i] = (struct address_sort_key){symbols->candidates[i].symbol.address, i};
	for (unsigned shift = 0; shift < 64; shift += RADIX_DIGIT_BITS) {
		if (!sort_keys_by_radix_digit(from, to, count, shift))
			continue;
		struct address_sort_key *other = from;
		from = to;
		to = other;
	}
	for (size_t i = 0; i < count; i++)
		sorted[i] = symbols->candidates[from[i].index];
	free(keys);
	free(symbols->candidates);
	symbols->candidates = sorted;
	sort_equal_addresses_by_rank(sorted, count);
	return 0;
}
