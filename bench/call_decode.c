/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How fast the calls of instrumented functions become a model (the scan and the call tree
 * together), are streamed to an output, and become each output, and what memory that takes.
 *
 *   bench/call_decode [calls in millions] [formats ...]
 *
 * The recording: 1000 functions that call each other, each the same few others, up to 24 deep, 10
 * to 200 ticks apart, on 4 threads.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "analysis/open/open.h"
#include "analysis/regions/calls.h"
#include "common/array.h"
#include "output/formats/formats.h"
#include "output/output.h"
#include "unit/analysis/calls_fixture.h"

#define FUNCTIONS 1000
#define DEPTH     24
#define THREADS   4
#define WORDS     32000 /* in a chunk */

static uint64_t random_state = 88172645463325252u;

static uint64_t random_number(void) /* xorshift64 */
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

struct program {
	uint32_t open[DEPTH];
	uint32_t depth;
};

/* Deep callers call few functions, so that call paths do not explode. */
static uint32_t callee(const struct program *program)
{
	uint32_t caller = program->depth ? program->open[program->depth - 1] : 0;
	uint64_t choice = random_number() % (program->depth < 6 ? 3 : 1);

	return (uint32_t)((caller * 7 + choice) % FUNCTIONS) + 1;
}

static void step(struct calls_fixture *calls, struct program *program, uint64_t now)
{
	if (program->depth == DEPTH || (program->depth && random_number() % 2)) {
		calls_fixture_word(calls, now, program->open[--program->depth], 1);
		return;
	}
	program->open[program->depth] = callee(program);
	calls_fixture_word(calls, now, program->open[program->depth++], 0);
}

static void write_calls(struct spool_fixture *fixture, uint64_t words)
{
	struct program programs[THREADS] = {0};
	struct calls_fixture calls = {0};
	uint64_t now = FIXTURE_START, done = 0;

	for (unsigned thread = 0; done < words; thread = (thread + 1) % THREADS) {
		struct program *program = &programs[thread];

		calls_fixture_begin(&calls, thread, now, program->open, program->depth);
		for (unsigned i = 0; i < WORDS && done < words; i++, done++) {
			now += 10 + random_number() % 190;
			step(&calls, program, now);
		}
		calls_fixture_end(&calls, fixture);
	}
	fixture->header.end_ticks = now;
}

static void write_session(const char *directory, uint64_t words)
{
	struct plan_function functions[FUNCTIONS];
	struct spool_fixture fixture;
	char plan[4096];

	fixture_open_in(&fixture, directory, 1000, 0);
	snprintf(plan, sizeof(plan), "%s/plan", directory);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		functions[i] = (struct plan_function){.vaddr = 0x1000 + 16 * i, .size = 16};
	calls_fixture_plan(plan, functions, FUNCTIONS);
	fixture_clock(&fixture, FIXTURE_START);
	for (unsigned i = 0; i < THREADS; i++)
		fixture_thread_start(&fixture, FIXTURE_START, i, 100 + i, 0, "", i ? 1 : 0);
	fixture_module(&fixture, FIXTURE_START, 1, 0x401000, 0x500000, 0x1000, "/bin/prog");
	calls_fixture_instrumented(&fixture, FIXTURE_START, 1, FUNCTIONS, 0x400000, plan,
				   "/bin/prog");
	write_calls(&fixture, words);
	fixture_close(&fixture);
}

static double cpu_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int count_event(const struct model_region_event *event, void *context)
{
	*(uint64_t *)context += event->kind == MODEL_EVENT_REGION_BEGIN;
	return 0;
}

static void report(const char *what, double seconds, uint64_t words)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("  %-20s %7.3f s CPU  %6.1f million words/s  %5.1f ns each  peak %6.1f MiB\n", what,
	       seconds, (double)words / seconds / 1e6, seconds * 1e9 / (double)words,
	       (double)usage.ru_maxrss / 1024);
}

static int write_format(struct session *session, const char *name, uint64_t words)
{
	const struct output_format *format = output_find_format(name);
	struct output_options options = {.top = 0};
	FILE *null = fopen("/dev/null", "w");
	struct problem problem;
	double start = cpu_seconds();
	int result;

	if (!format || !null)
		return 1;
	result = format->write(session, &options, null, &problem);
	fclose(null);
	report(name, cpu_seconds() - start, words);
	return result < 0;
}

static int decode(const char *directory, uint64_t words, char **formats)
{
	struct session_options options = {.skip_symbolizing = true, .symbol_cache_directory = ""};
	struct session *session;
	struct problem problem;
	double start = cpu_seconds(), opened;
	uint64_t begins = 0;
	int status = 0;

	if (session_open(directory, &options, &session, &problem) < 0 ||
	    session_symbolize(session, &problem) < 0) {
		fprintf(stderr, "%s\n", problem.text);
		return 1;
	}
	opened = cpu_seconds();
	report("scan and call tree", opened - start, words);
	if (session_visit_region_events(session, count_event, &begins, &problem) < 0)
		return 1;
	report("each event", cpu_seconds() - opened, words);
	printf("  %u nodes, %" PRIu64 " calls\n", session_get_regions(session)->node_count, begins);
	for (; *formats; formats++)
		status |= write_format(session, *formats, words);
	session_close(session);
	return status;
}

static void remove_session(const char *directory)
{
	static const char *const names[] = {"spool/1000-0.spool", "spool", "plan", ""};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		remove(path);
	}
}

int main(int argc, char **argv)
{
	static char *all[] = {"text", "json", "perfetto", "regions-folded", "html", NULL};
	uint64_t millions = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	char directory[64];
	int status;

	snprintf(directory, sizeof(directory), "call-decode-%ld.tmp", (long)getpid());
	printf("%" PRIu64 " million calls\n", millions);
	write_session(directory, 2 * millions * 1000000);
	status = decode(directory, 2 * millions * 1000000, argc > 2 ? argv + 2 : all);
	remove_session(directory);
	return status;
}
