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
#include "output/summary.h"

#define NAME_WIDTH 57

int summary_functions(const struct summary *summary)
{
	struct view_function *functions;
	size_t count;
	uint64_t whole = 0;
	int result = view_functions(summary->session, summary->measure, &functions, &count);

	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		whole += functions[i].self;
	if (count) {
		summary_heading(summary, "Heaviest functions");
		fprintf(summary->stream, "  %8s %9s  %8s %9s  %s\n", "itself", "", "with all",
			"it calls", "function (module)");
	}
	for (size_t i = 0; i < count && i < summary->top && functions[i].self; i++) {
		char name[512];

		format_function(name, sizeof(name), summary->session, functions[i].frame);
		fprintf(summary->stream, "  %8s %9s  %8s %9s  ",
			quantity_share(functions[i].self, whole).text,
			quantity_measure(functions[i].self, summary->measure).text,
			quantity_share(functions[i].inclusive, whole).text,
			quantity_measure(functions[i].inclusive, summary->measure).text);
		format_limited(summary->stream, name, NAME_WIDTH);
		fputc('\n', summary->stream);
	}
	free(functions);
	return 0;
}

/* ---- paths ---- */

struct heavy_path {
	uint64_t self;
	uint32_t path;
};

static int by_self(const void *left, const void *right)
{
	const struct heavy_path *a = left, *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	return a->path < b->path ? -1 : a->path > b->path;
}

/* "main > … > b > leaf": as much of the inner end as fits, since that tells paths apart. */
static void write_path(const struct summary *summary, const struct call_paths *paths, uint32_t path,
		       size_t width)
{
	const struct session *session = summary->session;
	uint32_t shown[64];
	size_t count = 0, used = 0;

	for (; path != MODEL_NONE && count < 64; path = paths->paths[path].caller) {
		const char *name = session->frames[paths->paths[path].frame].function;
		size_t columns = format_columns(name) + (count ? 3 : 0);

		if (columns > width / 3 + 3 && count)
			columns = width / 3 + 3;
		if (count && used + columns + 6 > width)
			break;
		used += columns;
		shown[count++] = paths->paths[path].frame;
	}
	if (path != MODEL_NONE)
		fputs("... > ", summary->stream);
	while (count-- > 0) {
		format_limited(summary->stream, session->frames[shown[count]].function,
			       count ? width / 3 : width - 6);
		fputs(count ? " > " : "\n", summary->stream);
	}
}

static size_t gather_paths(const struct session *session, const struct call_paths *paths,
			   struct heavy_path *list)
{
	size_t count = 0;

	for (uint32_t i = 0; i < paths->count; i++) {
		const struct call_path *path = &paths->paths[i];

		if (path->self && session->frames[path->frame].kind != FRAME_SYNTHETIC)
			list[count++] = (struct heavy_path){path->self, i};
	}
	if (count > 1)
		qsort(list, count, sizeof(*list), by_self);
	return count;
}

static int write_paths(const struct summary *summary, const struct call_paths *paths)
{
	struct heavy_path *list = calloc((size_t)paths->count + 1, sizeof(*list));
	size_t count;

	if (!list)
		return -ENOMEM;
	count = gather_paths(summary->session, paths, list);
	if (count)
		summary_heading(summary, "Heaviest call paths (caller > callee; recursion once)");
	for (size_t i = 0; i < count && i < summary->top; i++) {
		fprintf(summary->stream, "  %8s %9s  ",
			quantity_share(list[i].self, paths->total).text,
			quantity_measure(list[i].self, summary->measure).text);
		write_path(summary, paths, list[i].path, SUMMARY_WIDTH - 22);
	}
	free(list);
	return 0;
}

int summary_paths(const struct summary *summary)
{
	struct call_paths paths;
	int result = call_paths_init(&paths, summary->session, summary->measure);

	if (result < 0)
		return result;
	result = write_paths(summary, &paths);
	call_paths_deinit(&paths);
	return result;
}

/* ---- threads and processes ---- */

struct heavy_index {
	uint64_t weight;
	uint32_t index;
};

