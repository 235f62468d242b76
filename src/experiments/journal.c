/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See journal.h. A line is made once, written, and read back as anybody would read it.
 */
#include "experiments/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "analysis/causal/data.h"

enum { JOURNAL_PROCESSORS_MAX = 8192 }; /* that a kernel may know (NR_CPUS of x86) */

int causal_journal_open(struct causal_journal *journal, const char *path, struct problem *problem)
{
	memset(journal, 0, sizeof(*journal));
	journal->stream = fopen(path, "we");
	if (!journal->stream)
		return problem_set(problem, -errno, "cannot write '%s': %s", path, strerror(errno));
	return 0;
}

void causal_journal_close(struct causal_journal *journal)
{
	if (journal->stream && fclose(journal->stream))
		journal->failed = true;
	journal->stream = NULL;
}

void causal_journal_deinit(struct causal_journal *journal)
{
	causal_journal_close(journal);
	causal_data_deinit(&journal->data);
}

/* Takes the object. */
static void journal_write_line(struct causal_journal *journal, json_t *object)
{
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	size_t size = text ? strlen(text) : 0;

	json_decref(object);
	if (!text || fprintf(journal->stream, "%s\n", text) < 0 || fflush(journal->stream))
		journal->failed = true;
	if (text && causal_data_read_line(&journal->data, text, size))
		journal->failed = true;
	free(text);
}

/* Names come from files and from the program: what is no UTF-8 becomes question marks. */
static json_t *text_to_json(const char *text)
{
	json_t *value = text ? json_string(text) : json_null();
	char *copy;

	if (value || !text)
		return value;
	copy = strdup(text);
	for (char *c = copy; c && *c; c++) {
		if (*c & 0x80)
			*c = '?';
	}
	value = copy ? json_string(copy) : NULL;
	free(copy);
	return value;
}

static json_t *count_to_json(uint64_t count)
{
	return json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count);
}

/* The program inherits what kymo may use. */
static int count_usable_processors(void)
{
	cpu_set_t *set = CPU_ALLOC(JOURNAL_PROCESSORS_MAX);
	size_t size = CPU_ALLOC_SIZE(JOURNAL_PROCESSORS_MAX);
	int count = set && sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;

	CPU_FREE(set);
	return count ? count : get_nprocs();
}

