/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * report.html: a page (web/causal.*) around a piece of JSON. Nothing in it can end the element that
 * it stands in: '<' is written as an escape.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal/data.h"
#include "files/stream.h"
#include "output/causal/causal.h"
#include "output/causal/source.h"
#include "output/causal/view.h"
#include "output/embedded_page.h"
#include "output/json_writer.h"

#define NAME_BUFFER_SIZE 1024

static void json_put_warnings(struct json_writer *json, uint32_t warnings)
{
	enum causal_warning_bit bit;

	json_array_begin(json, "warnings");
	for (unsigned i = 0; causal_view_get_warning_name(i, &bit); i++) {
		if (warnings & bit)
			json_put_text(json, NULL, causal_warning_get_text(bit));
	}
	json_array_end(json);
}

static void json_put_interval(struct json_writer *json, const char *key, double value, double low,
			      double high)
{
	json_array_begin(json, key);
	json_put_real_with_6_digits(json, NULL, value);
	json_put_real_with_6_digits(json, NULL, low);
	json_put_real_with_6_digits(json, NULL, high);
	json_array_end(json);
}

static void json_put_prediction(struct json_writer *json, const struct causal_data *data,
				const struct causal_fit_result *result,
				const struct causal_prediction *prediction)
{
	char name[NAME_BUFFER_SIZE];

	json_object_begin(json, NULL);
	causal_view_format_target_name(data, prediction->target, name, sizeof(name));
	json_put_text(json, "name", name);
	causal_view_format_target_location(data, prediction->target, name, sizeof(name));
	json_put_text(json, "place", name);
	json_put_boolean(json, "ranked", prediction->is_supported_by_data);
	json_put_warnings(json, causal_view_get_unshared_warnings(result, prediction));
	json_put_real_with_6_digits(json, "self", 100 * prediction->self_share);
	json_put_real_with_6_digits(json, "total", 100 * prediction->total_share);
	json_put_real_with_6_digits(json, "reach", prediction->headline_speedup_percent);
	json_put_interval(json, "best", prediction->headline_gain_percent,
			  prediction->headline_gain_low_percent,
			  prediction->headline_gain_high_percent);
	json_put_interval(json, "slope", prediction->gain_per_speedup_slope,
			  prediction->slope_interval_low, prediction->slope_interval_high);
	json_array_begin(json, "points");
	for (size_t i = 0; i < prediction->speedup_estimate_count; i++) {
		const struct causal_gain_estimate_at_speedup *estimate =
			&prediction->speedup_estimates[i];

		json_array_begin(json, NULL);
		json_put_real_with_6_digits(json, NULL, estimate->speedup_percent);
		json_put_real_with_6_digits(json, NULL, estimate->predicted_gain_percent);
		json_put_real_with_6_digits(json, NULL, estimate->gain_interval_low_percent);
		json_put_real_with_6_digits(json, NULL, estimate->gain_interval_high_percent);
		json_put_count(json, NULL, estimate->window_count);
		json_put_count(json, NULL, estimate->visit_count);
		json_array_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void json_put_points_with_predictions(struct json_writer *json,
					     const struct causal_data *data,
					     const struct causal_fit_result *result)
{
	char name[NAME_BUFFER_SIZE];
	size_t count;

	json_array_begin(json, "points");
	for (size_t first = 0; first < result->prediction_count; first += count) {
		const struct causal_prediction *head = &result->predictions[first];

		count = causal_view_count_predictions_of_point(result, first);
		causal_view_format_point_name(data, head->point, head->end_point, name,
					      sizeof(name));
		json_object_begin(json, NULL);
		json_put_text(json, "name", name);
		causal_view_format_baseline_label(data, head->point, head->end_point, name,
						  sizeof(name));
		json_put_text(json, "baseline", name);
		json_put_real_with_6_digits(json, "baseline_ns",
					    head->baseline_period_or_latency_ns);
		json_array_begin(json, "targets");
		for (size_t i = 0; i < count; i++)
			json_put_prediction(json, data, result, head + i);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_source_lines(struct json_writer *json, const struct causal_data *data,
				  const struct causal_source_excerpts *source)
{
	char name[NAME_BUFFER_SIZE];

	json_array_begin(json, "source");
	for (size_t i = 0; i < source->count; i++) {
		json_object_begin(json, NULL);
		json_put_text(json, "path", source->files[i].path);
		json_array_begin(json, "lines");
		for (size_t j = 0; j < source->files[i].count; j++) {
			const struct causal_source_line *line = &source->files[i].lines[j];

			json_array_begin(json, NULL);
			json_put_count(json, NULL, line->number);
			json_put_text(json, NULL, line->text ? line->text : "");
			json_put_real_with_6_digits(json, NULL, 100 * line->self_share);
			json_put_real_with_6_digits(json, NULL, 100 * line->total_share);
			if (line->prediction) {
				causal_view_format_target_name(data, line->prediction->target, name,
							       sizeof(name));
				json_put_text(json, NULL, name);
			}
			json_array_end(json);
		}
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static int write_page_json(const struct causal_data *data, const struct causal_fit_result *result,
			   FILE *stream, struct problem *problem)
{
	struct causal_source_excerpts source;
	struct json_writer json;
	struct causal_view_experiment_sums sums = causal_view_sum_experiments(data);

	if (causal_source_excerpts_read(data, result, &source) < 0)
		return problem_set(problem, -ENOMEM, "out of memory writing report.html");
	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "command",
		      data->run_count && data->runs[0].command ? data->runs[0].command : "");
	json_put_text(&json, "mode", causal_view_targets_are_lines(data) ? "line" : "function");
	json_put_count(&json, "runs", data->run_count);
	json_put_count(&json, "experiments", sums.count);
	json_put_count(&json, "baselines", result->baseline_window_count);
	json_put_count(&json, "disturbed", result->disturbed_window_count);
	json_put_real_with_6_digits(&json, "measured_ns", (double)sums.real_ns);
	json_put_warnings(&json, result->warning_bits);
	json_put_points_with_predictions(&json, data, result);
	json_put_source_lines(&json, data, &source);
	json_object_end(&json);
	causal_source_excerpts_deinit(&source);
	return json_writer_finish(&json, problem);
}

int causal_write_html(const struct causal_data *data, const struct causal_fit_result *result,
		      FILE *stream, struct problem *problem)
{
	char *text = NULL, *page = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	int error;

	if (!memory)
		return problem_set(problem, -ENOMEM, "out of memory writing report.html");
	error = write_page_json(data, result, memory, problem);
	if (fclose(memory) != 0 && error == 0)
		error = problem_set(problem, -ENOMEM, "out of memory writing report.html");
	if (error == 0 && embedded_page_inflate(&causal_page, &page) < 0)
		error = problem_set(problem, -ENOMEM, "out of memory writing report.html");
	if (error == 0) {
		fwrite(page, 1, causal_page.head_size, stream);
		for (size_t i = 0; i < size; i++) {
			if (text[i] == '<')
				fputs("\\u003c", stream);
			else
				putc(text[i], stream);
		}
		fwrite(page + causal_page.head_size, 1, causal_page.tail_size, stream);
		error = stream_flush_or_set_problem(stream, "report.html", problem);
	}
	free(page);
	free(text);
	return error;
}
