/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * profile.txt, for people and for grep: a table a section, the label first, then the columns that
 * all components of a profile share. For samples COUNT is the number of samples that hold the
 * function, SUM the time or events they stand for, MEAN the weight of one sample. Components that
 * measure each call have MIN, MAX and STDDEV besides; a sample sees no whole call, so there are no
 * such columns here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions.h"
#include "output/calls.h"
#include "output/format.h"
#include "output/memory.h"
#include "output/profile_tree.h"
#include "output/stream.h"
#include "output/text_regions.h"
#include "output/writers.h"

#define LABEL_WIDTH_MAX  110
#define LABEL_WIDTH_MIN  40
#define METRIC_WIDTH_MIN 9
#define METRIC_WIDTH_MAX 40
#define INDENT_MAX       40 /* deeper rows keep this indentation; DEPTH says the truth */

struct text_writer {
	struct session *session;
	const struct output_options *options;
	FILE *stream;
	enum view_measure measure;
	struct profile_tree tree;
	uint64_t total; /* of the whole session */
	const char *metric;
	size_t label_width, metric_width;
};

/* One row, whatever section it is in. */
struct text_row {
	char label[512];
	uint32_t depth;
	uint64_t count, sum, self;
};

static void write_heading(struct text_writer *writer, const char *title, const char *explanation)
{
	fprintf(writer->stream, "\n%s\n%s\n\n", title, explanation);
}

