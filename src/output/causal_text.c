/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * report.txt: for each progress point the ranking of targets, then the curve of each, and what
 * could not be said and why. Intervals stand everywhere beside the number that they belong to.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal_data.h"
#include "output/causal.h"
#include "output/causal_source.h"
#include "output/causal_view.h"
#include "output/format.h"
#include "output/stream.h"

#define CONFIDENCE_95   1.96
#define COST_ERROR_MOST 5.0 /* percent */
#define WIDTH           100u
#define BAR_WIDTH       40
#define TOP_SUMMARY     5u
#define UNKNOWN_SUMMARY 2u
#define NAME_SIZE       1024

struct report {
	const struct causal_data *data;
	const struct causal_result *result;
	FILE *stream;
	bool colour;
};

static const char *bold(const struct report *report)
{
	return report->colour ? "\033[1m" : "";
}

static const char *plain(const struct report *report)
{
	return report->colour ? "\033[0m" : "";
}

/* ---- lines ---- */

/* Breaks text at blanks; following lines are indented by `indent`. */
static void put_wrapped(FILE *stream, const char *text, unsigned indent)
{
	size_t column = indent;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (column > indent && column + word >= WIDTH) {
			fprintf(stream, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			putc(' ', stream);
			column++;
		}
		column += format_text(stream, text, word);
		text += word + (text[word] == ' ');
	}
	putc('\n', stream);
}

static void put_warnings(const struct report *report, uint32_t warnings, unsigned indent)
{
	enum causal_warning bit;

	for (unsigned i = 0; causal_view_warning(i, &bit); i++) {
		if (!(warnings & bit))
			continue;
		fprintf(report->stream, "%*s- ", (int)indent, "");
		put_wrapped(report->stream, causal_warning_text(bit), indent + 2);
	}
}

/* "f (a.c:12)" */
static void put_target(const struct report *report, uint32_t id, size_t width)
{
	char name[NAME_SIZE], place[NAME_SIZE], both[2 * NAME_SIZE + 4];

	causal_view_target(report->data, id, name, sizeof(name));
	causal_view_place(report->data, id, place, sizeof(place));
	snprintf(both, sizeof(both), *place ? "%s (%s)" : "%s", name, place);
	format_limited(report->stream, both, width);
}

/* Of the last run that tells: a later one knows what earlier ones found. Where visits differ too
 * much to tell, nothing is said. */
static void put_cost(const struct report *report)
{
	const struct causal_data_run *run = NULL;
	double cost, error;

	for (size_t i = 0; i < report->data->run_count; i++) {
		if (report->data->runs[i].samples_cost_known)
			run = &report->data->runs[i];
	}
	if (!run)
		return;
	cost = (double)run->samples_cost_ppm / 1e4;
	error = CONFIDENCE_95 * (double)run->samples_cost_error_ppm / 1e4;
	if (error > COST_ERROR_MOST)
		return;
	if (cost > error)
		fprintf(report->stream, "Samples made visits %.1f %% longer (+-%.1f)\n", cost,
			error);
	else
		fprintf(report->stream, "Samples made visits longer by less than %.1f %%\n",
			fmax(cost, 0) + error);
}

static void put_head(const struct report *report)
{
	const struct causal_data *data = report->data;
	double measured = 0;
	size_t usable = 0;

	fputs("Causal profile", report->stream);
	if (data->run_count && data->runs[0].command) {
		fputs(" of ", report->stream);
		format_limited(report->stream, data->runs[0].command, WIDTH - 18);
	}
	for (size_t i = 0; i < data->window_count; i++) {
		if (data->windows[i].end == CAUSAL_ENDED_CUT)
			continue;
		measured += (double)data->windows[i].real_ns;
		usable++;
	}
	fprintf(report->stream, "\n%zu experiment%s in %s, %" PRIu64 " of them without a speedup",
		usable, usable == 1 ? "" : "s", quantity_time((uint64_t)measured).text,
		report->result->baseline_windows);
	if (data->run_count > 1)
		fprintf(report->stream, ", in %zu runs", data->run_count);
	fputs("\n", report->stream);
	put_cost(report);
	for (size_t i = 0; i < data->point_count; i++) {
		char text[NAME_SIZE + 128];

		if (causal_given_up_text(&data->points[i], text, sizeof(text))) {
			putc('\n', report->stream);
			put_wrapped(report->stream, text, 0);
		}
	}
	if (report->result->warnings) {
		fputs("\nMind that\n", report->stream);
		put_warnings(report, report->result->warnings, 2);
	}
	if (report->result->disturbed_windows)
		fprintf(report->stream,
			"%" PRIu64
			" of them took far longer than others like them and %s left out.\n",
			report->result->disturbed_windows,
			report->result->disturbed_windows == 1 ? "was" : "were");
	if (data->bad_lines)
		fprintf(report->stream, "\n%zu line%s of the experiments could not be read.\n",
			data->bad_lines, data->bad_lines == 1 ? "" : "s");
}

