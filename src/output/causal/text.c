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

#include "analysis/causal/data.h"
#include "files/stream.h"
#include "output/causal/causal.h"
#include "output/causal/sentences.h"
#include "output/causal/source.h"
#include "output/causal/view.h"
#include "output/format.h"

#define Z_SCORE_95_PERCENT              1.96
#define SAMPLING_COST_ERROR_PERCENT_MAX 5.0 /* percent */
#define REPORT_WIDTH_CHARS              100u
#define ESTIMATE_BAR_WIDTH_CHARS        40
#define SUMMARY_RANKED_TARGETS_MAX      5u
#define SUMMARY_UNRANKED_TARGETS_MAX    2u
#define SUMMARY_SENTENCES_MAX           3u
#define SUMMARY_UNTRIED_TARGETS_MAX     4u
#define NAME_BUFFER_SIZE                1024

struct causal_report_writer {
	const struct causal_data *data;
	const struct causal_fit_result *result;
	FILE *stream;
	bool has_colour;
};

static const char *get_bold_escape_sequence(const struct causal_report_writer *report)
{
	return report->has_colour ? "\033[1m" : "";
}

static const char *get_reset_escape_sequence(const struct causal_report_writer *report)
{
	return report->has_colour ? "\033[0m" : "";
}

/* ---- lines ---- */

/* Breaks text at blanks; following lines are indented by `indent`. */
static void print_wrapped_text(FILE *stream, const char *text, unsigned indent)
{
	size_t column = indent;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (column > indent && column + word >= REPORT_WIDTH_CHARS) {
			fprintf(stream, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			putc(' ', stream);
			column++;
		}
		column += format_write_printable_text(stream, text, word);
		text += word + (text[word] == ' ');
	}
	putc('\n', stream);
}

static void print_warnings(const struct causal_report_writer *report, uint32_t warnings,
			   unsigned indent)
{
	enum causal_warning_bit bit;

	for (unsigned i = 0; causal_view_get_warning_name(i, &bit); i++) {
		if (!(warnings & bit))
			continue;
		fprintf(report->stream, "%*s- ", (int)indent, "");
		print_wrapped_text(report->stream, causal_warning_get_text(bit), indent + 2);
	}
}

/* "f (a.c:12)" */
static void print_target_name(const struct causal_report_writer *report, uint32_t id, size_t width)
{
	char name[NAME_BUFFER_SIZE], place[NAME_BUFFER_SIZE], both[2 * NAME_BUFFER_SIZE + 4];

	causal_view_format_target_name(report->data, id, name, sizeof(name));
	causal_view_format_target_location(report->data, id, place, sizeof(place));
	snprintf(both, sizeof(both), *place ? "%s (%s)" : "%s", name, place);
	format_write_cut_to_width(report->stream, both, width);
}

/* The cost by the last run that knows it: a later one knows what earlier ones found. Where visits
 * differ too much to tell, nothing is said. */
static void print_sampling_overhead(const struct causal_report_writer *report)
{
	const struct causal_data_program_run *run = NULL;
	double cost, error;

	for (size_t i = 0; i < report->data->run_count; i++) {
		if (report->data->runs[i].is_samples_cost_known)
			run = &report->data->runs[i];
	}
	if (!run)
		return;
	cost = (double)run->samples_cost_ppm / 1e4;
	error = Z_SCORE_95_PERCENT * (double)run->samples_cost_error_ppm / 1e4;
	if (error > SAMPLING_COST_ERROR_PERCENT_MAX)
		return;
	if (cost > error)
		fprintf(report->stream, "Sampling overhead: a visit took %.1f %% longer (+-%.1f)\n",
			cost, error);
	else
		fprintf(report->stream,
			"Sampling overhead: a visit took less than %.1f %% longer\n",
			fmax(cost, 0) + error);
}

