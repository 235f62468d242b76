/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * flamegraph.html: one file that needs nothing else. The page is in web/; here its data is written,
 * as JSON of flat arrays. Inside a script element only "<" could end it, so text never holds one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "output/output.h"
#include "output/strings.h"
#include "output/web/html_page.h"
#include "output/web/html_tree.h"

/* A page of this many nodes still loads and zooms at once; it is some 3 MB. */
#define PAGE_NODES_MAX 120000u

struct flamegraph_writer {
	const struct session *session;
	FILE *stream;
	struct html_tree tree;
	struct string_table strings;
	uint32_t *page_index_of_function; /* by function id, then one for the rest: number in the
					     page */
	uint32_t *frames; /* by number in the page: a frame, MODEL_ENTRY_INDEX_NONE for the rest */
	uint32_t function_count;
	bool has_measure[FLAMEGRAPH_MEASURE_COUNT];
	int error;
};

static void write_js_string(FILE *stream, const char *text)
{
	size_t size = strlen(text);

	putc('"', stream);
	for (size_t i = 0; i < size;) {
		size_t length = utf8_character_size(text + i, size - i);
		unsigned char byte = (unsigned char)text[i];
		if (length == 0)
			fputs(UTF8_REPLACEMENT, stream);
		else if (byte < 0x20 || byte == '"' || byte == '\\' || byte == '<' || byte == 0x7f)
			fprintf(stream, "\\u%04x", byte);
		else
			fwrite(text + i, 1, length, stream);
		i += length == 0 ? 1 : length;
	}
	putc('"', stream);
}

static void write_object_key(FILE *stream, const char *key)
{
	fprintf(stream, "\"%s\":", key);
}

static void write_text_field(FILE *stream, const char *key, const char *text)
{
	write_object_key(stream, key);
	write_js_string(stream, text);
	putc(',', stream);
}

/* Separates elements: nothing before the first. */
static void write_comma_unless_first(FILE *stream, size_t index)
{
	if (index != 0)
		putc(',', stream);
}

static void write_session_description(struct flamegraph_writer *html)
{
	const struct session *session = html->session;
	FILE *stream = html->stream;
	int64_t realtime_ns = (int64_t)session->start_ns + session->realtime_minus_boottime_ns;

	write_text_field(stream, "title", session->command_line);
	write_text_field(stream, "host",
			 session->process_count != 0 ? session->processes[0].host : "");
	fprintf(stream, "\"start_ms\":%" PRId64 ",\"duration_ns\":%" PRIu64 ",",
		session->realtime_minus_boottime_ns != 0 ? realtime_ns / 1000000 : 0,
		session->end_ns > session->start_ns ? session->end_ns - session->start_ns : 0);
	fputs("\"kinds\":[\"native\",\"inline\",\"jit\",\"unresolved\",\"synthetic\",\"state\","
	      "\"interpreted\",\"device\"],",
	      stream);
}

/* One entry for each measure that has anything, and the count of samples. */
static void write_measure_list(struct flamegraph_writer *html, enum view_measure_kind first)
{
	static const char *const names[FLAMEGRAPH_MEASURE_COUNT] = {
		[VIEW_MEASURE_CPU_TIME] = "CPU time",
		[VIEW_MEASURE_REAL_TIME] = "Wall time",
		[VIEW_MEASURE_COUNTER_EVENTS] = "Events",
		[VIEW_MEASURE_DEVICE_TIME] = "Device time"};
	FILE *stream = html->stream;
	size_t written = 0;
	unsigned column = 0, columns[FLAMEGRAPH_MEASURE_COUNT] = {0};

	for (int measure = 0; measure < FLAMEGRAPH_MEASURE_COUNT; measure++) {
		columns[measure] = column;
		column += html->has_measure[measure] ? 2 : 0;
	}
	write_object_key(stream, "measures");
	putc('[', stream);
	for (int i = 0; i < FLAMEGRAPH_MEASURE_COUNT; i++) {
		/* The default measure first, the others in their order. */
		int measure = i == 0 ? (int)first : i <= (int)first ? i - 1 : i;
		if (!html->has_measure[measure])
			continue;
		write_comma_unless_first(stream, written++);
		fprintf(stream,
			"{\"name\":\"%s\",\"unit\":\"%s\",\"column\":%u,\"samples_column\":%u}",
			names[measure], view_measure_get_unit((enum view_measure_kind)measure),
			columns[measure], columns[measure] + 1);
	}
	write_comma_unless_first(stream, written);
	fprintf(stream,
		"{\"name\":\"Samples\",\"unit\":\"samples\",\"column\":%u,\"samples_column\":%u}],",
		column, column);
}

