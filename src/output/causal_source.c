/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Source lines around targets. The paths come from debug information, so the files may be gone,
 * newer than the program, or no source at all: only regular files of bearable size are read.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/causal_source.h"
#include "output/causal_view.h"
#include "output/format.h"

#define CONTEXT    3u
#define FILES      20u
#define FILE_LIMIT (16 << 20)
#define TEXT_LIMIT 400u
#define LINES      2000u /* of one file */
#define TEXT_WIDTH 72u

/* A line that has something to be said about. */
struct marked {
	const char *path;
	uint32_t line;
	double self_ns, total_ns;
	const struct causal_prediction *prediction;
};

static int by_path_and_line(const void *left, const void *right)
{
	const struct marked *a = left, *b = right;
	int order = strcmp(a->path, b->path);

	if (order)
		return order;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->total_ns > b->total_ns ? -1 : a->total_ns < b->total_ns;
}

static const struct causal_prediction *find_prediction(const struct causal_result *result,
						       uint32_t target)
{
	size_t count = result->prediction_count ? causal_view_same_point(result, 0) : 0;

	for (size_t i = 0; i < count; i++) {
		if (result->predictions[i].target == target)
			return &result->predictions[i];
	}
	return NULL;
}

/* Sorted; lines with several targets once, with the sum of their times. */
static int find_marked(const struct causal_data *data, const struct causal_result *result,
		       struct marked **ret, size_t *ret_count)
{
	struct causal_view_total *totals = causal_view_totals(data);
	struct marked *marked = calloc(data->target_count + 1, sizeof(*marked));
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
		marked[count++] = (struct marked){
			target->file, target->line, (double)totals[i].self_ns,
			(double)totals[i].total_ns, find_prediction(result, target->id)};
	}
	free(totals);
	qsort(marked, count, sizeof(*marked), by_path_and_line);
	for (size_t i = 0; i < count; i++) {
		struct marked *last = kept ? &marked[kept - 1] : NULL;

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

static FILE *open_source(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	FILE *stream;

	if (file < 0)
		return NULL;
	if (fstat(file, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > FILE_LIMIT) {
		close(file);
		return NULL;
	}
	stream = fdopen(file, "r");
	if (!stream)
		close(file);
	return stream;
}

static double share(double part, double whole)
{
	return whole > 0 && part < whole ? part / whole : whole > 0;
}

static int keep_line(struct causal_source_file *file, const char *text, uint32_t number,
		     const struct marked *marked, double whole)
{
	struct causal_source_line *line = &file->lines[file->count];
	size_t size = strcspn(text, "\n");

	*line = (struct causal_source_line){.number = number};
	line->text = strndup(text, size < TEXT_LIMIT ? size : TEXT_LIMIT);
	if (!line->text)
		return -ENOMEM;
	file->count++;
	if (!marked)
		return 0;
	line->self_share = share(marked->self_ns, whole);
	line->total_share = share(marked->total_ns, whole);
	line->prediction = marked->prediction;
	return 0;
}

static const struct marked *mark_at(const struct marked *marked, size_t first, size_t count,
				    uint32_t number)
{
	for (size_t i = first; i < count && marked[i].line <= number; i++) {
		if (marked[i].line == number)
			return &marked[i];
	}
	return NULL;
}

/* Lines near marked ones; a line without text between stretches. */
static int read_lines(FILE *stream, const struct marked *marked, size_t count, double whole,
		      struct causal_source_file *file)
{
	uint32_t number = 0, last = 0;
	size_t capacity = 0, next = 0;
	char *text = NULL;
	int result = 0;

	/* A mark has up to 2 * CONTEXT + 1 lines, and a gap. */
	file->lines = calloc(LINES + 1, sizeof(*file->lines));
	if (!file->lines)
		return -ENOMEM;
	while (result == 0 && next < count && file->count < LINES - 1 &&
	       getline(&text, &capacity, stream) >= 0) {
		number++;
		while (next < count && marked[next].line + CONTEXT < number)
			next++;
		if (next == count || number + CONTEXT < marked[next].line)
			continue;
		if (last && number != last + 1)
			file->lines[file->count++] = (struct causal_source_line){0};
		last = number;
		result = keep_line(file, text, number, mark_at(marked, next, count, number), whole);
	}
	free(text);
	return result;
}

/* ---- all files ---- */

struct stretch {
	size_t first, count;
	double self_ns;
};

static int heavy_first(const void *left, const void *right)
{
	const struct stretch *a = left, *b = right;

	if (a->self_ns != b->self_ns)
		return a->self_ns > b->self_ns ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

static size_t cut_files(const struct marked *marked, size_t count, struct stretch *files)
{
	size_t file_count = 0;

	for (size_t i = 0; i < count; i++) {
		if (i == 0 || strcmp(marked[i].path, marked[i - 1].path) != 0)
			files[file_count++] = (struct stretch){.first = i};
		files[file_count - 1].count++;
		files[file_count - 1].self_ns += marked[i].self_ns;
	}
	qsort(files, file_count, sizeof(*files), heavy_first);
	return file_count;
}

static int read_files(const struct marked *marked, const struct stretch *files, size_t count,
		      double whole, struct causal_source *source)
{
	source->files = calloc(FILES, sizeof(*source->files));
	if (!source->files)
		return -ENOMEM;
	for (size_t i = 0; i < count && source->count < FILES; i++) {
		struct causal_source_file *file = &source->files[source->count];
		FILE *stream = open_source(marked[files[i].first].path);
		int result;

		if (!stream) {
			source->missing++;
			continue;
		}
		file->path = marked[files[i].first].path;
		source->count++;
		result = read_lines(stream, marked + files[i].first, files[i].count, whole, file);
		fclose(stream);
		if (result < 0)
			return result;
	}
	return 0;
}

int causal_source_make(const struct causal_data *data, const struct causal_result *result,
		       struct causal_source *ret)
{
	struct causal_source source = {0};
	struct marked *marked;
	struct stretch *files;
	size_t count;
	int error = find_marked(data, result, &marked, &count);

	if (error < 0)
		return error;
	files = calloc(count + 1, sizeof(*files));
	error = files ? read_files(marked, files, cut_files(marked, count, files), result->cpu_ns,
				   &source)
		      : -ENOMEM;
	free(files);
	free(marked);
	if (error < 0)
		causal_source_deinit(&source);
	else
		*ret = source;
	return error;
}

void causal_source_deinit(struct causal_source *source)
{
	for (size_t i = 0; i < source->count; i++) {
		for (size_t j = 0; j < source->files[i].count; j++)
			free(source->files[i].lines[j].text);
		free(source->files[i].lines);
	}
	free(source->files);
	*source = (struct causal_source){0};
}

/* ---- text ---- */

static void put_share(FILE *stream, double value)
{
	if (value > 0)
		fprintf(stream, " %6.1f", 100 * value);
	else
		fprintf(stream, " %6s", "");
}

/* Tabs as blanks: format_limited() would replace them. */
static void put_source(FILE *stream, char *text)
{
	char wide[8 * TEXT_LIMIT + 1];
	size_t size = 0;

	for (; *text; text++) {
		size_t blanks = *text == '\t' ? 8 - size % 8 : 1;

		if (size + blanks >= sizeof(wide))
			break;
		memset(wide + size, *text == '\t' ? ' ' : *text, blanks);
		size += blanks;
	}
	wide[size] = 0;
	format_limited(stream, wide, TEXT_WIDTH);
}

static void put_line(FILE *stream, struct causal_source_line *line)
{
	if (!line->text) {
		fprintf(stream, "  %28s\n", "...");
		return;
	}
	fputs("  ", stream);
	put_share(stream, line->self_share);
	put_share(stream, line->total_share);
	if (line->prediction && line->prediction->ranked)
		fprintf(stream, " %+6.1f", line->prediction->best_percent);
	else
		fprintf(stream, " %6s", line->prediction ? "?" : "");
	fprintf(stream, "  %5" PRIu32 "  ", line->number);
	put_source(stream, line->text);
	putc('\n', stream);
}

int causal_source_text(const struct causal_data *data, const struct causal_result *result,
		       FILE *stream)
{
	struct causal_source source;
	int error = causal_source_make(data, result, &source);

	if (error < 0)
		return error;
	if (source.count)
		fputs("\nSource: percent of CPU time itself and in all, gain where it takes no "
		      "time (?: not known well enough)\n",
		      stream);
	for (size_t i = 0; i < source.count; i++) {
		fputs("\n  ", stream);
		format_limited(stream, source.files[i].path, 98);
		fprintf(stream, "\n  %7s%7s%7s\n", "itself", "in all", "gain");
		for (size_t j = 0; j < source.files[i].count; j++)
			put_line(stream, &source.files[i].lines[j]);
	}
	causal_source_deinit(&source);
	return 0;
}
