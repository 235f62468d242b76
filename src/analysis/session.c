/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Opening a session: find the spool files, look at each without its samples (scan.c), then read all
 * samples into the tree of addresses (samples.c). A file that cannot be read is a line in
 * `problems`, not an error: what is readable is shown.
 */
#include "analysis/session.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/allocations_private.h"
#include "analysis/gpu.h"
#include "analysis/runtime_code.h"
#include "analysis/session_private.h"
#include "binary/jitmap.h"

#define KERNEL_TICK_NS UINT64_C(10000000) /* USER_HZ */

int session_out_of_memory(struct problem *problem)
{
	return problem_set(problem, -ENOMEM,
			   "out of memory while reading results; a --pid or --from/--to filter "
			   "needs less");
}

int session_note(struct session *session, const char *format, ...)
{
	struct session_private *private = session_private(session);
	char text[sizeof(((struct problem *)0)->text)];
	va_list arguments;
	char *line;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	line = arena_copy(&private->arena, text, strlen(text));
	if (!line || array_reserve((void **)&session->problems, &private->problem_capacity,
				   session->problem_count, sizeof(*session->problems)) < 0)
		return -ENOMEM;
	session->problems[session->problem_count++] = line;
	return 0;
}

const char *session_quote(struct arena *arena, const char *const *arguments, uint32_t count)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	const char *copy;

	if (!stream)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		const char *argument = arguments[i];
		bool plain =
			*argument && !argument[strcspn(argument, " \t\r\n'\"\\$`&|;<>()*?[]{}#~!")];

		fputs(i ? " " : "", stream);
		if (plain) {
			fputs(argument, stream);
			continue;
		}
		fputc('\'', stream);
		for (; *argument; argument++)
			if (*argument == '\'')
				fputs("'\\''", stream);
			else
				fputc(*argument, stream);
		fputc('\'', stream);
	}
	copy = fclose(stream) == 0 ? arena_copy(arena, text, size) : NULL;
	free(text);
	return copy;
}

/* ---- finding the files ---- */

static int add_file(struct session *session, struct spool_file *file, size_t *capacity)
{
	struct session_private *private = session_private(session);
	uint32_t count = session->process_count;

	if (array_reserve((void **)&private->processes, capacity, count,
			  sizeof(*private->processes)) < 0)
		return -ENOMEM;
	spool_file_pause(file);
	private->processes[count] =
		(struct process_private){.file = *file, .unsampled = CALLTREE_NONE};
	session->process_count++;
	return 0;
}

static int try_file(struct session *session, const char *path, size_t *capacity)
{
	struct session_private *private = session_private(session);
	struct problem problem;
	struct spool_file file;
	int result = spool_file_open(path, &file, &problem);

	if (result == -ENOMEM)
		return result;
	if (result == -ENOMSG)
		return 0;
	if (result < 0) {
		session->unreadable_files++;
		return session_note(session, "%s", problem.text);
	}
	if (private->options.process_pid && file.header.pid != private->options.process_pid) {
		spool_file_close(&file);
		return 0;
	}
	result = add_file(session, &file, capacity);
	if (result < 0)
		spool_file_close(&file);
	return result;
}

static bool is_spool_name(const char *name)
{
	size_t length = strlen(name);

	return length > 6 && strcmp(name + length - 6, ".spool") == 0;
}

static int by_start(const void *left, const void *right)
{
	const struct spool_file_header *a = &((const struct process_private *)left)->file.header;
	const struct spool_file_header *b = &((const struct process_private *)right)->file.header;

	if (a->start_boottime_ns != b->start_boottime_ns)
		return a->start_boottime_ns < b->start_boottime_ns ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->image < b->image ? -1 : a->image > b->image;
}

