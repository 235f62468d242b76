/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The regions that took the most real time, over all processes and threads.
 */
#include <errno.h>
#include <stdlib.h>

#include "output/format.h"
#include "output/region_rows.h"
#include "output/summary.h"

#define NAME_WIDTH 50

static uint64_t whole(double ns)
{
	return ns > 0 ? (uint64_t)ns : 0;
}

static void write_row(const struct summary *summary, const struct region_rows *rows, uint32_t index,
		      uint32_t wall)
{
	const struct region_row *row = &rows->rows[index];
	const struct model_region *region = &summary->session->regions->regions[row->region];
	char name[512], calls[40];

	snprintf(name, sizeof(name), "%s (%s)", region->name, region->category);
	snprintf(calls, sizeof(calls), "%s%s", quantity_count(row->count).text,
		 row->open ? "+" : "");
	if (wall == MODEL_NONE) {
		fprintf(summary->stream, "  %9s %9s %13s %9s  ", "-", "-", calls, "-");
	} else {
		const struct region_value *value = region_rows_value(rows, index, wall);

		fprintf(summary->stream, "  %9s %9s %13s %9s  ",
			quantity_time(whole(value->inclusive)).text,
			quantity_time(whole(value->self)).text, calls,
			row->count
				? quantity_time(whole(region_mean(&value->calls, row->count))).text
				: "-");
	}
	format_limited(summary->stream, *region->category ? name : region->name, NAME_WIDTH);
	fputc('\n', summary->stream);
}

static void write_notes(const struct summary *summary, uint64_t open)
{
	const struct session *session = summary->session;
	uint64_t counted = 0, missing = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const uint64_t *losses = session->processes[i].losses;

		counted += losses[SPOOL_LOSS_REGION_UNBALANCED];
		missing += losses[SPOOL_LOSS_REGION_EVENTS] + losses[SPOOL_LOSS_RING_OVERWRITE];
	}
	if (missing && !session->regions->from_process)
		summary_warning(summary, "counted from the trace, parts of which are lost; with "
					 "TRACE=off the processes count themselves");
	if (session->regions->rest_count)
		summary_line(summary, "trees show the heaviest call paths, the others as (more) "
				      "(PROFILE_MAX_NODES); the sums here are of all calls");
	if (open)
		summary_line(summary, "+: had calls that had not ended when the data did (%s)",
			     quantity_count(open).text);
	/* What the processes counted themselves is among the losses. */
	if (session->regions->unbalanced > counted)
		summary_warning(summary,
				"%s regions were ended by the end of an outer one, or never begun",
				quantity_count(session->regions->unbalanced).text);
}

int summary_regions(const struct summary *summary)
{
	struct region_layout layout = {.flat = true, .collapse_processes = true};
	uint32_t wall = region_wall_clock(summary->session);
	struct region_rows rows;
	uint64_t open = 0;
	int result;

	if (summary->session->regions->node_count == 0)
		return 0;
	result = region_rows_init(&rows, summary->session, &layout);
	if (result == 0)
		result = region_rows_sort(&rows, wall == MODEL_NONE ? 0 : wall, false);
	if (result == 0 && rows.shown) {
		summary_heading(summary, "Heaviest regions (real time, with all inside)");
		fprintf(summary->stream, "  %9s %9s %13s %9s  %s\n", "real time", "itself", "calls",
			"mean", "region (category)");
		for (uint32_t i = 0; i < rows.shown && i < summary->top; i++)
			write_row(summary, &rows, rows.order[i], wall);
		for (uint32_t i = 0; i < rows.count; i++)
			open += rows.rows[i].open;
		write_notes(summary, open);
	}
	region_rows_deinit(&rows);
	return result;
}
