/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The summary at exit: what somebody who knows nothing about kymo wants to see after a run. What
 * takes the time first, then whether to believe it: what is missing and what kymo itself cost. Fits
 * 100 columns; sections without content are left out.
 */
#include "output/summary.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "analysis/calls.h"
#include "output/format.h"
#include "output/stream.h"

#define TOP_ROWS 10

static void set_colour(const struct summary *summary, const char *sequence)
{
	if (summary->colour)
		fputs(sequence, summary->stream);
}

void summary_heading(const struct summary *summary, const char *title)
{
	fputc('\n', summary->stream);
	set_colour(summary, "\033[1m");
	fputs(title, summary->stream);
	set_colour(summary, "\033[0m");
	fputc('\n', summary->stream);
}

static void write_wrapped(const struct summary *summary, const char *text)
{
	size_t column = 0;

	for (const char *word = text; *word;) {
		size_t size = strcspn(word, " ");
		char copy[SUMMARY_WIDTH * 4];
		size_t width;

		snprintf(copy, sizeof(copy), "%.*s", (int)size, word);
		width = format_columns(copy);
		if (column == 0) {
			column = (size_t)fprintf(summary->stream, "  ");
		} else if (column + 1 + width > SUMMARY_WIDTH) {
			column = (size_t)fprintf(summary->stream, "\n    ") - 1;
		} else {
			fputc(' ', summary->stream);
			column++;
		}
		column += format_limited(summary->stream, copy, SUMMARY_WIDTH - 4);
		word += size;
		word += strspn(word, " ");
	}
	fputc('\n', summary->stream);
}

static void write_formatted(const struct summary *summary, const char *format, va_list arguments)
{
	char text[2048];

	vsnprintf(text, sizeof(text), format, arguments);
	write_wrapped(summary, text);
}

void summary_line(const struct summary *summary, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_formatted(summary, format, arguments);
	va_end(arguments);
}

void summary_warning(const struct summary *summary, const char *format, ...)
{
	va_list arguments;

	set_colour(summary, "\033[33m");
	va_start(arguments, format);
	write_formatted(summary, format, arguments);
	va_end(arguments);
	set_colour(summary, "\033[0m");
}

/* ---- the head ---- */

static void write_title(const struct summary *summary)
{
	const struct session *session = summary->session;
	const struct model_launch *launch = &session->launch;
	uint64_t duration = session->end_ns - session->start_ns;
	char end[64];

	if (launch->end_realtime_ns > launch->start_realtime_ns && launch->start_realtime_ns)
		duration = launch->end_realtime_ns - launch->start_realtime_ns;
	set_colour(summary, "\033[1m");
	fputs("kymo: ", summary->stream);
	format_limited(summary->stream, session->command_line, SUMMARY_WIDTH - 6);
	set_colour(summary, "\033[0m");
	fputc('\n', summary->stream);
	if (launch->wait_status_known) {
		format_wait_status(end, sizeof(end), launch->wait_status);
		summary_line(summary, "%s after %s", end, quantity_time(duration).text);
	} else {
		summary_line(summary, "%s of data", quantity_time(duration).text);
	}
}

static uint64_t cpu_of_all_threads(const struct session *session)
{
	uint64_t cpu_ns = 0;

	for (uint32_t i = 0; i < session->thread_count; i++) {
		if (session->threads[i].how != 3)
			cpu_ns += session->threads[i].cpu_ns;
	}
	return cpu_ns;
}

static uint64_t covered_by_samples(const struct session *session)
{
	uint64_t covered_ns = 0;

	for (uint32_t i = 0; i < session->thread_count; i++) {
		if (session->threads[i].how != 3)
			covered_ns += session->threads[i].weight[SPOOL_SOURCE_CPU];
	}
	return covered_ns;
}

/* Was collection off for some of the time, by windows or somebody's stop? */
static bool collected_in_part(const struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		for (size_t k = 0; k < process->notice_count; k++) {
			if (process->notices[k].kind == SPOOL_NOTICE_WINDOW)
				return true;
		}
	}
	return false;
}

/* The kernel counts from fork to exit, kymo from when it is loaded: a little less is normal. */
static void write_cpu_of_run(const struct summary *summary, uint64_t counted, uint64_t covered)
{
	const struct model_launch *launch = &summary->session->launch;
	uint64_t kernel = launch->user_ns + launch->system_ns;

	summary_line(summary,
		     "CPU time %s: %s of the %s that the kernel counted (user %s, system %s); "
		     "samples cover %s",
		     quantity_time(counted).text, quantity_share(counted, kernel).text,
		     quantity_time(kernel).text, quantity_time(launch->user_ns).text,
		     quantity_time(launch->system_ns).text, quantity_share(covered, counted).text);
	if (counted >= kernel - kernel / 10)
		return;
	if (collected_in_part(summary->session))
		summary_line(summary, "(the rest: while collection was off)");
	else
		summary_line(summary, "(the rest: starting and ending processes, and processes "
				      "that kymo could not enter or that did not end by "
				      "themselves)");
}

