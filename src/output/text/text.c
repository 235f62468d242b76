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

#include "analysis/regions/regions.h"
#include "files/stream.h"
#include "output/calls.h"
#include "output/format.h"
#include "output/interpreted_lines.h"
#include "output/json/memory.h"
#include "output/output.h"
#include "output/profile_tree.h"
#include "output/text/mpi.h"
#include "output/text/regions.h"
#include "output/thread_sums.h"

#define LABEL_WIDTH_MAX   110
#define LABEL_WIDTH_MIN   40
#define METRIC_WIDTH_MIN  9
#define METRIC_WIDTH_MAX  40
#define INDENT_LEVELS_MAX 40 /* deeper rows keep this indentation; DEPTH says the truth */

struct profile_text_writer {
	struct session *session;
	const struct output_options *options;
	FILE *stream;
	enum view_measure_kind measure;
	struct profile_tree tree;
	uint64_t total; /* of the whole session */
	const char *metric;
	size_t label_width, metric_width;
};

/* One row, whatever section it is in. */
struct profile_text_row {
	char label[512];
	uint32_t depth;
	uint64_t count, sum, self;
};

static void write_section_heading(struct profile_text_writer *writer, const char *title,
				  const char *explanation)
{
	fprintf(writer->stream, "\n%s\n%s\n\n", title, explanation);
}

static void write_column_titles(struct profile_text_writer *writer)
{
	format_write_padded_to_width(writer->stream, "LABEL", writer->label_width);
	fprintf(writer->stream, " %9s %5s %-*s %-6s %14s %11s %7s %7s\n", "COUNT", "DEPTH",
		(int)writer->metric_width, "METRIC", "UNITS", "SUM", "MEAN", "%TOTAL", "%SELF");
}

