/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The source lines of an annotation: those with a cost, and the lines around them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "output/annotate/annotate.h"
#include "output/annotate/line_costs.h"
#include "output/source_file.h"

#define LINES_MAX          20000u
#define TEXT_OF_LINE_BYTES 1000u

struct source_reader {
	struct annotation *annotation;
	struct annotated_source *source;
	const struct line_cost *costs;
	size_t count;
	FILE *stream;
	struct stat status;
	int error; /* why the first file that is there cannot be read */
};

static uint64_t get_value(const struct source_reader *reader, const uint64_t *by_source)
{
	return view_sum_sources_of_measure(by_source, reader->annotation->options->measure);
}

static bool has_cost(const struct source_reader *reader, const struct line_cost *line)
{
	return get_value(reader, line->total) != 0 || get_value(reader, line->self) != 0;
}

static bool open_source(const char *path, void *context)
{
	struct source_reader *reader = context;

	if (!source_file_has_source_name(path))
		return false;
	reader->stream = source_file_open(path, &reader->status);
	if (reader->stream != NULL)
		return true;
	if (reader->error == 0 && errno != ENOENT && errno != ENOTDIR)
		reader->error = errno;
	return false;
}

static const char *get_reason_of_refusal(int error)
{
	switch (error) {
	case EACCES:
		return "not everybody may read the file";
	case EFBIG:
		return "the file is larger than 16 MiB";
	case EISDIR:
	case ENODEV:
		return "not a regular file";
	default:
		return strerror(error);
	}
}

static const char *describe_missing_source(const struct source_reader *reader, const char *path,
					   const char *tried)
{
	struct arena *arena = &reader->annotation->arena;

	if (!source_file_has_source_name(path))
		return arena_format_text(arena, "this is no name of a source file: %s", path);
	return arena_format_text(arena,
				 "no source that can be read%s%s%s; looked for %s (--debug-path "
				 "names directories to look below)",
				 reader->error != 0 ? " (" : "",
				 reader->error != 0 ? get_reason_of_refusal(reader->error) : "",
				 reader->error != 0 ? ")" : "", tried);
}

static int add_line(struct source_reader *reader, uint32_t number, char *text,
		    const struct line_cost *cost)
{
	struct annotated_source *source = reader->source;

	if (array_reserve_one_more((void **)&source->lines, &source->capacity, source->count,
				   sizeof(*source->lines)) != 0)
		return -ENOMEM;
	struct annotated_line *line = &source->lines[source->count];
	*line = (struct annotated_line){
		.number = number,
		.follows_gap = source->count != 0 &&
			       source->lines[source->count - 1].number + 1 != number};
	if (cost != NULL && cost->number == number) {
		line->self = get_value(reader, cost->self);
		line->total = get_value(reader, cost->total);
	}
	if (text != NULL) {
		size_t size = strcspn(text, "\r\n");
		line->text =
			arena_copy_bytes(&reader->annotation->arena, text,
					 size < TEXT_OF_LINE_BYTES ? size : TEXT_OF_LINE_BYTES);
		if (line->text == NULL)
			return -ENOMEM;
	}
	source->count++;
	return 0;
}

/* Lines with a cost never go missing: those that the file does not have come without text. */
static int read_lines(struct source_reader *reader)
{
	_cleanup_(cleanup_free) char *text = NULL;
	size_t capacity = 0, next = 0, context = reader->annotation->options->context;
	uint32_t number = 0, last_cost = 0;
	int error = 0;

	while (error == 0 && reader->stream != NULL && reader->source->count < LINES_MAX &&
	       getline(&text, &capacity, reader->stream) >= 0) {
		number++;
		while (next < reader->count && (reader->costs[next].number < number ||
						!has_cost(reader, &reader->costs[next])))
			next++;
		bool is_near_next =
			next < reader->count && number + context >= reader->costs[next].number;
		bool is_near_last = last_cost != 0 && number <= last_cost + context;
		if (next == reader->count && !is_near_last)
			break;
		if (next < reader->count && reader->costs[next].number == number)
			last_cost = number;
		if (is_near_next || is_near_last)
			error = add_line(reader, number, text,
					 next < reader->count ? &reader->costs[next] : NULL);
	}
	for (size_t i = 0; error == 0 && i < reader->count; i++) {
		if (has_cost(reader, &reader->costs[i]) && reader->costs[i].number > last_cost)
			error = add_line(reader, reader->costs[i].number, NULL, &reader->costs[i]);
	}
	return error;
}

static const char *find_doubt(const struct source_reader *reader)
{
	const struct session *session = reader->annotation->session;
	int64_t start_s =
		((int64_t)session->start_ns + session->realtime_minus_boottime_ns) / 1000000000;
	const struct annotated_source *source = reader->source;

	if (reader->status.st_mtime > start_s)
		return "the file has changed since the run began: costs may stand beside other "
		       "lines";
	if (source->count != 0 && source->lines[source->count - 1].text == NULL)
		return "the file has fewer lines than the program was built from";
	return NULL;
}

static int add_source(struct annotation *annotation, const char *path,
		      const struct line_cost *costs, size_t count)
{
	struct source_reader reader = {.annotation = annotation, .costs = costs, .count = count};
	const char *tried;

	if (array_reserve_one_more((void **)&annotation->sources, &annotation->source_capacity,
				   annotation->source_count, sizeof(*annotation->sources)) != 0)
		return -ENOMEM;
	reader.source = &annotation->sources[annotation->source_count++];
	*reader.source = (struct annotated_source){.path = path};
	int error = annotation_try_places(annotation, path, open_source, &reader,
					  &reader.source->found, &tried);
	if (error == 0)
		error = read_lines(&reader);
	if (reader.stream != NULL) {
		fclose(reader.stream);
		reader.source->problem = find_doubt(&reader);
	} else if (error == 0) {
		reader.source->problem = describe_missing_source(&reader, path, tried);
		error = reader.source->problem == NULL ? -ENOMEM : 0;
	}
	return error;
}

static bool has_any_cost(const struct annotation *annotation, const struct line_cost *lines,
			 size_t count)
{
	struct source_reader reader = {.annotation = (struct annotation *)annotation};

	for (size_t i = 0; i < count; i++) {
		if (has_cost(&reader, &lines[i]))
			return true;
	}
	return false;
}

int annotation_add_sources(struct annotation *annotation)
{
	struct line_costs costs;
	int error = line_costs_init(&costs, annotation->session, annotation->function.function_id);

	line_costs_sort_by_place(&costs);
	for (size_t i = 0, count; error == 0 && i < costs.count; i += count) {
		count = 1;
		while (i + count < costs.count &&
		       costs.lines[i + count].path == costs.lines[i].path)
			count++;
		if (has_any_cost(annotation, costs.lines + i, count))
			error = add_source(annotation, costs.paths.text[costs.lines[i].path],
					   costs.lines + i, count);
	}
	annotation->self_without_line =
		view_sum_sources_of_measure(costs.self_without_line, annotation->options->measure);
	line_costs_deinit(&costs);
	return error;
}
