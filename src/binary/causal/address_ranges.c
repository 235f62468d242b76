/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See address_ranges.h. Cuts are bits of a map of the code's bytes: setting one costs the same
 * however many there are, and reading them gives them in order.
 */
#include "binary/causal/address_ranges.h"

#include <errno.h>
#include <stdlib.h>

#include "binary/dwarf/rows.h"

#define BOUNDARY_BITMAP_SPAN_BYTES_MAX (1ull << 32)

struct range_boundary_bitmap {
	uint64_t *bits;
	uint64_t low_address, size;
};

static void add_range_boundary(struct range_boundary_bitmap *cuts, uint64_t vaddr)
{
	uint64_t at = vaddr - cuts->low_address;

	if (at <= cuts->size)
		cuts->bits[at / 64] |= 1ull << at % 64;
}

static void add_boundaries_at_start_and_end(struct range_boundary_bitmap *cuts, uint64_t start,
					    uint64_t size)
{
	add_range_boundary(cuts, start);
	if (size <= UINT64_MAX - start)
		add_range_boundary(cuts, start + size);
}

static int add_boundaries_around_line_range(void *context, const struct dwarf_line_code_range *line)
{
	add_boundaries_at_start_and_end(context, line->start, line->end - line->start);
	return 0;
}

static void add_boundaries_around_executable_segments(struct range_boundary_bitmap *cuts,
						      const struct causal_module *module)
{
	for (size_t i = 0; i < module->file->segment_count; i++) {
		const Elf64_Phdr *segment = &module->file->segments[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X))
			add_boundaries_at_start_and_end(cuts, segment->p_vaddr, segment->p_filesz);
	}
}

static int add_all_range_boundaries(struct range_boundary_bitmap *cuts,
				    struct causal_module *module, bool *ret_debug)
{
	int error = 0;

	add_boundaries_around_executable_segments(cuts, module);
	for (size_t i = 0; i < symbols_get_count(module->symbols); i++) {
		const struct symbol *symbol = symbols_get_nth(module->symbols, i);

		add_boundaries_at_start_and_end(cuts, symbol->address, symbol->size);
	}
	for (size_t i = 0; i < module->frames.count; i++)
		add_boundaries_at_start_and_end(cuts, module->frames.list[i].vaddr,
						module->frames.list[i].size);
	if (module->debug_info_file)
		error = dwarf_for_each_line_range(module->debug_info_file, module->string_pool,
						  add_boundaries_around_line_range, cuts);
	*ret_debug = module->debug_info_file && !error;
	return error == -ENODATA ? 0 : error;
}

static int build_ranges_from_boundaries(const struct range_boundary_bitmap *cuts,
					struct causal_code_ranges *ret)
{
	size_t words = (size_t)(cuts->size / 64 + 1), count = 0;

	for (size_t i = 0; i < words; i++)
		count += (size_t)__builtin_popcountll(cuts->bits[i]);
	ret->starts = malloc((count + 1) * sizeof(*ret->starts));
	if (!ret->starts)
		return -ENOMEM;
	for (size_t i = 0; i < words; i++) {
		for (uint64_t bits = cuts->bits[i]; bits; bits &= bits - 1)
			ret->starts[ret->count++] =
				cuts->low_address + i * 64 + (uint64_t)__builtin_ctzll(bits);
	}
	return 0;
}

int causal_code_ranges_build(struct causal_module *module, struct causal_code_ranges *ret)
{
	struct range_boundary_bitmap cuts = {.low_address = module->low,
					     .size = module->high - module->low};
	int error;

	*ret = (struct causal_code_ranges){0};
	if (cuts.size > BOUNDARY_BITMAP_SPAN_BYTES_MAX)
		cuts.size = BOUNDARY_BITMAP_SPAN_BYTES_MAX;
	cuts.bits = calloc(cuts.size / 64 + 1, sizeof(*cuts.bits));
	error = cuts.bits ? add_all_range_boundaries(&cuts, module, &ret->debug) : -ENOMEM;
	if (!error)
		error = build_ranges_from_boundaries(&cuts, ret);
	free(cuts.bits);
	if (!error && ret->debug) {
		error = dwarf_lookup_addresses(module->debug_info_file, module->shared, ret->starts,
					       ret->count, module->string_pool, &ret->result);
		if (error == -ENODATA) {
			ret->debug = false;
			error = 0;
		}
	}
	if (error)
		causal_code_ranges_deinit(ret);
	return error;
}

void causal_code_ranges_deinit(struct causal_code_ranges *stretches)
{
	dwarf_lookup_result_lists_deinit(&stretches->result);
	free(stretches->starts);
	*stretches = (struct causal_code_ranges){0};
}
