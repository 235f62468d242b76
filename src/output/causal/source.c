/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Source lines around targets. The paths come from debug information, so the files may be gone,
 * newer than the program, or no source at all: only regular files of bearable size are read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/causal/source.h"
#include "output/causal/view.h"
#include "output/format.h"
#include "output/source_file.h"

#define EXCERPT_CONTEXT_LINES      3u
#define EXCERPT_FILES_MAX          20u
#define SOURCE_LINE_BYTES_MAX      400u
#define EXCERPT_LINES_PER_FILE_MAX 2000u /* of one file */
#define SOURCE_LINE_COLUMNS_MAX    72u

/* A line that has something to be said about. */
struct annotated_line {
	const char *path;
	uint32_t line;
	double self_ns, total_ns;
	const struct causal_prediction *prediction;
};

static int compare_lines_by_path_and_number(const void *left, const void *right)
{
	const struct annotated_line *a = left, *b = right;
	int order = strcmp(a->path, b->path);

	if (order)
		return order;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->total_ns > b->total_ns ? -1 : a->total_ns < b->total_ns;
}

static const struct causal_prediction *
find_prediction_for_first_point(const struct causal_fit_result *result, uint32_t target)
{
	size_t count =
		result->prediction_count ? causal_view_count_predictions_of_point(result, 0) : 0;

	for (size_t i = 0; i < count; i++) {
		if (result->predictions[i].target == target)
			return &result->predictions[i];
	}
	return NULL;
}

/* Sorted; lines with several targets once, with the sum of their times. */
static int collect_annotated_lines(const struct causal_data *data,
				   const struct causal_fit_result *result,
				   struct annotated_line **ret, size_t *ret_count)
{
	struct causal_view_target_times *totals = causal_view_sum_target_times(data);
	struct annotated_line *marked = calloc(data->target_count + 1, sizeof(*marked));
	size_t count = 0, kept = 0;

	if (!totals || !marked) {
		free(totals);
		free(marked);
		return -ENOMEM;
	}
	for (size_t i = 0; i < data->target_count; i++) {
		const struct causal_data_target *target = &data->targets[i];

		if (!target->file || !target->line || !totals[i].total_ns)
			continue;
		marked[count++] = (struct annotated_line){
			target->file, target->line, (double)totals[i].self_ns,
			(double)totals[i].total_ns,
			find_prediction_for_first_point(result, target->id)};
	}
	free(totals);
	qsort(marked, count, sizeof(*marked), compare_lines_by_path_and_number);
	for (size_t i = 0; i < count; i++) {
		struct annotated_line *last = kept ? &marked[kept - 1] : NULL;

		if (!last || last->line != marked[i].line ||
		    strcmp(last->path, marked[i].path) != 0) {
			marked[kept++] = marked[i];
			continue;
		}
		last->self_ns += marked[i].self_ns;
		last->total_ns += marked[i].total_ns;
		if (!last->prediction)
			last->prediction = marked[i].prediction;
	}
	*ret = marked;
	*ret_count = kept;
	return 0;
}

/* ---- one file ---- */

static double compute_clamped_share_of_whole(double part, double whole)
{
	return whole > 0 && part < whole ? part / whole : whole > 0;
}

static int append_source_line(struct causal_source_file *file, const char *text, uint32_t number,
			      const struct annotated_line *marked, double whole)
{
	struct causal_source_line *line = &file->lines[file->count];
	size_t size = strcspn(text, "\n");

	*line = (struct causal_source_line){.number = number};
	line->text = strndup(text, size < SOURCE_LINE_BYTES_MAX ? size : SOURCE_LINE_BYTES_MAX);
	if (!line->text)
		return -ENOMEM;
	file->count++;
	if (!marked)
		return 0;
	line->self_share = compute_clamped_share_of_whole(marked->self_ns, whole);
	line->total_share = compute_clamped_share_of_whole(marked->total_ns, whole);
	line->prediction = marked->prediction;
	return 0;
}

static const struct annotated_line *find_annotated_line(const struct annotated_line *marked,
							size_t first, size_t count, uint32_t number)
{
	for (size_t i = first; i < count && marked[i].line <= number; i++) {
		if (marked[i].line == number)
			return &marked[i];
	}
	return NULL;
}

/* Lines near marked ones; a line without text between stretches. */
static int read_lines_near_annotated(FILE *stream, const struct annotated_line *marked,
				     size_t count, double whole, struct causal_source_file *file)
{
	uint32_t number = 0, last = 0;
	size_t capacity = 0, next = 0;
	char *text = NULL;
	int result = 0;

	/* A mark has up to 2 * CONTEXT + 1 lines, and a gap. */
	file->lines = calloc(EXCERPT_LINES_PER_FILE_MAX + 1, sizeof(*file->lines));
	if (!file->lines)
		return -ENOMEM;
	while (result == 0 && next < count && file->count < EXCERPT_LINES_PER_FILE_MAX - 1 &&
	       getline(&text, &capacity, stream) >= 0) {
		number++;
		while (next < count && marked[next].line + EXCERPT_CONTEXT_LINES < number)
			next++;
		if (next == count || number + EXCERPT_CONTEXT_LINES < marked[next].line)
			continue;
		if (last && number != last + 1)
			file->lines[file->count++] = (struct causal_source_line){0};
		last = number;
		result =
			append_source_line(file, text, number,
					   find_annotated_line(marked, next, count, number), whole);
	}
	free(text);
	return result;
}

