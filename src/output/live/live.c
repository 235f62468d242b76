/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See live.h.
 */
#include "output/live/live.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/unsampled.h"
#include "common/array.h"
#include "common/splitmix64.h"
#include "output/format.h"

#define NAME_BYTES       512u
#define NAME_COLUMNS_MIN 8u
#define SHARE_COLUMNS    10u /* of a number in front of a name, with its blank */
#define THREADS_MAX      8u
#define LINES_OF_HEADERS 6u

/* ---- looking ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = splitmix64_mix(hash + (unsigned char)*text);
	return hash;
}

static int compare_functions_by_key(const void *left, const void *right)
{
	const struct live_function *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

static int compare_threads_by_key(const void *left, const void *right)
{
	const struct live_thread *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

static void destroy_functions(struct live_function *functions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(functions[i].name);
	free(functions);
}

static void destroy_threads(struct live_thread *threads, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(threads[i].name);
	free(threads);
}

/* Two functions of one name and module, as there are in C, are one row. */
static size_t merge_functions_of_one_key(struct live_function *functions, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (kept == 0 || functions[kept - 1].key != functions[i].key) {
			functions[kept++] = functions[i];
			continue;
		}
		functions[kept - 1].self += functions[i].self;
		functions[kept - 1].total += functions[i].total;
		free(functions[i].name);
	}
	return kept;
}

static int look_at_functions(struct live_view *view, const struct session *session)
{
	struct view_flat_profile_row *rows;
	size_t count;
	int error = view_build_flat_profile(session, view->measure, &rows, &count);
	struct live_function *functions = error == 0 ? calloc(count + 1, sizeof(*functions)) : NULL;

	if (functions == NULL)
		return error != 0 ? error : -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		char name[NAME_BYTES];
		format_function_with_module(name, sizeof(name), session, rows[i].frame);
		functions[i] = (struct live_function){.key = hash_text(0, name),
						      .self = rows[i].self,
						      .total = rows[i].inclusive,
						      .name = strdup(name)};
		if (functions[i].name == NULL)
			error = -ENOMEM;
	}
	free(rows);
	qsort(functions, count, sizeof(*functions), compare_functions_by_key);
	count = merge_functions_of_one_key(functions, count);
	for (size_t i = 0; i < count && view->function_count != 0; i++) {
		const struct live_function *before =
			bsearch(&functions[i], view->functions, view->function_count,
				sizeof(*functions), compare_functions_by_key);
		functions[i].self_before = before != NULL ? before->self : 0;
		functions[i].total_before = before != NULL ? before->total : 0;
	}
	destroy_functions(view->functions, view->function_count);
	view->functions = functions;
	view->function_count = count;
	return error;
}

static struct live_thread look_at_thread(const struct session *session, uint32_t index)
{
	const struct model_thread *thread = &session->threads[index];
	const struct model_process *process = &session->processes[thread->process];
	/* When it started may be known better at the next look: that is no part of the key. */
	uint64_t of_process = splitmix64_mix((uint64_t)process->pid << 32 | process->image);
	struct live_thread result = {
		.key = splitmix64_mix(of_process +
				      ((uint64_t)thread->tid << 32 | thread->internal_id)),
		.values = {thread->weight[SPOOL_SOURCE_CPU] +
				   session_get_thread_unsampled_ns(session, index),
			   thread->weight[SPOOL_SOURCE_RUNNABLE],
			   thread->weight[SPOOL_SOURCE_WALL]}};

	if (asprintf(&result.name, "%s %" PRIu32 "%s%s", thread->name, thread->tid,
		     session->process_count > 1 ? " of " : "",
		     session->process_count > 1 ? process->name : "") < 0)
		result.name = NULL;
	return result;
}

static int look_at_threads(struct live_view *view, const struct session *session)
{
	struct live_thread *threads = calloc((size_t)session->thread_count + 1, sizeof(*threads));
	size_t count = 0;
	int error = 0;

	if (threads == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->thread_count; i++) {
		if (session->threads[i].how == 3) /* kymo's */
			continue;
		threads[count++] = look_at_thread(session, i);
		if (threads[count - 1].name == NULL)
			error = -ENOMEM;
	}
	qsort(threads, count, sizeof(*threads), compare_threads_by_key);
	for (size_t i = 0; i < count && view->thread_count != 0; i++) {
		const struct live_thread *before =
			bsearch(&threads[i], view->threads, view->thread_count, sizeof(*threads),
				compare_threads_by_key);
		if (before != NULL)
			memcpy(threads[i].before, before->values, sizeof(before->values));
	}
	destroy_threads(view->threads, view->thread_count);
	view->threads = threads;
	view->thread_count = count;
	return error;
}

