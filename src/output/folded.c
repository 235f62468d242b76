/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Folded stacks, the input of flamegraph.pl, inferno and speedscope: one line a stack,
 * `process;root;…;leaf weight`, with `;thread` after the process when threads are asked for.
 * The weight is a count of samples, or the sum of the measure if one was asked for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/folded_name.h"
#include "output/function_tree.h"
#include "output/writers.h"

struct folded {
	struct session *session;
	const struct output_options *options;
	FILE *stream;
	enum view_measure measure;
	struct function_tree tree;
	uint32_t *path;
	uint64_t *weight; /* by function node */
};

void folded_write_name(FILE *stream, const char *name)
{
	for (;;) {
		size_t plain = strcspn(name, ";\n\r");

		fwrite(name, 1, plain, stream);
		if (name[plain] == '\0')
			return;
		putc(name[plain] == ';' ? ':' : ' ', stream);
		name += plain + 1;
	}
}

static void write_stack(const struct folded *folded, uint32_t node, uint32_t thread)
{
	const struct session *session = folded->session;
	uint32_t length = 0;

	folded_write_name(folded->stream,
			  session->processes[folded->tree.nodes[node].process].name);
	if (thread != MODEL_NONE) {
		putc(';', folded->stream);
		folded_write_name(folded->stream, session->threads[thread].name);
		fprintf(folded->stream, "-%" PRIu32, session->threads[thread].tid);
	}
	for (uint32_t at = node; at != MODEL_NONE; at = folded->tree.nodes[at].parent)
		folded->path[length++] = folded->tree.nodes[at].frame;
	while (length-- > 0) {
		putc(';', folded->stream);
		folded_write_name(folded->stream, session->frames[folded->path[length]].function);
	}
	fprintf(folded->stream, " %" PRIu64 "\n", folded->weight[node]);
}

static uint64_t weight_of(const struct folded *folded, const uint64_t *samples,
			  const uint64_t *weights)
{
	return view_sum(folded->options->measure_given ? weights : samples, folded->measure);
}

static void write_processes(struct folded *folded)
{
	const struct session *session = folded->session;

	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_node *node = &session->nodes[i];
		folded->weight[folded->tree.of_node[i]] +=
			weight_of(folded, node->self_samples, node->self_weight);
	}
	for (uint32_t i = 0; i < folded->tree.count; i++) {
		if (folded->weight[i] != 0)
			write_stack(folded, i, MODEL_NONE);
	}
}

/* `from` and `to` bound the rows of one thread. */
static void write_thread(struct folded *folded, const struct view_thread_node *from,
			 const struct view_thread_node *to)
{
	const struct view_thread_node *row;

	for (row = from; row < to; row++)
		folded->weight[folded->tree.of_node[row->node]] +=
			weight_of(folded, row->self_samples, row->self_weight);
	for (row = from; row < to; row++) {
		uint32_t node = folded->tree.of_node[row->node];
		if (folded->weight[node] != 0)
			write_stack(folded, node, row->thread);
		folded->weight[node] = 0;
	}
}

static int write_threads(struct folded *folded)
{
	const struct view_thread_node *rows;
	size_t count, end;
	int error = view_thread_nodes(folded->session, &rows, &count);

	for (size_t start = 0; error == 0 && start < count; start = end) {
		for (end = start; end < count && rows[end].thread == rows[start].thread;)
			end++;
		write_thread(folded, rows + start, rows + end);
	}
	return error;
}

int output_folded(struct session *session, const struct output_options *options, FILE *stream,
		  struct problem *problem)
{
	struct folded folded = {.session = session, .options = options, .stream = stream};
	int error = function_tree_init(&folded.tree, session);

	folded.measure = options->measure_given ? options->measure : view_default_measure(session);
	folded.path = calloc((size_t)folded.tree.count + 1, sizeof(*folded.path));
	folded.weight = calloc((size_t)folded.tree.count + 1, sizeof(*folded.weight));
	if (error == 0 && (folded.path == NULL || folded.weight == NULL))
		error = -ENOMEM;
	errno = 0; /* a write that fails half-way leaves its reason here */
	if (error == 0 && options->per_thread)
		error = write_threads(&folded);
	else if (error == 0)
		write_processes(&folded);
	if (error == 0 && (fflush(stream) != 0 || ferror(stream)))
		error = errno != 0 ? -errno : -EIO;
	free(folded.path);
	free(folded.weight);
	function_tree_deinit(&folded.tree);
	if (error != 0)
		problem_set(problem, error, "cannot write folded stacks: %s", strerror(-error));
	return error;
}
