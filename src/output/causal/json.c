/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * experiments.json: what was measured and what it predicts; docs/reference/causal-format.md
 * describes it.
 */
#include "analysis/causal/data.h"
#include "output/causal/causal.h"
#include "output/causal/view.h"
#include "output/json_writer.h"

static const char *const window_end_reason_names[] = {"visits", "time", "exit", "cut"};
static const char *const point_kind_names[] = {"progress", "begin", "end"};

static void json_put_warnings(struct json_writer *json, uint32_t warnings)
{
	enum causal_warning_bit bit;
	const char *name;

	json_array_begin(json, "warnings");
	for (unsigned i = 0; (name = causal_view_get_warning_name(i, &bit)); i++) {
		if (warnings & bit)
			json_put_text(json, NULL, name);
	}
	json_array_end(json);
}

/* "function", with where it begins, or "file" and "line". */
static void json_put_target(struct json_writer *json, const struct causal_data *data, uint32_t id)
{
	const struct causal_data_target *target = causal_data_find_target(data, id);
	bool lines = causal_view_targets_are_lines(data);

	json_put_count(json, "target", id);
	if (!target)
		return;
	if (target->function && !(lines && target->file))
		json_put_text(json, "function", target->function);
	else if (target->function)
		json_put_text(json, "in_function", target->function);
	if (target->file) {
		json_put_text(json, "file", target->file);
		json_put_count(json, "line", target->line);
	}
	if (target->module)
		json_put_text(json, "module", target->module);
}

static void json_put_point_name_and_type(struct json_writer *json, const struct causal_data *data,
					 uint32_t point, uint32_t end_point)
{
	char name[2 * CAUSAL_NAME_SIZE + 8];

	causal_view_format_point_name(data, point, end_point, name, sizeof(name));
	json_put_text(json, "progress_point", name);
	json_put_text(json, "type", end_point == UINT32_MAX ? "throughput" : "latency");
}

/* ---- what was measured ---- */