static double calculate_percent_of_whole(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void write_profile_row(struct profile_text_writer *writer,
			      const struct profile_text_row *row)
{
	bool events = writer->measure == VIEW_MEASURE_COUNTER_EVENTS;
	double unit = events ? 1 : 1e9;
	int decimals = events ? 0 : 6;

	format_write_padded_to_width(writer->stream, row->label, writer->label_width);
	fprintf(writer->stream, " %9" PRIu64 " %5u ", row->count, row->depth);
	format_write_padded_to_width(writer->stream, writer->metric, writer->metric_width);
	fprintf(writer->stream, " %-6s %14.*f", events ? "events" : "s", decimals,
		(double)row->sum / unit);
	if (row->count)
		fprintf(writer->stream, " %11.*f", decimals,
			(double)row->sum / unit / (double)row->count);
	else
		fprintf(writer->stream, " %11s", "-");
	fprintf(writer->stream, " %7.2f %7.2f\n",
		calculate_percent_of_whole(row->sum, writer->total),
		calculate_percent_of_whole(row->self, row->sum));
}

/* ---- call trees ---- */

static bool is_sum_below_minimum_percent(const struct profile_text_writer *writer, uint64_t sum)
{
	return calculate_percent_of_whole(sum, writer->total) < writer->options->minimum_percent;
}

static void fill_text_row_from_function_node(const struct profile_text_writer *writer,
					     uint32_t node, uint32_t depth,
					     struct profile_text_row *row)
{
	const struct profile_sums *sums = &writer->tree.sums[node];
	uint32_t indent = depth < INDENT_LEVELS_MAX ? depth : INDENT_LEVELS_MAX;
	int used = snprintf(row->label, sizeof(row->label), "%*s", (int)(2 * indent), "");

	format_function_with_module(row->label + used, sizeof(row->label) - (size_t)used,
				    writer->session, writer->tree.functions.nodes[node].frame);
	row->depth = depth;
	row->count = sums->inclusive_samples;
	row->sum = sums->inclusive;
	row->self = sums->self;
}

/* The sum of the process whose rows begin at `first`. */
static void write_process_sum_row(struct profile_text_writer *writer, uint32_t first)
{
	const struct profile_tree *tree = &writer->tree;
	uint32_t process = tree->functions.nodes[tree->rows[first]].process;
	const struct model_process *it = &writer->session->processes[process];
	struct profile_text_row row = {0};

	if (writer->options->collapse_processes)
		snprintf(row.label, sizeof(row.label), "(%u processes)",
			 writer->session->process_count);
	else
		format_process_name(row.label, sizeof(row.label), it);
	for (uint32_t i = first; i < tree->row_count; i++) {
		const struct function_node *node = &tree->functions.nodes[tree->rows[i]];

		if (node->process != process)
			break;
		if (node->parent == MODEL_ENTRY_INDEX_NONE) {
			row.count += tree->sums[tree->rows[i]].inclusive_samples;
			row.sum += tree->sums[tree->rows[i]].inclusive;
		}
	}
	write_profile_row(writer, &row);
}

/* Rows below the limit end with all that is below them, since nothing there is heavier. */
static void write_call_trees_by_process(struct profile_text_writer *writer)
{
	const struct profile_tree *tree = &writer->tree;
	uint32_t process = MODEL_ENTRY_INDEX_NONE;

	for (uint32_t i = 0; i < tree->row_count; i++) {
		uint32_t node = tree->rows[i];
		struct profile_text_row row;

		if (tree->functions.nodes[node].process != process) {
			process = tree->functions.nodes[node].process;
			write_process_sum_row(writer, i);
		}
		if (is_sum_below_minimum_percent(writer, tree->sums[node].inclusive))
			continue;
		fill_text_row_from_function_node(writer, node,
						 tree->functions.nodes[node].depth + 1, &row);
		write_profile_row(writer, &row);
	}
}

static void set_label_width(struct profile_text_writer *writer)
{
	size_t width = LABEL_WIDTH_MIN;

	for (uint32_t i = 0; i < writer->tree.row_count && width < LABEL_WIDTH_MAX; i++) {
		uint32_t node = writer->tree.rows[i];
		struct profile_text_row row;
		size_t columns;

		if (is_sum_below_minimum_percent(writer, writer->tree.sums[node].inclusive))
			continue;
		fill_text_row_from_function_node(
			writer, node, writer->tree.functions.nodes[node].depth + 1, &row);
		columns = format_count_text_columns(row.label);
		if (columns > width)
			width = columns;
	}
	writer->label_width = width < LABEL_WIDTH_MAX ? width : LABEL_WIDTH_MAX;
}

static void write_call_tree_section(struct profile_text_writer *writer)
{
	write_section_heading(
		writer, "CALL TREE",
		"Each function is below its caller, the heaviest first; SUM includes everything "
		"it calls.");
	write_column_titles(writer);
	write_call_trees_by_process(writer);
}

/* ---- threads ---- */

static size_t count_adjacent_entries_of_thread(const struct view_thread_node_row *entries,
					       size_t count, size_t from)
{
	size_t end = from;

	while (end < count && entries[end].thread == entries[from].thread)
		end++;
	return end - from;
}

static int write_thread_trees(struct profile_text_writer *writer)
{
	const struct view_thread_node_row *entries;
	size_t count;
	int result = view_sum_by_thread_and_node(writer->session, &entries, &count);

	if (result < 0)
		return result;
	write_section_heading(writer, "CALL TREE BY THREAD", "As above, for each thread.");
	for (size_t i = 0, own; i < count; i += own) {
		const struct model_thread *thread = &writer->session->threads[entries[i].thread];

		own = count_adjacent_entries_of_thread(entries, count, i);
		profile_tree_fill_sums_of_thread(&writer->tree, entries + i, own, writer->measure);
		if (writer->tree.row_count == 0)
			continue;
		fprintf(writer->stream, "\nThread %u ", thread->tid);
		format_write_cut_to_width(writer->stream, thread->name, 60);
		fputc('\n', writer->stream);
		write_column_titles(writer);
		write_call_trees_by_process(writer);
	}
	return 0;
}

/* How a thread's real time divides: a row each below its own. */
static void write_thread_time_rows(struct profile_text_writer *writer,
				   const struct model_thread *thread)
{
	static const struct {
		const char *label;
		enum spool_sample_source source;
	} parts[] = {{"  running", SPOOL_SOURCE_CPU},
		     {"  waiting for a CPU", SPOOL_SOURCE_RUNNABLE},
		     {"  blocked", SPOOL_SOURCE_WALL}};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct profile_text_row row = {.count = thread->samples[parts[i].source],
					       .sum = thread->weight[parts[i].source]};

		row.self = row.sum;
		snprintf(row.label, sizeof(row.label), "%s", parts[i].label);
		write_profile_row(writer, &row);
	}
}

