/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See coverage.h: the units and lines of all modules by source file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "output/coverage/coverage.h"

int coverage_compute_over_sessions(struct session *session, const struct output_options *options,
				   struct coverage *ret, struct problem *problem)
{
	struct session **sessions = calloc(options->other_session_count + 1, sizeof(void *));
	int result;

	if (!sessions)
		return problem_set(problem, -ENOMEM, "out of memory");
	sessions[0] = session;
	for (size_t i = 0; i < options->other_session_count; i++)
		sessions[i + 1] = options->other_sessions[i];
	result = coverage_compute(sessions, options->other_session_count + 1, ret, problem);
	free(sessions);
	if (result < 0 || ret->functions.total_count + ret->blocks.total_count)
		return result;
	coverage_deinit(ret);
	return problem_set(problem, -ENODATA,
			   "no function was instrumented in this run, so nothing is known of "
			   "coverage (kymo instrument --coverage function)");
}

/* Unknown files last; equal paths are equal pointers. */
static int compare_paths_null_last(const char *a, const char *b)
{
	if (a == b)
		return 0;
	if (!a || !b)
		return a ? -1 : 1;
	return strcmp(a, b);
}

static int compare_code_ranges_by_file_and_line(const void *left, const void *right)
{
	const struct coverage_code_range *a = *(const struct coverage_code_range *const *)left;
	const struct coverage_code_range *b = *(const struct coverage_code_range *const *)right;
	int files = compare_paths_null_last(a->file, b->file);

	if (files)
		return files;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->block != b->block)
		return a->block ? 1 : -1;
	return strcmp(a->function, b->function);
}

static int compare_lines_by_file_and_line(const void *left, const void *right)
{
	const struct coverage_line *a = *(const struct coverage_line *const *)left;
	const struct coverage_line *b = *(const struct coverage_line *const *)right;
	int files = compare_paths_null_last(a->file, b->file);

	if (files)
		return files;
	return a->line < b->line ? -1 : a->line > b->line;
}

static void count_one_in_coverage_share(struct coverage_share_counts *share, bool covered)
{
	share->total_count++;
	share->covered_count += covered;
}

static int append_source_file(struct coverage_source_files *files, size_t *capacity,
			      const char *path)
{
	if (array_reserve_one_more((void **)&files->files, capacity, files->count,
				   sizeof(*files->files)) < 0)
		return -ENOMEM;
	files->files[files->count++] = (struct coverage_source_file){.path = path};
	return 0;
}

/* Both lists are sorted by file: a file is a stretch of each. */
static int assign_code_ranges_and_lines_to_files(struct coverage_source_files *files,
						 size_t unit_count, size_t line_count)
{
	size_t capacity = 0, unit = 0, line = 0;

	while (unit < unit_count || line < line_count) {
		const char *path = unit < unit_count ? files->code_ranges[unit]->file : NULL;
		struct coverage_source_file *file;

		if (line < line_count &&
		    (unit == unit_count ||
		     compare_paths_null_last(files->lines[line]->file, path) < 0))
			path = files->lines[line]->file;
		if (append_source_file(files, &capacity, path) < 0)
			return -ENOMEM;
		file = &files->files[files->count - 1];
		file->code_ranges = files->code_ranges + unit;
		file->lines = files->lines + line;
		for (; unit < unit_count && files->code_ranges[unit]->file == path; unit++) {
			count_one_in_coverage_share(files->code_ranges[unit]->block
							    ? &file->block_counts
							    : &file->function_counts,
						    files->code_ranges[unit]->calls > 0);
			file->code_range_count++;
		}
		for (; line < line_count && files->lines[line]->file == path; line++) {
			count_one_in_coverage_share(&file->code_line_counts,
						    files->lines[line]->count > 0);
			file->line_count++;
		}
	}
	return 0;
}

int coverage_source_files_build(const struct coverage *coverage, struct coverage_source_files *ret)
{
	struct coverage_source_files files = {0};
	size_t units = 0, lines = 0;
	int result = -ENOMEM;

	for (size_t i = 0; i < coverage->module_count; i++) {
		units += coverage->modules[i].unit_count;
		lines += coverage->modules[i].line_count;
	}
	files.code_ranges = calloc(units + 1, sizeof(void *));
	files.lines = calloc(lines + 1, sizeof(void *));
	units = lines = 0;
	if (files.code_ranges && files.lines) {
		for (size_t i = 0; i < coverage->module_count; i++) {
			const struct coverage_module *module = &coverage->modules[i];

			for (size_t k = 0; k < module->unit_count; k++)
				files.code_ranges[units++] = &module->units[k];
			for (size_t k = 0; k < module->line_count; k++)
				files.lines[lines++] = &module->lines[k];
		}
		qsort(files.code_ranges, units, sizeof(void *),
		      compare_code_ranges_by_file_and_line);
		qsort(files.lines, lines, sizeof(void *), compare_lines_by_file_and_line);
		result = assign_code_ranges_and_lines_to_files(&files, units, lines);
	}
	if (result < 0)
		coverage_source_files_deinit(&files);
	else
		*ret = files;
	return result;
}

void coverage_source_files_deinit(struct coverage_source_files *files)
{
	free(files->files);
	free(files->code_ranges);
	free(files->lines);
	*files = (struct coverage_source_files){0};
}
