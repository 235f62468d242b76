/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reads experiments line by line. The file may have been cut by a crash, or be anybody's: a line
 * counts only if all that it needs is there and within its bounds, and otherwise as a bad one.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal_data.h"

/* Above this, no line is one of ours: a window has some 30 bytes for each target and point. */
#define LINE_LIMIT (64u << 20)
/* 290 years: sums of a billion of them still fit into a double without loss that matters. */
#define DURATION_LIMIT INT64_MAX

/* ---- members: a missing one has its default, a wrong one makes the line bad ---- */

struct reader {
	const json_t *object;
	bool bad;
};

static int64_t take_integer(struct reader *reader, const char *key, int64_t low, int64_t high,
			    int64_t missing)
{
	const json_t *value = json_object_get(reader->object, key);
	json_int_t number = json_integer_value(value);

	if (!value)
		return missing;
	if (!json_is_integer(value) || number < low || number > high) {
		reader->bad = true;
		return missing;
	}
	return number;
}

static uint64_t take_count(struct reader *reader, const char *key)
{
	return (uint64_t)take_integer(reader, key, 0, DURATION_LIMIT, 0);
}

static uint32_t take_id(struct reader *reader, const char *key, uint32_t limit)
{
	int64_t id = take_integer(reader, key, 0, limit, -1);

	reader->bad |= id < 0;
	return (uint32_t)id;
}

/* Borrowed from the object. */
static const char *take_text(struct reader *reader, const char *key)
{
	const json_t *value = json_object_get(reader->object, key);

	if (!value || json_is_null(value))
		return NULL;
	reader->bad |= !json_is_string(value) ||
		       strlen(json_string_value(value)) != json_string_length(value);
	return json_string_value(value);
}

static bool take_boolean(struct reader *reader, const char *key)
{
	const json_t *value = json_object_get(reader->object, key);

	reader->bad |= value && !json_is_boolean(value);
	return json_is_true(value);
}

/* Place of the member's text in a list that ends with NULL. */
static unsigned take_choice(struct reader *reader, const char *key, const char *const *choices)
{
	const char *text = take_text(reader, key);

	for (unsigned i = 0; text && choices[i]; i++) {
		if (strcmp(text, choices[i]) == 0)
			return i;
	}
	reader->bad = true;
	return 0;
}

/* ---- lines ---- */

/* Words joined by spaces, or one text as it is. Allocated; NULL: none, or no memory. */
static int join_command(struct reader *reader, char **ret)
{
	const json_t *words = json_object_get(reader->object, "command");
	size_t size = 1, used = 0;

	*ret = NULL;
	if (!words)
		return 0;
	for (size_t i = 0; i < json_array_size(words); i++)
		size += json_string_length(json_array_get(words, i)) + 1;
	*ret = calloc(1, size);
	if (!*ret)
		return -ENOMEM;
	reader->bad |= !json_is_array(words);
	for (size_t i = 0; i < json_array_size(words); i++) {
		const json_t *word = json_array_get(words, i);
		size_t length = json_string_length(word);

		reader->bad |= !json_is_string(word);
		if (used)
			(*ret)[used++] = ' ';
		if (length)
			memcpy(*ret + used, json_string_value(word), length);
		used += length;
	}
	return 0;
}

static int read_run(struct causal_data *data, struct reader *reader)
{
	struct causal_data_run run = {.number = take_id(reader, "run", UINT32_MAX)};
	int result = join_command(reader, &run.command);

	run.seed = take_count(reader, "seed");
	run.end_to_end = take_boolean(reader, "end_to_end");
	run.processors = (uint32_t)take_integer(reader, "processors", 0, UINT32_MAX, 0);
	run.mode = (char *)(uintptr_t)take_text(reader, "mode");
	if (result == 0)
		result = reader->bad ? -EINVAL : causal_data_add_run(data, &run);
	free(run.command);
	return result;
}

