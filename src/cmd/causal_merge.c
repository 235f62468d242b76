/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_merge.h. Targets and points are numbered anew in each session, in the order in which
 * they are met: lines keep their text, only numbers are replaced.
 */
#include "cmd/causal_merge.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/causal.h"
#include "cmd/causal_journal.h"

struct numbers {
	json_int_t *from, *to; /* of the latest session; of the result */
	size_t count;
};

struct merge {
	struct causal_data earlier;
	struct numbers targets, points;
	json_int_t next_target, next_point, first_run;
	FILE *out;
};

static int numbers_add(struct numbers *numbers, json_int_t from, json_int_t to)
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
static json_int_t numbers_find(const struct numbers *numbers, json_int_t from)
{
	for (size_t i = numbers->count; i-- > 0;) {
		if (numbers->from[i] == from)
			return numbers->to[i];
	}
	return from;
}

static void numbers_deinit(struct numbers *numbers)
{
	free(numbers->from);
	free(numbers->to);
}

static bool merge_same_text(const json_t *text, const char *other)
{
	const char *own = json_string_value(text);

	return own && other ? !strcmp(own, other) : !own && !other;
}

/* 1: known already, no line is needed; 0: the line is to be written; -ENOMEM. */
static int merge_target(struct merge *merge, json_t *line)
{
	json_int_t id = json_integer_value(json_object_get(line, "id"));

	for (size_t i = 0; i < merge->earlier.target_count; i++) {
		const struct causal_data_target *target = &merge->earlier.targets[i];

		if (merge_same_text(json_object_get(line, "function"), target->function) &&
		    merge_same_text(json_object_get(line, "file"), target->file) &&
		    merge_same_text(json_object_get(line, "module"), target->module) &&
		    json_integer_value(json_object_get(line, "line")) == target->line)
			return numbers_add(&merge->targets, id, target->id) ? -ENOMEM : 1;
	}
	json_object_set_new(line, "id", json_integer(merge->next_target));
	return numbers_add(&merge->targets, id, merge->next_target++);
}

static int merge_point(struct merge *merge, json_t *line)
{
	static const char *const kinds[] = {"progress", "begin", "end"};
	json_int_t id = json_integer_value(json_object_get(line, "id"));

	for (size_t i = 0; i < merge->earlier.point_count; i++) {
		const struct causal_data_point *point = &merge->earlier.points[i];

		if (merge_same_text(json_object_get(line, "name"), point->name) &&
		    merge_same_text(json_object_get(line, "type"), kinds[point->kind]) &&
		    merge_same_text(json_object_get(line, "origin"), point->origin))
			return numbers_add(&merge->points, id, point->id) ? -ENOMEM : 1;
	}
	json_object_set_new(line, "id", json_integer(merge->next_point));
	return numbers_add(&merge->points, id, merge->next_point++);
}

static void merge_renumber(const struct numbers *numbers, json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (value)
		json_object_set_new(object, key,
				    json_integer(numbers_find(numbers, json_integer_value(value))));
}

static void merge_window(struct merge *merge, json_t *line)
{
	json_t *list = json_object_get(line, "points"), *entry;
	size_t i;

	merge_renumber(&merge->targets, line, "target");
	json_array_foreach(list, i, entry)
	{
		merge_renumber(&merge->points, entry, "id");
		merge_renumber(&merge->points, entry, "end");
	}
	list = json_object_get(line, "times");
	json_array_foreach(list, i, entry)
	{
		json_int_t id = json_integer_value(json_array_get(entry, 0));

		json_array_set_new(entry, 0, json_integer(numbers_find(&merge->targets, id)));
	}
}

static int merge_write(struct merge *merge, const json_t *line)
{
	int error = json_dumpf(line, merge->out, JSON_COMPACT) ? -EIO : 0;

	return error || fputc('\n', merge->out) == EOF ? -EIO : 0;
}

static int merge_line(struct merge *merge, const char *text)
{
	json_t *line = json_loads(text, 0, NULL);
	const char *kind = json_string_value(json_object_get(line, "kind"));
	json_t *run = json_object_get(line, "run");
	int error = 0;

	if (run)
		json_object_set_new(line, "run",
				    json_integer(json_integer_value(run) + merge->first_run));
	if (kind && !strcmp(kind, "target"))
		error = merge_target(merge, line);
	else if (kind && !strcmp(kind, "point"))
		error = merge_point(merge, line);
	else if (kind && !strcmp(kind, "window"))
		merge_window(merge, line);
	if (kind && !error)
		error = merge_write(merge, line);
	json_decref(line);
	return error < 0 ? error : 0;
}

/* Lines of a file; the earlier ones stay as they are. */
static int merge_file(struct merge *merge, const char *path, bool renumber)
{
	FILE *in = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;
	int error = in ? 0 : -errno;
	ssize_t length;

	while (!error && (length = getline(&text, &size, in)) > 0) {
		if (text[length - 1] != '\n')
			continue; /* cut off */
		if (renumber)
			error = merge_line(merge, text);
		else if (fputs(text, merge->out) < 0)
			error = -EIO;
	}
	free(text);
	if (in)
		fclose(in);
	return error;
}

/* Numbers that are free. Points behind those of the shared file and of the process. */
static void merge_count(struct merge *merge)
{
	const struct causal_data *data = &merge->earlier;

	merge->next_target = 1;
	merge->next_point = CAUSAL_JOURNAL_PROCESS + 1;
	for (size_t i = 0; i < data->target_count; i++) {
		if (data->targets[i].id >= merge->next_target)
			merge->next_target = (json_int_t)data->targets[i].id + 1;
	}
	for (size_t i = 0; i < data->point_count; i++) {
		if (data->points[i].id >= merge->next_point)
			merge->next_point = (json_int_t)data->points[i].id + 1;
	}
	for (size_t i = 0; i < data->run_count; i++) {
		if (data->runs[i].number >= merge->first_run)
			merge->first_run = (json_int_t)data->runs[i].number + 1;
	}
}

int causal_merge(const char *earlier, const char *latest, struct problem *problem)
{
	struct merge merge = {.out = NULL};
	char temporary[PATH_MAX];
	int error = causal_data_read(&merge.earlier, earlier, problem);

	if (!error &&
	    snprintf(temporary, sizeof(temporary), "%s.tmp", latest) >= (int)sizeof(temporary))
		error = problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", latest);
	if (error) {
		causal_data_deinit(&merge.earlier);
		return error;
	}
	merge_count(&merge);
	merge.out = fopen(temporary, "we");
	error = merge.out ? merge_file(&merge, earlier, false) : -errno;
	if (!error)
		error = merge_file(&merge, latest, true);
	if (merge.out && fclose(merge.out) && !error)
		error = -errno;
	if (!error && rename(temporary, latest))
		error = -errno;
	if (error) {
		unlink(temporary);
		problem_set(problem, error, "cannot add experiments to '%s': %s", earlier,
			    strerror(-error));
	}
	numbers_deinit(&merge.targets);
	numbers_deinit(&merge.points);
	causal_data_deinit(&merge.earlier);
	return error;
}