static int find_files(struct session *session, struct problem *problem)
{
	struct session_private *private = session_private(session);
	char *path = arena_format(&private->arena, "%s/spool", session->directory);
	size_t capacity = 0;
	int result = 0;
	struct dirent *entry;
	DIR *directory;

	if (!path)
		return session_out_of_memory(problem);
	directory = opendir(path);
	if (!directory)
		return problem_set(problem, -errno,
				   "%s is not a result directory of kymo: cannot open %s: %s",
				   session->directory, path, strerror(errno));
	while (result == 0 && (entry = readdir(directory)) != NULL) {
		char *file;

		if (!is_spool_name(entry->d_name))
			continue;
		file = arena_format(&private->arena, "%s/%s", path, entry->d_name);
		result = file ? try_file(session, file, &capacity) : -ENOMEM;
	}
	closedir(directory);
	if (result < 0)
		return session_out_of_memory(problem);
	if (session->process_count > 1)
		qsort(private->processes, session->process_count, sizeof(*private->processes),
		      by_start);
	return 0;
}

/* ---- reading them ---- */

static int scan_all(struct session *session, struct problem *problem)
{
	struct session_private *private = session_private(session);

	session->processes = calloc(session->process_count + 1, sizeof(*session->processes));
	if (!session->processes)
		return session_out_of_memory(problem);
	session->start_ns = session->process_count ? UINT64_MAX : 0;
	for (uint32_t i = 0; i < session->process_count; i++) {
		int result = session_scan(session, i, problem);

		if (result < 0)
			return result;
		if (runtime_code_load(session, i) < 0)
			return session_out_of_memory(problem);
		if (session->processes[i].start_ns < session->start_ns)
			session->start_ns = session->processes[i].start_ns;
		private->processes[i].root =
			calltree_child(&private->tree, CALLTREE_NONE, i, CALLTREE_PROCESS);
		if (private->processes[i].root == CALLTREE_NONE)
			return session_out_of_memory(problem);
	}
	allocations_sort(session);
	calls_sort(session);
	if (session->process_count)
		session->realtime_minus_boottime_ns =
			clock_map_realtime_minus_boottime(&private->processes[0].clock);
	return 0;
}

static int count_sample(struct model_sample *sample, void *context)
{
	struct session *session = context;
	struct model_thread *thread = &session->threads[sample->thread];
	struct model_process *process = &session->processes[sample->process];
	struct calltree_sum *sum =
		&session_private(session)->tree.sums[sample->source][sample->node];

	sum->samples++;
	sum->weight += sample->weight;
	thread->samples[sample->source]++;
	thread->weight[sample->source] += sample->weight;
	process->samples++;
	process->stacks[sample->stack_end]++;
	if (sample->time_ns > process->end_ns)
		process->end_ns = sample->time_ns;
	return 0;
}

static void finish_threads(struct session *session, const struct model_process *process)
{
	for (uint32_t i = 0; i < process->thread_count; i++) {
		struct model_thread *thread = &session->threads[process->first_thread + i];

		thread->covered_ns = thread->weight[SPOOL_SOURCE_CPU];
		if (thread->cpu_ns == 0 || session->part_of_time)
			thread->cpu_ns = thread->covered_ns;
	}
}

static int read_all_samples(struct session *session, struct problem *problem)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		struct model_process *process = &session->processes[i];
		int result = session_walk_samples(session, i, true, count_sample, session, problem);

		if (result < 0)
			return result;
		finish_threads(session, process);
		if (process->end_ns > session->end_ns)
			session->end_ns = process->end_ns;
	}
	if (session->end_ns < session->start_ns)
		session->end_ns = session->start_ns;
	return 0;
}

/* The launcher saw how the first process ended; that process itself could not. */
static void apply_launch(struct session *session)
{
	const struct model_launch *launch = &session->launch;
	struct model_process *last = NULL;

	for (uint32_t i = 0; launch->wait_status_known && i < session->process_count; i++) {
		struct model_process *process = &session->processes[i];

		if (process->pid == launch->pid && (!last || process->image >= last->image))
			last = process;
	}
	if (last)
		last->exit_status = launch->wait_status;
	if (!*session->command_line && session->process_count)
		session->command_line = session->processes[0].command_line;
}

