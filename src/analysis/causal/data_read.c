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

#include "analysis/causal/data.h"
#include "common/array.h"
#include "common/foreign_file.h"

/* Above this, no line is one of ours: a window has some 30 bytes for each target and point. */
#define LINE_BYTES_MAX (64u << 20)
/* 290 years: sums of a billion of them still fit into a double without loss that matters. */
#define DURATION_NS_MAX INT64_MAX

/* ---- members: a missing one has its default, a wrong one makes the line bad ---- */

struct json_record_reader {
	const json_t *object;
	bool is_bad;
};

static int64_t read_integer_member(struct json_record_reader *reader, const char *key, int64_t low,
				   int64_t high, int64_t missing)
{
	const json_t *value = json_object_get(reader->object, key);
	json_int_t number = json_integer_value(value);

	if (!value)
		return missing;
	if (!json_is_integer(value) || number < low || number > high) {
		reader->is_bad = true;
		return missing;
	}
	return number;
}

static uint64_t read_count_member(struct json_record_reader *reader, const char *key)
{
	return (uint64_t)read_integer_member(reader, key, 0, DURATION_NS_MAX, 0);
}

static uint32_t read_id_member(struct json_record_reader *reader, const char *key, uint32_t limit)
{
	int64_t id = read_integer_member(reader, key, 0, limit, -1);

	reader->is_bad |= id < 0;
	return (uint32_t)id;
}

/* Borrowed from the object. */
static const char *read_text_member(struct json_record_reader *reader, const char *key)
{
	const json_t *value = json_object_get(reader->object, key);

	if (!value || json_is_null(value))
		return NULL;
	reader->is_bad |= !json_is_string(value) ||
			  strlen(json_string_value(value)) != json_string_length(value);
	return json_string_value(value);
}

static bool read_boolean_member(struct json_record_reader *reader, const char *key)
{
	const json_t *value = json_object_get(reader->object, key);

	reader->is_bad |= value && !json_is_boolean(value);
	return json_is_true(value);
}

/* Place of the member's text in a list that ends with NULL. */
static unsigned read_choice_index(struct json_record_reader *reader, const char *key,
				  const char *const *choices)
{
	const char *text = read_text_member(reader, key);

	for (unsigned i = 0; text && choices[i]; i++) {
		if (strcmp(text, choices[i]) == 0)
			return i;
	}
	reader->is_bad = true;
	return 0;
}

/* ---- lines ---- */

/* Words joined by spaces, or one text as it is. Allocated; NULL: none, or no memory. */
static int read_command_text(struct json_record_reader *reader, char **ret)
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
	reader->is_bad |= !json_is_array(words);
	for (size_t i = 0; i < json_array_size(words); i++) {
		const json_t *word = json_array_get(words, i);
		size_t length = json_string_length(word);

		reader->is_bad |= !json_is_string(word);
		if (used)
			(*ret)[used++] = ' ';
		if (length)
			memcpy(*ret + used, json_string_value(word), length);
		used += length;
	}
	return 0;
}

static int read_run_record(struct causal_data *data, struct json_record_reader *reader)
{
	struct causal_data_program_run run = {.number = read_id_member(reader, "run", UINT32_MAX)};
	int result = read_command_text(reader, &run.command);

	run.seed = read_count_member(reader, "seed");
	run.end_to_end = read_boolean_member(reader, "end_to_end");
	run.processors = (uint32_t)read_integer_member(reader, "processors", 0, UINT32_MAX, 0);
	run.mode = (char *)(uintptr_t)read_text_member(reader, "mode");
	if (result == 0)
		result = reader->is_bad ? -EINVAL : causal_data_add_run(data, &run);
	free(run.command);
	return result;
}

/* The rest of the line holds without it. */
static void read_run_sampling_cost_per_visit(const json_t *object,
					     struct causal_data_program_run *ret)
{
	struct json_record_reader reader = {object,
					    json_object_get(object, "samples_cost_ppm") == NULL};