/* The rest of the line holds without it. */
static void read_samples_cost(const json_t *object, struct causal_data_run *ret)
{
	struct reader reader = {object, json_object_get(object, "samples_cost_ppm") == NULL};

	ret->samples_cost_ppm = take_integer(&reader, "samples_cost_ppm", -CAUSAL_COST_PPM_MOST,
					     CAUSAL_COST_PPM_MOST, 0);
	ret->samples_cost_error_ppm =
		take_integer(&reader, "samples_cost_error_ppm", 0, CAUSAL_COST_PPM_MOST, 0);
	ret->samples_cost_known = !reader.bad;
}

static int read_end(struct causal_data *data, struct reader *reader)
{
	uint32_t number = take_id(reader, "run", UINT32_MAX);
	struct causal_data_run *run = NULL;
	struct causal_data_run end = {.number = number, .ended = true};

	end.status = (int)take_integer(reader, "status", INT32_MIN, INT32_MAX, 0);
	end.real_ns = take_count(reader, "real_ns");
	end.samples = take_count(reader, "samples");
	end.samples_in_scope = take_count(reader, "samples_in_scope");
	end.paid_ns = take_count(reader, "paid_ns");
	end.overslept_ns = take_count(reader, "overslept_ns");
	end.credited_ns = take_count(reader, "credited_ns");
	end.pauses = take_count(reader, "pauses");
	read_samples_cost(reader->object, &end);
	if (reader->bad)
		return -EINVAL;
	for (size_t i = 0; i < data->run_count; i++) {
		if (data->runs[i].number == number)
			run = &data->runs[i];
	}
	if (!run)
		return causal_data_add_run(data, &end);
	end.seed = run->seed;
	end.end_to_end = run->end_to_end;
	end.processors = run->processors;
	end.command = run->command;
	end.mode = run->mode;
	*run = end;
	return 0;
}

static int read_target(struct causal_data *data, struct reader *reader)
{
	struct causal_data_target target = {.id = take_id(reader, "id", CAUSAL_TARGETS - 1)};

	/* The structs' texts are copied, never written. */
	target.function = (char *)(uintptr_t)take_text(reader, "function");
	target.file = (char *)(uintptr_t)take_text(reader, "file");
	target.module = (char *)(uintptr_t)take_text(reader, "module");
	target.line = (uint32_t)take_integer(reader, "line", 0, INT32_MAX, 0);
	reader->bad |= target.id == 0 || (!target.function && !target.file);
	return reader->bad ? -EINVAL : causal_data_add_target(data, &target);
}

static int read_point(struct causal_data *data, struct reader *reader)
{
	static const char *const kinds[] = {"progress", "begin", "end", NULL};
	struct causal_data_point point = {.id = take_id(reader, "id", UINT32_MAX - 1)};

	point.kind = (enum causal_point_kind)take_choice(reader, "type", kinds);
	point.name = (char *)(uintptr_t)take_text(reader, "name");
	point.given_up = take_boolean(reader, "given_up");
	point.origin = (char *)(uintptr_t)take_text(reader, "origin");
	reader->bad |= !point.name;
	return reader->bad ? -EINVAL : causal_data_add_point(data, &point);
}

/* ---- windows ---- */

static int read_visits(struct reader *reader, struct causal_data_window *window)
{
	const json_t *list = json_object_get(reader->object, "points");
	size_t count = json_array_size(list);

	reader->bad |= list && !json_is_array(list);
	window->visits = calloc(count + 1, sizeof(*window->visits));
	if (!window->visits)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct reader member = {json_array_get(list, i),
					!json_is_object(json_array_get(list, i))};
		bool latency = json_object_get(member.object, "end") != NULL;
		struct causal_data_visits *visits = &window->visits[window->visit_count++];

		visits->point = take_id(&member, "id", UINT32_MAX - 1);
		visits->end_point = latency ? take_id(&member, "end", UINT32_MAX - 1) : UINT32_MAX;
		visits->visits = take_count(&member, latency ? "departures" : "visits");
		visits->arrivals = take_count(&member, "arrivals");
		visits->virtual_ns = take_integer(&member, "virtual_ns", INT64_MIN, INT64_MAX, 0);
		visits->area_ns = take_integer(&member, "area_ns", INT64_MIN, INT64_MAX, 0);
		reader->bad |= member.bad;
	}
	return 0;
}

