/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The numbers of one run, by name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/gpu.h"
#include "analysis/regions/kinds.h"
#include "output/call_paths.h"
#include "output/diff/diff.h"
#include "output/format.h"
#include "output/region_rows.h"

#define NAME_BYTES 1024
#define PATH_BYTES 16384

void diff_init(struct diff *diff, enum diff_row_kind kind, enum view_measure_kind measure)
{
	*diff = (struct diff){.kind = kind, .measure = measure};
	strings_init_with_copies(&diff->names);
}

void diff_deinit(struct diff *diff)
{
	for (size_t i = 0; i < diff->run_count; i++)
		free(diff->runs[i].values);
	strings_deinit(&diff->names);
	free(diff->rows);
	free(diff->row_values);
}

/* ---- names ---- */

/* ".constprop.0", ".isra.1", ".part.2": which parts a compiler makes changes with every build. So
 * does the hash behind a function of Rust's. */
static size_t measure_name_without_build(const char *name)
{
	static const char *const parts[] = {".constprop.", ".isra.", ".part.", ".cold",
					    ".lto_priv.",  ".llvm.", "::h",    " [clone "};
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		const char *found = strstr(name, parts[i]);
		bool is_hash = found && parts[i][0] == ':';

		if (!found || found == name ||
		    (is_hash &&
		     (strlen(found) != 19 || strspn(found + 3, "0123456789abcdef") != 16)))
			continue;
		if ((size_t)(found - name) < length)
			length = (size_t)(found - name);
	}
	return length;
}

/* The program's file may be called otherwise; libraries keep their names and change versions. */
static void format_module_scope(char *buffer, size_t size, const struct session *session,
				uint32_t index)
{
	const struct model_module *module = &session->modules[index];
	const char *end = strstr(module->name, ".so");

	if (strcmp(module->path, session->processes[module->process].executable) == 0)
		snprintf(buffer, size, "%s", "");
	else
		snprintf(buffer, size, "%.*s",
			 end ? (int)(end - module->name) : (int)strlen(module->name), module->name);
}

void diff_format_function_name(char *buffer, size_t size, const struct session *session,
			       uint32_t index)
{
	const struct model_frame *frame = &session->frames[index];
	char scope[256] = "";

	if (frame->module != MODEL_ENTRY_INDEX_NONE)
		format_module_scope(scope, sizeof(scope), session, frame->module);
	if (frame->kind == FRAME_UNRESOLVED && frame->module != MODEL_ENTRY_INDEX_NONE)
		snprintf(buffer, size, "[code without names%s%s]", *scope ? " of " : "", scope);
	else if (frame->kind == FRAME_INTERPRETED)
		format_interpreted_function(buffer, size, frame, frame->function_line);
	else
		snprintf(buffer, size, "%.*s%s%s%s",
			 (int)measure_name_without_build(frame->function), frame->function,
			 *scope ? " (" : "", scope, *scope ? ")" : "");
}

/* ---- values ---- */

static int reserve_value(struct diff_run *run, uint32_t index)
{
	size_t capacity = run->capacity ? run->capacity : 256;
	double *values;

	if (index < run->capacity)
		return 0;
	while (capacity <= index)
		capacity *= 2;
	values = reallocarray(run->values, capacity, sizeof(*values));
	if (!values)
		return -ENOMEM;
	memset(values + run->capacity, 0, (capacity - run->capacity) * sizeof(*values));
	run->values = values;
	run->capacity = capacity;
	return 0;
}

static int add_value(struct diff *diff, struct diff_run *run, const char *name, double value)
{
	uint32_t index;

	if (strings_find_or_add(&diff->names, name, &index) < 0 || reserve_value(run, index) < 0)
		return -ENOMEM;
	run->values[index] += value;
	return 0;
}

static int add_functions_or_lines(struct diff *diff, struct diff_run *run,
				  const struct session *session)
{
	double *by_frame = calloc((size_t)session->frame_count + 1, sizeof(*by_frame));
	int error = by_frame ? 0 : -ENOMEM;

	for (uint32_t i = 0; !error && i < session->node_count; i++)
		by_frame[session->nodes[i].frame] +=
			(double)view_get_node_self_weight(&session->nodes[i], diff->measure);
	for (uint32_t i = 0; !error && i < session->frame_count; i++) {
		const struct model_frame *frame = &session->frames[i];
		char name[NAME_BYTES];
		size_t used;

		if (by_frame[i] == 0)
			continue;
		diff_format_function_name(name, sizeof(name), session, i);
		used = strlen(name);
		if (diff->kind == DIFF_BY_LINE && frame->file)
			snprintf(name + used, sizeof(name) - used, " %s:%u",
				 format_find_source_name(frame->file), frame->line);
		error = add_value(diff, run, name, by_frame[i]);
	}
	free(by_frame);
	return error;
}

/* "main;serve;look_up", outermost first. */
static void format_path(char *buffer, size_t size, const struct session *session,
			const struct call_paths *paths, uint32_t path)
{
	size_t used = size - 1;

	buffer[used] = '\0';
	for (; path != MODEL_ENTRY_INDEX_NONE; path = paths->paths[path].caller_path_index) {
		char name[NAME_BYTES];
		size_t length;

		diff_format_function_name(name, sizeof(name), session, paths->paths[path].frame);
		length = strlen(name);
		if (length + 1 > used)
			break;
		if (buffer[used])
			buffer[--used] = ';';
		used -= length;
		memcpy(buffer + used, name, length);
	}
	memmove(buffer, buffer + used, strlen(buffer + used) + 1);
}

