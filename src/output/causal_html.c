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

#include "analysis/causal_data.h"
#include "output/causal.h"
#include "output/causal_page.h"
#include "output/causal_source.h"
#include "output/causal_view.h"
#include "output/json_writer.h"
#include "output/stream.h"

#define NAME_SIZE 1024

static void put_warnings(struct json_writer *json, uint32_t warnings)
{
	enum causal_warning bit;

	json_array_begin(json, "warnings");
	for (unsigned i = 0; causal_view_warning(i, &bit); i++) {
		if (warnings & bit)
			json_put_text(json, NULL, causal_warning_text(bit));
	}
	json_array_end(json);
}

static void put_interval(struct json_writer *json, const char *key, double value, double low,
			 double high)
{
	json_array_begin(json, key);
	json_put_number(json, NULL, value);
	json_put_number(json, NULL, low);
	json_put_number(json, NULL, high);
	json_array_end(json);
}

static void put_prediction(struct json_writer *json, const struct causal_data *data,
			   const struct causal_result *result,
			   const struct causal_prediction *prediction)
{
	char name[NAME_SIZE];

	json_object_begin(json, NULL);
	causal_view_target(data, prediction->target, name, sizeof(name));
	json_put_text(json, "name", name);
	causal_view_place(data, prediction->target, name, sizeof(name));
	json_put_text(json, "place", name);
	json_put_boolean(json, "ranked", prediction->ranked);
	put_warnings(json, causal_view_own_warnings(result, prediction));
	json_put_number(json, "self", 100 * prediction->self_share);
	json_put_number(json, "total", 100 * prediction->total_share);
	put_interval(json, "best", prediction->best_percent, prediction->best_low_percent,
		     prediction->best_high_percent);
	put_interval(json, "slope", prediction->slope, prediction->slope_low,
		     prediction->slope_high);
	json_array_begin(json, "points");
	for (size_t i = 0; i < prediction->estimate_count; i++) {
		const struct causal_estimate *estimate = &prediction->estimates[i];

		json_array_begin(json, NULL);
		json_put_number(json, NULL, estimate->speedup_percent);
		json_put_number(json, NULL, estimate->predicted_percent);
		json_put_number(json, NULL, estimate->low_percent);
		json_put_number(json, NULL, estimate->high_percent);
		json_put_count(json, NULL, estimate->windows);
		json_put_count(json, NULL, estimate->visits);
		json_array_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void put_points(struct json_writer *json, const struct causal_data *data,
		       const struct causal_result *result)
{
	char name[NAME_SIZE];
	size_t count;

	json_array_begin(json, "points");
	for (size_t first = 0; first < result->prediction_count; first += count) {
		const struct causal_prediction *head = &result->predictions[first];

		count = causal_view_same_point(result, first);
		causal_view_point(data, head->point, head->end_point, name, sizeof(name));
		json_object_begin(json, NULL);
		json_put_text(json, "name", name);
		causal_view_baseline(data, head->point, head->end_point, name, sizeof(name));
		json_put_text(json, "baseline", name);
		json_put_number(json, "baseline_ns", head->baseline_ns);
		json_array_begin(json, "targets");
		for (size_t i = 0; i < count; i++)
			put_prediction(json, data, result, head + i);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_source(struct json_writer *json, const struct causal_data *data,
		       const struct causal_source *source)
{
	char name[NAME_SIZE];

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
			json_put_number(json, NULL, 100 * line->self_share);
			json_put_number(json, NULL, 100 * line->total_share);
			if (line->prediction) {
				causal_view_target(data, line->prediction->target, name,
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

static int write_data(const struct causal_data *data, const struct causal_result *result,
		      FILE *stream, struct problem *problem)
{
	struct causal_source source;
	struct json_writer json;
	double measured = 0;

	if (causal_source_make(data, result, &source) < 0)
		return problem_set(problem, -ENOMEM, "out of memory writing report.html");
	for (size_t i = 0; i < data->window_count; i++)
		measured += (double)data->windows[i].real_ns;
	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "command",
		      data->run_count && data->runs[0].command ? data->runs[0].command : "");
	json_put_text(&json, "mode", causal_view_lines(data) ? "line" : "function");
	json_put_count(&json, "runs", data->run_count);
	json_put_count(&json, "experiments", data->window_count);
	json_put_count(&json, "baselines", result->baseline_windows);
	json_put_count(&json, "disturbed", result->disturbed_windows);
	json_put_number(&json, "measured_ns", measured);
	put_warnings(&json, result->warnings);
	put_points(&json, data, result);
	put_source(&json, data, &source);
	json_object_end(&json);
	causal_source_deinit(&source);
	return json_writer_finish(&json, problem);
}

int causal_write_html(const struct causal_data *data, const struct causal_result *result,
		      FILE *stream, struct problem *problem)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	int error;

	if (!memory)
		return problem_set(problem, -ENOMEM, "out of memory writing report.html");
	error = write_data(data, result, memory, problem);
	if (fclose(memory) != 0 && error == 0)
		error = problem_set(problem, -ENOMEM, "out of memory writing report.html");
	if (error == 0) {
		fwrite(causal_page_head, 1, causal_page_head_size, stream);
		for (size_t i = 0; i < size; i++) {
			if (text[i] == '<')
				fputs("\\u003c", stream);
			else
				putc(text[i], stream);
		}
		fwrite(causal_page_tail, 1, causal_page_tail_size, stream);
		error = stream_check(stream, "report.html", problem);
	}
	free(text);
	return error;
}
