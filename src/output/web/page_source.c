/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Source lines with what was spent in them, for files that can be read when the page is written:
 * those with the heaviest lines, and of them the lines around each that has a cost. Names of files
 * come from the program, so only names of source files are opened.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "output/annotate/line_costs.h"
#include "output/source_file.h"
#include "output/web/parts.h"

#define FILES_MAX          40u
#define FILES_TRIED_MAX    400u
#define CONTEXT_LINES      5u
#define LINES_OF_FILE_MAX  1500u
#define LINES_MAX          12000u
#define TEXT_OF_LINE_BYTES 300u

struct excerpt {
	uint32_t numbers[LINES_OF_FILE_MAX]; /* 0: lines are left out here */
	int64_t texts[LINES_OF_FILE_MAX];
	size_t count;
};

struct source_lines {
	struct page_writer *page;
	struct line_costs costs;
	size_t written_files, written_lines, unreadable, left_out;
	struct excerpt excerpt; /* in progress */
};

/* ---- which files ---- */

struct ranked_file {
	uint64_t heaviest;
	uint32_t path;
	size_t first, count; /* of its lines, sorted */
};

static uint64_t get_heaviness(const struct line_cost *line)
{
	uint64_t sum = 0;

	for (int i = 0; i < MODEL_SOURCE_COUNT; i++)
		sum += line->total[i];
	return sum;
}

static int compare_files_by_heaviest(const void *left, const void *right)
{
	const struct ranked_file *a = left, *b = right;

	if (a->heaviest != b->heaviest)
		return a->heaviest > b->heaviest ? -1 : 1;
	return a->path < b->path ? -1 : a->path > b->path;
}

static struct ranked_file *rank_files(struct source_lines *source, size_t *ret_count)
{
	struct ranked_file *files = calloc((size_t)source->costs.count + 1, sizeof(*files));
	size_t count = 0;

	if (files == NULL)
		return NULL;
	line_costs_sort_by_place(&source->costs);
	for (uint32_t i = 0; i < source->costs.count; i++) {
		uint64_t heaviness = get_heaviness(&source->costs.lines[i]);
		if (heaviness == 0)
			continue;
		if (count == 0 || files[count - 1].path != source->costs.lines[i].path)
			files[count++] = (struct ranked_file){.path = source->costs.lines[i].path,
							      .first = i};
		files[count - 1].count = i + 1 - files[count - 1].first;
		if (heaviness > files[count - 1].heaviest)
			files[count - 1].heaviest = heaviness;
	}
	qsort(files, count, sizeof(*files), compare_files_by_heaviest);
	*ret_count = count;
	return files;
}

/* ---- writing ---- */

static void append_line(struct source_lines *source, struct excerpt *excerpt, uint32_t number,
			char *text)
{
	size_t size = text != NULL ? strcspn(text, "\r\n") : 0;

	if (text != NULL)
		text[size < TEXT_OF_LINE_BYTES ? size : TEXT_OF_LINE_BYTES] = 0;
	excerpt->numbers[excerpt->count] = number;
	excerpt->texts[excerpt->count++] = page_get_string_number(source->page, text);
}

static void read_excerpt(struct source_lines *source, const struct ranked_file *file, FILE *stream,
			 struct excerpt *excerpt)
{
	const struct line_cost *lines = source->costs.lines + file->first;
	_cleanup_(cleanup_free) char *text = NULL;
	size_t capacity = 0, next = 0;
	uint32_t number = 0, last = 0;

	excerpt->count = 0;
	while (excerpt->count + 2 < LINES_OF_FILE_MAX && getline(&text, &capacity, stream) >= 0) {
		number++;
		while (next < file->count && (lines[next].number + CONTEXT_LINES < number ||
					      get_heaviness(&lines[next]) == 0))
			next++;
		if (next == file->count)
			break;
		if (number + CONTEXT_LINES < lines[next].number)
			continue;
		if (last != 0 && number != last + 1)
			append_line(source, excerpt, 0, NULL);
		append_line(source, excerpt, number, text);
		last = number;
	}
}

/* [place in the excerpt, column, self, total]; source is by number, as the excerpt is. */
static void write_costs(struct source_lines *source, const struct ranked_file *file,
			const struct excerpt *excerpt)
{
	FILE *stream = source->page->stream;
	size_t at = 0, written = 0;

	page_put_key(stream, "costs");
	putc('[', stream);
	for (size_t i = 0; i < file->count; i++) {
		const struct line_cost *line = &source->costs.lines[file->first + i];
		while (at < excerpt->count && excerpt->numbers[at] < line->number)
			at++;
		if (at == excerpt->count || excerpt->numbers[at] != line->number)
			continue;
		for (unsigned k = 0; k < MODEL_SOURCE_COUNT; k++) {
			if (line->total[k] == 0)
				continue;
			page_put_comma_unless_first(stream, written++);
			fprintf(stream, "[%zu,%u,%" PRIu64 ",%" PRIu64 "]", at,
				page_get_column_position(source->page, 2 * k), line->self[k],
				line->total[k]);
		}
	}
	putc(']', stream);
}

static void write_file(struct source_lines *source, const struct ranked_file *file,
		       const struct excerpt *excerpt, const struct stat *status)
{
	struct page_writer *page = source->page;
	int64_t start_s =
		((int64_t)page->session->start_ns + page->session->realtime_minus_boottime_ns) /
		1000000000;

	page_put_comma_unless_first(page->stream, source->written_files++);
	fprintf(page->stream, "{\"path\":%" PRId64 ",\"changed\":%s,\"line\":[",
		page_get_string_number(page, source->costs.paths.text[file->path]),
		status->st_mtime > start_s ? "true" : "false");
	for (size_t i = 0; i < excerpt->count; i++)
		fprintf(page->stream, "%s%" PRIu32, i == 0 ? "" : ",", excerpt->numbers[i]);
	fputs("],\"text\":[", page->stream);
	for (size_t i = 0; i < excerpt->count; i++)
		fprintf(page->stream, "%s%" PRId64, i == 0 ? "" : ",", excerpt->texts[i]);
	fputs("],", page->stream);
	write_costs(source, file, excerpt);
	putc('}', page->stream);
	source->written_lines += excerpt->count;
}

static int write_files(struct source_lines *source)
{
	struct excerpt *excerpt = &source->excerpt;
	size_t count = 0;
	struct ranked_file *files = rank_files(source, &count);

	if (files == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const char *path = source->costs.paths.text[files[i].path];
		struct stat status;
		if (i >= FILES_TRIED_MAX || source->written_files == FILES_MAX ||
		    source->written_lines + LINES_OF_FILE_MAX > LINES_MAX) {
			source->left_out++;
			continue;
		}
		FILE *stream =
			source_file_has_source_name(path) ? source_file_open(path, &status) : NULL;
		if (stream == NULL) {
			source->unreadable++;
			continue;
		}
		read_excerpt(source, &files[i], stream, excerpt);
		fclose(stream);
		if (excerpt->count != 0)
			write_file(source, &files[i], excerpt, &status);
	}
	free(files);
	return 0;
}

int page_write_source(struct page_writer *page)
{
	struct source_lines source = {.page = page};
	int error;

	error = line_costs_init(&source.costs, page->session, MODEL_ENTRY_INDEX_NONE);
	page_put_key(page->stream, "source");
	fputs("{\"files\":[", page->stream);
	if (error == 0)
		error = write_files(&source);
	fprintf(page->stream, "],\"unreadable\":%zu,\"left_out\":%zu},", source.unreadable,
		source.left_out);
	line_costs_deinit(&source.costs);
	return error;
}
