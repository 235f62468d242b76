/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The call tree in the data of a page, as flat arrays, and the measures that it can be seen by.
 */
#include <inttypes.h>

#include "common/array.h"
#include "output/web/page.h"

#define WEIGHT_OF(source) (1u << (2 * (source)))

/* A measure adds up columns; the columns of its samples stand beside them. */
struct page_measure {
	const char *name, *unit;
	uint32_t columns; /* bitmap */
	enum view_measure_kind view;
};

static const struct page_measure page_measure_table[] = {
	{"CPU time", "ns", WEIGHT_OF(SPOOL_SOURCE_CPU), VIEW_MEASURE_CPU_TIME},
	{"Wall time", "ns",
	 WEIGHT_OF(SPOOL_SOURCE_CPU) | WEIGHT_OF(SPOOL_SOURCE_WALL) |
		 WEIGHT_OF(SPOOL_SOURCE_RUNNABLE),
	 VIEW_MEASURE_REAL_TIME},
	{"Blocked", "ns", WEIGHT_OF(SPOOL_SOURCE_WALL), VIEW_MEASURE_COUNT},
	{"Waiting for a CPU", "ns", WEIGHT_OF(SPOOL_SOURCE_RUNNABLE), VIEW_MEASURE_COUNT},
	{"Events", "events", WEIGHT_OF(SPOOL_SOURCE_OVERFLOW), VIEW_MEASURE_COUNTER_EVENTS},
	{"Device time", "ns", WEIGHT_OF(MODEL_SOURCE_DEVICE), VIEW_MEASURE_DEVICE_TIME},
	{"Allocated memory", "bytes", 1u << PAGE_COLUMN_ALLOCATED_BYTES, VIEW_MEASURE_COUNT},
	{"Memory not freed", "bytes", 1u << PAGE_COLUMN_NOT_FREED_BYTES, VIEW_MEASURE_COUNT},
	{"Allocations", "allocations", 1u << PAGE_COLUMN_ALLOCATIONS, VIEW_MEASURE_COUNT},
	{"Samples", "samples",
	 (WEIGHT_OF(SPOOL_SOURCE_CPU) | WEIGHT_OF(SPOOL_SOURCE_WALL) |
	  WEIGHT_OF(SPOOL_SOURCE_OVERFLOW) | WEIGHT_OF(SPOOL_SOURCE_RUNNABLE))
		 << 1,
	 VIEW_MEASURE_COUNT},
};
#define PAGE_MEASURE_SAMPLES   (ARRAY_SIZE(page_measure_table) - 1)
#define COLUMNS_OF_THE_SOURCES ((1u << PAGE_COLUMN_ALLOCATED_BYTES) - 1)

static uint64_t sum_columns(const struct page_writer *page, uint32_t columns)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PAGE_COLUMN_COUNT; i++)
		sum += columns >> i & 1 ? page->tree.column_totals[i] : 0;
	return sum;
}

/* Wall time without a wait would only repeat CPU time. */
static bool has_measure(const struct page_writer *page, size_t index)
{
	uint32_t columns = page_measure_table[index].columns;

	if (page_measure_table[index].view == VIEW_MEASURE_REAL_TIME)
		columns &= ~WEIGHT_OF(SPOOL_SOURCE_CPU);
	return index == PAGE_MEASURE_SAMPLES || sum_columns(page, columns) != 0;
}

static bool is_column_written(const struct page_writer *page, unsigned column)
{
	return page->tree.column_totals[column] != 0;
}

unsigned page_get_column_position(const struct page_writer *page, unsigned column)
{
	unsigned position = 0;

	for (unsigned i = 0; i < column; i++)
		position += is_column_written(page, i);
	return position;
}

/* Positions of columns among those that are written. */
static void write_column_list(struct page_writer *page, const char *key, uint32_t columns)
{
	unsigned position = 0;
	size_t written = 0;

	page_put_key(page->stream, key);
	putc('[', page->stream);
	for (unsigned i = 0; i < PAGE_COLUMN_COUNT; i++) {
		if (!is_column_written(page, i))
			continue;
		if (columns >> i & 1) {
			page_put_comma_unless_first(page->stream, written++);
			fprintf(page->stream, "%u", position);
		}
		position++;
	}
	putc(']', page->stream);
}

/* The sources whose weights are in it: slices of samples name theirs. */
static void write_sources(struct page_writer *page, uint32_t columns)
{
	size_t written = 0;

	fputs(",\"sources\":[", page->stream);
	for (unsigned i = 0; i < MODEL_SOURCE_COUNT; i++) {
		if ((columns & WEIGHT_OF(i)) == 0)
			continue;
		page_put_comma_unless_first(page->stream, written++);
		fprintf(page->stream, "%u", i);
	}
	putc(']', page->stream);
}

static void write_measure(struct page_writer *page, const struct page_measure *measure)
{
	uint32_t samples = measure->columns & COLUMNS_OF_THE_SOURCES;

	if (measure != &page_measure_table[PAGE_MEASURE_SAMPLES])
		samples <<= 1;
	fprintf(page->stream, "{\"name\":\"%s\",\"unit\":\"%s\",", measure->name, measure->unit);
	write_column_list(page, "columns", measure->columns);
	putc(',', page->stream);
	write_column_list(page, "samples_columns", samples);
	write_sources(page, measure->columns);
	putc('}', page->stream);
}

