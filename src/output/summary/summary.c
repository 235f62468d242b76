/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The summary at exit: what somebody who knows nothing about kymo wants to see after a run. What
 * takes the time first, then whether to believe it: what is missing and what kymo itself cost. Fits
 * the terminal; sections without content are left out.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/regions/calls.h"
#include "files/stream.h"
#include "output/format.h"
#include "output/formats/formats.h"
#include "output/summary/private.h"

#define TABLE_ROWS_DEFAULT           10
#define SUMMARY_CAPTURE_NAME_COLUMNS 400

static void write_color_sequence(const struct summary_writer *summary, const char *sequence)
{
	if (summary->colour)
		fputs(sequence, summary->stream);
}

/* ---- to a page ---- */

/* The name that stands at the beginning of `text`; the rest of it. */
static char *pass_row_on(struct summary_capture *capture, char *text)
{
	const char *cells[SUMMARY_CAPTURE_CELLS_MAX];
	char *end = text + strcspn(text, "\n"), *rest = *end ? end + 1 : end;

	for (size_t i = 0; i < capture->cell_count; i++)
		cells[i] = capture->cells[i];
	*end = 0;
	capture->receiver->receive_row(capture->receiver->context, cells, capture->cell_count,
				       text);
	capture->cell_count = 0;
	return rest;
}

/* What was written since the last call. */
static void pass_rows_on(const struct summary_writer *summary)
{
	struct summary_capture *capture = summary->capture;
	char *text;

	fflush(summary->stream);
	if (!capture->text || capture->size == capture->passed)
		return;
	text = capture->text + capture->passed;
	capture->passed = capture->size;
	if (capture->cell_count)
		text = pass_row_on(capture, text);
	if (*text)
		capture->receiver->receive_text(capture->receiver->context, SUMMARY_TEXT_ROWS,
						text);
}

/* Keeps the cells until the name has been written. */
static void keep_cells(const struct summary_writer *summary, const struct summary_cell *cells,
		       size_t count)
{
	struct summary_capture *capture = summary->capture;

	pass_rows_on(summary);
	for (size_t i = 0; i < count && i < SUMMARY_CAPTURE_CELLS_MAX; i++)
		snprintf(capture->cells[i], sizeof(capture->cells[i]), "%s",
			 cells[i].text + strspn(cells[i].text, " "));
	capture->cell_count = count < SUMMARY_CAPTURE_CELLS_MAX ? count : SUMMARY_CAPTURE_CELLS_MAX;
}

static bool pass_text_on(const struct summary_writer *summary, enum summary_text_kind kind,
			 const char *text)
{
	struct summary_capture *capture = summary->capture;

	if (capture == NULL)
		return false;
	pass_rows_on(summary);
	capture->receiver->receive_text(capture->receiver->context, kind, text);
	return true;
}

/* ---- to a terminal ---- */

void summary_write_heading(const struct summary_writer *summary, const char *title)
{
	if (pass_text_on(summary, SUMMARY_TEXT_HEADING, title))
		return;
	fputc('\n', summary->stream);
	write_color_sequence(summary, "\033[1m");
	/* What is in parentheses can be missed where there is no room. */
	if (format_count_text_columns(title) > summary->columns)
		fprintf(summary->stream, "%.*s", (int)strcspn(title, "("), title);
	else
		fputs(title, summary->stream);
	write_color_sequence(summary, "\033[0m");
	fputc('\n', summary->stream);
}

static void write_wrapped_text(const struct summary_writer *summary, const char *text)
{
	size_t column = 0;

	for (const char *word = text; *word;) {
		size_t size = strcspn(word, " ");
		char copy[SUMMARY_COLUMNS_MAX * 4];
		size_t width;

		snprintf(copy, sizeof(copy), "%.*s", (int)size, word);
		width = format_count_text_columns(copy);
		if (column == 0) {
			column = (size_t)fprintf(summary->stream, "  ");
		} else if (column + 1 + width > summary->columns) {
			column = (size_t)fprintf(summary->stream, "\n    ") - 1;
		} else {
			fputc(' ', summary->stream);
			column++;
		}
		column += format_write_cut_to_width(summary->stream, copy, summary->columns - 4);
		word += size;
		word += strspn(word, " ");
	}
	fputc('\n', summary->stream);
}

