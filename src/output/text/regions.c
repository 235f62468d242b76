/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See regions.h. Regions are measured call by call, so there are MIN, MAX and STDDEV; STDDEV
 * is that of a sample. What a component cannot say (the sum of a level, the spread of a ratio) is
 * "-".
 */
#include "output/text/regions.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/format.h"
#include "output/region_rows.h"

struct region_table_writer {
	struct session *session;
	const struct output_options *options;
	FILE *stream;
	struct region_rows rows;
	uint32_t component;
	size_t label_width, metric_width;
	double total;
	uint64_t open;
	uint8_t *is_row_left_out; /* by row; in a tree with too many */
	uint64_t left_out_row_count;
	double left_out_below_percent; /* percent of the total */
};

/* A tree of more rows than anybody reads, which editors still open at once, loses its lightest
 * branches; 0 as least percentage is everything. */
#define REGION_TREE_ROWS_MAX 20000u
#define SECONDS_COLUMN_WIDTH 16u

/* ---- rows ---- */

void text_set_region_row_label(struct text_region_row *row, const char *name)
{
	uint32_t indent = row->depth < TEXT_REGION_INDENT_LEVELS_MAX
				  ? row->depth
				  : TEXT_REGION_INDENT_LEVELS_MAX;

	snprintf(row->label, sizeof(row->label), "%*s%s", (int)(2 * indent), "", name);
}

void text_write_region_column_titles(FILE *stream, size_t label_width, size_t metric_width)
{
	format_write_padded_to_width(stream, "LABEL", label_width);
	fprintf(stream, " %11s %5s %-*s %-5s %16s %16s %16s %16s %16s %7s\n", "COUNT", "DEPTH",
		(int)metric_width, "METRIC", "UNITS", "SUM", "MEAN", "MIN", "MAX", "STDDEV",
		"%SELF");
}

static const char *get_shown_component_unit(const struct model_region_component *component)
{
	return strcmp(component->unit, "ns") == 0 ? "s" : component->unit;
}

/* `between`: a value that need not be a whole number even where those measured are. */
/* " %16.9f" of a number of ns. A table has hundreds of thousands of them, of which most of the time
 * went into printf's. */
static void write_seconds_column(FILE *stream, double ns)
{
	char text[SECONDS_COLUMN_WIDTH + 1];
	size_t at = sizeof(text);
	uint64_t left;

	if (!(ns >= 0 && ns < 1e15)) { /* not as wide as the column */
		fprintf(stream, " %16.9f", ns / 1e9);
		return;
	}
	left = (uint64_t)llround(ns);
	for (unsigned digits = 1; left > 0 || digits <= 10; digits++) {
		text[--at] = (char)('0' + left % 10);
		left /= 10;
		if (digits == 9)
			text[--at] = '.';
	}
	memset(text, ' ', at);
	fwrite(text, 1, sizeof(text), stream);
}

static void write_statistic_column(FILE *stream, const struct model_region_component *component,
				   bool known, double value, bool between)
{
	if (!known)
		fprintf(stream, " %16s", "-");
	else if (strcmp(component->unit, "ns") == 0)
		write_seconds_column(stream, value);
	else if (component->kind == SPOOL_COMPONENT_RATIO)
		fprintf(stream, " %16.2f", value);
	else
		fprintf(stream, " %16.*f", between ? 1 : 0, value);
}

void text_write_region_row(FILE *stream, const struct model_region_component *component,
			   const struct text_region_row *row, size_t label_width,
			   size_t metric_width)
{
	format_write_padded_to_width(stream, row->label, label_width);
	fprintf(stream, " %11" PRIu64 " %5u ", row->count, row->depth);
	format_write_padded_to_width(stream, component->name, metric_width);
	fputc(' ', stream);
	format_write_padded_to_width(stream, get_shown_component_unit(component), 5);
	write_statistic_column(stream, component, row->has_sum, row->sum, false);
	write_statistic_column(stream, component, row->has_call_statistics, row->mean, true);
	write_statistic_column(stream, component, row->has_call_statistics, row->minimum, false);
	write_statistic_column(stream, component, row->has_call_statistics, row->maximum, false);
	write_statistic_column(stream, component, row->has_call_statistics, row->standard_deviation,
			       true);
	if (row->has_self_percent)
		fprintf(stream, " %7.2f\n", row->self_percent);
	else
		fprintf(stream, " %7s\n", "-");
}

/* ---- tables ---- */

static const struct model_region_component *
get_current_component(const struct region_table_writer *text)
{
	return &session_get_regions(text->session)->components[text->component];
}