	ret->samples_cost_ppm = read_integer_member(&reader, "samples_cost_ppm",
						    -CAUSAL_SAMPLING_COST_PER_VISIT_PPM_MAX,
						    CAUSAL_SAMPLING_COST_PER_VISIT_PPM_MAX, 0);
	ret->samples_cost_error_ppm = read_integer_member(
		&reader, "samples_cost_error_ppm", 0, CAUSAL_SAMPLING_COST_PER_VISIT_PPM_MAX, 0);
	ret->is_samples_cost_known = !reader.is_bad;
}

static int read_run_end_record(struct causal_data *data, struct json_record_reader *reader)
{
	uint32_t number = read_id_member(reader, "run", UINT32_MAX);
	struct causal_data_program_run *run = NULL;
	struct causal_data_program_run end = {.number = number, .ended = true};

	end.status = (int)read_integer_member(reader, "status", INT32_MIN, INT32_MAX, 0);
	end.real_ns = read_count_member(reader, "real_ns");
	end.samples = read_count_member(reader, "samples");
	end.samples_in_scope = read_count_member(reader, "samples_in_scope");
	end.paid_delay_ns = read_count_member(reader, "paid_ns");
	end.overslept_ns = read_count_member(reader, "overslept_ns");
	end.credited_delay_ns = read_count_member(reader, "credited_ns");
	end.pauses = read_count_member(reader, "pauses");
	read_run_sampling_cost_per_visit(reader->object, &end);
	if (reader->is_bad)
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

static int read_target_record(struct causal_data *data, struct json_record_reader *reader)
{
	struct causal_data_target target = {.id = read_id_member(reader, "id", CAUSAL_TARGETS - 1)};

	/* The structs' texts are copied, never written. */
	target.function = (char *)(uintptr_t)read_text_member(reader, "function");
	target.file = (char *)(uintptr_t)read_text_member(reader, "file");
	target.module = (char *)(uintptr_t)read_text_member(reader, "module");
	target.line = (uint32_t)read_integer_member(reader, "line", 0, INT32_MAX, 0);
	reader->is_bad |= target.id == 0 || (!target.function && !target.file);
	return reader->is_bad ? -EINVAL : causal_data_add_target(data, &target);
}

static int read_point_record(struct causal_data *data, struct json_record_reader *reader)
{
	static const char *const kinds[] = {"progress", "begin", "end", NULL};
	struct causal_data_progress_point point = {
		.id = read_id_member(reader, "id", UINT32_MAX - 1)};

	point.kind = (enum causal_point_kind)read_choice_index(reader, "type", kinds);
	point.name = (char *)(uintptr_t)read_text_member(reader, "name");
	point.was_given_up = read_boolean_member(reader, "given_up");
	point.origin = (char *)(uintptr_t)read_text_member(reader, "origin");
	reader->is_bad |= !point.name;
	return reader->is_bad ? -EINVAL : causal_data_add_point(data, &point);
}

/* ---- windows ---- */

static int read_window_visits(struct json_record_reader *reader, struct causal_data_window *window)
{
	const json_t *list = json_object_get(reader->object, "points");
	size_t count = json_array_size(list);

	reader->is_bad |= list && !json_is_array(list);
	window->visits = calloc(count + 1, sizeof(*window->visits));
	if (!window->visits)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct json_record_reader member = {json_array_get(list, i),
						    !json_is_object(json_array_get(list, i))};
		bool latency = json_object_get(member.object, "end") != NULL;
		struct causal_data_window_visits *visits =
			&window->visits[window->visits_entry_count++];

		visits->point = read_id_member(&member, "id", UINT32_MAX - 1);
		visits->end_point =
			latency ? read_id_member(&member, "end", UINT32_MAX - 1) : UINT32_MAX;
		visits->visits = read_count_member(&member, latency ? "departures" : "visits");
		visits->arrivals = read_count_member(&member, "arrivals");
		visits->intervals_virtual_ns =
			read_integer_member(&member, "virtual_ns", INT64_MIN, INT64_MAX, 0);
		visits->inside_count_integral_ns =
			read_integer_member(&member, "area_ns", INT64_MIN, INT64_MAX, 0);
		reader->is_bad |= member.is_bad;
	}
	return 0;
}

