/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See open.h: find the spool files, look at each without its samples (analysis/scan/scan.c), then
 * read all samples into the tree of addresses (analysis/samples.c). A file that cannot be read is a
 * line in `problems`, not an error: what is readable is shown.
 */
#include "analysis/open/open.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/open/kinds.h"
#include "analysis/runtime_code.h"
#include "analysis/scan/scan.h"
#include "analysis/session_kind.h"
#include "analysis/session_private.h"
#include "analysis/short_processes.h"
#include "analysis/symbols/frames.h"
#include "analysis/unsampled.h"
#include "common/array.h"
#include "common/time_units.h"

#define CPU_READINGS_APART_MAX_NS MILLISECOND_NS

/* ---- finding the files ---- */

static int add_process_of_spool_file(struct session *session, struct spool_file *file,
				     size_t *capacity)
{
	struct session_private *private = session_get_private(session);
	uint32_t count = session->process_count;

	if (array_reserve_one_more((void **)&private->processes, capacity, count,
				   sizeof(*private->processes)) < 0)
		return -ENOMEM;
	spool_file_close_temporarily(file);
	private->processes[count] =
		(struct process_private){.file = *file, .unsampled_time_node = CALLTREE_NO_NODE};
	session->process_count++;
	return 0;
}

static int open_and_add_spool_file(struct session *session, const char *path, size_t *capacity)
{
	struct session_private *private = session_get_private(session);
	struct problem problem;
	struct spool_file file;
	int result = spool_file_open(path, &file, &problem);

	if (result == -ENOMEM)
		return result;
	if (result == -ENOMSG)
		return 0;
	if (result < 0) {
		session->unreadable_file_count++;
		return session_add_problem_line(session, "%s", problem.text);
	}
	if (private->options.filter_process_pid &&
	    file.header.pid != private->options.filter_process_pid) {
		spool_file_close(&file);
		return 0;
	}
	result = add_process_of_spool_file(session, &file, capacity);
	if (result < 0)
		spool_file_close(&file);
	return result;
}

static int add_short_process_if_wanted(struct session *session, struct spool_file *file,
				       size_t *capacity)
{
	uint32_t wanted = session_get_private(session)->options.filter_process_pid;
	int result = wanted && file->header.pid != wanted
			     ? 0
			     : add_process_of_spool_file(session, file, capacity);

	if (result == 0 && (!wanted || file->header.pid == wanted))
		*file = (struct spool_file){.descriptor = -1};
	return result;
}

static int add_short_processes(struct session *session, size_t *capacity)
{
	char *path = arena_format_text(&session_get_private(session)->arena, SPOOL_SHORT_PATH,
				       session->directory);
	struct short_processes processes;
	struct problem problem;
	int result = path ? short_processes_read(path, &processes, &problem) : -ENOMEM;

	if (result < 0 && result != -ENOMEM) {
		session->unreadable_file_count++;
		return session_add_problem_line(session, "%s", problem.text);
	}
	if (result == 0 && processes.torn_bytes)
		result = session_add_problem_line(session,
						  "%s: %llu bytes are no entry of a process", path,
						  (unsigned long long)processes.torn_bytes);
	for (size_t i = 0; result == 0 && i < processes.count; i++)
		result = add_short_process_if_wanted(session, &processes.files[i], capacity);
	if (path)
		short_processes_free(&processes);
	return result;
}

static bool is_spool_file_name(const char *name)
{
	size_t length = strlen(name);

	return length > 6 && strcmp(name + length - 6, ".spool") == 0;
}

static int compare_processes_by_start(const void *left, const void *right)
{
	const struct spool_file_header *a = &((const struct process_private *)left)->file.header;
	const struct spool_file_header *b = &((const struct process_private *)right)->file.header;

	if (a->start_boottime_ns != b->start_boottime_ns)
		return a->start_boottime_ns < b->start_boottime_ns ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->image < b->image ? -1 : a->image > b->image;
}

static int open_all_spool_files(struct session *session, struct problem *problem)
{
	struct session_private *private = session_get_private(session);
	char *path = arena_format_text(&private->arena, "%s/spool", session->directory);
	size_t capacity = 0;
	int result = 0;
	struct dirent *entry;
	DIR *directory;

	if (!path)
		return session_set_out_of_memory_problem(problem);
	directory = opendir(path);
	if (!directory)
		return problem_set(problem, -errno,
				   "%s is not a result directory of kymo: cannot open %s: %s",
				   session->directory, path, strerror(errno));
	while (result == 0 && (entry = readdir(directory)) != NULL) {
		char *file;

		if (!is_spool_file_name(entry->d_name))
			continue;
		file = arena_format_text(&private->arena, "%s/%s", path, entry->d_name);
		result = file ? open_and_add_spool_file(session, file, &capacity) : -ENOMEM;
	}
	closedir(directory);
	if (result == 0)
		result = add_short_processes(session, &capacity);
	if (result < 0)
		return session_set_out_of_memory_problem(problem);
	if (session->process_count > 1)
		qsort(private->processes, session->process_count, sizeof(*private->processes),
		      compare_processes_by_start);
	if (assign_image_numbers_of_all_processes(private->processes, session->process_count) < 0)
		return session_set_out_of_memory_problem(problem);
	return 0;
}