static void write_formatted_wrapped(const struct summary_writer *summary,
				    enum summary_text_kind kind, const char *format,
				    va_list arguments)
{
	char text[2048];

	vsnprintf(text, sizeof(text), format, arguments);
	if (!pass_text_on(summary, kind, text))
		write_wrapped_text(summary, text);
}

void summary_write_line(const struct summary_writer *summary, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_formatted_wrapped(summary, SUMMARY_TEXT_LINE, format, arguments);
	va_end(arguments);
}

void summary_write_warning(const struct summary_writer *summary, const char *format, ...)
{
	va_list arguments;

	write_color_sequence(summary, "\033[33m");
	va_start(arguments, format);
	write_formatted_wrapped(summary, SUMMARY_TEXT_WARNING, format, arguments);
	va_end(arguments);
	write_color_sequence(summary, "\033[0m");
}

/* ---- rows of tables ---- */

#define NAME_COLUMNS_MIN 28 /* "transfer_money (accounts.c:41)" */

static size_t count_cell_columns(const struct summary_cell *cells, size_t count, unsigned rank_max)
{
	size_t columns = 2;

	for (size_t i = 0; i < count; i++) {
		if (cells[i].rank <= rank_max)
			columns += (size_t)abs(cells[i].width);
	}
	return columns;
}

size_t summary_write_cells(const struct summary_writer *summary, const struct summary_cell *cells,
			   size_t count)
{
	unsigned rank_max = 0;
	size_t used;

	if (summary->capture) {
		keep_cells(summary, cells, count);
		return SUMMARY_CAPTURE_NAME_COLUMNS;
	}
	for (size_t i = 0; i < count; i++)
		rank_max = cells[i].rank > rank_max ? cells[i].rank : rank_max;
	while (rank_max &&
	       count_cell_columns(cells, count, rank_max) + NAME_COLUMNS_MIN > summary->columns)
		rank_max--;
	used = count_cell_columns(cells, count, rank_max);
	for (size_t i = 0; i < count; i++) {
		if (cells[i].rank <= rank_max)
			fprintf(summary->stream, "%*s", cells[i].width, cells[i].text);
	}
	fputs("  ", summary->stream);
	return summary->columns > used ? summary->columns - used : 0;
}

void summary_write_row(const struct summary_writer *summary, const struct summary_cell *cells,
		       size_t count, const char *name)
{
	size_t columns = summary_write_cells(summary, cells, count);

	format_write_cut_to_width(summary->stream, name, columns);
	fputc('\n', summary->stream);
}

size_t summary_write_weight_cells(const struct summary_writer *summary, uint64_t self,
				  uint64_t total, uint64_t whole)
{
	return summary_write_cells(
		summary,
		(const struct summary_cell[]){
			{quantity_from_share(self, whole).text, 10, 0},
			{quantity_from_measure(self, summary->measure).text, 10, 2},
			{quantity_from_share(total, whole).text, 10, 1},
			{quantity_from_measure(total, summary->measure).text, 10, 3}},
		SUMMARY_WEIGHT_CELL_COUNT);
}

/* ---- the head ---- */

static void write_summary_title(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	const struct model_program_launch *launch = &session->launch;
	uint64_t duration = session->end_ns - session->start_ns;
	char end[64];

	if (launch->end_realtime_ns > launch->start_realtime_ns && launch->start_realtime_ns)
		duration = launch->end_realtime_ns - launch->start_realtime_ns;
	if (summary->capture == NULL) {
		write_color_sequence(summary, "\033[1m");
		fputs("kymo: ", summary->stream);
		format_write_cut_to_width(summary->stream, session->command_line,
					  summary->columns - 6);
		write_color_sequence(summary, "\033[0m");
		fputc('\n', summary->stream);
	}
	summary_write_no_samples_reason(summary);
	summary_write_overwritten_span(summary);
	if (launch->is_wait_status_known) {
		format_wait_status(end, sizeof(end), launch->wait_status);
		summary_write_line(summary, "%s after %s", end, quantity_from_ns(duration).text);
	} else {
		summary_write_line(summary, "%s of data", quantity_from_ns(duration).text);
	}
}

