/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_stretches.h. Cuts are bits of a map of the code's bytes: setting one costs the same
 * however many there are, and reading them gives them in order.
 */
#include "binary/causal_stretches.h"

#include <errno.h>
#include <stdlib.h>

#include "binary/dwarf_rows.h"

#define CODE_MAX (1ull << 32)

struct cuts {
	uint64_t *bits;
	uint64_t low, size;
};

static void cut(struct cuts *cuts, uint64_t vaddr)
{
	uint64_t at = vaddr - cuts->low;

	if (at <= cuts->size)
		cuts->bits[at / 64] |= 1ull << at % 64;
}

static void cut_range(struct cuts *cuts, uint64_t start, uint64_t size)
{
	cut(cuts, start);
	if (size <= UINT64_MAX - start)
		cut(cuts, start + size);
}

static int cut_line(void *context, const struct dwarf_code_line *line)
{
	cut_range(context, line->start, line->end - line->start);
	return 0;
}

static void cut_segments(struct cuts *cuts, const struct causal_module *module)
{
	for (size_t i = 0; i < module->file->segment_count; i++) {
		const Elf64_Phdr *segment = &module->file->segments[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X))
			cut_range(cuts, segment->p_vaddr, segment->p_filesz);
	}
}

static int cut_all(struct cuts *cuts, struct causal_module *module, bool *ret_debug)
{
	int error = 0;

	cut_segments(cuts, module);
	for (size_t i = 0; i < symbols_count(module->symbols); i++) {
		const struct symbol *symbol = symbols_at(module->symbols, i);

		cut_range(cuts, symbol->address, symbol->size);
	}
	for (size_t i = 0; i < module->frames.count; i++)
		cut_range(cuts, module->frames.list[i].vaddr, module->frames.list[i].size);
	if (module->speaking)
		error = dwarf_each_line(module->speaking, module->pool, cut_line, cuts);
	*ret_debug = module->speaking && !error;
	return error == -ENODATA ? 0 : error;
}

static int cuts_read(const struct cuts *cuts, struct causal_stretches *ret)
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
				cuts->low + i * 64 + (uint64_t)__builtin_ctzll(bits);
	}
	return 0;
}

int causal_stretches_make(struct causal_module *module, struct causal_stretches *ret)
{
	struct cuts cuts = {.low = module->low, .size = module->high - module->low};
	int error;

	*ret = (struct causal_stretches){0};
	if (cuts.size > CODE_MAX)
		cuts.size = CODE_MAX;
	cuts.bits = calloc(cuts.size / 64 + 1, sizeof(*cuts.bits));
	error = cuts.bits ? cut_all(&cuts, module, &ret->debug) : -ENOMEM;
	if (!error)
		error = cuts_read(&cuts, ret);
	free(cuts.bits);
	if (!error && ret->debug) {
		error = dwarf_lookup(module->speaking, module->shared, ret->starts, ret->count,
				     module->pool, &ret->result);
		if (error == -ENODATA) {
			ret->debug = false;
			error = 0;
		}
	}
	if (error)
		causal_stretches_deinit(ret);
	return error;
}

void causal_stretches_deinit(struct causal_stretches *stretches)
{
	dwarf_result_deinit(&stretches->result);
	free(stretches->starts);
	*stretches = (struct causal_stretches){0};
}
