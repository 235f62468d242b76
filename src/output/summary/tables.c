/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tables of the summary: where the time goes, by line of Python, by thread and by process.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/format.h"
#include "output/interpreted_lines.h"
#include "output/summary/private.h"

int summary_write_interpreted_lines(const struct summary_writer *summary)
{
	struct interpreted_line *lines;
	size_t count;
	int result = interpreted_lines_build(summary->session, summary->measure, &lines, &count);

	if (result < 0)
		return result;
	if (count && lines[0].own) {
		summary_write_heading(summary,
				      "Heaviest lines of Python, with the native code they call");
		summary_write_row(summary, SUMMARY_WEIGHT_HEADINGS, SUMMARY_WEIGHT_CELL_COUNT,
				  "function (file:line)");
	}
	for (size_t i = 0; i < count && i < summary->top && lines[i].own; i++) {
		const struct model_frame *frame = &summary->session->frames[lines[i].frame];
		char name[512];
		size_t columns;

		format_interpreted_function(name, sizeof(name), frame, frame->line);
		columns = summary_write_weight_cells(summary, lines[i].own, lines[i].inclusive,
						     summary->total);
		format_write_cut_to_width(summary->stream, name, columns);
		fputc('\n', summary->stream);
	}
	free(lines);
	return 0;
}

/* ---- threads and processes ---- */

struct ranked_thread_or_process {
	uint64_t weight;
	uint32_t index;
};