static void write_process_and_thread_counts(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	uint32_t threads = view_count_program_threads(session);

	if (!session->process_count)
		return;
	if (!summary->samples && session_get_calls(session)->words) {
		summary_write_line(summary, "%s calls of functions in %s thread%s of %s process%s",
				   quantity_from_count(session_get_calls(session)->recorded).text,
				   quantity_from_count(threads).text, threads == 1 ? "" : "s",
				   quantity_from_count(session->process_count).text,
				   session->process_count == 1 ? "" : "es");
		return;
	}
	if (!summary->samples &&
	    (summary_has_counters(summary) || summary_was_told_not_to_sample(summary) ||
	     session_get_calls(session)->module_count)) {
		summary_write_line(summary, "%s thread%s of %s process%s",
				   quantity_from_count(threads).text, threads == 1 ? "" : "s",
				   quantity_from_count(session->process_count).text,
				   session->process_count == 1 ? "" : "es");
		return;
	}
	summary_write_line(summary, "%s %s%s in %s thread%s of %s process%s",
			   quantity_from_count(summary->samples).text,
			   summary->measure == VIEW_MEASURE_DEVICE_TIME ? "" : "samples of ",
			   summary->measure == VIEW_MEASURE_DEVICE_TIME
				   ? "kernels, copies and fills on devices, launched"
			   : summary->measure == VIEW_MEASURE_CPU_TIME ? "CPU time"
			   : summary->measure == VIEW_MEASURE_REAL_TIME
				   ? "real time"
				   : session_get_overflow_event_name(session),
			   quantity_from_count(threads).text, threads == 1 ? "" : "s",
			   quantity_from_count(session->process_count).text,
			   session->process_count == 1 ? "" : "es");
}

/* They are too many and too short to be sampled one by one. */
static void write_line_of_all_short_processes(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	uint64_t cpu_ns = 0, unknown = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];
		bool ended = false;

		if (!process->is_short_process)
			continue;
		count++;
		for (uint32_t k = 0; k < process->thread_count; k++) {
			cpu_ns += session->threads[process->first_thread + k].cpu_ns;
			ended |= session->threads[process->first_thread + k].end_ns != UINT64_MAX;
		}
		unknown += !ended;
	}
	if (!count)
		return;
	summary_write_line(
		summary,
		"%s short process%s with %s of CPU time in total ended before sampling began "
		"in %s",
		quantity_from_count(count).text, count == 1 ? "" : "es",
		quantity_from_ns(cpu_ns).text, count == 1 ? "it" : "them");
	if (unknown)
		summary_write_line(
			summary,
			"the CPU time of %s of them is not known: a signal ended them, or "
			"they still run",
			quantity_from_count(unknown).text);
}

static void set_total_weight_and_samples(struct summary_writer *summary)
{
	const struct session *session = summary->session;

	for (uint32_t i = 0; i < session->thread_count; i++) {
		summary->total +=
			view_sum_sources_of_measure(session->threads[i].weight, summary->measure);
		summary->samples +=
			view_sum_sources_of_measure(session->threads[i].samples, summary->measure);
	}
}

/* ---- the end ---- */

static void write_reading_problems(const struct summary_writer *summary)
{
	const struct session *session = summary->session;

	if (session->problem_count == 0)
		return;
	summary_write_heading(summary, "Problems while reading the results");
	for (size_t i = 0; i < session->problem_count && i < TABLE_ROWS_DEFAULT; i++)
		summary_write_warning(summary, "%s", session->problems[i]);
	if (session->problem_count > TABLE_ROWS_DEFAULT)
		summary_write_warning(summary, "... and %zu more, see metadata.json",
				      session->problem_count - TABLE_ROWS_DEFAULT);
}

