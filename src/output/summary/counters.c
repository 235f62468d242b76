/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters: by kernel, those that took the most time first, and of devices as a whole.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/gpu.h"
#include "output/format.h"
#include "output/summary/private.h"

#define NUMBER_COLUMNS_ALL       76 /* of the terminal, where there is room for three */
#define COUNTER_NAME_WIDTH_CHARS 34

struct number_text {
	char text[40];
};

/* Up to fifteen digits as they are, more as a power of ten; "-": no finite number. */
static struct number_text format_number_text(double value)
{
	struct number_text text;

	if (!isfinite(value))
		strcpy(text.text, "-");
	else if (value == rint(value) && fabs(value) < 1e15)
		snprintf(text.text, sizeof(text.text), "%s%s", value < 0 ? "-" : "",
			 quantity_from_count((uint64_t)fabs(value)).text);
	else
		snprintf(text.text, sizeof(text.text), "%.6g", value);
	return text;
}

/* What a kernel's numbers leave for its name. */
static size_t get_title_columns(const struct summary_writer *summary)
{
	return summary->columns > 60 ? summary->columns - 40 : 20;
}

static void write_counter_cells(const struct summary_writer *summary, const char *name,
				const char *mean, const char *least, const char *most)
{
	size_t numbers = summary->columns < NUMBER_COLUMNS_ALL ? 1 : 3;
	size_t width = summary->columns - 5 - numbers * 18;

	fputs("    ", summary->stream);
	format_write_padded_to_width(summary->stream, name,
				     width < COUNTER_NAME_WIDTH_CHARS ? width
								      : COUNTER_NAME_WIDTH_CHARS);
	fprintf(summary->stream, " %17s", mean);
	if (numbers > 1)
		fprintf(summary->stream, " %17s %17s", least, most);
	fputc('\n', summary->stream);
}

static void write_counter_row(const struct summary_writer *summary,
			      const struct gpu_counter_row *row)
{
	write_counter_cells(
		summary, row->counter_name,
		format_number_text(row->count != 0 ? row->sum / (double)row->count : 0).text,
		format_number_text(row->minimum).text, format_number_text(row->maximum).text);
}

/* The rows of a kernel lie together. */
struct kernel_counter_rows {
	const struct gpu_counter_row *rows;
	size_t count;
};

static int compare_kernels_by_time(const void *left, const void *right)
{
	const struct kernel_counter_rows *a = left, *b = right;

	if (a->rows->ns != b->rows->ns)
		return a->rows->ns > b->rows->ns ? -1 : 1;
	return strcmp(a->rows->kernel_name, b->rows->kernel_name);
}

static size_t group_rows_by_kernel(const struct gpu_data *data, struct kernel_counter_rows *blocks)
{
	size_t count = 0;

	for (size_t i = 0; i < data->kernel_counter_row_count; i++) {
		const struct gpu_counter_row *row = &data->kernel_counter_rows[i];

		if (i == 0 || strcmp(row->kernel_name, row[-1].kernel_name) != 0 ||
		    strcmp(row->agent_name, row[-1].agent_name) != 0)
			blocks[count++] = (struct kernel_counter_rows){row, 0};
		blocks[count - 1].count++;
	}
	return count;
}

static void write_kernel_counters(const struct summary_writer *summary, const struct gpu_data *data)
{
	struct kernel_counter_rows *blocks =
		calloc(data->kernel_counter_row_count, sizeof(*blocks));
	size_t count;

	if (blocks == NULL)
		return;
	count = group_rows_by_kernel(data, blocks);
	qsort(blocks, count, sizeof(*blocks), compare_kernels_by_time);
	summary_write_heading(summary, "Counters of kernels");
	write_counter_cells(summary, "counter", "mean per launch", "least", "most");
	for (size_t i = 0; i < count && i < summary->top; i++) {
		fputs("  ", summary->stream);
		format_write_cut_to_width(summary->stream, blocks[i].rows->kernel_name,
					  get_title_columns(summary));
		fprintf(summary->stream, ", %s launches, %s\n",
			quantity_from_count(blocks[i].rows->count).text,
			quantity_from_ns(blocks[i].rows->ns).text);
		for (size_t k = 0; k < blocks[i].count; k++)
			write_counter_row(summary, &blocks[i].rows[k]);
	}
	if (count > summary->top)
		summary_write_line(summary, "and %zu more kernels", count - summary->top);
	free(blocks);
}

static void write_device_counters(const struct summary_writer *summary, const struct gpu_data *data)
{
	summary_write_heading(summary, "Counters of devices");
	write_counter_cells(summary, "counter", "mean per reading", "least", "most");
	for (size_t i = 0; i < data->device_reading_row_count; i++) {
		const struct gpu_counter_row *row = &data->device_reading_rows[i];

		if (i == 0 || strcmp(row->agent_name, row[-1].agent_name) != 0) {
			fputs("  ", summary->stream);
			format_write_cut_to_width(summary->stream, row->agent_name,
						  get_title_columns(summary));
			fprintf(summary->stream, ", %s readings\n",
				quantity_from_count(row->count).text);
		}
		write_counter_row(summary, row);
	}
}

bool summary_has_counters(const struct summary_writer *summary)
{
	const struct gpu_data *data = session_get_gpu_data(summary->session);

	return data != NULL &&
	       (data->kernel_counter_row_count != 0 || data->device_reading_row_count != 0);
}

static bool is_setting_nonempty(const struct session *session, const char *setting)
{
	const char *value = session_find_launch_setting(session, setting);

	return value && *value;
}

/* There are no files of them then, and whoever asked for them is to know why. */
static void warn_of_requested_empty_counters(const struct summary_writer *summary, bool of_kernels,
					     bool of_devices)
{
	if (of_kernels && is_setting_nonempty(summary->session, "COUNTERS")) {
		summary_write_heading(summary, "Counters of kernels");
		summary_write_warning(summary,
				      "no kernel was counted: no kernel ran on a device with these "
				      "per-kernel counters, or a message above gives the reason");
	}
	if (of_devices && is_setting_nonempty(summary->session, "DEVICE_COUNTERS")) {
		summary_write_heading(summary, "Counters of devices");
		summary_write_warning(summary,
				      "no device was read: the program used no device with "
				      "these counters, or a message above gives the reason");
	}
}

void summary_write_counters(const struct summary_writer *summary)
{
	const struct gpu_data *data = session_get_gpu_data(summary->session);
	bool has_kernels = data != NULL && data->kernel_counter_row_count != 0;
	bool has_devices = data != NULL && data->device_reading_row_count != 0;

	if (has_kernels)
		write_kernel_counters(summary, data);
	if (has_devices)
		write_device_counters(summary, data);
	warn_of_requested_empty_counters(summary, !has_kernels, !has_devices);
	if (data != NULL && data->filtered_out_kernel_count != 0)
		summary_write_line(
			summary,
			"%s launches were not counted because the kernel filter excludes them",
			quantity_from_count(data->filtered_out_kernel_count).text);
}
