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
#include "analysis/coverage/private.h"
#include "analysis/symbols/private.h"
#include "binary/dwarf/rows.h"

/* ---- names ---- */

static int compare_code_ranges_by_offset(const void *left, const void *right)
{
	const struct coverage_code_range *a = *(const struct coverage_code_range *const *)left;
	const struct coverage_code_range *b = *(const struct coverage_code_range *const *)right;

	return a->file_offset < b->file_offset ? -1 : a->file_offset > b->file_offset;
}

static const char *intern_text(const struct coverage *coverage, const char *text, int *error)
{
	const char *kept = text ? string_pool_intern(coverage->string_pool, text) : NULL;

	if (text && !kept)
		*error = -ENOMEM;
	return kept;
}

static int set_code_range_name_and_line(const struct coverage *coverage,
					const struct coverage_module *module,
					const struct symbolizer_request_result *symbols,
					const struct symbolizer_frame_chain *chain,
					struct coverage_code_range *unit)
{
	const struct symbolizer_frame *frame = NULL;
	const char *slash = strrchr(module->path, '/');
	char name[512];
	int error = 0;

	if (chain && chain->count)
		frame = &symbols->frames[chain->first + chain->count - 1];
	if (!frame) {
		snprintf(name, sizeof(name), "[%.400s+0x%" PRIx64 "]",
			 slash ? slash + 1 : module->path, unit->vaddr);
		unit->function = intern_text(coverage, name, &error);
		return error;
	}
	unit->function = intern_text(coverage, frame->function, &error);
	unit->linkage_name = intern_text(coverage, frame->linkage_name, &error);
	unit->file = intern_text(coverage, frame->file, &error);
	unit->line = unit->block || !frame->function_line ? frame->line : frame->function_line;
	return error;
}

static int symbolize_code_ranges(const struct coverage *coverage, struct coverage_module *module,
				 const struct symbolizer_request *request,
				 struct coverage_code_range **units, size_t count,
				 struct problem *problem)
{
	struct symbolizer_request_result symbols = {0};
	size_t chain = 0;
	int result = 0;

	if (request->count)
		result = symbolize_module(request, &symbols, problem);
	for (size_t i = 0; result == 0 && i < count; i++) {
		const struct symbolizer_frame_chain *found = NULL;

		while (chain < symbols.chain_count &&
		       request->offsets[chain] < units[i]->file_offset)
			chain++;
		if (chain < symbols.chain_count && units[i]->file_offset != UINT64_MAX)
			found = &symbols.chains[chain];
		result = set_code_range_name_and_line(coverage, module, &symbols, found, units[i]);
		if (result == -ENOMEM)
			problem_set(problem, result, "no memory for the symbols of %s",
				    module->path);
	}
	symbolizer_result_deinit(&symbols);
	return result;
}

/* ---- lines ---- */

struct block_line_search {
	struct coverage_module *module;
	const struct coverage_code_range *blocks;
	size_t block_count;
};

static int append_coverage_line(struct coverage_module *module, const char *file, uint32_t line,
				uint64_t count)
{
	if (array_reserve_one_more((void **)&module->lines, &module->line_capacity,
				   module->line_count, sizeof(*module->lines)) < 0)
		return -ENOMEM;
	module->lines[module->line_count++] =
		(struct coverage_line){.file = file, .line = line, .count = count};
	return 0;
}

/* A row may lie in several blocks, and a block has several rows. */
static int collect_line_of_row(void *context, const struct dwarf_line_code_range *row)
{
	const struct block_line_search *search = context;
	size_t low = 0, high = search->block_count;
	uint64_t count = 0;
	bool any = false;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (search->blocks[middle].vaddr + search->blocks[middle].size <= row->start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < search->block_count && search->blocks[low].vaddr < row->end; low++) {
		any = true;
		if (search->blocks[low].calls > count)
			count = search->blocks[low].calls;
	}
	return any ? append_coverage_line(search->module, row->file, row->line, count) : 0;
}