/* ---- all files ---- */

struct annotated_lines_of_file {
	size_t first, count;
	double self_ns;
};

static int compare_files_by_self_time(const void *left, const void *right)
{
	const struct annotated_lines_of_file *a = left, *b = right;

	if (a->self_ns != b->self_ns)
		return a->self_ns > b->self_ns ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

static size_t group_annotated_lines_by_file(const struct annotated_line *marked, size_t count,
					    struct annotated_lines_of_file *files)
{
	size_t file_count = 0;

	for (size_t i = 0; i < count; i++) {
		if (i == 0 || strcmp(marked[i].path, marked[i - 1].path) != 0)
			files[file_count++] = (struct annotated_lines_of_file){.first = i};
		files[file_count - 1].count++;
		files[file_count - 1].self_ns += marked[i].self_ns;
	}
	qsort(files, file_count, sizeof(*files), compare_files_by_self_time);
	return file_count;
}

static int read_source_files(const struct annotated_line *marked,
			     const struct annotated_lines_of_file *files, size_t count,
			     double whole, struct causal_source_excerpts *source)
{
	source->files = calloc(EXCERPT_FILES_MAX, sizeof(*source->files));
	if (!source->files)
		return -ENOMEM;
	for (size_t i = 0; i < count && source->count < EXCERPT_FILES_MAX; i++) {
		struct causal_source_file *file = &source->files[source->count];
		FILE *stream = source_file_open(marked[files[i].first].path, NULL);
		int result;

		if (!stream) {
			source->missing++;
			continue;
		}
		file->path = marked[files[i].first].path;
		source->count++;
		result = read_lines_near_annotated(stream, marked + files[i].first, files[i].count,
						   whole, file);
		fclose(stream);
		if (result < 0)
			return result;
	}
	return 0;
}

int causal_source_excerpts_read(const struct causal_data *data,
				const struct causal_fit_result *result,
				struct causal_source_excerpts *ret)
{
	struct causal_source_excerpts source = {0};
	struct annotated_line *marked;
	struct annotated_lines_of_file *files;
	size_t count;
	int error = collect_annotated_lines(data, result, &marked, &count);

	if (error < 0)
		return error;
	files = calloc(count + 1, sizeof(*files));
	error = files ? read_source_files(marked, files,
					  group_annotated_lines_by_file(marked, count, files),
					  result->cpu_ns, &source)
		      : -ENOMEM;
	free(files);
	free(marked);
	if (error < 0)
		causal_source_excerpts_deinit(&source);
	else
		*ret = source;
	return error;
}

void causal_source_excerpts_deinit(struct causal_source_excerpts *source)
{
	for (size_t i = 0; i < source->count; i++) {
		for (size_t j = 0; j < source->files[i].count; j++)
			free(source->files[i].lines[j].text);
		free(source->files[i].lines);
	}
	free(source->files);
	*source = (struct causal_source_excerpts){0};
}

/* ---- text ---- */

static void print_percent_column(FILE *stream, double value)
{
	if (value > 0)
		fprintf(stream, " %6.1f", 100 * value);
	else
		fprintf(stream, " %6s", "");
}

/* Tabs as blanks: format_write_cut_to_width() would replace them. */
static void print_source_text(FILE *stream, char *text)
{
	char wide[8 * SOURCE_LINE_BYTES_MAX + 1];
	size_t size = 0;

	for (; *text; text++) {
		size_t blanks = *text == '\t' ? 8 - size % 8 : 1;

		if (size + blanks >= sizeof(wide))
			break;
		memset(wide + size, *text == '\t' ? ' ' : *text, blanks);
		size += blanks;
	}
	wide[size] = 0;
	format_write_cut_to_width(stream, wide, SOURCE_LINE_COLUMNS_MAX);
}

static void print_source_line(FILE *stream, struct causal_source_line *line)
{
	if (!line->text) {
		fprintf(stream, "  %28s\n", "...");
		return;
	}
	fputs("  ", stream);
	print_percent_column(stream, line->self_share);
	print_percent_column(stream, line->total_share);
	if (line->prediction && line->prediction->is_supported_by_data)
		fprintf(stream, " %+6.1f", line->prediction->headline_gain_percent);
	else
		fprintf(stream, " %6s", line->prediction ? "?" : "");
	fprintf(stream, "  %5" PRIu32 "  ", line->number);
	print_source_text(stream, line->text);
	putc('\n', stream);
}

int causal_source_excerpts_write(const struct causal_data *data,
				 const struct causal_fit_result *result, FILE *stream)
{
	struct causal_source_excerpts source;
	int error = causal_source_excerpts_read(data, result, &source);

	if (error < 0)
		return error;
	if (source.count)
		fputs("\n"
		      "Source: percent of CPU time (self, total), gain as in the ranking "
		      "(?: not enough data)\n",
		      stream);
	for (size_t i = 0; i < source.count; i++) {
		fputs("\n  ", stream);
		format_write_cut_to_width(stream, source.files[i].path, 98);
		fprintf(stream, "\n  %7s%7s%7s\n", "self", "total", "gain");
		for (size_t j = 0; j < source.files[i].count; j++)
			print_source_line(stream, &source.files[i].lines[j]);
	}
	causal_source_excerpts_deinit(&source);
	return 0;
}
