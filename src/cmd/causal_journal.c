/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_journal.h. A line is made once, written, and read back as anybody would read it.
 */
#include "cmd/causal_journal.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "analysis/causal_data.h"

enum { JOURNAL_PROCESSORS = 8192 }; /* that a kernel may know (NR_CPUS of x86) */

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
static void journal_line(struct causal_journal *journal, json_t *object)
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
static json_t *journal_text(const char *text)
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

static json_t *journal_count(uint64_t count)
{
	return json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count);
}

/* The program inherits what kymo may use. */
static int processors_usable(void)
{
	cpu_set_t *set = CPU_ALLOC(JOURNAL_PROCESSORS);
	size_t size = CPU_ALLOC_SIZE(JOURNAL_PROCESSORS);
	int count = set && sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;

	CPU_FREE(set);
	return count ? count : get_nprocs();
}

void causal_journal_run(struct causal_journal *journal, const struct causal_journal_run *run)
{
	json_t *command = json_array();
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	for (char *const *word = run->command; *word; word++)
		json_array_append_new(command, journal_text(*word));
	journal_line(journal,
		     json_pack("{s:s,s:i,s:o,s:s,s:o,s:i,s:o,s:b,s:o}", "kind", "run", "run",
			       (int)run->number, "command", command, "mode", run->mode, "seed",
			       journal_count(run->seed), "processors", processors_usable(),
			       "ticks_per_second", journal_count(run->ticks_per_second),
			       "end_to_end", run->end_to_end, "started_unix_ns",
			       journal_count((uint64_t)now.tv_sec * 1000000000u +
					     (uint64_t)now.tv_nsec)));
}

void causal_journal_target(struct causal_journal *journal, struct causal_targets *targets,
			   uint32_t id)
{
	struct causal_target target;
	json_t *object;

	if (!id || causal_data_find_target(&journal->data, id) ||
	    !causal_targets_get(targets, id, &target))
		return;
	object = json_pack("{s:s,s:i}", "kind", "target", "id", (int)id);
	if (target.name)
		json_object_set_new(object, "function", journal_text(target.name));
	if (target.file)
		json_object_set_new(object, "file", journal_text(target.file));
	if (target.line)
		json_object_set_new(object, "line", json_integer(target.line));
	if (target.module)
		json_object_set_new(object, "module", journal_text(target.module));
	journal_line(journal, object);
}

void causal_journal_point(struct causal_journal *journal, uint32_t id,
			  const struct causal_known_point *point)
{
	static const char *const kinds[] = {"progress", "begin", "end"};
	static const char *const origins[] = {"user", "coz", "named", "automatic"};

	if (journal->points[id])
		return;
	journal->points[id] = true;
	journal_line(journal,
		     json_pack("{s:s,s:i,s:o,s:s,s:s,s:b}", "kind", "point", "id", (int)id, "name",
			       journal_text(point->name), "type", kinds[point->kind], "origin",
			       origins[point->origin], "given_up", point->given_up));
}

void causal_journal_process_point(struct causal_journal *journal, const char *program)
{
	const char *slash = strrchr(program, '/');

	if (causal_data_find_point(&journal->data, CAUSAL_JOURNAL_PROCESS))
		return;
	journal_line(journal, json_pack("{s:s,s:i,s:o,s:s,s:s}", "kind", "point", "id",
					(int)CAUSAL_JOURNAL_PROCESS, "name",
					journal_text(slash ? slash + 1 : program), "type",
					"progress", "origin", "process"));
}

static json_t *journal_visits(const struct causal_data_visits *visits)
{
	if (visits->end_point == CAUSAL_NO_POINT)
		return json_pack("{s:i,s:o,s:I}", "id", (int)visits->point, "visits",
				 journal_count(visits->visits), "virtual_ns",
				 (json_int_t)visits->virtual_ns);
	return json_pack("{s:i,s:i,s:o,s:o,s:I,s:I}", "id", (int)visits->point, "end",
			 (int)visits->end_point, "arrivals", journal_count(visits->arrivals),
			 "departures", journal_count(visits->visits), "area_ns",
			 (json_int_t)visits->area_ns, "virtual_ns", (json_int_t)visits->virtual_ns);
}

void causal_journal_window(struct causal_journal *journal, const struct causal_data_window *window)
{
	static const char *const ends[] = {"visits", "time", "exit", "cut"};
	json_t *points = json_array(), *times = json_array();

	for (size_t i = 0; i < window->visit_count; i++)
		json_array_append_new(points, journal_visits(&window->visits[i]));
	for (size_t i = 0; i < window->time_count; i++)
		json_array_append_new(times, json_pack("[i,o,o]", (int)window->times[i].target,
						       journal_count(window->times[i].self_ns),
						       journal_count(window->times[i].total_ns)));
	journal_line(
		journal,
		json_pack("{s:s,s:i,s:i,s:i,s:o,s:o,s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "kind",
			  "window", "run", (int)window->run, "target", (int)window->target,
			  "speedup_permille", (int)window->speedup_permille, "start_ns",
			  journal_count(window->start_ns), "real_ns",
			  journal_count(window->real_ns), "delay_ns",
			  journal_count(window->delay_ns), "ended", ends[window->end], "points",
			  points, "times", times, "cpu_ns", journal_count(window->cpu_ns),
			  "involuntary_switches", journal_count(window->involuntary_switches),
			  "stolen_ns", journal_count(window->stolen_ns), "queued_ns",
			  journal_count(window->queued_ns), "threads",
			  journal_count(window->threads)));
}

void causal_journal_end(struct causal_journal *journal, const struct causal_data_run *run)
{
	json_t *line = json_pack(
		"{s:s,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "kind", "end", "run", (int)run->number,
		"status", run->status, "real_ns", journal_count(run->real_ns), "samples",
		journal_count(run->samples), "samples_in_scope",
		journal_count(run->samples_in_scope), "paid_ns", journal_count(run->paid_ns),
		"overslept_ns", journal_count(run->overslept_ns), "credited_ns",
		journal_count(run->credited_ns), "pauses", journal_count(run->pauses));

	if (line && run->samples_cost_known) {
		json_object_set_new(line, "samples_cost_ppm", json_integer(run->samples_cost_ppm));
		json_object_set_new(line, "samples_cost_error_ppm",
				    json_integer(run->samples_cost_error_ppm));
	}
	journal_line(journal, line);
}
