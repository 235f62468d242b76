/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A comparison for people, for pull requests and for programs.
 */
#include <math.h>
#include <string.h>

#include "output/diff/diff.h"
#include "output/format.h"
#include "output/json_writer.h"

#define NUMBER_COLUMNS 58
#define NAME_COLUMNS   20

static const char *const kind_headings[DIFF_BY_COUNT] = {
	[DIFF_BY_FUNCTION] = "function (self)",
	[DIFF_BY_PATH] = "call path",
	[DIFF_BY_LINE] = "function and line",
	[DIFF_BY_THREAD] = "thread",
	[DIFF_BY_REGION] = "region (self)",
	[DIFF_BY_KERNEL] = "kernel",
	[DIFF_BY_RANK] = "rank",
};

struct change_text {
	char text[48];
};

struct quantity_text diff_quantity(const struct diff *diff, double value)
{
	bool is_time = diff->kind == DIFF_BY_REGION || diff->kind == DIFF_BY_KERNEL;

	return quantity_from_measure((uint64_t)llround(fmax(value, 0)),
				     is_time ? VIEW_MEASURE_CPU_TIME : diff->measure);
}

static struct change_text signed_quantity(const struct diff *diff, double value)
{
	struct change_text change;

	snprintf(change.text, sizeof(change.text), "%s%s", value < 0 ? "-" : "+",
		 diff_quantity(diff, fabs(value)).text);
	return change;
}

/* "+3.1 %", "new", "gone". */
static struct change_text relative_change(const struct diff_row *row)
{
	struct change_text change;

	if (row->before <= 0 || row->after <= 0)
		snprintf(change.text, sizeof(change.text), "%s",
			 row->after > 0    ? "new"
			 : row->before > 0 ? "gone"
					   : "-");
	else
		snprintf(change.text, sizeof(change.text), "%+.1f %%",
			 100 * (row->after / row->before - 1));
	return change;
}

/* "1.2 %" of before. */
static struct change_text relative_noise(const struct diff_row *row)
{
	struct change_text noise = {"-"};

	if (row->before > 0)
		snprintf(noise.text, sizeof(noise.text), "%.1f %%", 100 * row->noise / row->before);
	return noise;
}

static const char *verdict_text(const struct diff_row *row)
{
	return row->verdict == DIFF_HIGHER ? "more" : row->verdict == DIFF_LOWER ? "less" : "";
}

static const char *measure_text(const struct diff *diff)
{
	if (diff->kind == DIFF_BY_REGION)
		return "real time of regions";
	if (diff->kind == DIFF_BY_KERNEL)
		return "time of kernels";
	return diff->measure == VIEW_MEASURE_CPU_TIME    ? "CPU time"
	       : diff->measure == VIEW_MEASURE_REAL_TIME ? "real time"
							 : "events";
}

static const char *total_verdict_text(const struct diff *diff)
{
	return diff->total.verdict == DIFF_HIGHER  ? "more than noise explains"
	       : diff->total.verdict == DIFF_LOWER ? "less than noise explains"
						   : "no more than noise";
}

static size_t count_changed_rows(const struct diff *diff)
{
	size_t count = 0;

	for (size_t i = 0; i < diff->row_count; i++)
		count += diff->rows[i].verdict != DIFF_UNCHANGED;
	return count;
}

static void write_row(const struct diff *diff, FILE *stream, const struct diff_row *row,
		      size_t columns)
{
	fprintf(stream, "%10s %9s  %10s %8s  %8s %-5s ", diff_quantity(diff, row->before).text,
		diff_quantity(diff, row->after).text,
		signed_quantity(diff, row->after - row->before).text, relative_change(row).text,
		relative_noise(row).text, verdict_text(row));
	format_write_cut_to_width(stream, row->name,
				  columns > NUMBER_COLUMNS + NAME_COLUMNS ? columns - NUMBER_COLUMNS
									  : NAME_COLUMNS);
	fputc('\n', stream);
}

static void write_noise_note(const struct diff *diff, FILE *stream, const char *begin)
{
	size_t runs = diff->side_count[DIFF_BEFORE];

	if (diff->is_noise_assumed)
		fprintf(stream,
			"%s%zu run%s of each side cannot show how much runs differ by themselves: "
			"5 %% "
			"is assumed.\n%sGive five of each: kymo diff A1 B1 A2 B2 A3 B3 A4 B4 A5 "
			"B5\n",
			begin, runs, runs == 1 ? "" : "s", begin);
	else
		fprintf(stream,
			"%snoise: the change that %zu and %zu runs reach in %s of 100 cases at "
			"most "
			"without a cause, in any row\n",
			begin, runs, diff->side_count[DIFF_AFTER],
			diff->are_sides_apart ? "2" : "5");
	if (diff->are_sides_apart && runs > 1)
		fprintf(stream,
			"%sThe runs of one side came before those of the other: a machine that "
			"became "
			"slower or faster\n%smeanwhile looks like a change. Let the sides take "
			"turns.\n",
			begin, begin);
}