static int compare_ranked_by_weight(const void *left, const void *right)
{
	const struct ranked_thread_or_process *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static uint64_t get_thread_ranking_weight(const struct summary_writer *summary,
					  const struct model_thread *thread)
{
	uint64_t weight = view_sum_sources_of_measure(thread->weight, summary->measure);

	if (summary->measure == VIEW_MEASURE_REAL_TIME)
		return summary_sum_time_parts(summary_get_thread_time_parts(thread));
	return summary->measure == VIEW_MEASURE_CPU_TIME && thread->cpu_ns > weight ? thread->cpu_ns
										    : weight;
}

static void write_ranking_heading(const struct summary_writer *summary, const char *title,
				  const char *id, const char *what)
{
	summary_write_heading(summary, title);
	if (summary->measure == VIEW_MEASURE_REAL_TIME)
		summary_write_row(summary,
				  (const struct summary_cell[]){{"share", 10, 0},
								{"real time", 10, 5},
								{"running", 11, 2},
								{"CPU wait", 10, 3},
								{"blocked", 10, 1},
								{id, 9, 4}},
				  6, what);
	else
		summary_write_row(
			summary,
			(const struct summary_cell[]){
				{"share", 10, 0},
				{summary->measure == VIEW_MEASURE_CPU_TIME      ? "CPU time"
				 : summary->measure == VIEW_MEASURE_DEVICE_TIME ? "device"
										: "events",
				 10, 1},
				{summary->measure == VIEW_MEASURE_DEVICE_TIME ? "work" : "samples",
				 11, 3},
				{"alive", 13, 4},
				{id, 9, 2}},
			5, what);
}

static size_t write_time_parts_cells(const struct summary_writer *summary,
				     struct summary_time_parts times, uint64_t total,
				     const char *id)
{
	uint64_t sum = summary_sum_time_parts(times);

	return summary_write_cells(
		summary,
		(const struct summary_cell[]){{quantity_from_share(sum, total).text, 10, 0},
					      {quantity_from_ns(sum).text, 10, 5},
					      {quantity_from_ns(times.running_ns).text, 11, 2},
					      {quantity_from_ns(times.queued_ns).text, 10, 3},
					      {quantity_from_ns(times.blocked_ns).text, 10, 1},
					      {id, 9, 4}},
		6);
}

/* Where nothing was measured at all, 0 ns would be a claim. */
static size_t write_weight_cells(const struct summary_writer *summary, uint64_t weight,
				 uint64_t total, uint64_t samples, uint64_t alive, const char *id)
{
	return summary_write_cells(
		summary,
		(const struct summary_cell[]){
			{quantity_from_share(weight, total).text, 10, 0},
			{total ? quantity_from_measure(weight, summary->measure).text : "-", 10, 1},
			{quantity_from_count(samples).text, 11, 3},
			{quantity_from_ns(alive).text, 13, 4},
			{id, 9, 2}},
		5);
}

/* Decimal. */
struct number_cell {
	char text[12];
};

static struct number_cell number_cell_from_id(uint32_t id)
{
	struct number_cell cell;

	snprintf(cell.text, sizeof(cell.text), "%" PRIu32, id);
	return cell;
}

static void write_omitted_row_count(const struct summary_writer *summary, size_t count)
{
	if (count > summary->top)
		summary_write_line(summary, "... and %s more",
				   quantity_from_count(count - summary->top).text);
}

static void write_thread_row(const struct summary_writer *summary,
			     const struct ranked_thread_or_process *it, uint64_t total)
{
	const struct session *session = summary->session;
	const struct model_thread *thread = &session->threads[it->index];
	const struct model_process *process = &session->processes[thread->process];
	uint64_t end_ns = thread->end_ns == UINT64_MAX ? process->end_ns : thread->end_ns;

	struct number_cell id = number_cell_from_id(thread->tid);
	char name[80];
	size_t columns;

	if (summary->measure == VIEW_MEASURE_REAL_TIME)
		columns = write_time_parts_cells(summary, summary_get_thread_time_parts(thread),
						 total, id.text);
	else
		columns = write_weight_cells(
			summary, it->weight, total,
			view_sum_sources_of_measure(thread->samples, summary->measure),
			end_ns > thread->start_ns ? end_ns - thread->start_ns : 0, id.text);
	snprintf(name, sizeof(name), "%.16s%s%.16s", thread->name,
		 session->process_count > 1 ? " of " : "",
		 session->process_count > 1 ? process->name : "");
	format_write_cut_to_width(summary->stream, name, columns);
	fputc('\n', summary->stream);
}

/* Threads of single-threaded processes say nothing that the processes do not. */
static bool is_thread_in_summary_table(const struct session *session,
				       const struct model_thread *thread)
{
	const struct model_process *process = &session->processes[thread->process];
	uint32_t others = 0;

	if (thread->how == 3)
		return false;
	for (uint32_t i = 0; i < process->thread_count && others < 2; i++)
		others += session->threads[process->first_thread + i].how != 3;
	return others > 1;
}

int summary_write_threads(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	struct ranked_thread_or_process *threads =
		calloc((size_t)session->thread_count + 1, sizeof(*threads));
	uint64_t total = 0;
	size_t count = 0;

	if (!threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->thread_count; i++) {
		uint64_t weight = get_thread_ranking_weight(summary, &session->threads[i]);

		total += session->threads[i].how == 3 ? 0 : weight;
		if (is_thread_in_summary_table(session, &session->threads[i]))
			threads[count++] = (struct ranked_thread_or_process){weight, i};
	}
	if (count) {
		qsort(threads, count, sizeof(*threads), compare_ranked_by_weight);
		write_ranking_heading(summary, "Threads", "tid", "name");
		for (size_t i = 0; i < count && i < summary->top; i++)
			write_thread_row(summary, &threads[i], total);
		write_omitted_row_count(summary, count);
	}
	free(threads);
	return 0;
}

static void write_process_row(const struct summary_writer *summary,
			      const struct ranked_thread_or_process *it, uint64_t total)
{
	const struct session *session = summary->session;
	const struct model_process *process = &session->processes[it->index];
	const char *command = process->command_line;
	struct summary_time_parts times = {0};
	struct number_cell id = number_cell_from_id(process->pid);
	uint64_t samples = 0;
	size_t columns;

	/* The directory of the program says less than its arguments. */
	for (const char *at = command; *at && *at != ' ' && *command != '['; at++) {
		if (*at == '/')
			command = at + 1;
	}
	for (uint32_t i = 0; i < process->thread_count; i++) {
		const struct model_thread *thread = &session->threads[process->first_thread + i];

		samples += view_sum_sources_of_measure(thread->samples, summary->measure);
		if (thread->how != 3)
			summary_add_time_parts(&times, summary_get_thread_time_parts(thread));
	}
	if (summary->measure == VIEW_MEASURE_REAL_TIME)
		columns = write_time_parts_cells(summary, times, total, id.text);
	else
		columns = write_weight_cells(summary, it->weight, total, samples,
					     process->end_ns - process->start_ns, id.text);
	format_write_cut_to_width(summary->stream, command, columns);
	fputc('\n', summary->stream);
}

int summary_write_processes(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	struct ranked_thread_or_process *processes =
		calloc((size_t)session->process_count + 1, sizeof(*processes));
	uint64_t total = 0;
	size_t count = session->process_count;

	if (!processes)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->process_count; i++)
		processes[i].index = i;
	for (uint32_t i = 0; i < session->thread_count; i++) {
		const struct model_thread *thread = &session->threads[i];
		uint64_t weight = thread->how == 3 ? 0 : get_thread_ranking_weight(summary, thread);

		processes[thread->process].weight += weight;
		total += weight;
	}
	if (count > 1) {
		qsort(processes, count, sizeof(*processes), compare_ranked_by_weight);
		write_ranking_heading(summary, "Processes", "pid", "command");
		for (size_t i = 0; i < count && i < summary->top; i++)
			write_process_row(summary, &processes[i], total);
		write_omitted_row_count(summary, count);
	}
	free(processes);
	return 0;
}