/* The default first, the others in their order. */
static void write_measures(struct page_writer *page)
{
	enum view_measure_kind first = page->options->is_measure_given
					       ? page->options->measure
					       : view_choose_default_measure(page->session);
	size_t written = 0;

	page_put_key(page->stream, "measures");
	putc('[', page->stream);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < ARRAY_SIZE(page_measure_table); i++) {
			const struct page_measure *measure = &page_measure_table[i];
			if ((measure->view == first) != (pass == 0) || !has_measure(page, i))
				continue;
			page_put_comma_unless_first(page->stream, written++);
			write_measure(page, measure);
		}
	}
	fputs("],", page->stream);
}

static void write_processes_and_threads(struct page_writer *page)
{
	const struct session *session = page->session;
	const struct page_tree *tree = &page->tree;
	FILE *stream = page->stream;

	page_put_key(stream, "processes");
	putc('[', stream);
	for (uint32_t i = 0; i < session->process_count; i++) {
		page_put_comma_unless_first(stream, i);
		putc('{', stream);
		page_put_text_field(stream, "name", session->processes[i].name);
		fprintf(stream, "\"pid\":%" PRIu32 "}", session->processes[i].pid);
	}
	fputs("],", stream);
	page_put_key(stream, "threads");
	putc('[', stream);
	for (uint32_t i = 0; i < tree->thread_count; i++) {
		const struct page_thread *thread = &tree->threads[i];
		page_put_comma_unless_first(stream, i);
		putc('{', stream);
		page_put_text_field(stream, "name", thread->name != NULL ? thread->name : "");
		fprintf(stream,
			"\"tid\":%" PRIu32 ",\"process\":%" PRIu32 ",\"count\":%" PRIu32 "}",
			thread->tid, thread->process, thread->count);
	}
	fputs("],", stream);
}

static int64_t get_function_field(struct page_writer *page, const struct page_function *function,
				  int field)
{
	switch (field) {
	case 0:
		return page_get_string_number(page, function->name);
	case 1:
		return page_get_string_number(page, function->file);
	case 2:
		return function->line;
	case 3:
		return page_get_string_number(page, function->module);
	default:
		return function->kind;
	}
}

static void write_functions(struct page_writer *page)
{
	static const char *const fields[] = {"name", "file", "line", "module", "kind"};

	fputs("\"kinds\":[\"native\",\"inline\",\"jit\",\"unresolved\",\"synthetic\",\"state\","
	      "\"interpreted\",\"device\"],",
	      page->stream);
	page_put_key(page->stream, "functions");
	for (int field = 0; field < 5; field++) {
		fprintf(page->stream, "%c\"%s\":[", field == 0 ? '{' : ',', fields[field]);
		for (uint32_t i = 0; i < page->tree.function_count; i++) {
			page_put_comma_unless_first(page->stream, i);
			fprintf(page->stream, "%" PRId64,
				get_function_field(page, &page->tree.functions[i], field));
		}
		putc(']', page->stream);
	}
	fputs("},", page->stream);
}

static void write_nodes(struct page_writer *page)
{
	const struct page_node *nodes = page->tree.nodes;
	FILE *stream = page->stream;

	fputs("\"nodes\":{\"parent\":[", stream);
	for (uint32_t i = 0; i < page->tree.node_count; i++) {
		int64_t parent = nodes[i].parent == MODEL_ENTRY_INDEX_NONE
					 ? -1 - (int64_t)nodes[i].process
					 : (int64_t)i - nodes[i].parent;
		page_put_comma_unless_first(stream, i);
		fprintf(stream, "%" PRId64, parent);
	}
	fputs("],\"function\":[", stream);
	for (uint32_t i = 0; i < page->tree.node_count; i++) {
		page_put_comma_unless_first(stream, i);
		fprintf(stream, "%" PRIu32, nodes[i].function);
	}
	fprintf(stream, "],\"left_out\":%" PRIu32 "},", page->tree.dropped_node_count);
}

static void write_rows(struct page_writer *page)
{
	const struct page_tree *tree = &page->tree;
	FILE *stream = page->stream;
	size_t row = 0, columns = 0;

	fputs("\"rows\":{\"per_thread\":[", stream);
	for (uint32_t thread = 0; thread < tree->thread_count; thread++) {
		size_t first = row;
		while (row < tree->row_count && tree->rows[row].thread == thread)
			row++;
		page_put_comma_unless_first(stream, thread);
		fprintf(stream, "%zu", row - first);
	}
	fputs("],\"node\":[", stream);
	for (size_t i = 0; i < tree->row_count; i++) {
		page_put_comma_unless_first(stream, i);
		fprintf(stream, "%" PRIu32, tree->rows[i].node);
	}
	fputs("],\"values\":[", stream);
	for (unsigned column = 0; column < PAGE_COLUMN_COUNT; column++) {
		if (!is_column_written(page, column))
			continue;
		fputs(columns++ == 0 ? "[" : ",[", stream);
		for (size_t i = 0; i < tree->row_count; i++) {
			page_put_comma_unless_first(stream, i);
			fprintf(stream, "%" PRIu64, tree->rows[i].values[column]);
		}
		putc(']', stream);
	}
	fputs("]},", stream);
}

void page_write_tree(struct page_writer *page)
{
	write_measures(page);
	write_processes_and_threads(page);
	write_functions(page);
	write_nodes(page);
	write_rows(page);
}