static void write_processes_and_threads(struct flamegraph_writer *html)
{
	const struct session *session = html->session;
	FILE *stream = html->stream;

	write_object_key(stream, "processes");
	for (uint32_t i = 0; i < session->process_count; i++) {
		fputs(i == 0 ? "[{" : ",{", stream);
		write_text_field(stream, "name", session->processes[i].name);
		fprintf(stream, "\"pid\":%" PRIu32 "}", session->processes[i].pid);
	}
	fputs(session->process_count == 0 ? "[]," : "],", stream);
	write_object_key(stream, "threads");
	for (uint32_t i = 0; i < session->thread_count; i++) {
		fputs(i == 0 ? "[{" : ",{", stream);
		write_text_field(stream, "name", session->threads[i].name);
		fprintf(stream, "\"tid\":%" PRIu32 ",\"process\":%" PRIu32 "}",
			session->threads[i].tid, session->threads[i].process);
	}
	fputs(session->thread_count == 0 ? "[]," : "],", stream);
}

/* Functions are numbered in the order of their first node. */
static void assign_page_function_numbers(struct flamegraph_writer *html)
{
	const struct session *session = html->session;

	for (uint32_t i = 0; i < html->tree.node_count; i++) {
		uint32_t frame = html->tree.nodes[i].frame;
		uint32_t id = frame == MODEL_ENTRY_INDEX_NONE ? session->function_count
							      : session->frames[frame].function_id;
		if (html->page_index_of_function[id] != MODEL_ENTRY_INDEX_NONE)
			continue;
		html->page_index_of_function[id] = html->function_count;
		html->frames[html->function_count++] = frame;
	}
}

static int64_t find_or_add_string_number(struct flamegraph_writer *html, const char *text)
{
	uint32_t number = 0;

	if (text == NULL)
		return -1;
	if (strings_find_or_add(&html->strings, text, &number) != 0)
		html->error = -ENOMEM;
	return number;
}

static int64_t get_frame_field_as_number(struct flamegraph_writer *html, uint32_t frame_index,
					 int field)
{
	static const struct model_frame rest = {.function = "[branches too small to show]",
						.module = MODEL_ENTRY_INDEX_NONE,
						.kind = FRAME_SYNTHETIC};
	const struct model_frame *frame =
		frame_index == MODEL_ENTRY_INDEX_NONE ? &rest : &html->session->frames[frame_index];

	switch (field) {
	case 0:
		return find_or_add_string_number(html, frame->function);
	case 1:
		return find_or_add_string_number(html, frame->file);
	case 2:
		return frame->function_line != 0 ? frame->function_line : frame->line;
	case 3:
		return frame->module == MODEL_ENTRY_INDEX_NONE
			       ? -1
			       : find_or_add_string_number(
					 html, html->session->modules[frame->module].name);
	default:
		return frame->kind == FRAME_INLINE ? FRAME_NATIVE : frame->kind;
	}
}

static void write_function_arrays(struct flamegraph_writer *html)
{
	static const char *const fields[] = {"name", "file", "line", "module", "kind"};

	write_object_key(html->stream, "functions");
	for (int field = 0; field < 5; field++) {
		fprintf(html->stream, "%c\"%s\":[", field == 0 ? '{' : ',', fields[field]);
		for (uint32_t i = 0; i < html->function_count; i++) {
			write_comma_unless_first(html->stream, i);
			fprintf(html->stream, "%" PRId64,
				get_frame_field_as_number(html, html->frames[i], field));
		}
		putc(']', html->stream);
	}
	fputs("},", html->stream);
	write_object_key(html->stream, "strings");
	putc('[', html->stream);
	for (uint32_t i = 0; i < html->strings.count; i++) {
		write_comma_unless_first(html->stream, i);
		write_js_string(html->stream, html->strings.text[i]);
	}
	fputs("],", html->stream);
}

static void write_node_arrays(struct flamegraph_writer *html)
{
	const struct flamegraph_node *nodes = html->tree.nodes;
	FILE *stream = html->stream;

	fputs("\"nodes\":{\"parent\":[", stream);
	for (uint32_t i = 0; i < html->tree.node_count; i++) {
		int64_t parent = nodes[i].parent == MODEL_ENTRY_INDEX_NONE
					 ? -1 - (int64_t)nodes[i].process
					 : (int64_t)i - nodes[i].parent;
		write_comma_unless_first(stream, i);
		fprintf(stream, "%" PRId64, parent);
	}
	fputs("],\"function\":[", stream);
	for (uint32_t i = 0; i < html->tree.node_count; i++) {
		uint32_t frame = nodes[i].frame;
		uint32_t id = frame == MODEL_ENTRY_INDEX_NONE
				      ? html->session->function_count
				      : html->session->frames[frame].function_id;
		write_comma_unless_first(stream, i);
		fprintf(stream, "%" PRIu32, html->page_index_of_function[id]);
	}
	fputs("]},", stream);
}