static void print_report_head(const struct causal_report_writer *report)
{
	const struct causal_data *data = report->data;
	struct causal_view_experiment_sums sums = causal_view_sum_experiments(data);

	fputs("Causal profile", report->stream);
	if (data->run_count && data->runs[0].command) {
		fputs(" of ", report->stream);
		format_write_cut_to_width(report->stream, data->runs[0].command,
					  REPORT_WIDTH_CHARS - 18);
	}
	fprintf(report->stream,
		"\n%" PRIu64 " experiment%s in %s, %" PRIu64 " of them without a speedup",
		sums.count, sums.count == 1 ? "" : "s", quantity_from_ns(sums.real_ns).text,
		report->result->baseline_window_count);
	if (data->run_count > 1)
		fprintf(report->stream, ", in %zu runs", data->run_count);
	fputs("\n", report->stream);
	print_sampling_overhead(report);
	for (size_t i = 0; i < data->point_count; i++) {
		char text[NAME_BUFFER_SIZE + 128];

		if (causal_format_given_up_point(&data->points[i], text, sizeof(text))) {
			putc('\n', report->stream);
			print_wrapped_text(report->stream, text, 0);
		}
	}
	if (report->result->warning_bits) {
		fputs("\n"
		      "Warnings\n",
		      report->stream);
		print_warnings(report, report->result->warning_bits, 2);
	}
	if (report->result->disturbed_window_count)
		fprintf(report->stream,
			"%" PRIu64
			" experiment%s took far longer than similar ones and %s left out.\n",
			report->result->disturbed_window_count,
			report->result->disturbed_window_count == 1 ? "" : "s",
			report->result->disturbed_window_count == 1 ? "was" : "were");
	if (data->bad_line_count)
		fprintf(report->stream, "\n%zu line%s of the experiments could not be read.\n",
			data->bad_line_count, data->bad_line_count == 1 ? "" : "s");
}

static void print_point_name_and_baseline(const struct causal_report_writer *report,
					  const struct causal_prediction *prediction)
{
	char text[NAME_BUFFER_SIZE];

	causal_view_format_baseline_label(report->data, prediction->point, prediction->end_point,
					  text, sizeof(text));
	fprintf(report->stream, "\n%s", get_bold_escape_sequence(report));
	format_write_cut_to_width(report->stream, text, 70);
	fprintf(report->stream, "%s ", get_reset_escape_sequence(report));
	fputs(prediction->baseline_period_or_latency_ns > 0
		      ? quantity_from_ns((uint64_t)llround(fmin(
						 prediction->baseline_period_or_latency_ns, 9e18)))
				.text
		      : "(not known)",
	      report->stream);
	fputs(" without a speedup\n", report->stream);
}

/* ---- ranking ---- */

static void print_gain_interval(FILE *stream, double value, double low, double high)
{
	fprintf(stream, "%+7.1f %%  %+7.1f ... %+6.1f", value, low, high);
}

static void print_ranked_target(const struct causal_report_writer *report,
				const struct causal_prediction *prediction, size_t rank,
				bool with_slope)
{
	FILE *stream = report->stream;

	fprintf(stream, "  %4zu  ", rank);
	print_gain_interval(stream, prediction->headline_gain_percent,
			    prediction->headline_gain_low_percent,
			    prediction->headline_gain_high_percent);
	fprintf(stream, "  %7.0f %%", prediction->headline_speedup_percent);
	if (with_slope)
		fprintf(stream, "  %+8.2f", 10 * prediction->gain_per_speedup_slope);
	fprintf(stream, "  %5.1f %%  %5.1f %%  ", 100 * prediction->self_share,
		100 * prediction->total_share);
	print_target_name(report, prediction->target, with_slope ? 30 : 36);
	putc('\n', stream);
}

