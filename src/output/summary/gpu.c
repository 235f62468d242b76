/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What ran on devices: the kernels that took the most time, copies with their bandwidth, what is
 * missing.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/gpu.h"
#include "output/format.h"
#include "output/summary/private.h"

static double compute_percent_of_whole(uint64_t part, uint64_t whole)
{
	return whole != 0 ? 100.0 * (double)part / (double)whole : 0;
}

struct share_text {
	char text[16];
};

static struct share_text share_cell(uint64_t part, uint64_t whole)
{
	struct share_text share;

	snprintf(share.text, sizeof(share.text), "%.1f%%", compute_percent_of_whole(part, whole));
	return share;
}

static void write_kernel_table(const struct summary_writer *summary, const struct gpu_data *data)
{
	uint64_t total = 0;

	for (size_t i = 0; i < data->kernel_count; i++)
		total += data->kernels[i].total_ns;
	summary_write_heading(summary, "Kernels on devices");
	summary_write_row(summary,
			  (const struct summary_cell[]){{"share", 8, 0},
							{"time", 10, 1},
							{"kernels", 12, 2},
							{"mean", 10, 3},
							{"shortest", 10, 5},
							{"longest", 10, 4}},
			  6, "kernel");
	for (size_t i = 0; i < data->kernel_count && i < summary->top; i++) {
		const struct gpu_kernel_row *row = &data->kernels[i];

		summary_write_row(
			summary,
			(const struct summary_cell[]){
				{share_cell(row->total_ns, total).text, 8, 0},
				{quantity_from_ns(row->total_ns).text, 10, 1},
				{quantity_from_count(row->count).text, 12, 2},
				{quantity_from_ns(row->count != 0 ? row->total_ns / row->count : 0)
					 .text,
				 10, 3},
				{quantity_from_ns(row->minimum_ns).text, 10, 5},
				{quantity_from_ns(row->maximum_ns).text, 10, 4}},
			6, row->name);
	}
	if (data->kernel_count > summary->top)
		summary_write_line(summary, "and %zu more kernels",
				   data->kernel_count - summary->top);
}

static void write_copy_row(const struct summary_writer *summary, const char *direction,
			   const struct gpu_copy_direction_sums *row)
{
	double rate = row->total_ns != 0 ? (double)row->bytes / (double)row->total_ns : 0;
	char name[32], bandwidth[32];

	snprintf(name, sizeof(name), "  %s", direction);
	snprintf(bandwidth, sizeof(bandwidth), "%6.2f GB/s", rate);
	summary_write_row(
		summary,
		(const struct summary_cell[]){{name, -19, 0},
					      {quantity_from_count(row->count).text, 12, 2},
					      {quantity_from_bytes(row->bytes).text, 11, 1},
					      {quantity_from_ns(row->total_ns).text, 10, 0}},
		4, bandwidth);
}

static void write_copy_table(const struct summary_writer *summary, const struct gpu_data *data)
{
	summary_write_row(
		summary,
		(const struct summary_cell[]){
			{"  copies", -19, 0}, {"number", 12, 2}, {"bytes", 11, 1}, {"time", 10, 0}},
		4, "   bandwidth");
	for (unsigned i = 0; i < GPU_DIRECTION_COUNT; i++) {
		const struct gpu_copy_direction_sums *row = &data->copy_sums_by_direction[i];

		if (row->count != 0)
			write_copy_row(summary, gpu_get_copy_direction_name(i), row);
	}
}

static void write_range_row(const struct summary_writer *summary, uint64_t all_ns,
			    const struct gpu_work_sums *work, uint64_t range_count,
			    const char *name)
{
	summary_write_row(
		summary,
		(const struct summary_cell[]){
			{share_cell(work->ns, all_ns).text, 8, 0},
			{quantity_from_ns(work->ns).text, 10, 1},
			{quantity_from_count(work->kernels).text, 12, 2},
			{quantity_from_count(work->copies).text, 10, 5},
			{range_count != 0 ? quantity_from_count(range_count).text : "", 10, 3},
			{range_count != 0 ? quantity_from_ns(work->ns / range_count).text : "", 10,
			 4}},
		6, name);
}