static void write_thread_sum_row(struct profile_text_writer *writer, const struct thread_sum *sum)
{
	struct profile_text_row row = {
		.count = view_sum_sources_of_measure(sum->samples, writer->measure),
		.sum = view_sum_sources_of_measure(sum->weight, writer->measure)};

	row.self = row.sum;
	if (writer->measure == VIEW_MEASURE_CPU_TIME && sum->cpu_ns > row.sum)
		row.sum = sum->cpu_ns;
	snprintf(row.label, sizeof(row.label), "%s (%" PRIu64 " threads)", sum->name, sum->threads);
	write_profile_row(writer, &row);
}

static int write_all_threads_section(struct profile_text_writer *writer)
{
	struct session *session = writer->session;
	struct thread_sums sums;

	if (thread_sums_create(session, &sums))
		return -ENOMEM;

	write_section_heading(
		writer, "THREADS",
		sums.count ? "SUM of all samples of a thread; " THREADS_SUMMED_NOTE "."
			   : "SUM of all samples of a thread; %SELF is the share of the kernel's "
			     "CPU time that samples cover.");
	write_column_titles(writer);
	for (uint32_t i = 0; i < session->thread_count; i++) {
		const struct model_thread *thread = &session->threads[i];
		struct profile_text_row row = {0};

		row.count = view_sum_sources_of_measure(thread->samples, writer->measure);
		row.sum = view_sum_sources_of_measure(thread->weight, writer->measure);
		row.self = row.sum;
		if (writer->measure == VIEW_MEASURE_CPU_TIME && thread->cpu_ns > row.sum)
			row.sum = thread->cpu_ns;
		if ((row.sum == 0 && row.count == 0) || !thread_sums_is_thread_listed(&sums, i))
			continue;
		snprintf(row.label, sizeof(row.label), "%s [%u]", thread->name, thread->tid);
		write_profile_row(writer, &row);
		if (writer->measure == VIEW_MEASURE_REAL_TIME)
			write_thread_time_rows(writer, thread);
	}
	for (size_t i = 0; i < sums.count; i++)
		write_thread_sum_row(writer, &sums.sums[i]);
	thread_sums_destroy(&sums);
	return 0;
}

/* ---- functions ---- */

static int write_top_functions_section(struct profile_text_writer *writer)
{
	struct view_flat_profile_row *functions;
	size_t count, shown;
	int result = view_build_flat_profile(writer->session, writer->measure, &functions, &count);

	if (result < 0)
		return result;
	shown = writer->options->top && writer->options->top < count ? writer->options->top : count;
	write_section_heading(
		writer, "FUNCTIONS",
		"Sorted by self time; SUM includes everything the function calls, %SELF does not.");
	write_column_titles(writer);
	for (size_t i = 0; i < shown; i++) {
		struct profile_text_row row = {.count = functions[i].inclusive_samples,
					       .sum = functions[i].inclusive,
					       .self = functions[i].self};

		format_function_with_module(row.label, sizeof(row.label), writer->session,
					    functions[i].frame);
		write_profile_row(writer, &row);
	}
	if (shown < count)
		fprintf(writer->stream, "(%zu more)\n", count - shown);
	free(functions);
	return 0;
}

static int write_interpreted_lines_section(struct profile_text_writer *writer)
{
	struct interpreted_line *lines;
	size_t count, shown;
	int result = interpreted_lines_build(writer->session, writer->measure, &lines, &count);

	if (result < 0)
		return result;
	shown = writer->options->top && writer->options->top < count ? writer->options->top : count;
	if (count) {
		write_section_heading(writer, "LINES OF PYTHON",
				      "Sorted by self time: that of the line and of the native "
				      "code that it calls.");
		write_column_titles(writer);
	}
	for (size_t i = 0; i < shown; i++) {
		struct profile_text_row row = {.count = lines[i].inclusive_samples,
					       .sum = lines[i].inclusive,
					       .self = lines[i].own};
		const struct model_frame *frame = &writer->session->frames[lines[i].frame];

		format_interpreted_function(row.label, sizeof(row.label), frame, frame->line);
		write_profile_row(writer, &row);
	}
	if (shown < count)
		fprintf(writer->stream, "(%zu more)\n", count - shown);
	free(lines);
	return 0;
}

