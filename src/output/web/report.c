/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * report.html: a page with all parts. The overview says what the summary says.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/regions/regions.h"
#include "output/region_rows.h"
#include "output/summary/summary.h"
#include "output/web/parts.h"

#define FUNCTIONS_SHOWN 20u
#define SUMMARY_COLUMNS 140u
#define REGION_ROWS_MAX 1000u

struct overview {
	struct page_writer *page;
	FILE *functions; /* these come between the texts */
	size_t text_count, function_count;
};

static void put_summary_text(void *context, enum summary_text_kind kind, const char *text)
{
	static const char *const names[] = {[SUMMARY_TEXT_HEADING] = "heading",
					    [SUMMARY_TEXT_LINE] = "line",
					    [SUMMARY_TEXT_WARNING] = "warning",
					    [SUMMARY_TEXT_ROWS] = "rows"};
	struct overview *overview = context;
	FILE *stream = overview->page->stream;

	page_put_comma_unless_first(stream, overview->text_count++);
	fprintf(stream, "[\"%s\",", names[kind]);
	page_put_string(stream, text);
	putc(']', stream);
}

static void put_row(void *context, const char *const *cells, size_t count, const char *name)
{
	struct overview *overview = context;
	FILE *stream = overview->page->stream;

	page_put_comma_unless_first(stream, overview->text_count++);
	fputs("[\"row\"", stream);
	for (size_t i = 0; i < count; i++) {
		putc(',', stream);
		page_put_string(stream, cells[i]);
	}
	putc(',', stream);
	page_put_string(stream, name);
	putc(']', stream);
}

static void put_function(void *context, const char *name, uint64_t self, uint64_t total)
{
	struct overview *overview = context;

	page_put_comma_unless_first(overview->functions, overview->function_count++);
	putc('[', overview->functions);
	page_put_string(overview->functions, name);
	fprintf(overview->functions, ",%" PRIu64 ",%" PRIu64 "]", self, total);
}

static int write_summary(struct page_writer *page)
{
	struct output_options options = *page->options;
	char *functions = NULL;
	size_t size = 0;
	struct overview overview = {.page = page, .functions = open_memstream(&functions, &size)};
	const struct summary_receiver receiver = {put_summary_text, put_row, put_function,
						  &overview};

	if (overview.functions == NULL)
		return -ENOMEM;
	options.columns = SUMMARY_COLUMNS;
	if (options.top == 0)
		options.top = FUNCTIONS_SHOWN;
	page_put_key(page->stream, "summary");
	putc('[', page->stream);
	int error = output_pass_summary(page->session, &options, &receiver, page->problem);
	fputs("],", page->stream);
	if (fclose(overview.functions) != 0)
		error = -ENOMEM;
	page_put_key(page->stream, "heaviest");
	fprintf(page->stream, "[%s],", error == 0 && functions != NULL ? functions : "");
	free(functions);
	return error;
}

/* ---- regions ---- */

static void write_region_row(struct page_writer *page, const struct region_rows *rows, uint32_t row,
			     uint32_t clock)
{
	const struct model_region *region =
		&session_get_regions(page->session)->regions[rows->rows[row].region];
	const struct region_value *value = region_rows_get_value(rows, row, clock);

	fprintf(page->stream, "[%" PRId64 ",%" PRId64 ",%" PRIu64 ",%.0f,%.0f,%.0f,%.0f]",
		page_get_string_number(page, region->name),
		page_get_string_number(page, region->category), rows->rows[row].count,
		value->inclusive, value->self, value->calls.minimum, value->calls.maximum);
}

/* By name, with what they took themselves: the same rows as the table of the summary. */
static int write_regions(struct page_writer *page)
{
	static const struct region_table_layout_options layout = {.flat = true,
								  .collapse_processes = true};
	uint32_t clock = session_get_regions(page->session) != NULL
				 ? regions_find_wall_clock_component(page->session)
				 : MODEL_ENTRY_INDEX_NONE;
	struct region_rows rows;
	size_t written = 0;

	if (clock == MODEL_ENTRY_INDEX_NONE)
		return 0;
	int error = region_rows_build(&rows, page->session, &layout);
	if (error == 0)
		error = region_rows_set_reading_order(&rows, clock, true);
	page_put_key(page->stream, "regions");
	putc('[', page->stream);
	for (uint32_t i = 0; error == 0 && i < rows.shown && written < REGION_ROWS_MAX; i++) {
		if (rows.rows[rows.order[i]].region == MODEL_ENTRY_INDEX_NONE)
			continue;
		page_put_comma_unless_first(page->stream, written++);
		write_region_row(page, &rows, rows.order[i], clock);
	}
	fprintf(page->stream, "],\"regions_left_out\":%" PRIu32 ",",
		rows.shown > REGION_ROWS_MAX ? rows.shown - REGION_ROWS_MAX : 0);
	region_rows_deinit(&rows);
	return error;
}

static int write_parts(struct page_writer *page)
{
	int error = write_summary(page);

	if (error == 0)
		error = write_regions(page);
	if (error == 0)
		error = page_write_timeline(page);
	if (error == 0)
		error = page_write_source(page);
	if (error == 0)
		error = page_write_assembly(page);
	return error;
}

static int write_report(struct session *session, const struct output_options *options, FILE *stream,
			struct problem *problem)
{
	return page_write(session, options, stream, problem, write_parts);
}

const struct output_format output_format_report = {
	.name = "report",
	.file_name = "report.html",
	.link_name = "flamegraph.html", /* opened by that name it shows the flame graph first */
	.description = "overview, timeline, flame graph, source: one page",
	.write = write_report,
};