/* Whose time it is: by the ranges that the program was in where it launched the work. */
static void write_range_table(const struct summary_writer *summary, const struct gpu_ranges *ranges)
{
	uint64_t all_ns = ranges->outside.ns + ranges->unknown_launches.ns, from_others_ns = 0;
	uint32_t *order = ranges->count != 0 ? gpu_ranges_sort_by_total(ranges) : NULL;
	char path[512];

	for (size_t i = 0; i < ranges->count; i++) {
		all_ns += ranges->rows[i].own.ns + ranges->rows[i].from_other_threads.ns;
		from_others_ns += ranges->rows[i].from_other_threads.ns;
	}
	/* Ranges of a program that used no device are in the trace. */
	if (order == NULL || all_ns == 0) {
		free(order);
		return;
	}
	summary_write_heading(summary, "Device time by range of the program (NVTX, roctx)");
	summary_write_row(summary,
			  (const struct summary_cell[]){{"share", 8, 0},
							{"time", 10, 1},
							{"kernels", 12, 2},
							{"copies", 10, 5},
							{"ranges", 10, 3},
							{"mean", 10, 4}},
			  6, "range, with those inside it");
	for (size_t i = 0; i < ranges->count && i < summary->top; i++) {
		const struct gpu_range_row *row = &ranges->rows[order[i]];

		gpu_range_write_path(ranges, order[i], path, sizeof(path));
		write_range_row(summary, all_ns, &row->total, row->count, path);
	}
	if (ranges->count > summary->top)
		summary_write_line(summary, "and %zu more ranges", ranges->count - summary->top);
	if (ranges->outside.kernels + ranges->outside.copies != 0)
		write_range_row(summary, all_ns, &ranges->outside, 0, "[outside of ranges]");
	if (ranges->unknown_launches.kernels + ranges->unknown_launches.copies != 0)
		write_range_row(summary, all_ns, &ranges->unknown_launches, 0,
				"[launched by a call that was not recorded]");
	if (from_others_ns != 0)
		summary_write_line(summary,
				   "%.1f%% was launched by threads without a range, while one "
				   "other thread alone was in the range",
				   compute_percent_of_whole(from_others_ns, all_ns));
	free(order);
}

static void write_gpu_loss_warnings(const struct summary_writer *summary,
				    const struct gpu_data *data)
{
	for (unsigned i = 0; i < GPU_LOSS_COUNT; i++) {
		if (data->losses[i] != 0 && gpu_get_loss_text(i) != NULL)
			summary_write_warning(summary, "%s %s",
					      quantity_from_count(data->losses[i]).text,
					      gpu_get_loss_text(i));
	}
	if (data->torn_bytes != 0)
		summary_write_warning(summary, "%s of device records could not be read",
				      quantity_from_bytes(data->torn_bytes).text);
	for (size_t i = 0; i < data->problem_count; i++)
		summary_write_warning(summary, "%s", data->problems[i]);
}

/* A library that only programs have which use devices. */
static const struct model_module *find_gpu_runtime_library(const struct session *session,
							   const char **ret_runtime)
{
	static const struct {
		const char *prefix, *runtime;
	} libraries[] = {{"libcuda.so", "CUDA"},
			 {"libcudart.so", "CUDA"},
			 {"libamdhip64.so", "HIP"},
			 {"libhsa-runtime64.so", "ROCm"},
			 {"libOpenCL.so", "OpenCL"}};

	for (uint32_t i = 0; i < session->module_count; i++) {
		for (size_t k = 0; k < sizeof(libraries) / sizeof(*libraries); k++) {
			if (strncmp(session->modules[i].name, libraries[k].prefix,
				    strlen(libraries[k].prefix)) != 0)
				continue;
			*ret_runtime = libraries[k].runtime;
			return &session->modules[i];
		}
	}
	return NULL;
}

static bool is_setting_off(const struct session *session, const char *setting)
{
	const char *value = session_find_launch_setting(session, setting);

	return value && !strcmp(value, "off");
}

/* Nothing on devices is no proof that nothing ran there. */
static void write_unrecorded_devices_warning(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	const char *runtime = NULL, *why = NULL;
	const struct model_module *library = find_gpu_runtime_library(session, &runtime);

	if (session->launch.attached)
		why = "kymo attach comes too late for that; start the program with kymo";
	else if (is_setting_off(session, "USE_GPU"))
		why = "USE_GPU is off";
	if (!library || !why)
		return;
	summary_write_heading(summary, "Devices");
	summary_write_warning(
		summary, "%s uses %s (%s), but kernels and copies on devices were not recorded: %s",
		session->processes[library->process].name, runtime, library->name, why);
}

void summary_write_gpu(const struct summary_writer *summary)
{
	const struct gpu_data *data = session_get_gpu_data(summary->session);

	if (data == NULL) {
		write_unrecorded_devices_warning(summary);
		return;
	}
	if (data->kernel_count != 0)
		write_kernel_table(summary, data);
	else if (data->copy_record_count != 0 || data->problem_count != 0)
		summary_write_heading(summary, "Devices");
	if (data->copy_record_count != 0)
		write_copy_table(summary, data);
	write_range_table(summary, &data->ranges);
	write_gpu_loss_warnings(summary, data);
}