static void put_point(const struct report *report, const struct causal_prediction *prediction)
{
	char text[NAME_SIZE];

	causal_view_baseline(report->data, prediction->point, prediction->end_point, text,
			     sizeof(text));
	fprintf(report->stream, "\n%s", bold(report));
	format_limited(report->stream, text, 70);
	fprintf(report->stream, "%s ", plain(report));
	fputs(prediction->baseline_ns > 0
		      ? quantity_time((uint64_t)llround(fmin(prediction->baseline_ns, 9e18))).text
		      : "(not known)",
	      report->stream);
	fputs(" without a speedup\n", report->stream);
}

/* ---- ranking ---- */

static void put_gain(FILE *stream, double value, double low, double high)
{
	fprintf(stream, "%+7.1f %%  %+7.1f ... %+6.1f", value, low, high);
}

static void put_rank(const struct report *report, const struct causal_prediction *prediction,
		     size_t rank, bool with_slope)
{
	FILE *stream = report->stream;

	fprintf(stream, "  %4zu  ", rank);
	put_gain(stream, prediction->best_percent, prediction->best_low_percent,
		 prediction->best_high_percent);
	if (with_slope)
		fprintf(stream, "  %+8.2f", 10 * prediction->slope);
	fprintf(stream, "  %5.1f %%  %5.1f %%  ", 100 * prediction->self_share,
		100 * prediction->total_share);
	put_target(report, prediction->target, with_slope ? 42 : 44);
	putc('\n', stream);
}

static void put_ranking(const struct report *report, size_t first, size_t count, size_t limit,
			bool with_slope)
{
	const struct causal_prediction *predictions = report->result->predictions + first;
	FILE *stream = report->stream;
	size_t rank = 0, left = 0;

	for (size_t i = 0; i < count; i++) {
		if (!predictions[i].ranked)
			continue;
		if (rank == 0) {
			fprintf(stream, "  %4s  %-9s  %-18s", "rank", "    gain", " 95 % interval");
			fprintf(stream, "%s  %-7s  %-7s  %s\n", with_slope ? "   per 10%" : "",
				"itself", "in all",
				causal_view_lines(report->data) ? "line" : "function");
		}
		if (rank++ < limit)
			put_rank(report, &predictions[i], rank, with_slope);
		else
			left++;
	}
	if (rank == 0)
		fputs("  Nothing can be said of any target yet.\n", stream);
	if (left)
		fprintf(stream, "  and %zu more\n", left);
}

/* Those that are not ranked, by name: the report says why. */
static void put_unknown(const struct report *report, size_t first, size_t count)
{
	size_t found = 0;

	for (size_t i = first; i < first + count; i++) {
		const struct causal_prediction *prediction = &report->result->predictions[i];

		if (prediction->ranked)
			continue;
		found++;
		if (found > UNKNOWN_SUMMARY)
			continue;
		fputs(found == 1 ? "  Not known well enough: " : ", ", report->stream);
		put_target(report, prediction->target, 36);
	}
	if (found > UNKNOWN_SUMMARY)
		fprintf(report->stream, " and %zu more", found - UNKNOWN_SUMMARY);
	if (found)
		putc('\n', report->stream);
}

/* ---- curves ---- */

struct axis {
	double low, high;
};

static struct axis axis_of(const struct causal_prediction *predictions, size_t count)
{
	struct axis axis = {0, 10};

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; predictions[i].ranked && j < predictions[i].estimate_count;
		     j++) {
			const struct causal_estimate *estimate = &predictions[i].estimates[j];

			axis.low = fmin(axis.low, fmax(estimate->low_percent, -100));
			axis.high = fmax(axis.high, fmin(estimate->high_percent, 100));
		}
	}
	return axis;
}