static void fill_text_row_label(const struct region_table_writer *text,
				const struct region_row *row, struct text_region_row *ret)
{
	const struct session *session = text->session;
	char name[300];

	ret->depth = row->depth;
	if (row->region != MODEL_ENTRY_INDEX_NONE) {
		text_set_region_row_label(ret,
					  session_get_regions(session)->regions[row->region].name);
		return;
	}
	if (row->thread != MODEL_ENTRY_INDEX_NONE)
		snprintf(name, sizeof(name), "%s [%u]", session->threads[row->thread].name,
			 session->threads[row->thread].tid);
	else
		format_process_name(name, sizeof(name), &session->processes[row->process]);
	text_set_region_row_label(ret, name);
}

static void fill_text_row_from_region_row(const struct region_table_writer *text, uint32_t index,
					  struct text_region_row *ret)
{
	const struct region_row *row = &text->rows.rows[index];
	const struct region_value *value =
		region_rows_get_value(&text->rows, index, text->component);
	enum spool_component_kind kind = get_current_component(text)->kind;
	bool region = row->region != MODEL_ENTRY_INDEX_NONE;

	*ret = (struct text_region_row){
		.count = row->count,
		.sum = value->inclusive,
		.mean = statistics_get_mean(&value->calls, row->count),
		.minimum = value->calls.minimum,
		.maximum = value->calls.maximum,
		.standard_deviation = statistics_get_standard_deviation(&value->calls, row->count)};
	ret->has_sum =
		kind != SPOOL_COMPONENT_LEVEL && (!region || row->count || value->inclusive > 0);
	ret->has_call_statistics = region && row->count && kind != SPOOL_COMPONENT_RATIO;
	ret->has_self_percent = region && kind == SPOOL_COMPONENT_PHASE && value->inclusive > 0;
	if (ret->has_self_percent)
		ret->self_percent =
			value->self < value->inclusive ? 100 * value->self / value->inclusive : 100;
	fill_text_row_label(text, row, ret);
}

static bool is_row_omitted(const struct region_table_writer *text, uint32_t index)
{
	const struct region_value *value =
		region_rows_get_value(&text->rows, index, text->component);

	if (text->is_row_left_out && text->is_row_left_out[index])
		return true;
	return get_current_component(text)->kind == SPOOL_COMPONENT_PHASE && text->total > 0 &&
	       100 * value->inclusive / text->total < text->options->minimum_percent;
}

/* ---- large trees ---- */

/* How many rows a tree has without what took less, and what began in that. */
static uint32_t mark_light_rows_and_count_others(struct region_table_writer *text, uint32_t wall,
						 double least)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < text->rows.count; i++) {
		const struct region_row *row = &text->rows.rows[i];
		bool light = row->region != MODEL_ENTRY_INDEX_NONE &&
			     region_rows_get_value(&text->rows, i, wall)->inclusive < least;

		text->is_row_left_out[i] = light || (row->parent != MODEL_ENTRY_INDEX_NONE &&
						     row->region != MODEL_ENTRY_INDEX_NONE &&
						     text->is_row_left_out[row->parent]);
		shown += !text->is_row_left_out[i];
	}
	return shown;
}

static double compute_component_total(const struct region_table_writer *text, uint32_t component)
{
	double total = 0;

	for (uint32_t i = 0; i < text->rows.count; i++) {
		if (text->rows.rows[i].parent == MODEL_ENTRY_INDEX_NONE)
			total += region_rows_get_value(&text->rows, i, component)->inclusive;
	}
	return total;
}

/* The same rows in all components: those that take real time. */
static int prune_tree_by_wall_time(struct region_table_writer *text)
{
	uint32_t wall = regions_find_wall_clock_component(text->session), shown = text->rows.count;
	double least = 1, total;

	if (text->options->flat || text->options->is_minimum_given ||
	    wall == MODEL_ENTRY_INDEX_NONE || shown <= REGION_TREE_ROWS_MAX)
		return 0;
	total = compute_component_total(text, wall);
	text->is_row_left_out = calloc(text->rows.count, sizeof(*text->is_row_left_out));
	if (!text->is_row_left_out)
		return -ENOMEM;
	while (shown > REGION_TREE_ROWS_MAX && least < total) {
		least *= 1.25;
		shown = mark_light_rows_and_count_others(text, wall, least);
	}
	text->left_out_row_count = text->rows.count - shown;
	text->left_out_below_percent = total > 0 ? 100 * least / total : 0;
	return 0;
}

