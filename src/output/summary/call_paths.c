/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The heaviest call paths: the program's functions, what its libraries did at the inner end by the
 * leaf alone. Where a path does not fit, frames of libraries are left out first, then the outermost
 * ones of the program.
 */
#include <errno.h>
#include <stdlib.h>

#include "output/call_paths.h"
#include "output/code_origin.h"
#include "output/format.h"
#include "output/summary/private.h"

struct ranked_call_path {
	uint64_t self;
	uint32_t path;
};

static int compare_call_paths_by_self_weight(const void *left, const void *right)
{
	const struct ranked_call_path *a = left, *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	return a->path < b->path ? -1 : a->path > b->path;
}

/* The innermost frames of a path, innermost first. */
#define SHOWN_FRAMES_MAX 64
#define ELLIPSIS         "..."
#define SEPARATOR        " > "

struct shown_path {
	uint32_t frames[SHOWN_FRAMES_MAX];
	bool is_shown[SHOWN_FRAMES_MAX];
	size_t count, column_limit; /* of one name */
	size_t leaf_column_limit;   /* of the leaf's, which tells most where it is the program's */
	bool is_cut;                /* there are more frames outside */
};

static size_t count_name_columns(const struct session *session, const struct shown_path *path,
				 size_t index)
{
	size_t columns = format_count_text_columns(session->frames[path->frames[index]].function);

	size_t limit = index ? path->column_limit : path->leaf_column_limit;

	return columns > limit ? limit : columns;
}

/* An ellipsis stands for each run of frames that are left out. */
static size_t count_path_columns(const struct session *session, const struct shown_path *path)
{
	bool is_gap = path->is_cut;
	size_t columns = 0;

	for (size_t i = path->count; i-- > 0;) {
		if (!path->is_shown[i]) {
			is_gap = true;
			continue;
		}
		columns += is_gap ? sizeof(ELLIPSIS SEPARATOR) - 1 : 0;
		columns += count_name_columns(session, path, i) + (i ? sizeof(SEPARATOR) - 1 : 0);
		is_gap = false;
	}
	return columns;
}

/* Leaves out frames, outermost first, until the others fit: of libraries, then any. The leaf stays,
 * and the program's innermost function as long as anything else can go. */
static void fit_path(const struct session *session, const struct code_origins *origins,
		     struct shown_path *path, size_t width)
{
	size_t own = 0;

	while (own < path->count && code_origins_get(origins, path->frames[own]) != CODE_OF_PROGRAM)
		own++;
	for (unsigned pass = 0; pass < 3; pass++) {
		for (size_t i = path->count;
		     i-- > 1 && count_path_columns(session, path) > width;) {
			bool is_library =
				code_origins_get(origins, path->frames[i]) != CODE_OF_PROGRAM;

			path->is_shown[i] &= !((pass == 0 && is_library) ||
					       (pass == 1 && i != own) || pass == 2);
		}
	}
}

static void write_shown_path(const struct summary_writer *summary, const struct shown_path *path)
{
	bool is_gap = path->is_cut;

	for (size_t i = path->count; i-- > 0;) {
		if (!path->is_shown[i]) {
			is_gap = true;
			continue;
		}
		if (is_gap)
			fputs(ELLIPSIS SEPARATOR, summary->stream);
		is_gap = false;
		format_write_cut_to_width(summary->stream,
					  summary->session->frames[path->frames[i]].function,
					  i ? path->column_limit : path->leaf_column_limit);
		fputs(i ? SEPARATOR : "\n", summary->stream);
	}
}

static void write_call_path(const struct summary_writer *summary,
			    const struct code_origins *origins, const struct call_paths *paths,
			    uint32_t path, size_t width)
{
	struct shown_path shown = {.column_limit = width / 3 > 12 ? width / 3 : 12};

	for (; path != MODEL_ENTRY_INDEX_NONE && shown.count < SHOWN_FRAMES_MAX;
	     path = paths->paths[path].caller_path_index) {
		shown.is_shown[shown.count] = true;
		shown.frames[shown.count++] = paths->paths[path].frame;
	}
	shown.leaf_column_limit = shown.column_limit;
	if (width > 40 || code_origins_get(origins, shown.frames[0]) == CODE_OF_PROGRAM)
		shown.leaf_column_limit = width - (sizeof(ELLIPSIS SEPARATOR) - 1);
	shown.is_cut = path != MODEL_ENTRY_INDEX_NONE;
	fit_path(summary->session, origins, &shown, width);
	write_shown_path(summary, &shown);
}

static size_t collect_and_rank_call_paths(const struct session *session,
					  const struct call_paths *paths,
					  struct ranked_call_path *list)
{
	size_t count = 0;

	for (uint32_t i = 0; i < paths->count; i++) {
		const struct call_path *path = &paths->paths[i];

		if (path->self && session->frames[path->frame].kind != FRAME_SYNTHETIC)
			list[count++] = (struct ranked_call_path){path->self, i};
	}
	if (count > 1)
		qsort(list, count, sizeof(*list), compare_call_paths_by_self_weight);
	return count;
}

static int write_call_path_table(const struct summary_writer *summary,
				 const struct code_origins *origins, const struct call_paths *paths)
{
	struct ranked_call_path *list = calloc((size_t)paths->count + 1, sizeof(*list));
	size_t count;

	if (!list)
		return -ENOMEM;
	count = collect_and_rank_call_paths(summary->session, paths, list);
	if (count)
		summary_write_heading(
			summary, "Heaviest call paths (caller > callee; recursion shown once)");
	for (size_t i = 0; i < count && i < summary->top; i++) {
		size_t columns = summary_write_cells(
			summary,
			(const struct summary_cell[]){
				{quantity_from_share(list[i].self, paths->total).text, 10, 0},
				{quantity_from_measure(list[i].self, summary->measure).text, 10,
				 1}},
			2);

		write_call_path(summary, origins, paths, list[i].path, columns);
	}
	free(list);
	return 0;
}

int summary_write_call_paths(const struct summary_writer *summary)
{
	struct code_origins origins = {0};
	struct call_paths paths;
	int result = call_paths_build(&paths, summary->session, summary->measure);

	if (result < 0)
		return result;
	result = code_origins_create(summary->session, &origins);
	if (result == 0)
		result = write_call_path_table(summary, &origins, &paths);
	code_origins_destroy(&origins);
	call_paths_deinit(&paths);
	return result;
}