static int place_on(const struct axis *axis, double percent)
{
	double share = (percent - axis->low) / (axis->high - axis->low);

	return (int)lround(fmin(fmax(share, 0), 1) * (BAR_WIDTH - 1));
}

/* |=====[==*==] : zero, the value, its interval. */
static void put_bar(FILE *stream, const struct axis *axis, const struct causal_estimate *estimate)
{
	char bar[BAR_WIDTH + 1];
	int end = BAR_WIDTH;
	int zero = place_on(axis, 0), value = place_on(axis, estimate->predicted_percent);

	memset(bar, ' ', BAR_WIDTH);
	for (int i = zero < value ? zero : value; i <= (zero < value ? value : zero); i++)
		bar[i] = '=';
	bar[zero] = '|';
	bar[place_on(axis, estimate->low_percent)] = '[';
	bar[place_on(axis, estimate->high_percent)] = ']';
	bar[value] = '*';
	while (bar[end - 1] == ' ')
		end--;
	bar[end] = 0;
	fputs(bar, stream);
}

static void put_curve(const struct report *report, const struct causal_prediction *prediction,
		      const struct axis *axis)
{
	FILE *stream = report->stream;

	fputs("\n  ", stream);
	put_target(report, prediction->target, WIDTH - 2);
	fputs("\n    faster by       gain     95 % interval    windows    visits\n", stream);
	for (size_t i = 0; i < prediction->estimate_count; i++) {
		const struct causal_estimate *estimate = &prediction->estimates[i];

		fprintf(stream, "    %5.1f %%  ", estimate->speedup_percent);
		put_gain(stream, estimate->predicted_percent, estimate->low_percent,
			 estimate->high_percent);
		fprintf(stream, "  %7" PRIu32 "  %8" PRIu64 "  ", estimate->windows,
			estimate->visits);
		put_bar(stream, axis, estimate);
		putc('\n', stream);
	}
	put_warnings(report, causal_view_own_warnings(report->result, prediction), 4);
}

static void put_unranked(const struct report *report, const struct causal_prediction *prediction)
{
	fputs("\n  ", report->stream);
	put_target(report, prediction->target, WIDTH - 2);
	if (prediction->estimate_count) {
		fputs("\n    at full speedup ", report->stream);
		put_gain(report->stream, prediction->best_percent, prediction->best_low_percent,
			 prediction->best_high_percent);
	}
	putc('\n', report->stream);
	put_warnings(report, causal_view_own_warnings(report->result, prediction), 4);
}

static void put_details(const struct report *report, size_t first, size_t count)
{
	const struct causal_prediction *predictions = report->result->predictions + first;
	struct axis axis = axis_of(predictions, count);
	bool headed = false;

	for (size_t i = 0; i < count; i++) {
		if (predictions[i].ranked)
			put_curve(report, &predictions[i], &axis);
	}
	for (size_t i = 0; i < count; i++) {
		if (predictions[i].ranked)
			continue;
		if (!headed)
			fputs("\n  Not known well enough:\n", report->stream);
		headed = true;
		put_unranked(report, &predictions[i]);
	}
}

/* ---- the two reports ---- */

int causal_write_text(const struct causal_data *data, const struct causal_result *result,
		      FILE *stream, struct problem *problem)
{
	struct report report = {data, result, stream, false};
	size_t count;

	put_head(&report);
	for (size_t first = 0; first < result->prediction_count; first += count) {
		count = causal_view_same_point(result, first);
		put_point(&report, &result->predictions[first]);
		fputs("  Gain where a target takes no time at all, and for each 10 % that it is "
		      "faster:\n\n",
		      stream);
		put_ranking(&report, first, count, SIZE_MAX, true);
		put_details(&report, first, count);
	}
	if (result->prediction_count == 0)
		fputs("\nThere is nothing to predict from.\n", stream);
	if (causal_source_text(data, result, stream) < 0)
		return problem_set(problem, -ENOMEM, "out of memory writing report.txt");
	return stream_check(stream, "report.txt", problem);
}

void causal_print_summary(const struct causal_data *data, const struct causal_result *result,
			  FILE *stream, bool colour)
{
	struct report report = {data, result, stream, colour};
	size_t count;

	put_head(&report);
	for (size_t first = 0; first < result->prediction_count; first += count) {
		count = causal_view_same_point(result, first);
		put_point(&report, &result->predictions[first]);
		put_ranking(&report, first, count, TOP_SUMMARY, false);
		put_unknown(&report, first, count);
	}
}