static int session_read(struct session *session, struct problem *problem)
{
	int result = find_files(session, problem);

	if (result == 0)
		result = session_read_launch(session, problem);
	if (result == 0)
		result = scan_all(session, problem);
	if (result == 0)
		result = read_all_samples(session, problem);
	if (result == 0)
		result = session_read_regions(session, problem);
	if (result == 0)
		result = gpu_open(session->directory, &session->gpu, problem);
	if (result == 0)
		apply_launch(session);
	return result;
}

int session_open(const char *directory, const struct session_options *options, struct session **ret,
		 struct problem *problem)
{
	struct session *session = calloc(1, sizeof(*session));
	struct session_private *private = calloc(1, sizeof(*private));
	int result;

	if (!session || !private) {
		free(session);
		free(private);
		return session_out_of_memory(problem);
	}
	session->private_state = private;
	session->regions = arena_allocate(&private->arena, sizeof(*session->regions));
	session->calls = arena_allocate(&private->arena, sizeof(*session->calls));
	session->allocations = arena_allocate(&private->arena, sizeof(*session->allocations));
	session->command_line = "";
	private->options = options ? *options : (struct session_options){0};
	session->part_of_time = private->options.from_ns || private->options.to_ns;
	session->part_of_threads = private->options.process_pid || private->options.thread_tid;
	session->directory = arena_copy(&private->arena, directory, strlen(directory));
	result = session->directory && session->regions && session->calls && session->allocations
			 ? session_read(session, problem)
			 : session_out_of_memory(problem);
	if (result < 0)
		session_close(session);
	else
		*ret = session;
	return result;
}

void session_close(struct session *session)
{
	struct session_private *private;

	if (!session)
		return;
	private = session_private(session);
	allocations_free(session);
	gpu_close(session->gpu);
	for (uint32_t i = 0; i < session->process_count; i++) {
		struct process_private *process = &private->processes[i];

		spool_file_close(&process->file);
		clock_map_deinit(&process->clock);
		module_map_deinit(&process->module_map);
		id_map_deinit(&process->threads);
		process_regions_deinit(&process->regions);
		process_calls_deinit(&process->calls);
		id_map_deinit(&process->sites);
		jitmap_destroy(process->jitmap);
		if (session->processes) {
			free(session->processes[i].metrics);
			free(session->processes[i].notices);
		}
	}
	session_free_regions(session);
	session_free_calls(session);
	free(private->processes);
	free(private->leaves);
	free(private->thread_nodes);
	calltree_deinit(&private->tree);
	arena_deinit(&private->arena);
	free(private);
	free(session->processes);
	free(session->threads);
	free(session->modules);
	free(session->frames);
	free(session->nodes);
	free(session->problems);
	free(session);
}

/* ---- pass 2 ---- */

struct sample_visit {
	const uint32_t *leaves;
	int (*each)(const struct model_sample *sample, void *context);
	void *context;
};

static int visit_sample(struct model_sample *sample, void *context)
{
	struct sample_visit *visit = context;

	sample->node = visit->leaves ? visit->leaves[sample->node] : MODEL_NONE;
	return visit->each(sample, visit->context);
}

uint64_t session_process_made_ns(const struct session *session, uint32_t process)
{
	uint64_t ticks = session->processes[process].process_start;

	if (!ticks || !session->realtime_minus_boottime_ns)
		return 0;
	return ticks * KERNEL_TICK_NS + (uint64_t)session->realtime_minus_boottime_ns;
}

int session_each_sample(struct session *session, int (*each)(const struct model_sample *, void *),
			void *context, struct problem *problem)
{
	struct sample_visit visit = {
		.leaves = session_private(session)->leaves, .each = each, .context = context};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < session->process_count; i++)
		result = session_walk_samples(session, i, false, visit_sample, &visit, problem);
	return result;
}