static void write_list_of_result_files(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	bool any = false;

	summary_write_heading(summary, "Results");
	summary_write_line(summary, "%s", session->results_display_name);
	for (size_t i = 0; i < output_format_count; i++) {
		const struct output_format *format = output_formats[i];
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", session->results, format->file_name);
		if (access(path, F_OK) != 0)
			continue;
		fputs("    ", summary->stream);
		snprintf(path, sizeof(path), "%-16s %s", format->file_name, format->description);
		format_write_cut_to_width(summary->stream, path, summary->columns - 4);
		fputc('\n', summary->stream);
		any = true;
	}
	if (!any)
		summary_write_line(summary, "`kymo report --format %s %s` shows %s",
				   session->process_count ? "text" : "nccl",
				   session->results_display_name,
				   session->process_count ? "the call tree" : "more of NCCL");
}

static size_t limit_columns(unsigned columns)
{
	if (columns == 0)
		return SUMMARY_COLUMNS_DEFAULT;
	if (columns < SUMMARY_COLUMNS_MIN)
		return SUMMARY_COLUMNS_MIN;
	return columns < SUMMARY_COLUMNS_MAX ? columns : SUMMARY_COLUMNS_MAX;
}

static struct summary_writer make_summary_writer(struct session *session,
						 const struct output_options *options, FILE *stream)
{
	struct summary_writer summary = {.session = session,
					 .stream = stream,
					 .measure = options->is_measure_given
							    ? options->measure
							    : view_choose_default_measure(session),
					 .top = options->top ? options->top : TABLE_ROWS_DEFAULT,
					 .columns = limit_columns(options->columns)};

	set_total_weight_and_samples(&summary);
	return summary;
}

static int write_all_sections(const struct summary_writer *summary, struct problem *problem)
{
	int result;

	write_summary_title(summary);
	write_process_and_thread_counts(summary);
	summary_write_cpu_time(summary);
	write_line_of_all_short_processes(summary);
	summary_write_real_time(summary);
	summary_write_interpreter_states(summary);
	result = 0;
	if (summary_is_of_machine(summary)) {
		result = summary_write_processes(summary);
		if (result == 0)
			result = summary_write_machine(summary);
	}
	if (result == 0)
		result = summary_write_functions(summary);
	if (result == 0)
		result = summary_write_interpreted_lines(summary);
	if (result == 0)
		result = summary_write_call_paths(summary);
	if (result == 0)
		result = summary_write_waits(summary);
	if (result == 0)
		result = summary_write_regions(summary);
	if (result == 0)
		result = summary_write_mpi(summary);
	if (result == 0)
		result = summary_write_instrumented_calls(summary);
	if (result == 0)
		result = summary_write_python_calls(summary);
	if (result == 0)
		summary_write_gpu(summary);
	if (result == 0)
		summary_write_device_steps(summary);
	if (result == 0)
		result = summary_write_launch_paths(summary);
	if (result == 0)
		summary_write_counters(summary);
	if (result == 0)
		result = summary_write_memory(summary);
	if (result == 0)
		result = summary_write_nccl(summary);
	if (result == 0 && !summary_is_of_machine(summary))
		result = summary_write_processes(summary);
	if (result == 0)
		result = summary_write_threads(summary);
	if (result < 0)
		return problem_set(problem, result, "cannot make the summary: %s",
				   strerror(-result));
	summary_write_program_and_machine(summary);
	summary_write_unresolved_code(summary);
	summary_write_losses(summary);
	summary_write_overhead(summary);
	write_reading_problems(summary);
	return 0;
}

int output_write_summary(struct session *session, const struct output_options *options,
			 FILE *stream, bool colour, struct problem *problem)
{
	struct summary_writer summary = make_summary_writer(session, options, stream);
	int result;

	summary.colour = colour;
	result = write_all_sections(&summary, problem);
	if (result != 0)
		return result;
	write_list_of_result_files(&summary);
	return stream_flush_or_set_problem(stream, "the summary", problem);
}

int output_pass_summary(struct session *session, const struct output_options *options,
			const struct summary_receiver *receiver, struct problem *problem)
{
	struct summary_capture capture = {.receiver = receiver};
	FILE *stream = open_memstream(&capture.text, &capture.size);
	struct summary_writer summary;
	int result;

	if (stream == NULL)
		return problem_set(problem, -ENOMEM, "out of memory making the summary");
	summary = make_summary_writer(session, options, stream);
	summary.capture = &capture;
	result = write_all_sections(&summary, problem);
	pass_rows_on(&summary);
	fclose(stream);
	free(capture.text);
	return result;
}
