/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * experiments.json: what was measured and what it predicts; docs/causal-format.md describes it.
 */
#include "analysis/causal_data.h"
#include "output/causal.h"
#include "output/causal_view.h"
#include "output/json_writer.h"

static const char *const ends[] = {"visits", "time", "exit", "cut"};
static const char *const kinds[] = {"progress", "begin", "end"};

static void put_warnings(struct json_writer *json, uint32_t warnings)
{
	enum causal_warning bit;
	const char *name;

	json_array_begin(json, "warnings");
	for (unsigned i = 0; (name = causal_view_warning(i, &bit)); i++) {
		if (warnings & bit)
			json_put_text(json, NULL, name);
	}
	json_array_end(json);
}

/* "function", with where it begins, or "file" and "line". */
static void put_target(struct json_writer *json, const struct causal_data *data, uint32_t id)
{
	const struct causal_data_target *target = causal_data_find_target(data, id);
	bool lines = causal_view_lines(data);

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

static void put_point(struct json_writer *json, const struct causal_data *data, uint32_t point,
		      uint32_t end_point)
{
	char name[2 * CAUSAL_NAME_SIZE + 8];

	causal_view_point(data, point, end_point, name, sizeof(name));
	json_put_text(json, "progress_point", name);
	json_put_text(json, "type", end_point == UINT32_MAX ? "throughput" : "latency");
}

/* ---- what was measured ---- */

static void put_runs(struct json_writer *json, const struct causal_data *data)
{
	json_array_begin(json, "runs");
	for (size_t i = 0; i < data->run_count; i++) {
		const struct causal_data_run *run = &data->runs[i];

		json_object_begin(json, NULL);
		json_put_count(json, "run", run->number);
		json_put_text(json, "command", run->command);
		json_put_text(json, "mode", run->mode);
		json_put_count(json, "seed", run->seed);
		json_put_boolean(json, "end_to_end", run->end_to_end);
		json_put_boolean(json, "ended", run->ended);
		if (run->ended) {
			json_put_signed(json, "status", run->status);
			json_put_count(json, "real_ns", run->real_ns);
			json_put_count(json, "samples", run->samples);
			json_put_count(json, "samples_in_scope", run->samples_in_scope);
			json_put_count(json, "paid_ns", run->paid_ns);
			json_put_count(json, "overslept_ns", run->overslept_ns);
			json_put_count(json, "credited_ns", run->credited_ns);
			json_put_count(json, "pauses", run->pauses);
		}
		if (run->samples_cost_known) {
			json_put_number(json, "samples_cost_percent",
					(double)run->samples_cost_ppm / 1e4);
			json_put_number(json, "samples_cost_error_percent",
					(double)run->samples_cost_error_ppm / 1e4);
		}
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_points(struct json_writer *json, const struct causal_data *data)
{
	json_array_begin(json, "progress_points");
	for (size_t i = 0; i < data->point_count; i++) {
		const struct causal_data_point *point = &data->points[i];

		json_object_begin(json, NULL);
		json_put_count(json, "id", point->id);
		json_put_text(json, "name", point->name);
		json_put_text(json, "kind", kinds[point->kind]);
		json_put_text(json, "origin", point->origin);
		if (point->given_up)
			json_put_boolean(json, "given_up", true);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_visits(struct json_writer *json, const struct causal_data *data,
		       const struct causal_data_visits *visits)
{
	bool latency = visits->end_point != UINT32_MAX;

	json_object_begin(json, NULL);
	put_point(json, data, visits->point, visits->end_point);
	if (latency) {
		json_put_count(json, "arrivals", visits->arrivals);
		json_put_count(json, "departures", visits->visits);
		json_put_signed(json, "area_ns", visits->area_ns);
	} else {
		json_put_count(json, "visits", visits->visits);
	}
	json_put_signed(json, "virtual_ns", visits->virtual_ns);
	json_object_end(json);
}

static void put_window(struct json_writer *json, const struct causal_data *data,
		       const struct causal_data_window *window, bool disturbed)
{
	json_object_begin(json, NULL);
	json_put_count(json, "run", window->run);
	put_target(json, data, window->target);
	json_put_number(json, "speedup_percent", window->speedup_permille / 10.0);
	json_put_text(json, "ended", ends[window->end]);
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
	for (size_t i = 0; i < window->visit_count; i++)
		put_visits(json, data, &window->visits[i]);
	json_array_end(json);
	json_object_end(json);
}

/* ---- what it predicts ---- */

static void put_interval(struct json_writer *json, const char *key, double value, double low,
			 double high)
{
	json_object_begin(json, key);
	json_put_number(json, "value", value);
	json_put_number(json, "ci_low", low);
	json_put_number(json, "ci_high", high);
	json_object_end(json);
}

static void put_prediction(struct json_writer *json, const struct causal_data *data,
			   const struct causal_prediction *prediction)
{
	json_object_begin(json, NULL);
	put_point(json, data, prediction->point, prediction->end_point);
	put_target(json, data, prediction->target);
	json_put_boolean(json, "ranked", prediction->ranked);
	put_warnings(json, prediction->warnings);
	json_put_number(json, "self_percent", 100 * prediction->self_share);
	json_put_number(json, "total_percent", 100 * prediction->total_share);
	json_put_number(json, "baseline_ns", prediction->baseline_ns);
	if (prediction->estimate_count) {
		put_interval(json, "full_speedup", prediction->best_percent,
			     prediction->best_low_percent, prediction->best_high_percent);
		put_interval(json, "slope", prediction->slope, prediction->slope_low,
			     prediction->slope_high);
	}
	json_array_begin(json, "points");
	for (size_t i = 0; i < prediction->estimate_count; i++) {
		const struct causal_estimate *estimate = &prediction->estimates[i];

		json_object_begin(json, NULL);
		json_put_number(json, "speedup_percent", estimate->speedup_percent);
		json_put_number(json, "predicted_percent", estimate->predicted_percent);
		json_put_number(json, "ci_low_percent", estimate->low_percent);
		json_put_number(json, "ci_high_percent", estimate->high_percent);
		json_put_count(json, "experiments", estimate->windows);
		json_put_count(json, "visits", estimate->visits);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

int causal_write_json(const struct causal_data *data, const struct causal_result *result,
		      FILE *stream, struct problem *problem)
{
	struct json_writer json;

	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "schema", "kymo.causal/1");
	json_put_text(&json, "kymo_version", KYMO_VERSION);
	json_put_text(&json, "mode", causal_view_lines(data) ? "line" : "function");
	put_warnings(&json, result->warnings);
	json_put_count(&json, "baseline_experiments", result->baseline_windows);
	json_put_count(&json, "disturbed_experiments", result->disturbed_windows);
	json_put_count(&json, "bad_lines", data->bad_lines);
	json_put_real(&json, "cpu_ns", result->cpu_ns);
	put_runs(&json, data);
	put_points(&json, data);
	json_array_begin(&json, "predictions");
	for (size_t i = 0; i < result->prediction_count; i++)
		put_prediction(&json, data, &result->predictions[i]);
	json_array_end(&json);
	json_array_begin(&json, "experiments");
	for (size_t i = 0; i < data->window_count; i++)
		put_window(&json, data, &data->windows[i], result->disturbed[i]);
	json_array_end(&json);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}
