/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See text_regions.h. Regions are measured call by call, so there are MIN, MAX and STDDEV; STDDEV
 * is that of a sample. What a component cannot say (the sum of a level, the spread of a ratio) is
 * "-".
 */
#include "output/text_regions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/format.h"
#include "output/region_rows.h"

struct region_text {
	struct session *session;
	const struct output_options *options;
	FILE *stream;
	struct region_rows rows;
	uint32_t component;
	size_t label_width, metric_width;
	double total;
	uint64_t open;
	uint8_t *left_out; /* by row; in a tree with too many */
	uint64_t left_out_count;
	double left_out_below; /* percent of the total */
};

/* A tree of more rows than anybody reads, which editors still open at once, loses its lightest
 * branches; 0 as least percentage is everything. */
#define TREE_ROWS 20000u

/* ---- rows ---- */

void text_region_label(struct text_region_row *row, const char *name)
{
	uint32_t indent = row->depth < TEXT_REGION_INDENT ? row->depth : TEXT_REGION_INDENT;

	snprintf(row->label, sizeof(row->label), "%*s%s", (int)(2 * indent), "", name);
}

void text_region_columns(FILE *stream, size_t label_width, size_t metric_width)
{
	format_fitted(stream, "LABEL", label_width);
	fprintf(stream, " %11s %5s %-*s %-5s %16s %16s %16s %16s %16s %7s\n", "COUNT", "DEPTH",
		(int)metric_width, "METRIC", "UNITS", "SUM", "MEAN", "MIN", "MAX", "STDDEV",
		"%SELF");
}

static const char *unit_of(const struct model_component *component)
{
	return strcmp(component->unit, "ns") == 0 ? "s" : component->unit;
}

/* `between`: a value that need not be a whole number even where those measured are. */
static void write_value(FILE *stream, const struct model_component *component, bool known,
			double value, bool between)
{
	if (!known)
		fprintf(stream, " %16s", "-");
	else if (strcmp(component->unit, "ns") == 0)
		fprintf(stream, " %16.9f", value / 1e9);
	else if (component->kind == SPOOL_COMPONENT_RATIO)
		fprintf(stream, " %16.2f", value);
	else
		fprintf(stream, " %16.*f", between ? 1 : 0, value);
}

void text_region_row(FILE *stream, const struct model_component *component,
		     const struct text_region_row *row, size_t label_width, size_t metric_width)
{
	format_fitted(stream, row->label, label_width);
	fprintf(stream, " %11" PRIu64 " %5u ", row->count, row->depth);
	format_fitted(stream, component->name, metric_width);
	fputc(' ', stream);
	format_fitted(stream, unit_of(component), 5);
	write_value(stream, component, row->sum_known, row->sum, false);
	write_value(stream, component, row->calls_known, row->mean, true);
	write_value(stream, component, row->calls_known, row->minimum, false);
	write_value(stream, component, row->calls_known, row->maximum, false);
	write_value(stream, component, row->calls_known, row->deviation, true);
	if (row->self_known)
		fprintf(stream, " %7.2f\n", row->self_percent);
	else
		fprintf(stream, " %7s\n", "-");
}

/* ---- tables ---- */

static const struct model_component *component_of(const struct region_text *text)
{
	return &text->session->regions->components[text->component];
}

static void name_row(const struct region_text *text, const struct region_row *row,
		     struct text_region_row *ret)
{
	const struct session *session = text->session;
	char name[300];

	ret->depth = row->depth;
	if (row->region != MODEL_NONE) {
		text_region_label(ret, session->regions->regions[row->region].name);
		return;
	}
	if (row->thread != MODEL_NONE)
		snprintf(name, sizeof(name), "%s [%u]", session->threads[row->thread].name,
			 session->threads[row->thread].tid);
	else
		format_process(name, sizeof(name), &session->processes[row->process]);
	text_region_label(ret, name);
}

static void fill_row(const struct region_text *text, uint32_t index, struct text_region_row *ret)
{
	const struct region_row *row = &text->rows.rows[index];
	const struct region_value *value = region_rows_value(&text->rows, index, text->component);
	enum spool_component_kind kind = component_of(text)->kind;
	bool region = row->region != MODEL_NONE;

	*ret = (struct text_region_row){.count = row->count,
					.sum = value->inclusive,
					.mean = region_mean(&value->calls, row->count),
					.minimum = value->calls.minimum,
					.maximum = value->calls.maximum,
					.deviation = region_deviation(&value->calls, row->count)};
	ret->sum_known = kind != SPOOL_COMPONENT_LEVEL && (!region || row->count);
	ret->calls_known = region && row->count && kind != SPOOL_COMPONENT_RATIO;
	ret->self_known = region && kind == SPOOL_COMPONENT_PHASE && value->inclusive > 0;
	if (ret->self_known)
		ret->self_percent =
			value->self < value->inclusive ? 100 * value->self / value->inclusive : 100;
	name_row(text, row, ret);
}

static bool is_left_out(const struct region_text *text, uint32_t index)
{
	const struct region_value *value = region_rows_value(&text->rows, index, text->component);

	if (text->left_out && text->left_out[index])
		return true;
	return component_of(text)->kind == SPOOL_COMPONENT_PHASE && text->total > 0 &&
	       100 * value->inclusive / text->total < text->options->minimum_percent;
}

/* ---- large trees ---- */

