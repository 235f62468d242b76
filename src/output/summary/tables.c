/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tables of the summary: where the time goes, by function, by call path and by thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/call_paths.h"
#include "output/format.h"
#include "output/interpreted_lines.h"
#include "output/summary/private.h"

#define NAME_COLUMNS_MAX 57

int summary_write_functions(const struct summary_writer *summary)
{
	struct view_flat_profile_row *functions;
	size_t count;
	uint64_t whole = 0;
	int result =
		view_build_flat_profile(summary->session, summary->measure, &functions, &count);

	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		whole += functions[i].self;
	if (count) {
		summary_write_heading(summary, "Heaviest functions");
		fprintf(summary->stream, "  %8s %9s  %8s %9s  %s\n", "self", "", "total", "",
			"function (module)");
	}
	for (size_t i = 0; i < count && i < summary->top && functions[i].self; i++) {
		char name[512];

		format_function_with_module(name, sizeof(name), summary->session,
					    functions[i].frame);
		fprintf(summary->stream, "  %8s %9s  %8s %9s  ",
			quantity_from_share(functions[i].self, whole).text,
			quantity_from_measure(functions[i].self, summary->measure).text,
			quantity_from_share(functions[i].inclusive, whole).text,
			quantity_from_measure(functions[i].inclusive, summary->measure).text);
		format_write_cut_to_width(summary->stream, name, NAME_COLUMNS_MAX);
		fputc('\n', summary->stream);
	}
	free(functions);
	return 0;
}

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
		fprintf(summary->stream, "  %8s %9s  %8s %9s  %s\n", "self", "", "total", "",
			"function (file:line)");
	}
	for (size_t i = 0; i < count && i < summary->top && lines[i].own; i++) {
		const struct model_frame *frame = &summary->session->frames[lines[i].frame];
		char name[512];

		format_interpreted_function(name, sizeof(name), frame, frame->line);
		fprintf(summary->stream, "  %8s %9s  %8s %9s  ",
			quantity_from_share(lines[i].own, summary->total).text,
			quantity_from_measure(lines[i].own, summary->measure).text,
			quantity_from_share(lines[i].inclusive, summary->total).text,
			quantity_from_measure(lines[i].inclusive, summary->measure).text);
		format_write_cut_to_width(summary->stream, name, NAME_COLUMNS_MAX);
		fputc('\n', summary->stream);
	}
	free(lines);
	return 0;
}

/* ---- paths ---- */

struct ranked_call_path {
	uint64_t self;
	uint32_t path;
};

static int compare_call_paths_by_self_weight(const void *left, const void *right)
{
	const struct ranked_call_path *a = left, *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	return a->path < b->path ? -1 : a->path > b->path;
}

/* "main > … > b > leaf": as much of the inner end as fits, since that distinguishes paths. */
static void write_abbreviated_call_path(const struct summary_writer *summary,
					const struct call_paths *paths, uint32_t path, size_t width)
{
	const struct session *session = summary->session;
	uint32_t shown[64];
	size_t count = 0, used = 0;

	for (; path != MODEL_ENTRY_INDEX_NONE && count < 64;
	     path = paths->paths[path].caller_path_index) {
		const char *name = session->frames[paths->paths[path].frame].function;
		size_t columns = format_count_text_columns(name) + (count ? 3 : 0);

		if (columns > width / 3 + 3 && count)
			columns = width / 3 + 3;
		if (count && used + columns + 6 > width)
			break;
		used += columns;
		shown[count++] = paths->paths[path].frame;
	}
	if (path != MODEL_ENTRY_INDEX_NONE)
		fputs("... > ", summary->stream);
	while (count-- > 0) {
		format_write_cut_to_width(summary->stream, session->frames[shown[count]].function,
					  count ? width / 3 : width - 6);
		fputs(count ? " > " : "\n", summary->stream);
	}
}

static size_t collect_and_rank_call_paths(const struct session *session,
					  const struct call_paths *paths,
					  struct ranked_call_path *list)
{
	size_t count = 0;