int live_update(struct live_view *view, const struct session *session, uint64_t time_ns)
{
	view->measure = view_choose_default_measure(session);
	view->start_ns = session->start_ns;
	view->time_before_ns = view->time_ns != 0 ? view->time_ns : session->start_ns;
	/* The data may end before the time of the last look. */
	view->time_ns = time_ns > view->time_before_ns ? time_ns : view->time_before_ns;
	view->running = 0;
	for (uint32_t i = 0; i < session->process_count; i++)
		view->running += session->processes[i].state == SPOOL_STATE_OPEN;
	snprintf(view->title, sizeof(view->title), "%s", session->command_line);
	view->incomplete = incomplete_get_first(session, view->running != 0);
	int error = look_at_functions(view, session);
	return error != 0 ? error : look_at_threads(view, session);
}

void live_deinit(struct live_view *view)
{
	destroy_functions(view->functions, view->function_count);
	destroy_threads(view->threads, view->thread_count);
}

/* ---- writing ---- */

static void write_line(const struct live_options *options, FILE *stream, const char *text)
{
	if (options->columns != 0)
		format_write_cut_to_width(stream, text, options->columns);
	else
		format_write_printable_text(stream, text, strlen(text));
	putc('\n', stream);
}

/* A row of a table in the order that is shown. */
struct shown_row {
	uint64_t order, values[LIVE_THREAD_VALUES];
	const char *name;
};

static int compare_rows(const void *left, const void *right)
{
	const struct shown_row *a = left, *b = right;

	if (a->order != b->order)
		return a->order > b->order ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Data may be overwritten at the limit of their file, so that sums shrink. */
static uint64_t subtract(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static uint64_t get_length_ns(const struct live_view *view, const struct live_options *options)
{
	uint64_t from_ns = options->is_since_start ? view->start_ns : view->time_before_ns;

	return subtract(view->time_ns, from_ns);
}

static void write_value(const struct live_view *view, FILE *stream, uint64_t value,
			uint64_t length_ns)
{
	if (view->measure == VIEW_MEASURE_COUNTER_EVENTS)
		fprintf(stream, "%*s ", (int)SHARE_COLUMNS - 1, quantity_from_count(value).text);
	else
		fprintf(stream, "%*s ", (int)SHARE_COLUMNS - 1,
			quantity_from_share(value, length_ns).text);
}

/* The columns of a table that a terminal has room for beside a name: a line that is longer than the
 * terminal would take two, and push others out of it. */
struct shown_columns {
	size_t first, end;
};

static size_t get_columns_of_values(struct shown_columns shown)
{
	return (shown.end - shown.first) * SHARE_COLUMNS + 1;
}

/* `sorted`: the one to keep where one fits. */
static struct shown_columns choose_columns(const struct live_options *options, size_t values,
					   size_t sorted)
{
	struct shown_columns shown = {0, values};

	if (options->columns == 0 ||
	    options->columns >= get_columns_of_values(shown) + NAME_COLUMNS_MIN)
		return shown;
	shown = (struct shown_columns){sorted, sorted + 1};
	if (options->columns < get_columns_of_values(shown) + NAME_COLUMNS_MIN)
		shown.end = sorted;
	return shown;
}

static void write_name(const struct live_options *options, FILE *stream, struct shown_columns shown,
		       const char *name)
{
	size_t used = get_columns_of_values(shown);

	putc(' ', stream);
	format_write_cut_to_width(stream, name,
				  options->columns > used ? options->columns - used : SIZE_MAX);
	putc('\n', stream);
}

static void write_header(const struct live_options *options, FILE *stream,
			 struct shown_columns shown, const char *const *values, const char *name)
{
	for (size_t i = shown.first; i < shown.end; i++)
		fprintf(stream, "%*s ", (int)SHARE_COLUMNS - 1, values[i]);
	write_name(options, stream, shown, name);
}

static void write_row(const struct live_view *view, const struct live_options *options,
		      FILE *stream, const struct shown_row *row, struct shown_columns shown)
{
	for (size_t i = shown.first; i < shown.end; i++)
		write_value(view, stream, row->values[i], get_length_ns(view, options));
	write_name(options, stream, shown, row->name);
}

static size_t write_rows(const struct live_view *view, const struct live_options *options,
			 FILE *stream, struct shown_row *rows, size_t count,
			 struct shown_columns columns, size_t most)
{
	size_t shown = 0;

	qsort(rows, count, sizeof(*rows), compare_rows);
	for (; shown < count && shown < most && rows[shown].order != 0; shown++)
		write_row(view, options, stream, &rows[shown], columns);
	return shown;
}

static int write_functions(const struct live_view *view, const struct live_options *options,
			   FILE *stream, size_t most)
{
	static const char *const headers[] = {"self", "total"};
	struct shown_columns columns =
		choose_columns(options, ARRAY_SIZE(headers), options->is_by_total ? 1 : 0);
	struct shown_row *rows = calloc(view->function_count + 1, sizeof(*rows));

	if (rows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < view->function_count; i++) {
		const struct live_function *function = &view->functions[i];
		bool since = options->is_since_start;
		rows[i] = (struct shown_row){
			.values = {subtract(function->self, since ? 0 : function->self_before),
				   subtract(function->total, since ? 0 : function->total_before)},
			.name = function->name};
		rows[i].order = rows[i].values[options->is_by_total ? 1 : 0];
	}
	write_header(options, stream, columns, headers, "function (module)");
	if (write_rows(view, options, stream, rows, view->function_count, columns, most) == 0)
		write_line(options, stream, "           nothing was sampled");
	free(rows);
	return 0;
}

/* Threads that ran or waited, the busiest first. */
static int write_threads(const struct live_view *view, const struct live_options *options,
			 FILE *stream, size_t most)
{
	static const char *const headers[] = {"CPU", "CPU wait", "blocked"};
	bool has_waits = view->measure == VIEW_MEASURE_REAL_TIME;
	struct shown_columns columns =
		choose_columns(options, has_waits ? LIVE_THREAD_VALUES : 1, LIVE_CPU);
	struct shown_row *rows = calloc(view->thread_count + 1, sizeof(*rows));

	if (rows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < view->thread_count; i++) {
		const struct live_thread *thread = &view->threads[i];
		rows[i].name = thread->name;
		for (int k = 0; k < LIVE_THREAD_VALUES; k++)
			rows[i].values[k] = subtract(
				thread->values[k], options->is_since_start ? 0 : thread->before[k]);
		/* Who runs comes before who waits, however long. */
		rows[i].order = rows[i].values[LIVE_CPU] * 1000 + rows[i].values[LIVE_RUNNABLE] +
				rows[i].values[LIVE_BLOCKED];
	}
	write_header(options, stream, columns, headers, "thread");
	write_rows(view, options, stream, rows, view->thread_count, columns, most);
	free(rows);
	return 0;
}

static uint64_t sum_cpu_time(const struct live_view *view, bool is_since_start)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < view->thread_count; i++)
		sum += subtract(view->threads[i].values[LIVE_CPU],
				is_since_start ? 0 : view->threads[i].before[LIVE_CPU]);
	return sum;
}

