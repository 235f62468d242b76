/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Steps of the work on devices: how long they take, what of that is what, and what slow ones have
 * more of than the others.
 */
#include <string.h>

#include "analysis/gpu/gpu.h"
#include "output/device_steps.h"
#include "output/format.h"
#include "output/summary/private.h"

#define SERIES_MAX       4u /* longer lists have a line that says how many more there are */
#define NAME_COLUMNS_MAX 60

static struct quantity_text mean_of(uint64_t ns, size_t count)
{
	return quantity_from_ns(count != 0 ? ns / count : 0);
}

static void write_head(const struct summary_writer *summary, const struct gpu_data *data,
		       const struct gpu_step_series *series)
{
	const struct gpu_records_of_process *process = &data->processes[series->process];
	uint64_t fastest = UINT64_MAX, slowest = 0;
	char name[256];

	for (size_t i = series->starts_slowly; i < series->count; i++) {
		uint64_t ns = series->steps[i].end_ns - series->steps[i].begin_ns;

		fastest = ns < fastest ? ns : fastest;
		slowest = ns > slowest ? ns : slowest;
	}
	device_step_format_name(name, sizeof(name), series);
	if (strlen(name) > NAME_COLUMNS_MAX)
		memcpy(name + NAME_COLUMNS_MAX - 3, "...", sizeof("..."));
	summary_write_line(summary, "%s steps of process %u on %s, each %s '%s':",
			   quantity_from_count(series->count).text, process->header.pid,
			   gpu_get_agent_name(process, series->agent),
			   series->source == GPU_STEPS_BY_RANGE
				   ? "a range"
				   : "begun by the launch of the kernel",
			   name);
	summary_write_line(summary, "median %s, fastest %s, slowest %s",
			   quantity_from_ns(series->median_ns).text, quantity_from_ns(fastest).text,
			   quantity_from_ns(slowest).text);
	if (series->starts_slowly)
		summary_write_line(
			summary,
			"the first one took %s and is left out below: programs load and "
			"compile then",
			quantity_from_ns(series->steps[0].end_ns - series->steps[0].begin_ns).text);
}

static void write_parts(const struct summary_writer *summary, const struct gpu_step_series *series)
{
	uint64_t slow_ns[GPU_STEP_PART_COUNT] = {0}, all = 0;
	size_t counted = series->count - series->starts_slowly;

	for (size_t i = series->starts_slowly; i < series->count; i++) {
		all += series->steps[i].end_ns - series->steps[i].begin_ns;
		for (unsigned part = 0; series->steps[i].is_slow && part < GPU_STEP_PART_COUNT;
		     part++)
			slow_ns[part] += series->steps[i].part_ns[part];
	}
	summary_write_row(summary,
			  (const struct summary_cell[]){
				  {"share", 8, 0}, {"a step", 10, 1}, {"a slow one", 12, 2}},
			  3, "part of the step");
	for (unsigned part = 0; part < GPU_STEP_PART_COUNT; part++) {
		char share[16];

		if (series->part_ns[part] == 0)
			continue;
		snprintf(share, sizeof(share), "%.1f%%",
			 100.0 * (double)series->part_ns[part] / (double)all);
		summary_write_row(summary,
				  (const struct summary_cell[]){
					  {share, 8, 0},
					  {mean_of(series->part_ns[part], counted).text, 10, 1},
					  {series->slow_count != 0
						   ? mean_of(slow_ns[part], series->slow_count).text
						   : "",
					   12, 2}},
				  3, gpu_step_part_get_name((enum gpu_step_part)part));
	}
}

static void write_slow_step(const struct summary_writer *summary, const struct gpu_data *data,
			    const struct gpu_step_series *series,
			    const struct gpu_step_explanation *explanation)
{
	const struct gpu_step *step = &series->steps[explanation->step];
	const struct gpu_step_difference *difference = &explanation->difference;
	char number[24], name[512], text[600];

	snprintf(number, sizeof(number), "#%zu", explanation->step + 1);
	snprintf(text, sizeof(text), "nothing of it stands out");
	if (explanation->is_explained) {
		device_step_format_difference(name, sizeof(name), summary->session, data, series,
					      difference);
		snprintf(text, sizeof(text), "%s more: %s",
			 quantity_from_ns((uint64_t)(difference->slow_ns - difference->other_ns))
				 .text,
			 name);
	}
	summary_write_row(summary,
			  (const struct summary_cell[]){
				  {number, 8, 1},
				  {quantity_from_ns(step->end_ns - step->begin_ns).text, 10, 0}},
			  2, text);
}

static void write_slow_steps(const struct summary_writer *summary, const struct gpu_data *data,
			     const struct gpu_step_series *series)
{
	if (series->slow_count == 0) {
		summary_write_line(summary, "no %sstep takes more than %.1f times the median",
				   series->starts_slowly ? "other " : "", GPU_STEP_SLOW_FACTOR);
		return;
	}
	summary_write_line(summary, "%s of them slow (more than %.1f times the median):",
			   quantity_from_count(series->slow_count).text, GPU_STEP_SLOW_FACTOR);
	summary_write_row(summary, (const struct summary_cell[]){{"step", 8, 1}, {"time", 10, 0}},
			  2, "what it has more of than the others");
	for (size_t i = 0; i < series->slowest_count; i++)
		write_slow_step(summary, data, series, &series->slowest[i]);
	if (series->slow_count > series->slowest_count)
		summary_write_line(summary, "and %zu more slow steps",
				   series->slow_count - series->slowest_count);
}

void summary_write_device_steps(const struct summary_writer *summary)
{
	const struct gpu_data *data = session_get_gpu_data(summary->session);

	if (data == NULL || (data->steps.count == 0 && data->steps.missing_range == NULL))
		return;
	summary_write_heading(summary, "Steps of the work on devices");
	if (data->steps.missing_range != NULL)
		summary_write_warning(summary,
				      "no process has %u ranges '%s' with kernels in them "
				      "(STEP_RANGE)",
				      GPU_STEPS_LEAST, data->steps.missing_range);
	for (size_t i = 0; i < data->steps.count && i < SERIES_MAX; i++) {
		write_head(summary, data, &data->steps.series[i]);
		write_parts(summary, &data->steps.series[i]);
		write_slow_steps(summary, data, &data->steps.series[i]);
	}
	if (data->steps.count > SERIES_MAX)
		summary_write_line(summary, "and steps on %zu more devices",
				   data->steps.count - SERIES_MAX);
}
