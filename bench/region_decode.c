/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How fast the region events of a trace become a model (the scan and the call tree together) and
 * are streamed to an output, on one core, and what memory that takes.
 *
 *   bench/region_decode [events in millions ...]
 *
 * Two recordings: a program of 50 regions that call each other up to 6 deep, some ns to ms apart,
 * and locks as whole calls in an outer region.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "analysis/open/open.h"
#include "analysis/regions/regions.h"
#include "common/array.h"
#include "unit/analysis/spool_fixture.h"

#define REGIONS 50
#define DEPTH   6
#define THREADS 4
#define CHUNK   (64 << 10)

static uint64_t random_state = 88172645463325252u;

static uint64_t random_number(void) /* xorshift64 */
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

struct program {
	struct fixture_open open[DEPTH];
	uint64_t begins[DEPTH];
	size_t depth;
};

/* A region mostly calls the same few others. */
static uint64_t callee(const struct program *program)
{
	uint64_t caller = program->depth ? program->open[program->depth - 1].region : 0;

	return (caller * 7 + random_number() % 3) % REGIONS + 1;
}

static void begin_span(struct spool_fixture *fixture, struct program *program, unsigned thread,
		       uint64_t now)
{
	fixture_end_chunk(fixture);
	for (size_t i = 0; i < program->depth; i++)
		program->open[i].since = now - program->begins[i];
	fixture_region_span(fixture, thread, 1000 + thread, now, program->open, program->depth);
}

static void step(struct spool_fixture *fixture, struct program *program, uint64_t now)
{
	if (program->depth == DEPTH || (program->depth && random_number() % 2)) {
		fixture_end(fixture, now);
		program->depth--;
		return;
	}
	program->open[program->depth].region = callee(program);
	program->begins[program->depth] = now;
	fixture_begin(fixture, now, program->open[program->depth++].region);
}

static void write_events(struct spool_fixture *fixture, uint64_t events, bool whole)
{
	struct program programs[THREADS] = {0};
	uint64_t now = FIXTURE_START, done = 0;

	for (unsigned thread = 0; done < events; thread = (thread + 1) % THREADS) {
		begin_span(fixture, &programs[thread], thread, now);
		for (; done < events && fixture_chunk_used(fixture) < CHUNK - 64; done++) {
			now += 20 + random_number() % (random_number() % 8 ? 200 : 100000);
			if (whole && programs[thread].depth)
				fixture_whole(fixture, now, 15, 1);
			else
				step(fixture, &programs[thread], now);
		}
	}
	fixture->header.end_ticks = now;
}

static void write_session(const char *directory, uint64_t events, bool whole)
{
	struct spool_fixture fixture;
	char name[32];

	fixture_open_in(&fixture, directory, 1000, 0);
	fixture_clock(&fixture, FIXTURE_START);
	for (unsigned i = 0; i < THREADS; i++)
		fixture_thread_start(&fixture, FIXTURE_START, i, 1000 + i, 0, "", i ? 1 : 0);
	for (unsigned i = 1; i <= REGIONS; i++) {
		snprintf(name, sizeof(name), "region%u", i);
		fixture_region(&fixture, i, "user", name);
	}
	write_events(&fixture, events, whole);
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

static void report(const char *what, double seconds, uint64_t events)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("  %-24s %6.3f s CPU  %6.1f million events/s  %5.1f ns each  peak %5.1f MiB\n", what,
	       seconds, (double)events / seconds / 1e6, seconds * 1e9 / (double)events,
	       (double)usage.ru_maxrss / 1024);
}

static int decode(const char *directory, uint64_t events)
{
	struct session_options options = {.skip_symbolizing = true, .symbol_cache_directory = ""};
	struct session *session;
	struct problem problem;
	double start = cpu_seconds(), opened;
	uint64_t begins = 0;

	if (session_open(directory, &options, &session, &problem) < 0) {
		fprintf(stderr, "%s\n", problem.text);
		return 1;
	}
	opened = cpu_seconds();
	report("scan and call tree", opened - start, events);
	if (session_visit_region_events(session, count_event, &begins, &problem) < 0)
		return 1;
	report("each event", cpu_seconds() - opened, events);
	printf("  %u nodes, %" PRIu64 " begins, %.1f bytes an event\n",
	       session_get_regions(session)->node_count, begins,
	       (double)session->processes[0].region_record_bytes / (double)events);
	session_close(session);
	return 0;
}

static void remove_session(const char *directory)
{
	static const char *const names[] = {"spool/1000-0.spool", "spool", ""};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		remove(path);
	}
}

static int bench(uint64_t millions, bool whole)
{
	char directory[64];
	int status;

	snprintf(directory, sizeof(directory), "region-decode-%ld.tmp", (long)getpid());
	printf("%" PRIu64 " million events, %s\n", millions,
	       whole ? "mostly whole calls" : "begins and ends");
	write_session(directory, millions * 1000000, whole);
	status = decode(directory, millions * 1000000);
	remove_session(directory);
	return status;
}

int main(int argc, char **argv)
{
	int status = 0;

	for (int i = 1; i < argc; i++)
		status |= bench(strtoull(argv[i], NULL, 10), false) |
			  bench(strtoull(argv[i], NULL, 10), true);
	if (argc < 2)
		status = bench(10, false) | bench(10, true);
	return status;
}