static int collect_lines_of_all_blocks(struct coverage *coverage, struct coverage_module *module,
				       const struct symbolizer_request *request, size_t first_block)
{
	struct block_line_search search = {.module = module,
					   .blocks = module->units + first_block,
					   .block_count = module->unit_count - first_block};
	struct symbolizer_files files = {0};
	enum symbolizer_status_kind status;
	const struct elf_file *dwarf;
	int result = symbolizer_files_open(request, &files, &status);

	dwarf = result == 0 && files.file ? symbolizer_files_find_dwarf(&files) : NULL;
	if (dwarf)
		result = dwarf_for_each_line_range(dwarf, coverage->string_pool,
						   collect_line_of_row, &search);
	symbolizer_files_close(&files);
	return result == -ENODATA ? 0 : result;
}

static int collect_first_lines_of_functions(struct coverage_module *module)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < module->unit_count; i++) {
		const struct coverage_code_range *unit = &module->units[i];

		if (unit->file && unit->line)
			result = append_coverage_line(module, unit->file, unit->line, unit->calls);
	}
	return result;
}

static int compare_lines_by_file_and_line(const void *left, const void *right)
{
	const struct coverage_line *a = left, *b = right;
	int files = a->file == b->file ? 0 : strcmp(a->file, b->file);

	if (files)
		return files;
	return a->line < b->line ? -1 : a->line > b->line;
}

static void merge_equal_lines_by_highest_count(struct coverage_module *module)
{
	size_t kept = 0;

	if (module->line_count > 1)
		qsort(module->lines, module->line_count, sizeof(*module->lines),
		      compare_lines_by_file_and_line);
	for (size_t i = 0; i < module->line_count; i++) {
		struct coverage_line *last = kept ? &module->lines[kept - 1] : NULL;

		if (!last || compare_lines_by_file_and_line(last, &module->lines[i]) != 0)
			module->lines[kept++] = module->lines[i];
		else if (module->lines[i].count > last->count)
			last->count = module->lines[i].count;
	}
	module->line_count = kept;
}

/* ---- together ---- */

static int find_names_and_lines(struct coverage *coverage, struct coverage_module *module,
				struct symbolizer_request *request,
				struct coverage_code_range **units, uint64_t *offsets,
				struct problem *problem)
{
	size_t functions = 0;
	int result;

	for (size_t i = 0; i < module->unit_count; i++) {
		units[i] = &module->units[i];
		functions += !module->units[i].block;
	}
	qsort(units, module->unit_count, sizeof(void *), compare_code_ranges_by_offset);
	for (size_t i = 0; i < module->unit_count; i++) {
		uint64_t offset = units[i]->file_offset;

		if (offset != UINT64_MAX &&
		    (request->count == 0 || offsets[request->count - 1] != offset))
			offsets[request->count++] = offset;
	}
	request->offsets = offsets;
	result = symbolize_code_ranges(coverage, module, request, units, module->unit_count,
				       problem);
	if (result < 0)
		return result;
	result = functions < module->unit_count
			 ? collect_lines_of_all_blocks(coverage, module, request, functions)
			 : collect_first_lines_of_functions(module);
	if (result < 0)
		return problem_set(problem, result, "cannot read the source lines of %s: %s",
				   module->path, strerror(-result));
	merge_equal_lines_by_highest_count(module);
	return 0;
}

int coverage_find_module_names_and_lines(struct coverage *coverage, struct coverage_module *module,
					 const struct session_options *options,
					 struct problem *problem)
{
	struct symbolizer_request request = {.path = module->path,
					     .build_id = module->build_id,
					     .build_id_size = module->build_id_size,
					     .with_inlines = true,
					     .debug_search_path = options->debug_search_path,
					     .symbol_cache_directory =
						     options->symbol_cache_directory};
	struct coverage_code_range **units = calloc(module->unit_count + 1, sizeof(void *));
	uint64_t *offsets = calloc(module->unit_count + 1, sizeof(*offsets));
	int result;

	if (!units || !offsets)
		result = problem_set(problem, -ENOMEM, "no memory for the coverage of %s",
				     module->path);
	else
		result = find_names_and_lines(coverage, module, &request, units, offsets, problem);
	free(units);
	free(offsets);
	return result;
}