/* ---- reading them ---- */

/* Readings of the process outside of the window. */
static void cut_metrics_to_window(struct session *session)
{
	const struct session_options *options = &session_get_private(session)->options;
	uint64_t from_ns = session->start_ns + options->from_ns;
	uint64_t to_ns = options->to_ns ? session->start_ns + options->to_ns : UINT64_MAX;

	for (uint32_t i = 0; session->has_only_part_of_time && i < session->process_count; i++) {
		struct model_process *process = &session->processes[i];
		size_t kept = 0;

		for (size_t j = 0; j < process->metric_count; j++) {
			if (process->metrics[j].time_ns >= from_ns &&
			    process->metrics[j].time_ns < to_ns)
				process->metrics[kept++] = process->metrics[j];
		}
		process->metric_count = kept;
	}
}

static int scan_all_processes(struct session *session, struct problem *problem)
{
	struct session_private *private = session_get_private(session);

	session->processes = calloc(session->process_count + 1, sizeof(*session->processes));
	if (!session->processes)
		return session_set_out_of_memory_problem(problem);
	session->start_ns = session->process_count ? UINT64_MAX : 0;
	for (uint32_t i = 0; i < session->process_count; i++) {
		int result = session_scan_process(session, i, problem);

		if (result < 0)
			return result;
		if (runtime_code_load_jitdump(session, i) < 0)
			return session_set_out_of_memory_problem(problem);
		if (session->processes[i].start_ns < session->start_ns)
			session->start_ns = session->processes[i].start_ns;
		private->processes[i].root = calltree_find_or_add_child(
			&private->tree, CALLTREE_NO_NODE, i, CALLTREE_MODULE_PROCESS_ROOT);
		if (private->processes[i].root == CALLTREE_NO_NODE)
			return session_set_out_of_memory_problem(problem);
	}
	cut_metrics_to_window(session);
	for (uint32_t i = 0; i < session->data_kind_count; i++) {
		if (session->data_kinds[i].kind->after_scan)
			session->data_kinds[i].kind->after_scan(session);
	}
	if (session->process_count)
		session->realtime_minus_boottime_ns =
			clock_map_get_realtime_minus_boottime(&private->processes[0].clock);
	return 0;
}

static int add_sample_to_sums(struct model_sample *sample, void *context)
{
	struct session *session = context;
	struct model_thread *thread = &session->threads[sample->thread];
	struct model_process *process = &session->processes[sample->process];
	struct calltree_node_self_sums *sum =
		&session_get_private(session)->tree.sums[sample->source][sample->node];

	sum->weight += sample->weight;
	if (sample->time_ns > process->end_ns)
		process->end_ns = sample->time_ns;
	if (!process->first_sample_ns || sample->time_ns < process->first_sample_ns)
		process->first_sample_ns = sample->time_ns;
	if (sample->blocked) {
		thread->blocked_ns += sample->weight;
		return 0;
	}
	sum->samples++;
	thread->samples[sample->source]++;
	thread->weight[sample->source] += sample->weight;
	if (sample->source == SPOOL_SOURCE_RUNNABLE)
		thread->interpreter_queued_ns +=
			sample->interpreter_state == SPOOL_INTERPRETER_STATE_NONE ? 0
										  : sample->weight;
	else if (sample->source != SPOOL_SOURCE_OVERFLOW)
		thread->interpreter_state_ns[sample->interpreter_state] += sample->weight;
	process->samples++;
	process->stacks[sample->stack_end_reason]++;
	return 0;
}

/* The total is a difference of two readings of a clock, the parts are counted by events that are
 * started a moment before the first: on a slow machine the parts are some 20 us more. */
static void set_cpu_times_of_process_threads(struct session *session,
					     const struct model_process *process)
{
	for (uint32_t i = 0; i < process->thread_count; i++) {
		struct model_thread *thread = &session->threads[process->first_thread + i];
		uint64_t parts;

		thread->covered_ns = thread->weight[SPOOL_SOURCE_CPU];
		parts = thread->covered_ns + thread->blocked_ns;
		if (thread->cpu_ns == 0 || session->has_only_part_of_time ||
		    (thread->cpu_ns < parts && parts - thread->cpu_ns < CPU_READINGS_APART_MAX_NS))
			thread->cpu_ns = parts;
	}
}