/* Under a filter there is nothing that the kernel counted alike. */
static void write_cpu(const struct summary *summary)
{
	const struct session *session = summary->session;
	const struct model_launch *launch = &session->launch;
	uint64_t counted = cpu_of_all_threads(session), covered = covered_by_samples(session);

	if (!summary->samples && collected_in_part(session))
		summary_line(summary, "collection was off while the program used the CPU (kymo "
				      "help windows)");
	if (covered == 0)
		return;
	if (session->part_of_time)
		summary_line(summary, "CPU time %s in the part of the run that was asked for",
			     quantity_time(covered).text);
	else if (session->part_of_threads || !launch->wait_status_known ||
		 launch->user_ns + launch->system_ns == 0)
		summary_line(summary, "CPU time %s, covered by samples: %s",
			     quantity_time(counted).text, quantity_share(covered, counted).text);
	else
		write_cpu_of_run(summary, counted, covered);
}

static void write_counts(const struct summary *summary)
{
	const struct session *session = summary->session;
	uint32_t threads = view_program_threads(session);

	if (!session->process_count)
		return;
	if (!summary->samples && session->calls->words) {
		summary_line(summary, "%s calls of functions in %s thread%s of %s process%s",
			     quantity_count(session->calls->recorded).text,
			     quantity_count(threads).text, threads == 1 ? "" : "s",
			     quantity_count(session->process_count).text,
			     session->process_count == 1 ? "" : "es");
		return;
	}
	if (!summary->samples && summary_has_counters(summary)) {
		summary_line(summary, "%s thread%s of %s process%s", quantity_count(threads).text,
			     threads == 1 ? "" : "s", quantity_count(session->process_count).text,
			     session->process_count == 1 ? "" : "es");
		return;
	}
	summary_line(summary, "%s samples of %s in %s thread%s of %s process%s",
		     quantity_count(summary->samples).text,
		     summary->measure == MEASURE_CPU    ? "CPU time"
		     : summary->measure == MEASURE_WALL ? "real time"
							: format_event(session),
		     quantity_count(threads).text, threads == 1 ? "" : "s",
		     quantity_count(session->process_count).text,
		     session->process_count == 1 ? "" : "es");
}

static void sum_up(struct summary *summary)
{
	const struct session *session = summary->session;

	for (uint32_t i = 0; i < session->thread_count; i++) {
		summary->total += view_sum(session->threads[i].weight, summary->measure);
		summary->samples += view_sum(session->threads[i].samples, summary->measure);
	}
}

/* ---- the end ---- */

static void write_problems(const struct summary *summary)
{
	const struct session *session = summary->session;

	if (session->problem_count == 0)
		return;
	summary_heading(summary, "Problems while reading the results");
	for (size_t i = 0; i < session->problem_count && i < TOP_ROWS; i++)
		summary_warning(summary, "%s", session->problems[i]);
	if (session->problem_count > TOP_ROWS)
		summary_warning(summary, "... and %zu more, see metadata.json",
				session->problem_count - TOP_ROWS);
}

static void write_files(const struct summary *summary)
{
	const struct session *session = summary->session;
	bool any = false;

	summary_heading(summary, "Results");
	summary_line(summary, "%s", session->directory);
	for (size_t i = 0; i < output_format_count; i++) {
		const struct output_format *format = &output_formats[i];
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", session->directory, format->file_name);
		if (access(path, F_OK) != 0)
			continue;
		fprintf(summary->stream, "    %-16s %s\n", format->file_name, format->description);
		any = true;
	}
	if (!any)
		summary_line(summary, "`kymo report --format %s %s` shows %s",
			     session->process_count ? "text" : "nccl", session->directory,
			     session->process_count ? "the call tree" : "more of NCCL");
}

int output_summary(struct session *session, const struct output_options *options, FILE *stream,
		   bool colour, struct problem *problem)
{
	struct summary summary = {.session = session,
				  .stream = stream,
				  .measure = options->measure_given ? options->measure
								    : view_default_measure(session),
				  .top = options->top ? options->top : TOP_ROWS,
				  .colour = colour};
	int result;

	sum_up(&summary);
	write_title(&summary);
	write_counts(&summary);
	write_cpu(&summary);
	result = summary_functions(&summary);
	if (result == 0)
		result = summary_paths(&summary);
	if (result == 0)
		result = summary_regions(&summary);
	if (result == 0)
		result = summary_calls(&summary);
	if (result == 0)
		summary_gpu(&summary);
	if (result == 0)
		summary_counters(&summary);
	if (result == 0)
		result = summary_memory(&summary);
	if (result == 0)
		result = summary_nccl(&summary);
	if (result == 0)
		result = summary_processes(&summary);
	if (result == 0)
		result = summary_threads(&summary);
	if (result < 0)
		return problem_set(problem, result, "cannot make the summary: %s",
				   strerror(-result));
	summary_host(&summary);
	summary_unresolved(&summary);
	summary_losses(&summary);
	summary_overhead(&summary);
	write_problems(&summary);
	write_files(&summary);
	return stream_check(stream, "the summary", problem);
}