static void print_target_ranking(const struct causal_report_writer *report, size_t first,
				 size_t count, size_t limit, bool with_slope)
{
	const struct causal_prediction *predictions = report->result->predictions + first;
	FILE *stream = report->stream;
	size_t rank = 0, left = 0;

	for (size_t i = 0; i < count; i++) {
		if (!predictions[i].is_supported_by_data)
			continue;
		if (rank == 0) {
			fprintf(stream, "  %4s  %-9s  %-18s  %s", "rank", "    gain",
				" 95 % interval", "faster by");
			fprintf(stream, "%s  %-7s  %-7s  %s\n", with_slope ? "   per 10%" : "",
				"self", "total",
				causal_view_targets_are_lines(report->data) ? "line" : "function");
		}
		if (rank++ < limit)
			print_ranked_target(report, &predictions[i], rank, with_slope);
		else
			left++;
	}
	if (rank == 0)
		fputs("  There is not enough data for any target yet.\n", stream);
	if (left)
		fprintf(stream, "  and %zu more\n", left);
}

/* Those that are not ranked, by name: the report says why. */
static void print_unranked_target_names(const struct causal_report_writer *report, size_t first,
					size_t count)
{
	size_t found = 0;

	for (size_t i = first; i < first + count; i++) {
		const struct causal_prediction *prediction = &report->result->predictions[i];

		if (prediction->is_supported_by_data)
			continue;
		found++;
		if (found > SUMMARY_UNRANKED_TARGETS_MAX)
			continue;
		fputs(found == 1 ? "  Not enough data: " : ", ", report->stream);
		print_target_name(report, prediction->target, 36);
	}
	if (found > SUMMARY_UNRANKED_TARGETS_MAX)
		fprintf(report->stream, " and %zu more", found - SUMMARY_UNRANKED_TARGETS_MAX);
	if (found)
		putc('\n', report->stream);
}

/* ---- curves ---- */

struct percent_axis {
	double low, high;
};

static struct percent_axis
percent_axis_from_predictions(const struct causal_prediction *predictions, size_t count)
{
	struct percent_axis axis = {0, 10};

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; predictions[i].is_supported_by_data &&
				   j < predictions[i].speedup_estimate_count;
		     j++) {
			const struct causal_gain_estimate_at_speedup *estimate =
				&predictions[i].speedup_estimates[j];

			axis.low = fmin(axis.low, fmax(estimate->gain_interval_low_percent, -100));
			axis.high =
				fmax(axis.high, fmin(estimate->gain_interval_high_percent, 100));
		}
	}
	return axis;
}

static int percent_to_axis_column(const struct percent_axis *axis, double percent)
{
	double share = (percent - axis->low) / (axis->high - axis->low);

	return (int)lround(fmin(fmax(share, 0), 1) * (ESTIMATE_BAR_WIDTH_CHARS - 1));
}

/* |=====[==*==] : zero, the value, its interval. */
static void print_estimate_bar(FILE *stream, const struct percent_axis *axis,
			       const struct causal_gain_estimate_at_speedup *estimate)
{
	char bar[ESTIMATE_BAR_WIDTH_CHARS + 1];
	int end = ESTIMATE_BAR_WIDTH_CHARS;
	int zero = percent_to_axis_column(axis, 0),
	    value = percent_to_axis_column(axis, estimate->predicted_gain_percent);

	memset(bar, ' ', ESTIMATE_BAR_WIDTH_CHARS);
	for (int i = zero < value ? zero : value; i <= (zero < value ? value : zero); i++)
		bar[i] = '=';
	bar[zero] = '|';
	bar[percent_to_axis_column(axis, estimate->gain_interval_low_percent)] = '[';
	bar[percent_to_axis_column(axis, estimate->gain_interval_high_percent)] = ']';
	bar[value] = '*';
	while (bar[end - 1] == ' ')
		end--;
	bar[end] = 0;
	fputs(bar, stream);
}

static void print_speedup_curve(const struct causal_report_writer *report,
				const struct causal_prediction *prediction,
				const struct percent_axis *axis)
{
	FILE *stream = report->stream;

	fputs("\n  ", stream);
	print_target_name(report, prediction->target, REPORT_WIDTH_CHARS - 2);
	fputs("\n    faster by       gain     95 % interval    windows    visits\n", stream);
	for (size_t i = 0; i < prediction->speedup_estimate_count; i++) {
		const struct causal_gain_estimate_at_speedup *estimate =
			&prediction->speedup_estimates[i];

		fprintf(stream, "    %5.1f %%  ", estimate->speedup_percent);
		print_gain_interval(stream, estimate->predicted_gain_percent,
				    estimate->gain_interval_low_percent,
				    estimate->gain_interval_high_percent);
		fprintf(stream, "  %7" PRIu32 "  %8" PRIu64 "  ", estimate->window_count,
			estimate->visit_count);
		print_estimate_bar(stream, axis, estimate);
		putc('\n', stream);
	}
	print_warnings(report, causal_view_get_unshared_warnings(report->result, prediction), 4);
}