static void write_columns(struct text_writer *writer)
{
	format_fitted(writer->stream, "LABEL", writer->label_width);
	fprintf(writer->stream, " %9s %5s %-*s %-6s %14s %11s %7s %7s\n", "COUNT", "DEPTH",
		(int)writer->metric_width, "METRIC", "UNITS", "SUM", "MEAN", "%TOTAL", "%SELF");
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void write_row(struct text_writer *writer, const struct text_row *row)
{
	bool events = writer->measure == MEASURE_OVERFLOW;
	double unit = events ? 1 : 1e9;
	int decimals = events ? 0 : 6;

	format_fitted(writer->stream, row->label, writer->label_width);
	fprintf(writer->stream, " %9" PRIu64 " %5u ", row->count, row->depth);
	format_fitted(writer->stream, writer->metric, writer->metric_width);
	fprintf(writer->stream, " %-6s %14.*f", events ? "events" : "s", decimals,
		(double)row->sum / unit);
	if (row->count)
		fprintf(writer->stream, " %11.*f", decimals,
			(double)row->sum / unit / (double)row->count);
	else
		fprintf(writer->stream, " %11s", "-");
	fprintf(writer->stream, " %7.2f %7.2f\n", percent(row->sum, writer->total),
		percent(row->self, row->sum));
}

/* ---- call trees ---- */

static bool is_left_out(const struct text_writer *writer, uint64_t sum)
{
	return percent(sum, writer->total) < writer->options->minimum_percent;
}

static void tree_row(const struct text_writer *writer, uint32_t node, uint32_t depth,
		     struct text_row *row)
{
	const struct profile_sums *sums = &writer->tree.sums[node];
	uint32_t indent = depth < INDENT_MAX ? depth : INDENT_MAX;
	int used = snprintf(row->label, sizeof(row->label), "%*s", (int)(2 * indent), "");

	format_function(row->label + used, sizeof(row->label) - (size_t)used, writer->session,
			writer->tree.functions.nodes[node].frame);
	row->depth = depth;
	row->count = sums->inclusive_samples;
	row->sum = sums->inclusive;
	row->self = sums->self;
}

/* The sum of the process whose rows begin at `first`. */
static void process_row(struct text_writer *writer, uint32_t first)
{
	const struct profile_tree *tree = &writer->tree;
	uint32_t process = tree->functions.nodes[tree->rows[first]].process;
	const struct model_process *it = &writer->session->processes[process];
	struct text_row row = {0};

	if (writer->options->collapse_processes)
		snprintf(row.label, sizeof(row.label), "(%u processes)",
			 writer->session->process_count);
	else
		format_process(row.label, sizeof(row.label), it);
	for (uint32_t i = first; i < tree->row_count; i++) {
		const struct function_node *node = &tree->functions.nodes[tree->rows[i]];

		if (node->process != process)
			break;
		if (node->parent == MODEL_NONE) {
			row.count += tree->sums[tree->rows[i]].inclusive_samples;
			row.sum += tree->sums[tree->rows[i]].inclusive;
		}
	}
	write_row(writer, &row);
}

/* Rows below the limit end with all that is below them, since nothing there is heavier. */
static void write_tree(struct text_writer *writer)
{
	const struct profile_tree *tree = &writer->tree;
	uint32_t process = MODEL_NONE;

	for (uint32_t i = 0; i < tree->row_count; i++) {
		uint32_t node = tree->rows[i];
		struct text_row row;

		if (tree->functions.nodes[node].process != process) {
			process = tree->functions.nodes[node].process;
			process_row(writer, i);
		}
		if (is_left_out(writer, tree->sums[node].inclusive))
			continue;
		tree_row(writer, node, tree->functions.nodes[node].depth + 1, &row);
		write_row(writer, &row);
	}
}

static void measure_labels(struct text_writer *writer)
{
	size_t width = LABEL_WIDTH_MIN;

	for (uint32_t i = 0; i < writer->tree.row_count && width < LABEL_WIDTH_MAX; i++) {
		uint32_t node = writer->tree.rows[i];
		struct text_row row;
		size_t columns;

		if (is_left_out(writer, writer->tree.sums[node].inclusive))
			continue;
		tree_row(writer, node, writer->tree.functions.nodes[node].depth + 1, &row);
		columns = format_columns(row.label);
		if (columns > width)
			width = columns;
	}
	writer->label_width = width < LABEL_WIDTH_MAX ? width : LABEL_WIDTH_MAX;
}

static void write_hierarchy(struct text_writer *writer)
{
	write_heading(writer, "CALL TREE",
		      "A function below its caller, the heaviest first; SUM is with everything it "
		      "calls.");
	write_columns(writer);
	write_tree(writer);
}

/* ---- threads ---- */

static size_t thread_entries(const struct view_thread_node *entries, size_t count, size_t from)
{
	size_t end = from;

	while (end < count && entries[end].thread == entries[from].thread)
		end++;
	return end - from;
}

static int write_thread_trees(struct text_writer *writer)
{
	const struct view_thread_node *entries;
	size_t count;
	int result = view_thread_nodes(writer->session, &entries, &count);

	if (result < 0)
		return result;
	write_heading(writer, "CALL TREE BY THREAD", "As above, each thread by itself.");
	for (size_t i = 0, own; i < count; i += own) {
		const struct model_thread *thread = &writer->session->threads[entries[i].thread];

		own = thread_entries(entries, count, i);
		profile_tree_fill_thread(&writer->tree, entries + i, own, writer->measure);
		if (writer->tree.row_count == 0)
			continue;
		fprintf(writer->stream, "\nThread %u ", thread->tid);
		format_limited(writer->stream, thread->name, 60);
		fputc('\n', writer->stream);
		write_columns(writer);
		write_tree(writer);
	}
	return 0;
}

static void write_threads(struct text_writer *writer)
{
	struct session *session = writer->session;

	write_heading(writer, "THREADS",
		      "SUM of all samples of a thread; %SELF is what samples cover of the CPU "
		      "time that the kernel counted.");
	write_columns(writer);
	for (uint32_t i = 0; i < session->thread_count; i++) {
		const struct model_thread *thread = &session->threads[i];
		struct text_row row = {0};

		row.count = view_sum(thread->samples, writer->measure);
		row.sum = view_sum(thread->weight, writer->measure);
		row.self = row.sum;
		if (writer->measure == MEASURE_CPU && thread->cpu_ns > row.sum)
			row.sum = thread->cpu_ns;
		if (row.sum == 0 && row.count == 0)
			continue;
		snprintf(row.label, sizeof(row.label), "%s [%u]", thread->name, thread->tid);
		write_row(writer, &row);
	}
}

/* ---- functions ---- */

static int write_functions(struct text_writer *writer)
{
	struct view_function *functions;
	size_t count, shown;
	int result = view_functions(writer->session, writer->measure, &functions, &count);

	if (result < 0)
		return result;
	shown = writer->options->top && writer->options->top < count ? writer->options->top : count;
	write_heading(writer, "FUNCTIONS",
		      "Heaviest by themselves first; SUM is with everything they call, %SELF what "
		      "they took themselves.");
	write_columns(writer);
	for (size_t i = 0; i < shown; i++) {
		struct text_row row = {.count = functions[i].inclusive_samples,
				       .sum = functions[i].inclusive,
				       .self = functions[i].self};

		format_function(row.label, sizeof(row.label), writer->session, functions[i].frame);
		write_row(writer, &row);
	}
	if (shown < count)
		fprintf(writer->stream, "(%zu more)\n", count - shown);
	free(functions);
	return 0;
}

/* ---- the file ---- */

static void write_head(struct text_writer *writer)
{
	const struct session *session = writer->session;
	uint32_t threads = view_program_threads(session);

	fputs("kymo profile of: ", writer->stream);
	format_limited(writer->stream, session->command_line, 1000);
	fputs("\nmeasure: ", writer->stream);
	format_limited(writer->stream, writer->metric, METRIC_WIDTH_MAX);
	fprintf(writer->stream, ", %s in %s samples; %u thread%s of %u process%s\n",
		quantity_measure(writer->total, writer->measure).text,
		quantity_count(writer->tree.total_samples).text, threads, threads == 1 ? "" : "s",
		session->process_count, session->process_count == 1 ? "" : "es");
	fputs("COUNT: samples that hold the function; SUM: what they stand for; MEAN: SUM / "
	      "COUNT.\n"
	      "A sample sees no whole call, so there are no MIN, MAX and STDDEV.\n",
	      writer->stream);
}

static int write_sections(struct text_writer *writer)
{
	const struct output_options *options = writer->options;
	int result = 0;

	profile_tree_fill(&writer->tree, writer->session, writer->measure);
	writer->total = writer->tree.total;
	measure_labels(writer);
	write_head(writer);
	if (writer->total == 0 && writer->session->regions->node_count)
		return 0; /* only regions were recorded */
	if (!options->flat && !options->per_thread)
		write_hierarchy(writer);
	if (!options->flat && options->per_thread)
		result = write_thread_trees(writer);
	if (result == 0)
		result = write_functions(writer);
	if (result == 0)
		write_threads(writer);
	return result;
}

int output_text(struct session *session, const struct output_options *options, FILE *stream,
		struct problem *problem)
{
	struct text_writer writer = {.session = session, .options = options, .stream = stream};
	int result;

	writer.measure = options->measure_given ? options->measure : view_default_measure(session);
	writer.metric = writer.measure == MEASURE_OVERFLOW ? format_event(session)
							   : view_measure_name(writer.measure);
	writer.metric_width = format_columns(writer.metric);
	if (writer.metric_width < METRIC_WIDTH_MIN)
		writer.metric_width = METRIC_WIDTH_MIN;
	if (writer.metric_width > METRIC_WIDTH_MAX)
		writer.metric_width = METRIC_WIDTH_MAX;
	result = profile_tree_init(&writer.tree, session, options->collapse_processes);
	if (result == 0)
		result = write_sections(&writer);
	profile_tree_deinit(&writer.tree);
	if (result == 0)
		result = text_regions(session, options, stream, problem);
	if (result == 0)
		calls_text(session, options, stream);
	if (result == 0)
		result = memory_text_write(session, options, stream);
	if (result < 0)
		return problem_set(problem, result, "cannot make the text profile: %s",
				   strerror(-result));
	return stream_check(stream, "the text profile", problem);
}