/* ---- the file ---- */

static void write_profile_head(struct profile_text_writer *writer)
{
	const struct session *session = writer->session;
	bool is_device = writer->measure == VIEW_MEASURE_DEVICE_TIME;
	uint32_t threads = view_count_program_threads(session);

	fputs("kymo profile of: ", writer->stream);
	format_write_cut_to_width(writer->stream, session->command_line, 1000);
	fputs("\nmeasure: ", writer->stream);
	format_write_cut_to_width(writer->stream, writer->metric, METRIC_WIDTH_MAX);
	fprintf(writer->stream, ", %s in %s %s%s; %u thread%s of %u process%s\n",
		quantity_from_measure(writer->total, writer->measure).text,
		quantity_from_count(writer->tree.total_samples).text,
		is_device ? "pieces of work" : "samples",
		session->has_only_part_of_time ? " in the selected part of the run" : "", threads,
		threads == 1 ? "" : "s", session->process_count,
		session->process_count == 1 ? "" : "es");
	fputs(is_device ? "COUNT: kernels, copies and fills that were launched below the function; "
			  "SUM: their "
			  "time on the device; MEAN: SUM / COUNT.\n"
			: "COUNT: samples whose stack contains the function; SUM: their time or "
			  "events; "
			  "MEAN: SUM / COUNT.\n"
			  "Samples do not time whole calls, so there is no MIN, MAX or STDDEV.\n",
	      writer->stream);
}

static int write_all_sections(struct profile_text_writer *writer)
{
	const struct output_options *options = writer->options;
	int result = 0;

	profile_tree_fill_sums_of_session(&writer->tree, writer->session, writer->measure);
	writer->total = writer->tree.total;
	set_label_width(writer);
	write_profile_head(writer);
	if (writer->total == 0 && session_get_regions(writer->session)->node_count)
		return 0; /* only regions were recorded */
	if (!options->flat && !options->per_thread)
		write_call_tree_section(writer);
	if (!options->flat && options->per_thread)
		result = write_thread_trees(writer);
	if (result == 0)
		result = write_top_functions_section(writer);
	if (result == 0)
		result = write_interpreted_lines_section(writer);
	if (result == 0)
		result = write_all_threads_section(writer);
	return result;
}

static int output_write_text(struct session *session, const struct output_options *options,
			     FILE *stream, struct problem *problem)
{
	struct profile_text_writer writer = {
		.session = session, .options = options, .stream = stream};
	int result;

	writer.measure =
		options->is_measure_given ? options->measure : view_choose_default_measure(session);
	writer.metric = writer.measure == VIEW_MEASURE_COUNTER_EVENTS
				? session_get_overflow_event_name(session)
				: view_measure_get_name(writer.measure);
	writer.metric_width = format_count_text_columns(writer.metric);
	if (writer.metric_width < METRIC_WIDTH_MIN)
		writer.metric_width = METRIC_WIDTH_MIN;
	if (writer.metric_width > METRIC_WIDTH_MAX)
		writer.metric_width = METRIC_WIDTH_MAX;
	result = profile_tree_init(&writer.tree, session, options->collapse_processes);
	if (result == 0)
		result = write_all_sections(&writer);
	profile_tree_deinit(&writer.tree);
	if (result == 0)
		result = text_write_regions(session, options, stream, problem);
	if (result == 0)
		calls_write_untimed_functions_text(session, options, stream);
	if (result == 0)
		text_write_mpi(session, options, stream);
	if (result == 0)
		result = memory_write_text_tables(session, options, stream);
	if (result < 0)
		return problem_set(problem, result, "cannot make the text profile: %s",
				   strerror(-result));
	return stream_flush_or_set_problem(stream, "the text profile", problem);
}

const struct output_format output_format_text = {
	.name = "text",
	.file_name = "profile.txt",
	.description = "call-tree profile as text: by call path, by function, by thread",
	.write = output_write_text,
};