static void print_unranked_target(const struct causal_report_writer *report,
				  const struct causal_prediction *prediction)
{
	fputs("\n  ", report->stream);
	print_target_name(report, prediction->target, REPORT_WIDTH_CHARS - 2);
	if (prediction->speedup_estimate_count) {
		fprintf(report->stream, "\n    faster by %.0f %% ",
			prediction->headline_speedup_percent);
		print_gain_interval(report->stream, prediction->headline_gain_percent,
				    prediction->headline_gain_low_percent,
				    prediction->headline_gain_high_percent);
	}
	putc('\n', report->stream);
	print_warnings(report, causal_view_get_unshared_warnings(report->result, prediction), 4);
}

static void print_details_of_point_targets(const struct causal_report_writer *report, size_t first,
					   size_t count)
{
	const struct causal_prediction *predictions = report->result->predictions + first;
	struct percent_axis axis = percent_axis_from_predictions(predictions, count);
	bool headed = false;

	for (size_t i = 0; i < count; i++) {
		if (predictions[i].is_supported_by_data)
			print_speedup_curve(report, &predictions[i], &axis);
	}
	for (size_t i = 0; i < count; i++) {
		if (predictions[i].is_supported_by_data)
			continue;
		if (!headed)
			fputs("\n"
			      "  Not enough data:\n",
			      report->stream);
		headed = true;
		print_unranked_target(report, &predictions[i]);
	}
}

/* ---- the two reports ---- */

int causal_write_text(const struct causal_data *data, const struct causal_fit_result *result,
		      FILE *stream, struct problem *problem)
{
	struct causal_report_writer report = {data, result, stream, false};
	size_t count;

	print_report_head(&report);
	for (size_t first = 0; first < result->prediction_count; first += count) {
		count = causal_view_count_predictions_of_point(result, first);
		print_point_name_and_baseline(&report, &result->predictions[first]);
		fputs("  Gain if a target is faster by the most that was tried (100 %: it takes no "
		      "time),\n"
		      "  and for each 10 % that it is faster:\n"
		      "\n",
		      stream);
		print_target_ranking(&report, first, count, SIZE_MAX, true);
		causal_sentences_write(data, result->predictions + first, count, SIZE_MAX, stream);
		print_details_of_point_targets(&report, first, count);
	}
	causal_sentences_write_untried_targets(data, result, SIZE_MAX, stream);
	if (result->prediction_count == 0)
		fputs("\n"
		      "There are no experiments to predict from.\n",
		      stream);
	if (causal_source_excerpts_write(data, result, stream) < 0)
		return problem_set(problem, -ENOMEM, "out of memory writing report.txt");
	return stream_flush_or_set_problem(stream, "report.txt", problem);
}

void causal_print_summary(const struct causal_data *data, const struct causal_fit_result *result,
			  FILE *stream, bool colour)
{
	struct causal_report_writer report = {data, result, stream, colour};
	size_t count;

	print_report_head(&report);
	for (size_t first = 0; first < result->prediction_count; first += count) {
		count = causal_view_count_predictions_of_point(result, first);
		print_point_name_and_baseline(&report, &result->predictions[first]);
		print_target_ranking(&report, first, count, SUMMARY_RANKED_TARGETS_MAX, false);
		causal_sentences_write(data, result->predictions + first, count,
				       SUMMARY_SENTENCES_MAX, stream);
		print_unranked_target_names(&report, first, count);
	}
	causal_sentences_write_untried_targets(data, result, SUMMARY_UNTRIED_TARGETS_MAX, stream);
}