static int by_weight(const void *left, const void *right)
{
	const struct heavy_index *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static uint64_t thread_weight(const struct summary *summary, const struct model_thread *thread)
{
	uint64_t weight = view_sum(thread->weight, summary->measure);

	return summary->measure == MEASURE_CPU && thread->cpu_ns > weight ? thread->cpu_ns : weight;
}

static void write_index_heading(const struct summary *summary, const char *title, const char *id,
				const char *what)
{
	summary_heading(summary, title);
	fprintf(summary->stream, "  %8s %9s  %9s  %11s  %7s  %s\n", "share",
		summary->measure == MEASURE_CPU    ? "CPU time"
		: summary->measure == MEASURE_WALL ? "real time"
						   : "events",
		"samples", "alive", id, what);
}

static void write_index_row(const struct summary *summary, uint64_t weight, uint64_t total,
			    uint64_t samples, uint64_t alive, uint32_t id)
{
	fprintf(summary->stream, "  %8s %9s  %9s  %11s  %7u  ", quantity_share(weight, total).text,
		quantity_measure(weight, summary->measure).text, quantity_count(samples).text,
		quantity_time(alive).text, id);
}

static void write_more(const struct summary *summary, size_t count)
{
	if (count > summary->top)
		summary_line(summary, "... and %s more", quantity_count(count - summary->top).text);
}

static void write_thread(const struct summary *summary, const struct heavy_index *it,
			 uint64_t total)
{
	const struct session *session = summary->session;
	const struct model_thread *thread = &session->threads[it->index];
	const struct model_process *process = &session->processes[thread->process];
	uint64_t end_ns = thread->end_ns == UINT64_MAX ? process->end_ns : thread->end_ns;

	write_index_row(summary, it->weight, total, view_sum(thread->samples, summary->measure),
			end_ns > thread->start_ns ? end_ns - thread->start_ns : 0, thread->tid);
	format_limited(summary->stream, thread->name, 20);
	if (session->process_count > 1) {
		fputs(" of ", summary->stream);
		format_limited(summary->stream, process->name, 20);
	}
	fputc('\n', summary->stream);
}

/* Threads of single-threaded processes say nothing that the processes do not. */
static bool is_listed(const struct session *session, const struct model_thread *thread)
{
	const struct model_process *process = &session->processes[thread->process];
	uint32_t others = 0;

	if (thread->how == 3)
		return false;
	for (uint32_t i = 0; i < process->thread_count && others < 2; i++)
		others += session->threads[process->first_thread + i].how != 3;
	return others > 1;
}

int summary_threads(const struct summary *summary)
{
	const struct session *session = summary->session;
	struct heavy_index *threads = calloc((size_t)session->thread_count + 1, sizeof(*threads));
	uint64_t total = 0;
	size_t count = 0;

	if (!threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->thread_count; i++) {
		uint64_t weight = thread_weight(summary, &session->threads[i]);

		total += session->threads[i].how == 3 ? 0 : weight;
		if (is_listed(session, &session->threads[i]))
			threads[count++] = (struct heavy_index){weight, i};
	}
	if (count) {
		qsort(threads, count, sizeof(*threads), by_weight);
		write_index_heading(summary, "Threads", "tid", "name");
		for (size_t i = 0; i < count && i < summary->top; i++)
			write_thread(summary, &threads[i], total);
		write_more(summary, count);
	}
	free(threads);
	return 0;
}

static void write_process(const struct summary *summary, const struct heavy_index *it,
			  uint64_t total)
{
	const struct session *session = summary->session;
	const struct model_process *process = &session->processes[it->index];
	const char *command = process->command_line;
	uint64_t samples = 0;

	/* The directory of the program says less than its arguments. */
	for (const char *at = command; *at && *at != ' '; at++) {
		if (*at == '/')
			command = at + 1;
	}
	for (uint32_t i = 0; i < process->thread_count; i++)
		samples += view_sum(session->threads[process->first_thread + i].samples,
				    summary->measure);
	write_index_row(summary, it->weight, total, samples, process->end_ns - process->start_ns,
			process->pid);
	format_limited(summary->stream, command, SUMMARY_WIDTH - 56);
	fputc('\n', summary->stream);
}

int summary_processes(const struct summary *summary)
{
	const struct session *session = summary->session;
	struct heavy_index *processes =
		calloc((size_t)session->process_count + 1, sizeof(*processes));
	uint64_t total = 0;
	size_t count = session->process_count;

	if (!processes)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->process_count; i++)
		processes[i].index = i;
	for (uint32_t i = 0; i < session->thread_count; i++) {
		const struct model_thread *thread = &session->threads[i];
		uint64_t weight = thread->how == 3 ? 0 : thread_weight(summary, thread);

		processes[thread->process].weight += weight;
		total += weight;
	}
	if (count > 1) {
		qsort(processes, count, sizeof(*processes), by_weight);
		write_index_heading(summary, "Processes", "pid", "command");
		for (size_t i = 0; i < count && i < summary->top; i++)
			write_process(summary, &processes[i], total);
		write_more(summary, count);
	}
	free(processes);
	return 0;
}