static int read_times(struct reader *reader, struct causal_data_window *window)
{
	const json_t *list = json_object_get(reader->object, "times");
	size_t count = json_array_size(list);

	reader->bad |= list && !json_is_array(list);
	window->times = calloc(count + 1, sizeof(*window->times));
	if (!window->times)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const json_t *triple = json_array_get(list, i);
		json_int_t numbers[3];

		reader->bad |= json_array_size(triple) != 3;
		for (size_t j = 0; j < 3; j++) {
			reader->bad |= !json_is_integer(json_array_get(triple, j));
			numbers[j] = json_integer_value(json_array_get(triple, j));
			reader->bad |= numbers[j] < 0;
		}
		reader->bad |= numbers[0] < 1 || numbers[0] >= CAUSAL_TARGETS;
		window->times[window->time_count++] = (struct causal_data_time){
			(uint32_t)numbers[0], (uint64_t)numbers[1], (uint64_t)numbers[2]};
	}
	return 0;
}

static int read_window(struct causal_data *data, struct reader *reader)
{
	static const char *const ends[] = {"visits", "time", "exit", "cut", NULL};
	struct causal_data_window window = {.run = take_id(reader, "run", UINT32_MAX)};
	int result;

	window.target = take_id(reader, "target", CAUSAL_TARGETS - 1);
	window.speedup_permille = (uint32_t)take_integer(reader, "speedup_permille", 0, 1000, 0);
	window.end = (enum causal_window_end)take_choice(reader, "ended", ends);
	window.start_ns = take_count(reader, "start_ns");
	window.real_ns = take_count(reader, "real_ns");
	window.delay_ns = take_count(reader, "delay_ns");
	window.cpu_ns = take_count(reader, "cpu_ns");
	window.involuntary_switches = take_count(reader, "involuntary_switches");
	window.stolen_ns = take_count(reader, "stolen_ns");
	window.queued_ns = take_count(reader, "queued_ns");
	window.threads = take_count(reader, "threads");
	result = read_visits(reader, &window);
	if (result == 0)
		result = read_times(reader, &window);
	if (result == 0)
		result = reader->bad ? -EINVAL : causal_data_add_window(data, &window);
	free(window.visits);
	free(window.times);
	return result;
}

int causal_data_read_line(struct causal_data *data, const char *line, size_t size)
{
	static const struct {
		const char *kind;
		int (*read)(struct causal_data *data, struct reader *reader);
	} kinds[] = {{"run", read_run},
		     {"target", read_target},
		     {"point", read_point},
		     {"window", read_window},
		     {"end", read_end}};
	json_t *root = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
	struct reader reader = {root, false};
	const char *kind = take_text(&reader, "kind");
	int result = kind ? 0 : -EINVAL;

	for (size_t i = 0; kind && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(kind, kinds[i].kind) == 0)
			result = kinds[i].read(data, &reader);
	}
	json_decref(root);
	return result;
}

int causal_data_read_stream(struct causal_data *data, FILE *stream, const char *name,
			    struct problem *problem)
{
	char *line = NULL;
	size_t capacity = 0;
	ssize_t size;
	int result = 0;

	while ((size = getline(&line, &capacity, stream)) >= 0) {
		/* Without its end it was cut, even where it can be read. */
		bool whole = line[size - 1] == '\n' && size <= LINE_LIMIT;

		if (size == 1)
			continue;
		result = whole ? causal_data_read_line(data, line, (size_t)size) : -EINVAL;
		if (result == -ENOMEM)
			break;
		data->bad_lines += result < 0;
		result = 0;
	}
	free(line);
	if (result < 0)
		return problem_set(problem, result, "out of memory while reading %s", name);
	if (ferror(stream))
		return problem_set(problem, errno > 0 ? -errno : -EIO, "cannot read %s: %s", name,
				   strerror(errno > 0 ? errno : EIO));
	return 0;
}

int causal_data_read(struct causal_data *data, const char *path, struct problem *problem)
{
	FILE *stream = fopen(path, "re");
	int result, error = errno;

	if (!stream)
		return problem_set(problem, -error,
				   "cannot read the experiments in %s: %s; is this a result of "
				   "kymo causal?",
				   path, strerror(error));
	errno = 0;
	result = causal_data_read_stream(data, stream, path, problem);
	fclose(stream);
	return result;
}