static int read_all_samples(struct session *session, struct problem *problem)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		struct model_process *process = &session->processes[i];
		int result = session_walk_process_samples(session, i, true, add_sample_to_sums,
							  session, problem);

		if (result < 0)
			return result;
		set_cpu_times_of_process_threads(session, process);
		if (process->end_ns > session->end_ns)
			session->end_ns = process->end_ns;
	}
	if (session->end_ns < session->start_ns)
		session->end_ns = session->start_ns;
	return 0;
}

/* The launcher saw how the first process ended; that process itself could not. */
static void set_process_exit_status_from_launch(struct session *session)
{
	const struct model_program_launch *launch = &session->launch;
	struct model_process *last = NULL;

	for (uint32_t i = 0; launch->is_wait_status_known && i < session->process_count; i++) {
		struct model_process *process = &session->processes[i];

		if (process->pid == launch->pid && (!last || process->image >= last->image))
			last = process;
	}
	if (last)
		last->wait_status = launch->wait_status;
	if (!*session->command_line && session->process_count)
		session->command_line = session->processes[0].command_line;
}

/* ---- kinds of data ---- */

static int allocate_data_of_all_kinds(struct session *session, struct problem *problem)
{
	struct arena *arena = &session_get_private(session)->arena;
	const struct session_data_kind_operations *const *list = session_data_kind_table;

	_Static_assert(SESSION_DATA_KIND_COUNT <= SESSION_DATA_KINDS_MAX,
		       "session.h has too few places");
	for (; *list; list++) {
		struct session_data_of_kind_entry *data =
			&session->data_kinds[session->data_kind_count];
		const struct session_data_kind_operations *kind = *list;

		*data = (struct session_data_of_kind_entry){.name = kind->name, .kind = kind};
		if (kind->session_data_bytes)
			data->data = arena_allocate(arena, kind->session_data_bytes);
		if (kind->process_data_bytes)
			data->processes =
				calloc(session->process_count + 1, kind->process_data_bytes);
		if ((kind->session_data_bytes && !data->data) ||
		    (kind->process_data_bytes && !data->processes)) {
			free(data->processes);
			return session_set_out_of_memory_problem(problem);
		}
		session->data_kind_count++;
	}
	return 0;
}

static int call_open_of_data_kinds(struct session *session, struct problem *problem)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < session->data_kind_count; i++) {
		const struct session_data_kind_operations *kind = session->data_kinds[i].kind;

		if (kind->open)
			result = kind->open(session, problem);
	}
	return result;
}

/* A part that begins behind the data would be an empty report. */
static int check_part_begins_within_data(struct session *session, struct problem *problem)
{
	uint64_t from_ns = session_get_private(session)->options.from_ns,
		 length_ns = session->end_ns - session->start_ns;

	if (!from_ns || from_ns < length_ns)
		return 0;
	return problem_set(problem, -EINVAL,
			   "nothing was recorded after %.6g s: the data end after %.6g s",
			   (double)from_ns * 1e-9, (double)length_ns * 1e-9);
}

static int run_session_read_steps(struct session *session, struct problem *problem)
{
	static int (*const steps[])(struct session *, struct problem *) = {
		open_all_spool_files,   allocate_data_of_all_kinds, session_read_launch,
		scan_all_processes,     read_all_samples,           check_part_begins_within_data,
		call_open_of_data_kinds};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		int result = steps[i](session, problem);

		if (result < 0)
			return result;
	}
	set_process_exit_status_from_launch(session);
	return 0;
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
		return session_set_out_of_memory_problem(problem);
	}
	session->private_state = private;
	session->command_line = "";
	private->options = options ? *options : (struct session_options){0};
	session->has_only_part_of_time = private->options.from_ns || private->options.to_ns;
	session->has_only_part_of_threads =
		private->options.filter_process_pid || private->options.filter_thread_tid;
	session->directory = arena_copy_bytes(&private->arena, directory, strlen(directory));
	session->results = options && options->results ? options->results : session->directory;
	session->results_display_name = options && options->results_display_name
						? options->results_display_name
						: session->results;
	result = session->directory ? run_session_read_steps(session, problem)
				    : session_set_out_of_memory_problem(problem);
	if (result < 0)
		session_close(session);
	else
		*ret = session;
	return result;
}

int session_symbolize(struct session *session, struct problem *problem)
{
	if (session_get_private(session)->session_node_by_tree_node)
		return 0;
	if (session_add_unsampled_nodes(session) < 0)
		return session_set_out_of_memory_problem(problem);
	return build_session_frames_and_nodes(session, problem);
}
