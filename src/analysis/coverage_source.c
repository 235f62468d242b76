/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where in the source a module's units are: names and files from the symbolizer, the lines of
 * blocks from all rows of the line tables. Where only functions were instrumented, the line that a
 * function begins in is all that is known to have run.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/coverage_private.h"
#include "analysis/symbolize_internal.h"
#include "binary/dwarf_rows.h"

/* ---- names ---- */

static int by_offset(const void *left, const void *right)
{
	const struct coverage_unit *a = *(const struct coverage_unit *const *)left;
	const struct coverage_unit *b = *(const struct coverage_unit *const *)right;

	return a->file_offset < b->file_offset ? -1 : a->file_offset > b->file_offset;
}

static const char *intern(const struct coverage *coverage, const char *text, int *error)
{
	const char *kept = text ? string_pool_intern(coverage->pool, text) : NULL;

	if (text && !kept)
		*error = -ENOMEM;
	return kept;
}

static int name_unit(const struct coverage *coverage, const struct coverage_module *module,
		     const struct symbolize_result *symbols, const struct symbolize_chain *chain,
		     struct coverage_unit *unit)
{
	const struct symbolize_frame *frame = NULL;
	const char *slash = strrchr(module->path, '/');
	char name[512];
	int error = 0;

	if (chain && chain->count)
		frame = &symbols->frames[chain->first + chain->count - 1];
	if (!frame) {
		snprintf(name, sizeof(name), "[%.400s+0x%" PRIx64 "]",
			 slash ? slash + 1 : module->path, unit->vaddr);
		unit->function = intern(coverage, name, &error);
		return error;
	}
	unit->function = intern(coverage, frame->function, &error);
	unit->linkage_name = intern(coverage, frame->linkage_name, &error);
	unit->file = intern(coverage, frame->file, &error);
	unit->line = unit->block || !frame->function_line ? frame->line : frame->function_line;
	return error;
}

static int name_units(const struct coverage *coverage, struct coverage_module *module,
		      const struct symbolize_request *request, struct coverage_unit **units,
		      size_t count, struct problem *problem)
{
	struct symbolize_result symbols = {0};
	size_t chain = 0;
	int result = 0;

	if (request->count)
		result = symbolize_module(request, &symbols, problem);
	for (size_t i = 0; result == 0 && i < count; i++) {
		const struct symbolize_chain *found = NULL;

		while (chain < symbols.chain_count &&
		       request->offsets[chain] < units[i]->file_offset)
			chain++;
		if (chain < symbols.chain_count && units[i]->file_offset != UINT64_MAX)
			found = &symbols.chains[chain];
		result = name_unit(coverage, module, &symbols, found, units[i]);
		if (result == -ENOMEM)
			problem_set(problem, result, "no memory for the symbols of %s",
				    module->path);
	}
	symbolize_result_deinit(&symbols);
	return result;
}

/* ---- lines ---- */

struct line_search {
	struct coverage_module *module;
	const struct coverage_unit *blocks;
	size_t count;
};

static int add_line(struct coverage_module *module, const char *file, uint32_t line, uint64_t count)
{
	if (array_reserve((void **)&module->lines, &module->line_capacity, module->line_count,
			  sizeof(*module->lines)) < 0)
		return -ENOMEM;
	module->lines[module->line_count++] =
		(struct coverage_line){.file = file, .line = line, .count = count};
	return 0;
}

/* A row may lie in several blocks, and a block has several rows. */
static int take_row(void *context, const struct dwarf_code_line *row)
{
	const struct line_search *search = context;
	size_t low = 0, high = search->count;
	uint64_t count = 0;
	bool any = false;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (search->blocks[middle].vaddr + search->blocks[middle].size <= row->start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < search->count && search->blocks[low].vaddr < row->end; low++) {
		any = true;
		if (search->blocks[low].calls > count)
			count = search->blocks[low].calls;
	}
	return any ? add_line(search->module, row->file, row->line, count) : 0;
}