void causal_journal_write_run_begin(struct causal_journal *journal,
				    const struct causal_journal_run_description *run)
{
	json_t *command = json_array();
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	for (char *const *word = run->command; *word; word++)
		json_array_append_new(command, text_to_json(*word));
	journal_write_line(
		journal,
		json_pack(
			"{s:s,s:i,s:o,s:s,s:o,s:i,s:o,s:b,s:o}", "kind", "run", "run",
			(int)run->number, "command", command, "mode", run->mode, "seed",
			count_to_json(run->seed), "processors", count_usable_processors(),
			"ticks_per_second", count_to_json(run->ticks_per_second), "end_to_end",
			run->end_to_end, "started_unix_ns",
			count_to_json((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec)));
}

void causal_journal_write_target_once(struct causal_journal *journal,
				      struct causal_targets *targets, uint32_t id)
{
	struct causal_target target;
	json_t *object;

	if (!id || causal_data_find_target(&journal->data, id) ||
	    !causal_targets_copy_target(targets, id, &target))
		return;
	object = json_pack("{s:s,s:i}", "kind", "target", "id", (int)id);
	if (target.name)
		json_object_set_new(object, "function", text_to_json(target.name));
	if (target.file)
		json_object_set_new(object, "file", text_to_json(target.file));
	if (target.line)
		json_object_set_new(object, "line", json_integer(target.line));
	if (target.module)
		json_object_set_new(object, "module", text_to_json(target.module));
	journal_write_line(journal, object);
}

void causal_journal_write_point_once(struct causal_journal *journal, uint32_t id,
				     const struct causal_point_info *point)
{
	static const char *const kinds[] = {"progress", "begin", "end"};
	static const char *const origins[] = {"user", "coz", "named", "automatic"};

	if (journal->points[id])
		return;
	journal->points[id] = true;
	journal_write_line(journal, json_pack("{s:s,s:i,s:o,s:s,s:s,s:b}", "kind", "point", "id",
					      (int)id, "name", text_to_json(point->name), "type",
					      kinds[point->kind], "origin", origins[point->origin],
					      "given_up", point->given_up));
}

void causal_journal_write_exit_point(struct causal_journal *journal, const char *program)
{
	const char *slash = strrchr(program, '/');

	if (causal_data_find_point(&journal->data, CAUSAL_JOURNAL_EXIT_POINT_ID))
		return;
	journal_write_line(journal, json_pack("{s:s,s:i,s:o,s:s,s:s}", "kind", "point", "id",
					      (int)CAUSAL_JOURNAL_EXIT_POINT_ID, "name",
					      text_to_json(slash ? slash + 1 : program), "type",
					      "progress", "origin", "process"));
}

static json_t *window_visits_to_json(const struct causal_data_window_visits *visits)
{
	if (visits->end_point == CAUSAL_NO_POINT)
		return json_pack("{s:i,s:o,s:I}", "id", (int)visits->point, "visits",
				 count_to_json(visits->visits), "virtual_ns",
				 (json_int_t)visits->intervals_virtual_ns);
	return json_pack("{s:i,s:i,s:o,s:o,s:I,s:I}", "id", (int)visits->point, "end",
			 (int)visits->end_point, "arrivals", count_to_json(visits->arrivals),
			 "departures", count_to_json(visits->visits), "area_ns",
			 (json_int_t)visits->inside_count_integral_ns, "virtual_ns",
			 (json_int_t)visits->intervals_virtual_ns);
}

void causal_journal_write_window(struct causal_journal *journal,
				 const struct causal_data_window *window)
{
	static const char *const ends[] = {"visits", "time", "exit", "cut"};
	json_t *points = json_array(), *times = json_array();

	for (size_t i = 0; i < window->visits_entry_count; i++)
		json_array_append_new(points, window_visits_to_json(&window->visits[i]));
	for (size_t i = 0; i < window->time_count; i++)
		json_array_append_new(times, json_pack("[i,o,o]", (int)window->times[i].target,
						       count_to_json(window->times[i].self_ns),
						       count_to_json(window->times[i].total_ns)));
	journal_write_line(
		journal,
		json_pack("{s:s,s:i,s:i,s:i,s:o,s:o,s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "kind",
			  "window", "run", (int)window->run, "target", (int)window->target,
			  "speedup_permille", (int)window->speedup_permille, "start_ns",
			  count_to_json(window->start_ns), "real_ns",
			  count_to_json(window->real_ns), "delay_ns",
			  count_to_json(window->delay_ns), "ended", ends[window->end], "points",
			  points, "times", times, "cpu_ns", count_to_json(window->cpu_ns),
			  "involuntary_switches", count_to_json(window->involuntary_switches),
			  "stolen_ns", count_to_json(window->stolen_ns), "queued_ns",
			  count_to_json(window->queued_ns), "threads",
			  count_to_json(window->threads)));
}

void causal_journal_write_run_end(struct causal_journal *journal,
				  const struct causal_data_program_run *run)
{
	json_t *line = json_pack(
		"{s:s,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "kind", "end", "run", (int)run->number,
		"status", run->status, "real_ns", count_to_json(run->real_ns), "samples",
		count_to_json(run->samples), "samples_in_scope",
		count_to_json(run->samples_in_scope), "paid_ns", count_to_json(run->paid_delay_ns),
		"overslept_ns", count_to_json(run->overslept_ns), "credited_ns",
		count_to_json(run->credited_delay_ns), "pauses", count_to_json(run->pauses));

	if (line && run->is_samples_cost_known) {
		json_object_set_new(line, "samples_cost_ppm", json_integer(run->samples_cost_ppm));
		json_object_set_new(line, "samples_cost_error_ppm",
				    json_integer(run->samples_cost_error_ppm));
	}
	journal_write_line(journal, line);
}
