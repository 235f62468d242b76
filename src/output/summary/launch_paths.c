/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Device time by the lines of code that launched it, and how much of it has no call path.
 */
#include <stdlib.h>

#include "analysis/gpu/gpu.h"
#include "output/device_idle.h"
#include "output/device_lines.h"
#include "output/format.h"
#include "output/summary/private.h"

#define NAME_COLUMNS_MAX  52
#define MODULES_SHOWN_MAX 3u

static double compute_percent(uint64_t part, uint64_t whole)
{
	return whole != 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void write_line_table(const struct summary_writer *summary, const struct device_lines *lines)
{
	char name[512];

	summary_write_heading(summary, "Device time by line of code that launched it");
	fprintf(summary->stream, "  %6s %9s  %8s %9s %11s  %s\n", "self", "", "total", "", "work",
		"function (file:line)");
	for (size_t i = 0; i < lines->line_count && i < summary->top; i++) {
		const struct device_line *line = &lines->lines[i];

		device_format_launching_frame(name, sizeof(name), summary->session, line->frame);
		fprintf(summary->stream, "  %5.1f%% %9s  %7.1f%% %9s %11s  ",
			compute_percent(line->own_ns, lines->total_ns),
			quantity_from_ns(line->own_ns).text,
			compute_percent(line->inclusive_ns, lines->total_ns),
			quantity_from_ns(line->inclusive_ns).text,
			quantity_from_count(line->own_count).text);
		format_write_cut_to_width(summary->stream, name, NAME_COLUMNS_MAX);
		fputc('\n', summary->stream);
	}
	if (lines->line_count > summary->top)
		summary_write_line(summary, "and %zu more lines", lines->line_count - summary->top);
}

static void write_module_line(const struct summary_writer *summary,
			      const struct device_lines *lines)
{
	char text[512] = "";
	size_t used = 0;

	if (lines->module_count < 2)
		return;
	for (size_t i = 0; i < lines->module_count && i < MODULES_SHOWN_MAX; i++) {
		int length = snprintf(text + used, sizeof(text) - used, "%s%s %.1f%%",
				      i != 0 ? ", " : "",
				      format_find_source_name(lines->modules[i].name),
				      compute_percent(lines->modules[i].ns, lines->total_ns));

		used += length > 0 ? (size_t)length : 0;
		if (used >= sizeof(text))
			break;
	}
	summary_write_line(summary, "by file of that code: %s%s", text,
			   lines->module_count > MODULES_SHOWN_MAX ? ", ..." : "");
}

static void write_path_gaps(const struct summary_writer *summary,
			    const struct gpu_launch_path_sums *paths)
{
	uint64_t all = paths->all.ns;

	for (unsigned i = 0; i < SPOOL_STACK_END_COUNT; i++) {
		if (paths->cut[i].kernels + paths->cut[i].copies != 0)
			summary_write_warning(
				summary, "%.2f%% of device time has an incomplete call path: %s",
				compute_percent(paths->cut[i].ns, all),
				spool_stack_end_get_text((enum spool_stack_end)i));
	}
	for (unsigned i = 0; i < GPU_PATH_GAP_COUNT; i++) {
		if (paths->gaps[i].kernels + paths->gaps[i].copies != 0)
			summary_write_warning(summary, "%.2f%% of device time has no call path: %s",
					      compute_percent(paths->gaps[i].ns, all),
					      gpu_path_gap_get_text((enum gpu_path_gap)i));
	}
}

static void write_idle_table(const struct summary_writer *summary, const struct gpu_idle *idle,
			     const struct device_idle_line *lines, size_t count)
{
	char name[512];

	summary_write_heading(summary,
			      "Idle time of devices by line of code that launched the next work");
	fprintf(summary->stream, "  %6s %9s %8s %11s %9s  %s\n", "share", "time", "host", "gaps",
		"longest", "function (file:line)");
	for (size_t i = 0; i < count && i < summary->top; i++) {
		snprintf(name, sizeof(name), "[no call path]");
		if (lines[i].frame != MODEL_ENTRY_INDEX_NONE)
			device_format_launching_frame(name, sizeof(name), summary->session,
						      lines[i].frame);
		fprintf(summary->stream, "  %5.1f%% %9s %7.1f%% %11s %9s  ",
			compute_percent(lines[i].ns, idle->span_ns),
			quantity_from_ns(lines[i].ns).text,
			compute_percent(lines[i].before_launch_ns, lines[i].ns),
			quantity_from_count(lines[i].gaps).text,
			quantity_from_ns(lines[i].longest_ns).text);
		format_write_cut_to_width(summary->stream, name, NAME_COLUMNS_MAX);
		fputc('\n', summary->stream);
	}
	summary_write_line(summary,
			   "nothing of the program ran on devices for %.1f%% of the %s between "
			   "first and last work; for %.1f%% of that time the host had not "
			   "launched the next work yet (host)",
			   compute_percent(idle->idle_ns, idle->span_ns),
			   quantity_from_ns(idle->span_ns).text,
			   compute_percent(idle->before_launch_ns, idle->idle_ns));
}

static int write_idle_time(const struct summary_writer *summary, const struct gpu_data *data)
{
	struct device_idle_line *lines;
	size_t count;
	int result;

	if (data->idle.idle_ns == 0)
		return 0;
	result = device_idle_build_lines(summary->session, data, &lines, &count);
	if (result < 0)
		return result;
	write_idle_table(summary, &data->idle, lines, count);
	free(lines);
	return 0;
}

int summary_write_launch_paths(const struct summary_writer *summary)
{
	const struct gpu_data *data = session_get_gpu_data(summary->session);
	struct device_lines lines;
	int result;

	if (data == NULL || !data->launch_paths.is_recorded)
		return 0;
	result = device_lines_build(&lines, summary->session);
	if (result == 0) {
		if (lines.line_count != 0) {
			write_line_table(summary, &lines);
			write_module_line(summary, &lines);
		}
		write_path_gaps(summary, &data->launch_paths);
	}
	device_lines_deinit(&lines);
	return result == 0 ? write_idle_time(summary, data) : result;
}