static int block_lines(struct coverage *coverage, struct coverage_module *module,
		       const struct symbolize_request *request, size_t first_block)
{
	struct line_search search = {.module = module,
				     .blocks = module->units + first_block,
				     .count = module->unit_count - first_block};
	struct symbolize_files files = {0};
	enum symbolize_status status;
	const struct elf_file *dwarf;
	int result = symbolize_files_open(request, &files, &status);

	dwarf = result == 0 && files.file ? symbolize_files_dwarf(&files) : NULL;
	if (dwarf)
		result = dwarf_each_line(dwarf, coverage->pool, take_row, &search);
	symbolize_files_close(&files);
	return result == -ENODATA ? 0 : result;
}

static int function_lines(struct coverage_module *module)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < module->unit_count; i++) {
		const struct coverage_unit *unit = &module->units[i];

		if (unit->file && unit->line)
			result = add_line(module, unit->file, unit->line, unit->calls);
	}
	return result;
}

static int by_file_and_line(const void *left, const void *right)
{
	const struct coverage_line *a = left, *b = right;
	int files = a->file == b->file ? 0 : strcmp(a->file, b->file);

	if (files)
		return files;
	return a->line < b->line ? -1 : a->line > b->line;
}

static void join_lines(struct coverage_module *module)
{
	size_t kept = 0;

	if (module->line_count > 1)
		qsort(module->lines, module->line_count, sizeof(*module->lines), by_file_and_line);
	for (size_t i = 0; i < module->line_count; i++) {
		struct coverage_line *last = kept ? &module->lines[kept - 1] : NULL;

		if (!last || by_file_and_line(last, &module->lines[i]) != 0)
			module->lines[kept++] = module->lines[i];
		else if (module->lines[i].count > last->count)
			last->count = module->lines[i].count;
	}
	module->line_count = kept;
}

/* ---- together ---- */

static int find_source(struct coverage *coverage, struct coverage_module *module,
		       struct symbolize_request *request, struct coverage_unit **units,
		       uint64_t *offsets, struct problem *problem)
{
	size_t functions = 0;
	int result;

	for (size_t i = 0; i < module->unit_count; i++) {
		units[i] = &module->units[i];
		functions += !module->units[i].block;
	}
	qsort(units, module->unit_count, sizeof(void *), by_offset);
	for (size_t i = 0; i < module->unit_count; i++) {
		uint64_t offset = units[i]->file_offset;

		if (offset != UINT64_MAX &&
		    (request->count == 0 || offsets[request->count - 1] != offset))
			offsets[request->count++] = offset;
	}
	request->offsets = offsets;
	result = name_units(coverage, module, request, units, module->unit_count, problem);
	if (result < 0)
		return result;
	result = functions < module->unit_count ? block_lines(coverage, module, request, functions)
						: function_lines(module);
	if (result < 0)
		return problem_set(problem, result, "cannot read the source lines of %s: %s",
				   module->path, strerror(-result));
	join_lines(module);
	return 0;
}

int coverage_find_source(struct coverage *coverage, struct coverage_module *module,
			 const struct session_options *options, struct problem *problem)
{
	struct symbolize_request request = {.path = module->path,
					    .build_id = module->build_id,
					    .build_id_size = module->build_id_size,
					    .inlines = true,
					    .debug_path = options->debug_path,
					    .symbol_cache = options->symbol_cache};
	struct coverage_unit **units = calloc(module->unit_count + 1, sizeof(void *));
	uint64_t *offsets = calloc(module->unit_count + 1, sizeof(*offsets));
	int result;

	if (!units || !offsets)
		result = problem_set(problem, -ENOMEM, "no memory for the coverage of %s",
				     module->path);
	else
		result = find_source(coverage, module, &request, units, offsets, problem);
	free(units);
	free(offsets);
	return result;
}