static void write_head(const struct live_view *view, const struct live_options *options,
		       FILE *stream)
{
	uint64_t length_ns = get_length_ns(view, options);
	char text[2 * NAME_BYTES];
	int used;

	/* The window comes first: a narrow terminal cuts the middle. */
	used = snprintf(text, sizeof(text), "kymo top  ");
	if (!options->is_since_start)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%s of ",
				 quantity_from_ns(length_ns).text);
	used += snprintf(text + used, sizeof(text) - (size_t)used, "%s  CPU ",
			 quantity_from_ns(subtract(view->time_ns, view->start_ns)).text);
	used += snprintf(
		text + used, sizeof(text) - (size_t)used, "%s  ",
		quantity_from_share(sum_cpu_time(view, options->is_since_start), length_ns).text);
	snprintf(text + used, sizeof(text) - (size_t)used, "%zu thread%s  %s", view->thread_count,
		 view->thread_count == 1 ? "" : "s", view->title);
	write_line(options, stream, text);
	if (view->incomplete.text[0] == 0)
		return;
	snprintf(text, sizeof(text), "not complete: %s", view->incomplete.text);
	write_line(options, stream, text);
}

int live_write(const struct live_view *view, const struct live_options *options, FILE *stream)
{
	size_t functions = options->rows_max, threads = functions;

	if (options->lines != 0) {
		size_t headers = LINES_OF_HEADERS + (view->incomplete.text[0] != 0);
		size_t lines = options->lines > headers + 2 ? options->lines - headers : 2;
		threads = view->thread_count < THREADS_MAX ? view->thread_count : THREADS_MAX;
		threads = threads < lines / 2 ? threads : lines / 2;
		functions = lines - threads;
	}
	write_head(view, options, stream);
	putc('\n', stream);
	int error = write_functions(view, options, stream, functions);
	putc('\n', stream);
	if (error == 0)
		error = write_threads(view, options, stream, threads);
	if (options->note != NULL)
		write_line(options, stream, options->note);
	return error;
}