void diff_write_text(const struct diff *diff, FILE *stream, size_t top, size_t columns)
{
	size_t shown = top && top < diff->row_count ? top : diff->row_count;

	fprintf(stream, "%s: %s before, %s after, %s (%s; noise %s)\n", measure_text(diff),
		diff_quantity(diff, diff->total.before).text,
		diff_quantity(diff, diff->total.after).text, relative_change(&diff->total).text,
		total_verdict_text(diff), relative_noise(&diff->total).text);
	write_noise_note(diff, stream, "");
	fprintf(stream, "\n%10s %9s  %10s %8s  %8s %-5s %s\n", "before", "after", "change", "",
		"noise", "", kind_headings[diff->kind]);
	write_row(diff, stream, &diff->total, columns);
	for (size_t i = 0; i < shown; i++)
		write_row(diff, stream, &diff->rows[i], columns);
	if (shown < diff->row_count)
		fprintf(stream, "... and %zu more rows (--top 0 shows all), %zu of them changed\n",
			diff->row_count - shown,
			count_changed_rows(diff) > shown ? count_changed_rows(diff) - shown : 0);
}

/* What a cell must not have: it would end it, or begin a tag or emphasis. */
static void write_markdown_text(FILE *stream, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\`*_{}[]<>|#~", *text))
			fputc('\\', stream);
		fputc((unsigned char)*text < ' ' ? ' ' : *text, stream);
	}
}

static void write_markdown_row(const struct diff *diff, FILE *stream, const struct diff_row *row)
{
	const char *strong = row->verdict == DIFF_UNCHANGED ? "" : "**";

	fputs("| ", stream);
	write_markdown_text(stream, row->name);
	fprintf(stream, " | %s | %s | %s | %s%s%s | %s |\n", diff_quantity(diff, row->before).text,
		diff_quantity(diff, row->after).text,
		signed_quantity(diff, row->after - row->before).text, strong,
		relative_change(row).text, strong, relative_noise(row).text);
}

void diff_write_markdown(const struct diff *diff, FILE *stream, size_t top)
{
	size_t shown = top && top < diff->row_count ? top : diff->row_count;

	fprintf(stream, "### %s %s: %s\n\n", measure_text(diff), relative_change(&diff->total).text,
		total_verdict_text(diff));
	fprintf(stream, "| %s | before | after | change | | noise |\n|---|--:|--:|--:|--:|--:|\n",
		kind_headings[diff->kind]);
	write_markdown_row(diff, stream, &diff->total);
	for (size_t i = 0; i < shown; i++)
		write_markdown_row(diff, stream, &diff->rows[i]);
	fputc('\n', stream);
	write_noise_note(diff, stream, "");
	fputs("Bold: more than noise explains.\n", stream);
}

static void put_row(struct json_writer *json, const char *key, const struct diff *diff,
		    const struct diff_row *row)
{
	static const char *const verdicts[] = {"unchanged", "higher", "lower"};

	json_object_begin(json, key);
	json_put_text(json, "name", row->name);
	json_put_real_with_12_digits(json, "before", row->before);
	json_put_real_with_12_digits(json, "after", row->after);
	json_put_real_with_12_digits(json, "noise", row->noise);
	if (isnan(row->probability))
		json_put_null(json, "probability");
	else
		json_put_real_with_12_digits(json, "probability", row->probability);
	json_put_text(json, "verdict", verdicts[row->verdict]);
	json_array_begin(json, "values");
	for (size_t i = 0; i < diff->run_count; i++)
		json_put_real_with_12_digits(json, NULL, row->values[i]);
	json_array_end(json);
	json_object_end(json);
}

int diff_write_json(const struct diff *diff, FILE *stream, struct problem *problem)
{
	struct json_writer json;

	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "schema", "kymo.diff/1");
	json_put_text(&json, "measure", measure_text(diff));
	json_put_text(&json, "unit", view_measure_get_unit(diff->measure));
	json_put_text(&json, "by", kind_headings[diff->kind]);
	json_put_boolean(&json, "noise_is_assumed", diff->is_noise_assumed);
	json_array_begin(&json, "runs");
	for (size_t i = 0; i < diff->run_count; i++) {
		json_object_begin(&json, NULL);
		json_put_text(&json, "name", diff->runs[i].name);
		json_put_text(&json, "side",
			      diff->runs[i].side == DIFF_BEFORE ? "before" : "after");
		json_object_end(&json);
	}
	json_array_end(&json);
	put_row(&json, "total", diff, &diff->total);
	json_array_begin(&json, "rows");
	for (size_t i = 0; i < diff->row_count; i++)
		put_row(&json, NULL, diff, &diff->rows[i]);
	json_array_end(&json);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}

void diff_write_folded(const struct diff *diff, FILE *stream)
{
	for (size_t i = 0; i < diff->row_count; i++) {
		const struct diff_row *row = &diff->rows[i];

		for (const char *at = row->name; *at; at++)
			fputc(*at == '\n' || *at == '\r' ? ' ' : *at, stream);
		fprintf(stream, " %lld %lld\n", llround(row->before), llround(row->after));
	}
}