static void compute_widths_and_totals(struct region_table_writer *text)
{
	text->label_width = TEXT_REGION_LABEL_WIDTH_MIN;
	text->metric_width = strlen("METRIC");
	if (format_count_text_columns(get_current_component(text)->name) > text->metric_width)
		text->metric_width = format_count_text_columns(get_current_component(text)->name);
	text->total = 0;
	text->open = 0;
	for (uint32_t i = 0; i < text->rows.count; i++) {
		const struct region_row *row = &text->rows.rows[i];
		struct text_region_row shown;

		if (row->region != MODEL_ENTRY_INDEX_NONE)
			text->open += row->open;
		if (row->parent == MODEL_ENTRY_INDEX_NONE)
			text->total +=
				region_rows_get_value(&text->rows, i, text->component)->inclusive;
		if (text->label_width == TEXT_REGION_LABEL_WIDTH_MAX || is_row_omitted(text, i))
			continue;
		fill_text_row_label(text, row, &shown);
		if (format_count_text_columns(shown.label) > text->label_width)
			text->label_width = format_count_text_columns(shown.label);
		if (text->label_width > TEXT_REGION_LABEL_WIDTH_MAX)
			text->label_width = TEXT_REGION_LABEL_WIDTH_MAX;
	}
}

static void write_component_heading(const struct region_table_writer *text)
{
	const struct model_region_component *component = get_current_component(text);

	fprintf(text->stream, "\nREGIONS: ");
	format_write_cut_to_width(text->stream, component->name, 100);
	fputs("\n", text->stream);
	format_write_cut_to_width(text->stream, component->description, 200);
	fputs(text->options->flat
		      ? "; one row per region, sorted by self time; SUM counts recursive calls "
			"once.\n\n"
		      : "; each region is below the one it began in, the heaviest first; SUM "
			"includes "
			"everything inside.\n\n",
	      text->stream);
	text_write_region_column_titles(text->stream, text->label_width, text->metric_width);
}

static int write_component_table(struct region_table_writer *text)
{
	uint32_t regions = 0, top = text->options->flat ? text->options->top : 0;
	int result =
		region_rows_set_reading_order(&text->rows, text->component, text->options->flat);

	if (result < 0)
		return result;
	compute_widths_and_totals(text);
	write_component_heading(text);
	for (uint32_t i = 0; i < text->rows.shown; i++) {
		uint32_t index = text->rows.order[i];
		struct text_region_row row;

		if (is_row_omitted(text, index))
			continue;
		regions += text->rows.rows[index].region != MODEL_ENTRY_INDEX_NONE;
		if (top && regions > top)
			continue;
		fill_text_row_from_region_row(text, index, &row);
		text_write_region_row(text->stream, get_current_component(text), &row,
				      text->label_width, text->metric_width);
	}
	if (top && regions > top)
		fprintf(text->stream, "(%u more)\n", regions - top);
	if (text->left_out_row_count)
		fprintf(text->stream,
			"(%" PRIu64 " call paths with less than %.2g %% of the real time each are "
			"not shown, but included in the sums above them; kymo report "
			"--minimum-percent "
			"0 "
			"shows all)\n",
			text->left_out_row_count, text->left_out_below_percent);
	if (text->open)
		fprintf(text->stream,
			"(%" PRIu64 " call%s still open at the end of the data: %s)\n", text->open,
			text->open == 1 ? " was" : "s were",
			text->component == regions_find_wall_clock_component(text->session)
				? "SUM includes the time until then, the other columns do not"
				: "not in the columns");
	return 0;
}

int text_write_regions(struct session *session, const struct output_options *options, FILE *stream,
		       struct problem *problem)
{
	struct region_table_layout_options layout = {.flat = options->flat,
						     .threads_apart = options->per_thread,
						     .collapse_processes =
							     options->collapse_processes};
	struct region_table_writer text = {
		.session = session, .options = options, .stream = stream};
	int result;

	if (options->is_timeline_wanted)
		return session_get_regions(session)->events
			       ? text_write_timeline(session, stream, problem)
			       : 0;
	if (session_get_regions(session)->node_count == 0)
		return 0;
	result = region_rows_build(&text.rows, session, &layout);
	if (result == 0)
		result = prune_tree_by_wall_time(&text);
	while (result == 0 && text.component < session_get_regions(session)->component_count) {
		result = write_component_table(&text);
		text.component++;
	}
	region_rows_deinit(&text.rows);
	free(text.is_row_left_out);
	return result;
}
