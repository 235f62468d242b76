/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What ran on devices: the kernels that took the most time, copies with their bandwidth, what is
 * missing.
 */
#include "analysis/gpu.h"
#include "output/format.h"
#include "output/summary.h"

#define NAME_WIDTH 46

static double share_of(uint64_t part, uint64_t whole)
{
	return whole != 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void write_kernels(const struct summary *summary, const struct gpu_data *data)
{
	uint64_t total = 0;

	for (size_t i = 0; i < data->kernel_count; i++)
		total += data->kernels[i].total_ns;
	summary_heading(summary, "Kernels on devices");
	fprintf(summary->stream, "  %6s %9s %11s %9s %9s %9s  %s\n", "share", "time", "kernels",
		"mean", "shortest", "longest", "kernel");
	for (size_t i = 0; i < data->kernel_count && i < summary->top; i++) {
		const struct gpu_kernel_row *row = &data->kernels[i];

		fprintf(summary->stream, "  %5.1f%% %9s %11s %9s %9s %9s  ",
			share_of(row->total_ns, total), quantity_time(row->total_ns).text,
			quantity_count(row->count).text,
			quantity_time(row->count != 0 ? row->total_ns / row->count : 0).text,
			quantity_time(row->minimum_ns).text, quantity_time(row->maximum_ns).text);
		format_limited(summary->stream, row->name, NAME_WIDTH);
		fputc('\n', summary->stream);
	}
	if (data->kernel_count > summary->top)
		summary_line(summary, "and %zu more kernels", data->kernel_count - summary->top);
}

static void write_copies(const struct summary *summary, const struct gpu_data *data)
{
	fprintf(summary->stream, "  %-17s %11s %10s %9s %12s\n", "copies", "number", "bytes",
		"time", "bandwidth");
	for (unsigned i = 0; i < GPU_DIRECTION_COUNT; i++) {
		const struct gpu_copy_row *row = &data->copies[i];
		double rate = row->total_ns != 0 ? (double)row->bytes / (double)row->total_ns : 0;

		if (row->count != 0)
			fprintf(summary->stream, "  %-17s %11s %10s %9s %7.2f GB/s\n",
				gpu_direction_name(i), quantity_count(row->count).text,
				quantity_bytes(row->bytes).text, quantity_time(row->total_ns).text,
				rate);
	}
}

static void write_missing(const struct summary *summary, const struct gpu_data *data)
{
	for (unsigned i = 0; i < GPU_LOSS_COUNT; i++) {
		if (data->losses[i] != 0 && gpu_loss_explained(i) != NULL)
			summary_warning(summary, "%s %s", quantity_count(data->losses[i]).text,
					gpu_loss_explained(i));
	}
	if (data->torn_bytes != 0)
		summary_warning(summary, "%s of records of devices cannot be read",
				quantity_bytes(data->torn_bytes).text);
	for (size_t i = 0; i < data->problem_count; i++)
		summary_warning(summary, "%s", data->problems[i]);
}

void summary_gpu(const struct summary *summary)
{
	const struct gpu_data *data = summary->session->gpu;

	if (data == NULL)
		return;
	if (data->kernel_count != 0)
		write_kernels(summary, data);
	else if (data->copy_records != 0 || data->problem_count != 0)
		summary_heading(summary, "Devices");
	if (data->copy_records != 0)
		write_copies(summary, data);
	write_missing(summary, data);
}