static int read_window_target_times(struct json_record_reader *reader,
				    struct causal_data_window *window)
{
	const json_t *list = json_object_get(reader->object, "times");
	size_t count = json_array_size(list);

	reader->is_bad |= list && !json_is_array(list);
	window->times = calloc(count + 1, sizeof(*window->times));
	if (!window->times)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const json_t *triple = json_array_get(list, i);
		json_int_t numbers[3];

		reader->is_bad |= json_array_size(triple) != 3;
		for (size_t j = 0; j < 3; j++) {
			reader->is_bad |= !json_is_integer(json_array_get(triple, j));
			numbers[j] = json_integer_value(json_array_get(triple, j));
			reader->is_bad |= numbers[j] < 0;
		}
		reader->is_bad |= numbers[0] < 1 || numbers[0] >= CAUSAL_TARGETS;
		window->times[window->time_count++] = (struct causal_data_target_time_row){
			(uint32_t)numbers[0], (uint64_t)numbers[1], (uint64_t)numbers[2]};
	}
	return 0;
}

static int read_window_record(struct causal_data *data, struct json_record_reader *reader)
{
	static const char *const ends[] = {"visits", "time", "exit", "cut", NULL};
	struct causal_data_window window = {.run = read_id_member(reader, "run", UINT32_MAX)};
	int result;

	window.target = read_id_member(reader, "target", CAUSAL_TARGETS - 1);
	window.speedup_permille =
		(uint32_t)read_integer_member(reader, "speedup_permille", 0, 1000, 0);
	window.end = (enum causal_window_end_reason)read_choice_index(reader, "ended", ends);
	window.start_ns = read_count_member(reader, "start_ns");
	window.real_ns = read_count_member(reader, "real_ns");
	window.delay_ns = read_count_member(reader, "delay_ns");
	window.cpu_ns = read_count_member(reader, "cpu_ns");
	window.involuntary_switches = read_count_member(reader, "involuntary_switches");
	window.stolen_ns = read_count_member(reader, "stolen_ns");
	window.queued_ns = read_count_member(reader, "queued_ns");
	window.threads = read_count_member(reader, "threads");
	result = read_window_visits(reader, &window);
	if (result == 0)
		result = read_window_target_times(reader, &window);
	if (result == 0)
		result = reader->is_bad ? -EINVAL : causal_data_add_window(data, &window);
	free(window.visits);
	free(window.times);
	return result;
}

int causal_data_read_line(struct causal_data *data, const char *line, size_t size)
{
	static const struct {
		const char *record_kind;
		int (*read_record)(struct causal_data *data, struct json_record_reader *reader);
	} kinds[] = {{"run", read_run_record},
		     {"target", read_target_record},
		     {"point", read_point_record},
		     {"window", read_window_record},
		     {"end", read_run_end_record}};
	json_t *root = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
	struct json_record_reader reader = {root, false};
	const char *kind = read_text_member(&reader, "kind");
	int result = kind ? 0 : -EINVAL;

	for (size_t i = 0; kind && i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kind, kinds[i].record_kind) == 0)
			result = kinds[i].read_record(data, &reader);
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
		bool whole = line[size - 1] == '\n' && size <= LINE_BYTES_MAX;

		if (size == 1)
			continue;
		result = whole ? causal_data_read_line(data, line, (size_t)size) : -EINVAL;
		if (result == -ENOMEM)
			break;
		data->bad_line_count += result < 0;
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

int causal_data_read_file(struct causal_data *data, const char *path, struct problem *problem)
{
	FILE *stream = foreign_open_stream(&foreign_policy_of_result_files, path);
	int result, error = errno;

	if (!stream)
		return problem_set(problem, -error,
				   "cannot read the experiments in %s: %s; is this a result of "
				   "kymo causal?",
				   path, foreign_error_to_text(error));
	errno = 0;
	result = causal_data_read_stream(data, stream, path, problem);
	fclose(stream);
	return result;
}
