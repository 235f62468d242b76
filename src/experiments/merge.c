/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See merge.h. Targets and points are renumbered in each session, in the order in which they are
 * met: lines keep their text, only numbers are replaced.
 */
#include "experiments/merge.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/causal/causal.h"
#include "common/cleanup.h"
#include "common/foreign_file.h"
#include "experiments/journal.h"
#include "files/atomic_file.h"

struct id_renumbering {
	json_int_t *from, *to; /* of the latest session; of the result */
	size_t count;
};

struct journal_merge_state {
	struct causal_data earlier_data;
	struct id_renumbering targets, points;
	json_int_t next_target_id, next_point_id, run_number_offset;
	FILE *out;
};

static int id_renumbering_add(struct id_renumbering *numbers, json_int_t from, json_int_t to)
{
	json_int_t *larger = reallocarray(numbers->from, numbers->count + 1, sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	numbers->from = larger;
	larger = reallocarray(numbers->to, numbers->count + 1, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	numbers->to = larger;
	numbers->from[numbers->count] = from;
	numbers->to[numbers->count++] = to;
	return 0;
}

/* Itself where it is not known: 0 is a baseline. */
static json_int_t id_renumbering_get_new_id(const struct id_renumbering *numbers, json_int_t from)
{
	for (size_t i = numbers->count; i-- > 0;) {
		if (numbers->from[i] == from)
			return numbers->to[i];
	}
	return from;
}

static void id_renumbering_deinit(struct id_renumbering *numbers)
{
	free(numbers->from);
	free(numbers->to);
}

static bool json_text_equals(const json_t *text, const char *other)
{
	const char *own = json_string_value(text);

	return own && other ? !strcmp(own, other) : !own && !other;
}

/* 1: known already, no line is needed; 0: the line is to be written; -ENOMEM. */
static int merge_renumber_target_line(struct journal_merge_state *merge, json_t *line)
{
	json_int_t id = json_integer_value(json_object_get(line, "id"));

	for (size_t i = 0; i < merge->earlier_data.target_count; i++) {
		const struct causal_data_target *target = &merge->earlier_data.targets[i];

		if (json_text_equals(json_object_get(line, "function"), target->function) &&
		    json_text_equals(json_object_get(line, "file"), target->file) &&
		    json_text_equals(json_object_get(line, "module"), target->module) &&
		    json_integer_value(json_object_get(line, "line")) == target->line)
			return id_renumbering_add(&merge->targets, id, target->id) ? -ENOMEM : 1;
	}
	json_object_set_new(line, "id", json_integer(merge->next_target_id));
	return id_renumbering_add(&merge->targets, id, merge->next_target_id++);
}

static int merge_renumber_point_line(struct journal_merge_state *merge, json_t *line)
{
	static const char *const kinds[] = {"progress", "begin", "end"};
	json_int_t id = json_integer_value(json_object_get(line, "id"));

	for (size_t i = 0; i < merge->earlier_data.point_count; i++) {
		const struct causal_data_progress_point *point = &merge->earlier_data.points[i];

		if (json_text_equals(json_object_get(line, "name"), point->name) &&
		    json_text_equals(json_object_get(line, "type"), kinds[point->kind]) &&
		    json_text_equals(json_object_get(line, "origin"), point->origin))
			return id_renumbering_add(&merge->points, id, point->id) ? -ENOMEM : 1;
	}
	json_object_set_new(line, "id", json_integer(merge->next_point_id));
	return id_renumbering_add(&merge->points, id, merge->next_point_id++);
}

static void merge_renumber_json_id_member(const struct id_renumbering *numbers, json_t *object,
					  const char *key)
{
	json_t *value = json_object_get(object, key);

	if (value)
		json_object_set_new(object, key,
				    json_integer(id_renumbering_get_new_id(
					    numbers, json_integer_value(value))));
}

static void renumber_window_line(struct journal_merge_state *merge, json_t *line)
{
	json_t *list = json_object_get(line, "points"), *entry;
	size_t i;

	merge_renumber_json_id_member(&merge->targets, line, "target");
	json_array_foreach(list, i, entry)
	{
		merge_renumber_json_id_member(&merge->points, entry, "id");
		merge_renumber_json_id_member(&merge->points, entry, "end");
	}
	list = json_object_get(line, "times");
	json_array_foreach(list, i, entry)
	{
		json_int_t id = json_integer_value(json_array_get(entry, 0));

		json_array_set_new(entry, 0,
				   json_integer(id_renumbering_get_new_id(&merge->targets, id)));
	}
}

static int merge_write_journal_line(struct journal_merge_state *merge, const json_t *line)
{
	int error = json_dumpf(line, merge->out, JSON_COMPACT) ? -EIO : 0;

	return error || fputc('\n', merge->out) == EOF ? -EIO : 0;
}

static int renumber_and_write_journal_line(struct journal_merge_state *merge, const char *text)
{
	json_t *line = json_loads(text, 0, NULL);
	const char *kind = json_string_value(json_object_get(line, "kind"));
	json_t *run = json_object_get(line, "run");
	int error = 0;

	if (run)
		json_object_set_new(
			line, "run",
			json_integer(json_integer_value(run) + merge->run_number_offset));
	if (kind && !strcmp(kind, "target"))
		error = merge_renumber_target_line(merge, line);
	else if (kind && !strcmp(kind, "point"))
		error = merge_renumber_point_line(merge, line);
	else if (kind && !strcmp(kind, "window"))
		renumber_window_line(merge, line);
	if (kind && !error)
		error = merge_write_journal_line(merge, line);
	json_decref(line);
	return error < 0 ? error : 0;
}

/* Lines of a file; the earlier ones stay as they are. */
static int merge_journal_file(struct journal_merge_state *merge, const char *path, bool renumber)
{
	FILE *in = foreign_open_stream(&foreign_policy_of_result_files, path);
	char *text = NULL;
	size_t size = 0;
	int error = in ? 0 : -errno;
	ssize_t length;

	while (!error && (length = getline(&text, &size, in)) > 0) {
		if (text[length - 1] != '\n')
			continue; /* cut off */
		if (renumber)
			error = renumber_and_write_journal_line(merge, text);
		else if (fputs(text, merge->out) < 0)
			error = -EIO;
	}
	free(text);
	if (in)
		fclose(in);
	return error;
}

/* Numbers that are free. Points behind those of the shared file and of the process. */
static void merge_set_next_free_ids(struct journal_merge_state *merge)
{
	const struct causal_data *data = &merge->earlier_data;

	merge->next_target_id = 1;
	merge->next_point_id = CAUSAL_JOURNAL_EXIT_POINT_ID + 1;
	for (size_t i = 0; i < data->target_count; i++) {
		if (data->targets[i].id >= merge->next_target_id)
			merge->next_target_id = (json_int_t)data->targets[i].id + 1;
	}
	for (size_t i = 0; i < data->point_count; i++) {
		if (data->points[i].id >= merge->next_point_id)
			merge->next_point_id = (json_int_t)data->points[i].id + 1;
	}
	for (size_t i = 0; i < data->run_count; i++) {
		if (data->runs[i].number >= merge->run_number_offset)
			merge->run_number_offset = (json_int_t)data->runs[i].number + 1;
	}
}

int causal_merge_journals(const char *earlier, const char *latest, struct problem *problem)
{
	struct journal_merge_state merge = {.out = NULL};
	_cleanup_(cleanup_free) char *text = NULL;
	size_t size = 0;
	int error = causal_data_read_file(&merge.earlier_data, earlier, problem);

	if (error) {
		causal_data_deinit(&merge.earlier_data);
		return error;
	}
	merge_set_next_free_ids(&merge);
	merge.out = open_memstream(&text, &size);
	error = merge.out ? merge_journal_file(&merge, earlier, false) : -errno;
	if (!error)
		error = merge_journal_file(&merge, latest, true);
	if (merge.out && fclose(merge.out) && !error)
		error = -errno;
	if (!error)
		error = atomic_file_write_parts(latest, ATOMIC_FILE_MODE_BY_UMASK,
						&(struct atomic_file_part){text, size}, 1);
	if (error)
		problem_set(problem, error, "cannot add experiments to '%s': %s", earlier,
			    strerror(-error));
	id_renumbering_deinit(&merge.targets);
	id_renumbering_deinit(&merge.points);
	causal_data_deinit(&merge.earlier_data);
	return error;
}