static void write_value_column(struct flamegraph_writer *html, int column)
{
	const struct html_tree *tree = &html->tree;

	for (size_t i = 0; i < tree->row_count; i++) {
		write_comma_unless_first(html->stream, i);
		fprintf(html->stream, "%" PRIu64, tree->rows[i].values[column]);
	}
}

static void write_thread_rows(struct flamegraph_writer *html)
{
	const struct html_tree *tree = &html->tree;
	FILE *stream = html->stream;
	size_t row = 0, columns = 0;

	fputs("\"rows\":{\"per_thread\":[", stream);
	for (uint32_t thread = 0; thread < html->session->thread_count; thread++) {
		size_t first = row;
		while (row < tree->row_count && tree->rows[row].thread == thread)
			row++;
		write_comma_unless_first(stream, thread);
		fprintf(stream, "%zu", row - first);
	}
	fputs("],\"node\":[", stream);
	for (size_t i = 0; i < tree->row_count; i++) {
		write_comma_unless_first(stream, i);
		fprintf(stream, "%" PRIu32, tree->rows[i].node);
	}
	fputs("],\"values\":[", stream);
	for (int column = 0; column < FLAMEGRAPH_COLUMN_COUNT; column++) {
		if (column != FLAMEGRAPH_COLUMN_SAMPLES && !html->has_measure[column / 2])
			continue;
		fputs(columns++ == 0 ? "[" : ",[", stream);
		write_value_column(html, column);
		putc(']', stream);
	}
	fputs("]}", stream);
}

static int write_page_json(struct flamegraph_writer *html, enum view_measure_kind first)
{
	const struct session *session = html->session;
	size_t functions = (size_t)session->function_count + 1;

	html->page_index_of_function = malloc(functions * sizeof(*html->page_index_of_function));
	html->frames = malloc(functions * sizeof(*html->frames));
	if (html->page_index_of_function == NULL || html->frames == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < functions; i++)
		html->page_index_of_function[i] = MODEL_ENTRY_INDEX_NONE;
	for (int measure = 0; measure < FLAMEGRAPH_MEASURE_COUNT; measure++)
		html->has_measure[measure] = html->tree.column_totals[2 * measure] != 0;
	/* Wall time without a waiting sample would only repeat CPU time. */
	if (html->tree.column_totals[2 * VIEW_MEASURE_REAL_TIME] ==
	    html->tree.column_totals[2 * VIEW_MEASURE_CPU_TIME])
		html->has_measure[VIEW_MEASURE_REAL_TIME] = false;
	assign_page_function_numbers(html);
	putc('{', html->stream);
	write_session_description(html);
	write_measure_list(html, first);
	write_processes_and_threads(html);
	write_function_arrays(html);
	write_node_arrays(html);
	write_thread_rows(html);
	putc('}', html->stream);
	return html->error;
}

static int output_write_html(struct session *session, const struct output_options *options,
			     FILE *stream, struct problem *problem)
{
	struct flamegraph_writer html = {.session = session, .stream = stream};
	enum view_measure_kind first =
		options->is_measure_given ? options->measure : view_choose_default_measure(session);
	int error = html_tree_init(&html.tree, session, PAGE_NODES_MAX);

	strings_init(&html.strings);
	errno = 0; /* a write that fails half-way leaves its reason here */
	if (error == 0) {
		fwrite(html_page_head, 1, html_page_head_size, stream);
		error = write_page_json(&html, first);
		fwrite(html_page_tail, 1, html_page_tail_size, stream);
	}
	if (error == 0 && (fflush(stream) != 0 || ferror(stream)))
		error = errno != 0 ? -errno : -EIO;
	strings_deinit(&html.strings);
	html_tree_deinit(&html.tree);
	free(html.page_index_of_function);
	free(html.frames);
	if (error != 0)
		problem_set(problem, error, "cannot write the flame graph: %s", strerror(-error));
	return error;
}

const struct output_format output_format_html = {
	.name = "html",
	.file_name = "flamegraph.html",
	.description = "flame graph for any browser, in one file",
	.write = output_write_html,
};
