/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See coverage.h: the units and lines of all modules by source file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "output/coverage.h"

int coverage_of(struct session *session, const struct output_options *options, struct coverage *ret,
		struct problem *problem)
{
	struct session **sessions = calloc(options->other_count + 1, sizeof(void *));
	int result;

	if (!sessions)
		return problem_set(problem, -ENOMEM, "out of memory");
	sessions[0] = session;
	for (size_t i = 0; i < options->other_count; i++)
		sessions[i + 1] = options->others[i];
	result = coverage_make(sessions, options->other_count + 1, ret, problem);
	free(sessions);
	if (result < 0 || ret->functions.total + ret->blocks.total)
		return result;
	coverage_deinit(ret);
	return problem_set(problem, -ENODATA,
			   "no function was instrumented in this run, so nothing is known of "
			   "coverage (kymo instrument --coverage function)");
}

/* Unknown files last; equal paths are equal pointers. */
static int compare_paths(const char *a, const char *b)
{
	if (a == b)
		return 0;
	if (!a || !b)
		return a ? -1 : 1;
	return strcmp(a, b);
}

static int by_file_line_name(const void *left, const void *right)
{
	const struct coverage_unit *a = *(const struct coverage_unit *const *)left;
	const struct coverage_unit *b = *(const struct coverage_unit *const *)right;
	int files = compare_paths(a->file, b->file);

	if (files)
		return files;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->block != b->block)
		return a->block ? 1 : -1;
	return strcmp(a->function, b->function);
}

static int by_file_line(const void *left, const void *right)
{
	const struct coverage_line *a = *(const struct coverage_line *const *)left;
	const struct coverage_line *b = *(const struct coverage_line *const *)right;
	int files = compare_paths(a->file, b->file);

	if (files)
		return files;
	return a->line < b->line ? -1 : a->line > b->line;
}

static void add(struct coverage_share *share, bool covered)
{
	share->total++;
	share->covered += covered;
}

static int file_add(struct coverage_files *files, size_t *capacity, const char *path)
{
	if (array_reserve((void **)&files->files, capacity, files->count, sizeof(*files->files)) <
	    0)
		return -ENOMEM;
	files->files[files->count++] = (struct coverage_file){.path = path};
	return 0;
}

/* Both lists are sorted by file: a file is a stretch of each. */
static int cut(struct coverage_files *files, size_t unit_count, size_t line_count)
{
	size_t capacity = 0, unit = 0, line = 0;

	while (unit < unit_count || line < line_count) {
		const char *path = unit < unit_count ? files->units[unit]->file : NULL;
		struct coverage_file *file;

		if (line < line_count &&
		    (unit == unit_count || compare_paths(files->lines[line]->file, path) < 0))
			path = files->lines[line]->file;
		if (file_add(files, &capacity, path) < 0)
			return -ENOMEM;
		file = &files->files[files->count - 1];
		file->units = files->units + unit;
		file->lines = files->lines + line;
		for (; unit < unit_count && files->units[unit]->file == path; unit++) {
			add(files->units[unit]->block ? &file->blocks : &file->functions,
			    files->units[unit]->calls > 0);
			file->unit_count++;
		}
		for (; line < line_count && files->lines[line]->file == path; line++) {
			add(&file->code_lines, files->lines[line]->count > 0);
			file->line_count++;
		}
	}
	return 0;
}

int coverage_files_make(const struct coverage *coverage, struct coverage_files *ret)
{
	struct coverage_files files = {0};
	size_t units = 0, lines = 0;
	int result = -ENOMEM;

	for (size_t i = 0; i < coverage->module_count; i++) {
		units += coverage->modules[i].unit_count;
		lines += coverage->modules[i].line_count;
	}
	files.units = calloc(units + 1, sizeof(void *));
	files.lines = calloc(lines + 1, sizeof(void *));
	units = lines = 0;
	if (files.units && files.lines) {
		for (size_t i = 0; i < coverage->module_count; i++) {
			const struct coverage_module *module = &coverage->modules[i];

			for (size_t k = 0; k < module->unit_count; k++)
				files.units[units++] = &module->units[k];
			for (size_t k = 0; k < module->line_count; k++)
				files.lines[lines++] = &module->lines[k];
		}
		qsort(files.units, units, sizeof(void *), by_file_line_name);
		qsort(files.lines, lines, sizeof(void *), by_file_line);
		result = cut(&files, units, lines);
	}
	if (result < 0)
		coverage_files_deinit(&files);
	else
		*ret = files;
	return result;
}

void coverage_files_deinit(struct coverage_files *files)
{
	free(files->files);
	free(files->units);
	free(files->lines);
	*files = (struct coverage_files){0};
}