static void json_put_runs(struct json_writer *json, const struct causal_data *data)
{
	json_array_begin(json, "runs");
	for (size_t i = 0; i < data->run_count; i++) {
		const struct causal_data_program_run *run = &data->runs[i];

		json_object_begin(json, NULL);
		json_put_count(json, "run", run->number);
		json_put_text(json, "command", run->command);
		json_put_text(json, "mode", run->mode);
		json_put_count(json, "seed", run->seed);
		json_put_boolean(json, "end_to_end", run->end_to_end);
		json_put_boolean(json, "ended", run->ended);
		if (run->ended) {
			json_put_signed_integer(json, "status", run->status);
			json_put_count(json, "real_ns", run->real_ns);
			json_put_count(json, "samples", run->samples);
			json_put_count(json, "samples_in_scope", run->samples_in_scope);
			json_put_count(json, "paid_ns", run->paid_delay_ns);
			json_put_count(json, "overslept_ns", run->overslept_ns);
			json_put_count(json, "credited_ns", run->credited_delay_ns);
			json_put_count(json, "pauses", run->pauses);
		}
		if (run->is_samples_cost_known) {
			json_put_real_with_6_digits(json, "samples_cost_percent",
						    (double)run->samples_cost_ppm / 1e4);
			json_put_real_with_6_digits(json, "samples_cost_error_percent",
						    (double)run->samples_cost_error_ppm / 1e4);
		}
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_progress_points(struct json_writer *json, const struct causal_data *data)
{
	json_array_begin(json, "progress_points");
	for (size_t i = 0; i < data->point_count; i++) {
		const struct causal_data_progress_point *point = &data->points[i];

		json_object_begin(json, NULL);
		json_put_count(json, "id", point->id);
		json_put_text(json, "name", point->name);
		json_put_text(json, "kind", point_kind_names[point->kind]);
		json_put_text(json, "origin", point->origin);
		if (point->was_given_up)
			json_put_boolean(json, "given_up", true);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_visits_of_one_point(struct json_writer *json, const struct causal_data *data,
					 const struct causal_data_window_visits *visits)
{
	bool latency = visits->end_point != UINT32_MAX;

	json_object_begin(json, NULL);
	json_put_point_name_and_type(json, data, visits->point, visits->end_point);
	if (latency) {
		json_put_count(json, "arrivals", visits->arrivals);
		json_put_count(json, "departures", visits->visits);
		json_put_signed_integer(json, "area_ns", visits->inside_count_integral_ns);
	} else {
		json_put_count(json, "visits", visits->visits);
	}
	json_put_signed_integer(json, "virtual_ns", visits->intervals_virtual_ns);
	json_object_end(json);
}

static void json_put_window(struct json_writer *json, const struct causal_data *data,
			    const struct causal_data_window *window, bool disturbed)
{
	json_object_begin(json, NULL);
	json_put_count(json, "run", window->run);
	json_put_target(json, data, window->target);
	json_put_real_with_6_digits(json, "speedup_percent", window->speedup_permille / 10.0);
	json_put_text(json, "ended", window_end_reason_names[window->end]);
	if (disturbed)
		json_put_boolean(json, "disturbed", true);
	json_put_count(json, "start_ns", window->start_ns);
	json_put_count(json, "real_ns", window->real_ns);
	json_put_count(json, "delay_ns", window->delay_ns);
	json_put_count(json, "cpu_ns", window->cpu_ns);
	json_put_count(json, "involuntary_switches", window->involuntary_switches);
	json_put_count(json, "stolen_ns", window->stolen_ns);
	json_put_count(json, "queued_ns", window->queued_ns);
	json_put_count(json, "threads", window->threads);
	for (size_t i = 0; i < window->time_count; i++) {
		if (window->times[i].target != window->target)
			continue;
		json_put_count(json, "target_self_ns", window->times[i].self_ns);
		json_put_count(json, "target_total_ns", window->times[i].total_ns);
		break;
	}
	json_array_begin(json, "points");
	for (size_t i = 0; i < window->visits_entry_count; i++)
		json_put_visits_of_one_point(json, data, &window->visits[i]);
	json_array_end(json);
	json_object_end(json);
}

/* ---- what it predicts ---- */

static void json_put_interval(struct json_writer *json, const char *key, double value, double low,
			      double high)
{
	json_object_begin(json, key);
	json_put_real_with_6_digits(json, "value", value);
	json_put_real_with_6_digits(json, "ci_low", low);
	json_put_real_with_6_digits(json, "ci_high", high);
	json_object_end(json);
}

static void json_put_headline(struct json_writer *json, const struct causal_prediction *prediction)
{
	json_object_begin(json, "headline");
	json_put_real_with_6_digits(json, "speedup_percent", prediction->headline_speedup_percent);
	json_put_real_with_6_digits(json, "value", prediction->headline_gain_percent);
	json_put_real_with_6_digits(json, "ci_low", prediction->headline_gain_low_percent);
	json_put_real_with_6_digits(json, "ci_high", prediction->headline_gain_high_percent);
	json_object_end(json);
}

static void json_put_prediction(struct json_writer *json, const struct causal_data *data,
				const struct causal_prediction *prediction)
{
	json_object_begin(json, NULL);
	json_put_point_name_and_type(json, data, prediction->point, prediction->end_point);
	json_put_target(json, data, prediction->target);
	json_put_boolean(json, "ranked", prediction->is_supported_by_data);
	json_put_warnings(json, prediction->warning_bits);
	json_put_real_with_6_digits(json, "self_percent", 100 * prediction->self_share);
	json_put_real_with_6_digits(json, "total_percent", 100 * prediction->total_share);
	json_put_real_with_6_digits(json, "baseline_ns", prediction->baseline_period_or_latency_ns);
	if (prediction->speedup_estimate_count) {
		json_put_headline(json, prediction);
		if (prediction->headline_speedup_percent >= 100)
			json_put_interval(json, "full_speedup", prediction->headline_gain_percent,
					  prediction->headline_gain_low_percent,
					  prediction->headline_gain_high_percent);
		json_put_interval(json, "slope", prediction->gain_per_speedup_slope,
				  prediction->slope_interval_low, prediction->slope_interval_high);
	}
	json_array_begin(json, "points");
	for (size_t i = 0; i < prediction->speedup_estimate_count; i++) {
		const struct causal_gain_estimate_at_speedup *estimate =
			&prediction->speedup_estimates[i];

		json_object_begin(json, NULL);
		json_put_real_with_6_digits(json, "speedup_percent", estimate->speedup_percent);
		json_put_real_with_6_digits(json, "predicted_percent",
					    estimate->predicted_gain_percent);
		json_put_real_with_6_digits(json, "ci_low_percent",
					    estimate->gain_interval_low_percent);
		json_put_real_with_6_digits(json, "ci_high_percent",
					    estimate->gain_interval_high_percent);
		json_put_count(json, "experiments", estimate->window_count);
		json_put_count(json, "visits", estimate->visit_count);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

int causal_write_json(const struct causal_data *data, const struct causal_fit_result *result,
		      FILE *stream, struct problem *problem)
{
	struct json_writer json;

	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "schema", "kymo.causal/1");
	json_put_text(&json, "kymo_version", KYMO_VERSION);
	json_put_text(&json, "mode", causal_view_targets_are_lines(data) ? "line" : "function");
	json_put_warnings(&json, result->warning_bits);
	json_put_count(&json, "baseline_experiments", result->baseline_window_count);
	json_put_count(&json, "disturbed_experiments", result->disturbed_window_count);
	json_put_count(&json, "bad_lines", data->bad_line_count);
	json_put_real_with_12_digits(&json, "cpu_ns", result->cpu_ns);
	json_put_runs(&json, data);
	json_put_progress_points(&json, data);
	json_array_begin(&json, "predictions");
	for (size_t i = 0; i < result->prediction_count; i++)
		json_put_prediction(&json, data, &result->predictions[i]);
	json_array_end(&json);
	json_array_begin(&json, "experiments");
	for (size_t i = 0; i < data->window_count; i++)
		json_put_window(&json, data, &data->windows[i], result->is_window_disturbed[i]);
	json_array_end(&json);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}