/* How many rows a tree has without what took less, and what began in that. */
static uint32_t leave_out(struct region_text *text, uint32_t wall, double least)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < text->rows.count; i++) {
		const struct region_row *row = &text->rows.rows[i];
		bool light = row->region != MODEL_NONE &&
			     region_rows_value(&text->rows, i, wall)->inclusive < least;

		text->left_out[i] =
			light || (row->parent != MODEL_NONE && row->region != MODEL_NONE &&
				  text->left_out[row->parent]);
		shown += !text->left_out[i];
	}
	return shown;
}

static double total_of(const struct region_text *text, uint32_t component)
{
	double total = 0;

	for (uint32_t i = 0; i < text->rows.count; i++) {
		if (text->rows.rows[i].parent == MODEL_NONE)
			total += region_rows_value(&text->rows, i, component)->inclusive;
	}
	return total;
}

/* The same rows in all components: those that take real time. */
static int prune_tree(struct region_text *text)
{
	uint32_t wall = region_wall_clock(text->session), shown = text->rows.count;
	double least = 1, total;

	if (text->options->flat || text->options->minimum_given || wall == MODEL_NONE ||
	    shown <= TREE_ROWS)
		return 0;
	total = total_of(text, wall);
	text->left_out = calloc(text->rows.count, sizeof(*text->left_out));
	if (!text->left_out)
		return -ENOMEM;
	while (shown > TREE_ROWS && least < total) {
		least *= 1.25;
		shown = leave_out(text, wall, least);
	}
	text->left_out_count = text->rows.count - shown;
	text->left_out_below = total > 0 ? 100 * least / total : 0;
	return 0;
}

static void measure(struct region_text *text)
{
	text->label_width = TEXT_REGION_LABEL_MIN;
	text->metric_width = strlen("METRIC");
	if (format_columns(component_of(text)->name) > text->metric_width)
		text->metric_width = format_columns(component_of(text)->name);
	text->total = 0;
	text->open = 0;
	for (uint32_t i = 0; i < text->rows.count; i++) {
		const struct region_row *row = &text->rows.rows[i];
		struct text_region_row shown;

		if (row->region != MODEL_NONE)
			text->open += row->open;
		if (row->parent == MODEL_NONE)
			text->total +=
				region_rows_value(&text->rows, i, text->component)->inclusive;
		if (text->label_width == TEXT_REGION_LABEL_MAX || is_left_out(text, i))
			continue;
		name_row(text, row, &shown);
		if (format_columns(shown.label) > text->label_width)
			text->label_width = format_columns(shown.label);
		if (text->label_width > TEXT_REGION_LABEL_MAX)
			text->label_width = TEXT_REGION_LABEL_MAX;
	}
}

static void write_heading(const struct region_text *text)
{
	const struct model_component *component = component_of(text);

	fprintf(text->stream, "\nREGIONS: ");
	format_limited(text->stream, component->name, 100);
	fputs("\n", text->stream);
	format_limited(text->stream, component->description, 200);
	fputs(text->options->flat
		      ? "; a row a region, the heaviest by itself first; SUM counts the time of "
			"recursive calls once.\n\n"
		      : "; a region below the one it began in, the heaviest first; SUM is with "
			"everything inside it.\n\n",
	      text->stream);
	text_region_columns(text->stream, text->label_width, text->metric_width);
}

static int write_table(struct region_text *text)
{
	uint32_t regions = 0, top = text->options->flat ? text->options->top : 0;
	int result = region_rows_sort(&text->rows, text->component, text->options->flat);

	if (result < 0)
		return result;
	measure(text);
	write_heading(text);
	for (uint32_t i = 0; i < text->rows.shown; i++) {
		uint32_t index = text->rows.order[i];
		struct text_region_row row;

		if (is_left_out(text, index))
			continue;
		regions += text->rows.rows[index].region != MODEL_NONE;
		if (top && regions > top)
			continue;
		fill_row(text, index, &row);
		text_region_row(text->stream, component_of(text), &row, text->label_width,
				text->metric_width);
	}
	if (top && regions > top)
		fprintf(text->stream, "(%u more)\n", regions - top);
	if (text->left_out_count)
		fprintf(text->stream,
			"(%" PRIu64 " call paths with less than %.2g %% of the real time each are "
			"left out here, not in the sums above them; kymo report --minimum-percent "
			"0 "
			"shows all)\n",
			text->left_out_count, text->left_out_below);
	if (text->open)
		fprintf(text->stream,
			"(%" PRIu64 " call%s had not ended when the data did: in no column)\n",
			text->open, text->open == 1 ? "" : "s");
	return 0;
}

int text_regions(struct session *session, const struct output_options *options, FILE *stream,
		 struct problem *problem)
{
	struct region_layout layout = {.flat = options->flat,
				       .threads_apart = options->per_thread,
				       .collapse_processes = options->collapse_processes};
	struct region_text text = {.session = session, .options = options, .stream = stream};
	int result;

	if (options->timeline)
		return session->regions->events ? text_timeline(session, stream, problem) : 0;
	if (session->regions->node_count == 0)
		return 0;
	result = region_rows_init(&text.rows, session, &layout);
	if (result == 0)
		result = prune_tree(&text);
	while (result == 0 && text.component < session->regions->component_count) {
		result = write_table(&text);
		text.component++;
	}
	region_rows_deinit(&text.rows);
	free(text.left_out);
	return result;
}
