/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The regions that took the most real time, over all processes and threads.
 */
#include <errno.h>
#include <stdlib.h>

#include "output/format.h"
#include "output/region_rows.h"
#include "output/summary/private.h"

static uint64_t truncate_to_whole_ns(double ns)
{
	return ns > 0 ? (uint64_t)ns : 0;
}

static void write_region_row(const struct summary_writer *summary, const struct region_rows *rows,
			     uint32_t index, uint32_t wall)
{
	const struct region_row *row = &rows->rows[index];
	const struct model_region *region =
		&session_get_regions(summary->session)->regions[row->region];
	char name[512], calls[40];
	size_t columns;

	snprintf(name, sizeof(name), "%s (%s)", region->name, region->category);
	snprintf(calls, sizeof(calls), "%s%s", quantity_from_count(row->count).text,
		 row->open ? "+" : "");
	if (wall == MODEL_ENTRY_INDEX_NONE) {
		columns = summary_write_cells(
			summary,
			(const struct summary_cell[]){
				{"-", 11, 0}, {"-", 10, 2}, {calls, 14, 1}, {"-", 10, 3}},
			4);
	} else {
		const struct region_value *value = region_rows_get_value(rows, index, wall);

		columns = summary_write_cells(
			summary,
			(const struct summary_cell[]){
				{quantity_from_ns(truncate_to_whole_ns(value->inclusive)).text, 11,
				 0},
				{quantity_from_ns(truncate_to_whole_ns(value->self)).text, 10, 2},
				{calls, 14, 1},
				{row->count ? quantity_from_ns(
						      truncate_to_whole_ns(statistics_get_mean(
							      &value->calls, row->count)))
						      .text
					    : "-",
				 10, 3}},
			4);
	}
	format_write_cut_to_width(summary->stream, *region->category ? name : region->name,
				  columns);
	fputc('\n', summary->stream);
}

static void write_region_notes(const struct summary_writer *summary, uint64_t open)
{
	const struct session *session = summary->session;
	uint64_t counted = 0, missing = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const uint64_t *losses = session->processes[i].losses;

		counted += losses[SPOOL_LOSS_REGION_UNBALANCED];
		missing += losses[SPOOL_LOSS_REGION_EVENTS] + losses[SPOOL_LOSS_RING_OVERWRITE];
	}
	if (missing && !session_get_regions(session)->was_aggregated_in_process)
		summary_write_warning(
			summary, "computed from the trace, and parts of the trace are lost; set "
				 "TRACE=off to have the processes count themselves");
	if (session_get_regions(session)->dropped_sum_count)
		summary_write_line(
			summary, "call trees show the heaviest call paths and put the others into "
				 "(more) (see PROFILE_MAX_NODES); the sums here include all calls");
	if (open)
		summary_write_line(
			summary,
			"+: includes calls that were still open at the end of the data (%s)",
			quantity_from_count(open).text);
	/* What the processes counted themselves is among the losses. */
	if (session_get_regions(session)->unbalanced_region_count > counted)
		summary_write_warning(
			summary,
			"%s regions ended with an outer region, or ended without a beginning",
			quantity_from_count(session_get_regions(session)->unbalanced_region_count)
				.text);
}

int summary_write_regions(const struct summary_writer *summary)
{
	struct region_table_layout_options layout = {.flat = true, .collapse_processes = true};
	uint32_t wall = regions_find_wall_clock_component(summary->session);
	struct region_rows rows;
	uint64_t open = 0;
	int result;

	if (session_get_regions(summary->session)->node_count == 0)
		return 0;
	result = region_rows_build(&rows, summary->session, &layout);
	if (result == 0)
		result = region_rows_set_reading_order(
			&rows, wall == MODEL_ENTRY_INDEX_NONE ? 0 : wall, false);
	if (result == 0 && rows.shown) {
		summary_write_heading(summary, "Heaviest regions (real time)");
		summary_write_row(summary,
				  (const struct summary_cell[]){{"total", 11, 0},
								{"self", 10, 2},
								{"calls", 14, 1},
								{"mean", 10, 3}},
				  4, "region (category)");
		for (uint32_t i = 0; i < rows.shown && i < summary->top; i++)
			write_region_row(summary, &rows, rows.order[i], wall);
		for (uint32_t i = 0; i < rows.count; i++)
			open += rows.rows[i].open;
		write_region_notes(summary, open);
	}
	region_rows_deinit(&rows);
	return result;
}