static int add_paths(struct diff *diff, struct diff_run *run, const struct session *session)
{
	struct call_paths paths;
	int error = call_paths_build(&paths, session, diff->measure);
	char *text = malloc(PATH_BYTES);

	if (error < 0) {
		free(text);
		return error;
	}
	error = text ? 0 : -ENOMEM;
	for (uint32_t i = 0; !error && i < paths.count; i++) {
		if (!paths.paths[i].self)
			continue;
		format_path(text, PATH_BYTES, session, &paths, i);
		error = add_value(diff, run, text, (double)paths.paths[i].self);
	}
	free(text);
	call_paths_deinit(&paths);
	return error;
}

static int add_threads_or_ranks(struct diff *diff, struct diff_run *run,
				const struct session *session)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < session->thread_count; i++) {
		const struct model_thread *thread = &session->threads[i];
		const struct model_process *process = &session->processes[thread->process];
		double weight = (double)view_sum_sources_of_measure(thread->weight, diff->measure);
		char name[NAME_BYTES];

		if (diff->kind == DIFF_BY_THREAD)
			snprintf(name, sizeof(name), "%s", thread->name);
		else if (process->rank_count)
			snprintf(name, sizeof(name), "rank %u", process->rank);
		else
			continue;
		error = add_value(diff, run, name, weight);
	}
	return error;
}

static int add_regions(struct diff *diff, struct diff_run *run, const struct session *session)
{
	struct region_table_layout_options layout = {.flat = true, .collapse_processes = true};
	const struct model_regions *regions = session_get_regions(session);
	uint32_t wall;
	struct region_rows rows;
	int error;

	if (!regions || !regions->node_count)
		return 0;
	wall = regions_find_wall_clock_component(session);
	error = wall == MODEL_ENTRY_INDEX_NONE ? 0 : region_rows_build(&rows, session, &layout);
	if (error || wall == MODEL_ENTRY_INDEX_NONE)
		return error;
	for (uint32_t i = 0; !error && i < rows.count; i++) {
		double value = region_rows_get_value(&rows, i, wall)->self;

		if (rows.rows[i].region != MODEL_ENTRY_INDEX_NONE)
			error = add_value(diff, run, regions->regions[rows.rows[i].region].name,
					  value);
	}
	region_rows_deinit(&rows);
	return error;
}

static int add_kernels(struct diff *diff, struct diff_run *run, const struct session *session)
{
	const struct gpu_data *data = session_get_gpu_data(session);
	int error = 0;

	for (size_t i = 0; !error && data && i < data->kernel_count; i++)
		error = add_value(diff, run, data->kernels[i].name,
				  (double)data->kernels[i].total_ns);
	return error;
}

static double sum_of_measure(const struct session *session, enum view_measure_kind measure)
{
	double sum = 0;

	for (uint32_t i = 0; i < session->node_count; i++)
		sum += (double)view_get_node_self_weight(&session->nodes[i], measure);
	return sum;
}

/* What a sample stands for: a few of them are a number with much chance in it. */
static void note_sample_weight(struct diff *diff, const struct session *session, double total)
{
	uint64_t samples = 0;

	if (diff->kind == DIFF_BY_REGION || diff->kind == DIFF_BY_KERNEL)
		return;
	for (uint32_t i = 0; i < session->node_count; i++)
		samples +=
			view_sum_sources_of_measure(session->nodes[i].self_samples, diff->measure);
	if (samples && total / (double)samples > diff->sample_weight)
		diff->sample_weight = total / (double)samples;
}

static int add_rows(struct diff *diff, struct diff_run *run, const struct session *session)
{
	switch (diff->kind) {
	case DIFF_BY_PATH:
		return add_paths(diff, run, session);
	case DIFF_BY_THREAD:
	case DIFF_BY_RANK:
		return add_threads_or_ranks(diff, run, session);
	case DIFF_BY_REGION:
		return add_regions(diff, run, session);
	case DIFF_BY_KERNEL:
		return add_kernels(diff, run, session);
	default:
		return add_functions_or_lines(diff, run, session);
	}
}

int diff_add_run(struct diff *diff, const struct session *session, enum diff_side side,
		 const char *name, struct problem *problem)
{
	struct diff_run *run = &diff->runs[diff->run_count];
	int error;

	if (diff->run_count == DIFF_RUNS_MAX)
		return problem_set(problem, -E2BIG, "at most %d results can be compared",
				   DIFF_RUNS_MAX);
	*run = (struct diff_run){.side = side,
				 .name = name,
				 .start_ns = session->start_ns +
					     (uint64_t)session->realtime_minus_boottime_ns};
	diff->run_count++;
	diff->side_count[side]++;
	error = add_rows(diff, run, session);
	if (error < 0)
		return problem_set(problem, error, "cannot compare '%s': %s", name,
				   strerror(-error));
	run->total = sum_of_measure(session, diff->measure);
	note_sample_weight(diff, session, run->total);
	/* Of regions and kernels the samples are not the whole. */
	if (diff->kind == DIFF_BY_REGION || diff->kind == DIFF_BY_KERNEL) {
		run->total = 0;
		for (size_t i = 0; i < run->capacity; i++)
			run->total += run->values[i];
	}
	return 0;
}