	for (uint32_t i = 0; i < paths->count; i++) {
		const struct call_path *path = &paths->paths[i];

		if (path->self && session->frames[path->frame].kind != FRAME_SYNTHETIC)
			list[count++] = (struct ranked_call_path){path->self, i};
	}
	if (count > 1)
		qsort(list, count, sizeof(*list), compare_call_paths_by_self_weight);
	return count;
}

static int write_call_path_table(const struct summary_writer *summary,
				 const struct call_paths *paths)
{
	struct ranked_call_path *list = calloc((size_t)paths->count + 1, sizeof(*list));
	size_t count;

	if (!list)
		return -ENOMEM;
	count = collect_and_rank_call_paths(summary->session, paths, list);
	if (count)
		summary_write_heading(
			summary, "Heaviest call paths (caller > callee; recursion shown once)");
	for (size_t i = 0; i < count && i < summary->top; i++) {
		fprintf(summary->stream, "  %8s %9s  ",
			quantity_from_share(list[i].self, paths->total).text,
			quantity_from_measure(list[i].self, summary->measure).text);
		write_abbreviated_call_path(summary, paths, list[i].path, SUMMARY_COLUMNS - 22);
	}
	free(list);
	return 0;
}

int summary_write_call_paths(const struct summary_writer *summary)
{
	struct call_paths paths;
	int result = call_paths_build(&paths, summary->session, summary->measure);

	if (result < 0)
		return result;
	result = write_call_path_table(summary, &paths);
	call_paths_deinit(&paths);
	return result;
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
		fprintf(summary->stream, "  %8s %9s  %9s %9s %9s  %7s  %s\n", "share", "real time",
			"running", "CPU wait", "blocked", id, what);
	else
		fprintf(summary->stream, "  %8s %9s  %9s  %11s  %7s  %s\n", "share",
			summary->measure == VIEW_MEASURE_CPU_TIME      ? "CPU time"
			: summary->measure == VIEW_MEASURE_DEVICE_TIME ? "device"
								       : "events",
			summary->measure == VIEW_MEASURE_DEVICE_TIME ? "work" : "samples", "alive",
			id, what);
}

static void write_time_parts_columns(const struct summary_writer *summary,
				     struct summary_time_parts times, uint64_t total, uint32_t id)
{
	uint64_t sum = summary_sum_time_parts(times);

	fprintf(summary->stream, "  %8s %9s  %9s %9s %9s  %7u  ",
		quantity_from_share(sum, total).text, quantity_from_ns(sum).text,
		quantity_from_ns(times.running_ns).text, quantity_from_ns(times.queued_ns).text,
		quantity_from_ns(times.blocked_ns).text, id);
}

/* Where nothing was measured at all, 0 ns would be a claim. */
static void write_weight_columns(const struct summary_writer *summary, uint64_t weight,
				 uint64_t total, uint64_t samples, uint64_t alive, uint32_t id)
{
	fprintf(summary->stream, "  %8s %9s  %9s  %11s  %7u  ",
		quantity_from_share(weight, total).text,
		total ? quantity_from_measure(weight, summary->measure).text : "-",
		quantity_from_count(samples).text, quantity_from_ns(alive).text, id);
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

	if (summary->measure == VIEW_MEASURE_REAL_TIME)
		write_time_parts_columns(summary, summary_get_thread_time_parts(thread), total,
					 thread->tid);
	else
		write_weight_columns(summary, it->weight, total,
				     view_sum_sources_of_measure(thread->samples, summary->measure),
				     end_ns > thread->start_ns ? end_ns - thread->start_ns : 0,
				     thread->tid);
	format_write_cut_to_width(summary->stream, thread->name, 16);
	if (session->process_count > 1) {
		fputs(" of ", summary->stream);
		format_write_cut_to_width(summary->stream, process->name, 16);
	}
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
	uint64_t samples = 0;

	/* The directory of the program says less than its arguments. */
	for (const char *at = command; *at && *at != ' '; at++) {
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
		write_time_parts_columns(summary, times, total, process->pid);
	else
		write_weight_columns(summary, it->weight, total, samples,
				     process->end_ns - process->start_ns, process->pid);
	format_write_cut_to_width(summary->stream, command, SUMMARY_COLUMNS - 64);
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
