/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Folded stacks, the input of flamegraph.pl, inferno and speedscope: one line a stack,
 * `process;root;…;leaf weight`, with `;thread` after the process when threads are asked for.
 * The weight is the sum of the measure, ns or events, as in every other output: records stand for
 * different times, and a count of them for none. Short processes are one line a program.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "output/folded_name.h"
#include "output/format.h"
#include "output/function_tree.h"
#include "output/output.h"

#define FRAME_NAME_SIZE 4096

struct folded_writer {
	struct session *session;
	FILE *stream;
	enum view_measure_kind measure;
	struct function_tree tree;
	uint32_t *path;
	uint64_t *weight; /* by function node */
};

void folded_write_name(FILE *stream, const char *name)
{
	size_t left = strlen(name);

	while (left) {
		const char *shown;
		size_t shown_size,
			size = utf8_next_printable_character(name, left, &shown, &shown_size);

		if (*name == ';')
			putc(':', stream);
		else if (*name == '\n' || *name == '\r')
			putc(' ', stream);
		else
			fwrite(shown, 1, shown_size, stream);
		name += size;
		left -= size;
	}
}

/* Of interpreted code with the line that runs: "work (app.py:12)". */
static void write_frame_name(FILE *stream, const struct model_frame *frame)
{
	char name[FRAME_NAME_SIZE];

	if (frame->kind != FRAME_INTERPRETED) {
		folded_write_name(stream, frame->function);
		return;
	}
	format_interpreted_function(name, sizeof(name), frame, frame->line);
	folded_write_name(stream, name);
}

static void write_folded_stack(const struct folded_writer *folded, uint32_t node, uint32_t thread)
{
	const struct session *session = folded->session;
	uint32_t length = 0;

	folded_write_name(folded->stream,
			  session->processes[folded->tree.nodes[node].process].name);
	if (thread != MODEL_ENTRY_INDEX_NONE) {
		putc(';', folded->stream);
		folded_write_name(folded->stream, session->threads[thread].name);
		fprintf(folded->stream, "-%" PRIu32, session->threads[thread].tid);
	}
	for (uint32_t at = node; at != MODEL_ENTRY_INDEX_NONE; at = folded->tree.nodes[at].parent)
		folded->path[length++] = folded->tree.nodes[at].frame;
	while (length-- > 0) {
		putc(';', folded->stream);
		write_frame_name(folded->stream, &session->frames[folded->path[length]]);
	}
	fprintf(folded->stream, " %" PRIu64 "\n", folded->weight[node]);
}

/* What processes used that are too short to be sampled is added up by program. */
static bool is_time_of_short_process(const struct session *session, uint32_t index)
{
	const struct model_calltree_node *node = &session->nodes[index];

	return session->processes[node->process].is_short_process &&
	       node->frame != MODEL_ENTRY_INDEX_NONE &&
	       !strcmp(session->frames[node->frame].function, SESSION_UNSAMPLED_TIME_FRAME_NAME);
}

struct short_process_time {
	const char *name;
	uint64_t cpu_ns;
};

static int compare_times_by_name(const void *left, const void *right)
{
	const struct short_process_time *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static size_t collect_short_process_times(const struct session *session,
					  struct short_process_time *times)
{
	size_t count = 0;

	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_calltree_node *node = &session->nodes[i];

		if (is_time_of_short_process(session, i))
			times[count++] =
				(struct short_process_time){session->processes[node->process].name,
							    node->self_weight[SPOOL_SOURCE_CPU]};
	}
	qsort(times, count, sizeof(*times), compare_times_by_name);
	return count;
}

static int write_short_processes(struct folded_writer *folded)
{
	const struct session *session = folded->session;
	struct short_process_time *times;
	size_t count, end;

	if (folded->measure == VIEW_MEASURE_COUNTER_EVENTS)
		return 0;
	times = calloc((size_t)session->node_count + 1, sizeof(*times));
	if (!times)
		return -ENOMEM;
	count = collect_short_process_times(session, times);
	for (size_t start = 0; start < count; start = end) {
		uint64_t cpu_ns = 0;

		for (end = start; end < count && !strcmp(times[end].name, times[start].name); end++)
			cpu_ns += times[end].cpu_ns;
		if (!cpu_ns)
			continue;
		folded_write_name(folded->stream, times[start].name);
		fprintf(folded->stream, ";%s %" PRIu64 "\n", SESSION_UNSAMPLED_TIME_FRAME_NAME,
			cpu_ns);
	}
	free(times);
	return 0;
}

static void write_all_process_stacks(struct folded_writer *folded)
{
	const struct session *session = folded->session;

	for (uint32_t i = 0; i < session->node_count; i++) {
		if (!is_time_of_short_process(session, i))
			folded->weight[folded->tree.of_node[i]] +=
				view_get_node_self_weight(&session->nodes[i], folded->measure);
	}
	for (uint32_t i = 0; i < folded->tree.count; i++) {
		if (folded->weight[i] != 0)
			write_folded_stack(folded, i, MODEL_ENTRY_INDEX_NONE);
	}
}

/* `from` and `to` bound the rows of one thread. */
static void write_thread_stacks(struct folded_writer *folded,
				const struct view_thread_node_row *from,
				const struct view_thread_node_row *to)
{
	const struct view_thread_node_row *row;

	for (row = from; row < to; row++)
		folded->weight[folded->tree.of_node[row->node]] +=
			view_sum_sources_of_measure(row->self_weight, folded->measure);
	for (row = from; row < to; row++) {
		uint32_t node = folded->tree.of_node[row->node];
		if (folded->weight[node] != 0)
			write_folded_stack(folded, node, row->thread);
		folded->weight[node] = 0;
	}
}

static int write_all_thread_stacks(struct folded_writer *folded)
{
	const struct view_thread_node_row *rows;
	size_t count, end;
	int error = view_sum_by_thread_and_node(folded->session, &rows, &count);

	for (size_t start = 0; error == 0 && start < count; start = end) {
		for (end = start; end < count && rows[end].thread == rows[start].thread;)
			end++;
		write_thread_stacks(folded, rows + start, rows + end);
	}
	return error;
}

static int output_write_folded(struct session *session, const struct output_options *options,
			       FILE *stream, struct problem *problem)
{
	struct folded_writer folded = {.session = session, .stream = stream};
	int error = function_tree_build_per_interpreted_line(&folded.tree, session);

	folded.measure =
		options->is_measure_given ? options->measure : view_choose_default_measure(session);
	folded.path = calloc((size_t)folded.tree.count + 1, sizeof(*folded.path));
	folded.weight = calloc((size_t)folded.tree.count + 1, sizeof(*folded.weight));
	if (error == 0 && (folded.path == NULL || folded.weight == NULL))
		error = -ENOMEM;
	errno = 0; /* a write that fails half-way leaves its reason here */
	if (error == 0 && options->per_thread)
		error = write_all_thread_stacks(&folded);
	else if (error == 0)
		write_all_process_stacks(&folded);
	if (error == 0 && !options->per_thread)
		error = write_short_processes(&folded);
	if (error == 0 && (fflush(stream) != 0 || ferror(stream)))
		error = errno != 0 ? -errno : -EIO;
	free(folded.path);
	free(folded.weight);
	function_tree_deinit(&folded.tree);
	if (error != 0)
		problem_set(problem, error, "cannot write folded stacks: %s", strerror(-error));
	return error;
}

const struct output_format output_format_folded = {
	.name = "folded",
	.file_name = "samples.folded",
	.description = "folded stacks for flamegraph.pl, inferno and speedscope",
	.write = output_write_folded,
};
