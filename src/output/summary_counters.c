/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters: by kernel, those that took the most time first, and of devices as a whole.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu.h"
#include "output/format.h"
#include "output/summary.h"

#define NAME_WIDTH    60
#define COUNTER_WIDTH 34

struct shown {
	char text[40];
};

/* Up to fifteen digits as they are, more as a power of ten; "-": no finite number. */
static struct shown shown(double value)
{
	struct shown text;

	if (!isfinite(value))
		strcpy(text.text, "-");
	else if (value == rint(value) && fabs(value) < 1e15)
		snprintf(text.text, sizeof(text.text), "%s%s", value < 0 ? "-" : "",
			 quantity_count((uint64_t)fabs(value)).text);
	else
		snprintf(text.text, sizeof(text.text), "%.6g", value);
	return text;
}

static void write_row(const struct summary *summary, const struct gpu_count_row *row)
{
	fputs("    ", summary->stream);
	format_fitted(summary->stream, row->counter, COUNTER_WIDTH);
	fprintf(summary->stream, " %17s %17s %17s\n",
		shown(row->count != 0 ? row->sum / (double)row->count : 0).text,
		shown(row->minimum).text, shown(row->maximum).text);
}

/* The rows of a kernel lie together. */
struct block {
	const struct gpu_count_row *rows;
	size_t count;
};

static int by_time(const void *left, const void *right)
{
	const struct block *a = left, *b = right;

	if (a->rows->ns != b->rows->ns)
		return a->rows->ns > b->rows->ns ? -1 : 1;
	return strcmp(a->rows->kernel, b->rows->kernel);
}

static size_t find_blocks(const struct gpu_data *data, struct block *blocks)
{
	size_t count = 0;

	for (size_t i = 0; i < data->count_rows; i++) {
		const struct gpu_count_row *row = &data->counts[i];

		if (i == 0 || strcmp(row->kernel, row[-1].kernel) != 0 ||
		    strcmp(row->agent, row[-1].agent) != 0)
			blocks[count++] = (struct block){row, 0};
		blocks[count - 1].count++;
	}
	return count;
}

static void write_kernels(const struct summary *summary, const struct gpu_data *data)
{
	struct block *blocks = calloc(data->count_rows, sizeof(*blocks));
	size_t count;

	if (blocks == NULL)
		return;
	count = find_blocks(data, blocks);
	qsort(blocks, count, sizeof(*blocks), by_time);
	summary_heading(summary, "Counters of kernels");
	fprintf(summary->stream, "    %-*s %17s %17s %17s\n", COUNTER_WIDTH, "counter",
		"mean of a launch", "least", "most");
	for (size_t i = 0; i < count && i < summary->top; i++) {
		fputs("  ", summary->stream);
		format_limited(summary->stream, blocks[i].rows->kernel, NAME_WIDTH);
		fprintf(summary->stream, ", %s launches, %s\n",
			quantity_count(blocks[i].rows->count).text,
			quantity_time(blocks[i].rows->ns).text);
		for (size_t k = 0; k < blocks[i].count; k++)
			write_row(summary, &blocks[i].rows[k]);
	}
	if (count > summary->top)
		summary_line(summary, "and %zu more kernels", count - summary->top);
	free(blocks);
}

static void write_devices(const struct summary *summary, const struct gpu_data *data)
{
	summary_heading(summary, "Counters of devices");
	fprintf(summary->stream, "    %-*s %17s %17s %17s\n", COUNTER_WIDTH, "counter",
		"mean of a reading", "least", "most");
	for (size_t i = 0; i < data->reading_rows; i++) {
		const struct gpu_count_row *row = &data->readings[i];

		if (i == 0 || strcmp(row->agent, row[-1].agent) != 0) {
			fputs("  ", summary->stream);
			format_limited(summary->stream, row->agent, NAME_WIDTH);
			fprintf(summary->stream, ", %s readings\n",
				quantity_count(row->count).text);
		}
		write_row(summary, row);
	}
}

bool summary_has_counters(const struct summary *summary)
{
	const struct gpu_data *data = summary->session->gpu;

	return data != NULL && (data->count_rows != 0 || data->reading_rows != 0);
}

static bool is_asked_for(const struct session *session, const char *setting)
{
	for (uint32_t i = 0; i < session->launch.setting_count; i++) {
		const struct model_setting *known = &session->launch.settings[i];

		if (strcmp(known->name, setting) == 0)
			return known->value != NULL && known->value[0] != '\0';
	}
	return false;
}

/* There are no files of them then, and whoever asked for them is to know why. */
static void write_none(const struct summary *summary, bool of_kernels, bool of_devices)
{
	if (of_kernels && is_asked_for(summary->session, "COUNTERS")) {
		summary_heading(summary, "Counters of kernels");
		summary_warning(summary,
				"no kernel was counted: none ran on a device that has these "
				"counters of single kernels, or it is said above why");
	}
	if (of_devices && is_asked_for(summary->session, "DEVICE_COUNTERS")) {
		summary_heading(summary, "Counters of devices");
		summary_warning(summary,
				"no device was read: none that has these counters was used, or "
				"it is said above why");
	}
}

void summary_counters(const struct summary *summary)
{
	const struct gpu_data *data = summary->session->gpu;
	bool has_kernels = data != NULL && data->count_rows != 0;
	bool has_devices = data != NULL && data->reading_rows != 0;

	if (has_kernels)
		write_kernels(summary, data);
	if (has_devices)
		write_devices(summary, data);
	write_none(summary, !has_kernels, !has_devices);
	if (data != NULL && data->filtered_kernels != 0)
		summary_line(summary,
			     "%s launches were left out by the filter of kernels, and not counted",
			     quantity_count(data->filtered_kernels).text);
}
