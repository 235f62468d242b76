/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How fast a recording becomes a model and a trace, and what memory that takes: a million samples,
 * then ten million, of the same synthetic program. Prints events a second on one core and the peak
 * of resident memory; the second must not grow with the number of samples.
 *
 *   bench/convert [samples in millions ...]
 *
 * The program: 4 threads, stacks of up to 41 frames that walk up and down a tree of 5,000 call
 * sites, as sampled code does: most samples share all but a few inner frames with the one before.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/open/open.h"
#include "analysis/session.h"
#include "common/array.h"
#include "output/formats/formats.h"
#include "output/output.h"
#include "unit/analysis/spool_fixture.h"

#define THREADS     4
#define CHUNK       (64 << 10)
#define MODULES     6
#define MODULE_SIZE 0x100000
#define CALLS       5000
#define BRANCHES    6
#define DEPTH       40

static uint64_t random_state = 88172645463325252u;

static uint64_t random_number(void) /* xorshift64 */
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* A call tree made once: each node is a call site in its caller. */
struct call {
	uint32_t parent, depth, child_count, children[BRANCHES];
	uint64_t pc;
};

static struct call calls[CALLS];

static void make_calls(void)
{
	calls[0].pc = 0x400015;
	for (uint32_t i = 1; i < CALLS; i++) {
		uint32_t parent = (uint32_t)(random_number() % i);

		/* Deep rather than broad: as often as not a child of the last. */
		if (random_number() % 2 || calls[parent].child_count == BRANCHES)
			parent = i - 1;
		while (calls[parent].child_count == BRANCHES || calls[parent].depth == DEPTH - 1)
			parent = calls[parent].parent;
		calls[i].parent = parent;
		calls[i].depth = calls[parent].depth + 1;
		calls[i].pc = 0x400005 + random_number() % (MODULES * MODULE_SIZE / 16) * 16;
		calls[parent].children[calls[parent].child_count++] = i;
	}
}

/* Returns from some functions, calls others; the innermost frame is somewhere in its function. */
static uint32_t next_stack(uint64_t *stack, uint32_t *at)
{
	uint32_t node = *at, depth;

	do
		node = calls[node].parent;
	while (random_number() % 2);
	while (calls[node].child_count && (calls[node].depth < 8 || random_number() % 4))
		node = calls[node].children[random_number() % 3
						    ? 0
						    : random_number() % calls[node].child_count];
	*at = node;
	depth = calls[node].depth + 1;
	for (uint32_t i = depth, k = node; i-- > 0; k = calls[k].parent)
		stack[i] = calls[k].pc;
	stack[depth] = calls[node].pc + 32 + random_number() % 8 * 3;
	return depth + 1;
}

static void write_samples(struct spool_fixture *fixture, uint64_t samples)
{
	uint64_t stack[DEPTH + 1];
	uint32_t at[THREADS] = {0};
	uint64_t now = FIXTURE_START, done = 0;

	for (unsigned thread = 0; done < samples; thread = (thread + 1) % THREADS) {
		fixture_end_chunk(fixture);
		fixture_span(fixture, thread, 1000 + thread, now);
		while (done < samples && fixture_chunk_used(fixture) < CHUNK - 1024) {
			now += 1000000 + random_number() % 1000;
			uint32_t depth = next_stack(stack, &at[thread]);
			fixture_sample(fixture, &(struct fixture_sample){
							.ticks = now,
							.weight = 1000000 + random_number() % 100,
							.stack = stack,
							.depth = depth});
			done++;
		}
	}
	fixture->header.end_ticks = now;
}

static void write_session(const char *directory, uint64_t samples)
{
	struct spool_fixture fixture;

	fixture_open_in(&fixture, directory, 1000, 0);
	fixture_clock(&fixture, FIXTURE_START);
	fixture_process(&fixture, "/bench/program", "program", 7);
	for (unsigned i = 0; i < MODULES; i++) {
		uint64_t start = 0x400000 + i * (uint64_t)MODULE_SIZE;
		char path[64];

		snprintf(path, sizeof(path), "/bench/module%u.so", i);
		fixture_module(&fixture, FIXTURE_START, i, start, start + MODULE_SIZE, 0, path);
	}
	for (unsigned i = 0; i < THREADS; i++)
		fixture_thread_start(&fixture, FIXTURE_START, i, 1000 + i, 0, "", i ? 1 : 0);
	write_samples(&fixture, samples);
	fixture_close(&fixture);
}

static double cpu_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int count_sample(const struct model_sample *sample, void *context)
{
	*(uint64_t *)context += sample->node;
	return 0;
}

static void report(const char *what, double seconds, uint64_t samples)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("  %-28s %7.2f s CPU  %6.2f million samples/s  peak %5.1f MiB\n", what, seconds,
	       (double)samples / seconds / 1e6, (double)usage.ru_maxrss / 1024);
	fflush(stdout);
}

static void check(int result, const struct problem *problem)
{
	if (result < 0) {
		fprintf(stderr, "%s\n", problem->text);
		exit(1);
	}
}

static void convert(const char *directory, uint64_t samples)
{
	struct session_options options = {.skip_symbolizing = true, .symbol_cache_directory = ""};
	struct output_options output = {0};
	struct session *session;
	struct problem problem;
	uint64_t sum = 0, bytes;
	double start = cpu_seconds(), first, symbolized, second;

	check(session_open(directory, &options, &session, &problem), &problem);
	first = cpu_seconds();
	report("pass 1 (tree)", first - start, samples);
	check(session_symbolize(session, &problem), &problem);
	symbolized = cpu_seconds();
	check(session_visit_samples(session, count_sample, &sum, &problem), &problem);
	second = cpu_seconds();
	report("pass 2 (each sample)", second - symbolized, samples);
	report("both and frames", second - start, samples);
	check(output_write_file(session, output_find_format("perfetto"), &output, directory, NULL,
				&bytes, &problem),
	      &problem);
	report("Perfetto, with its pass 2", cpu_seconds() - second, samples);
	report("recording to trace", cpu_seconds() - start - (second - symbolized), samples);
	printf("  %u nodes, %.1f bytes a sample in the spool, %.1f in the trace\n",
	       session->node_count,
	       (double)session->processes[0].sample_record_bytes / (double)samples,
	       (double)bytes / (double)samples);
	session_close(session);
}

static void remove_session(const char *directory)
{
	static const char *const names[] = {"spool/1000-0.spool", "spool", "trace.pftrace", ""};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		remove(path);
	}
}

/* A process of its own for each size, since peak memory never goes down. */
static int bench(uint64_t millions)
{
	uint64_t samples = millions * 1000000;
	char directory[64];
	int status = 1;
	pid_t child;

	snprintf(directory, sizeof(directory), "convert-%ld.tmp", (long)getpid());
	printf("%" PRIu64 " million samples\n", millions);
	fflush(stdout);
	write_session(directory, samples);
	child = fork();
	if (child == 0) {
		convert(directory, samples);
		exit(0);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	remove_session(directory);
	return status;
}

int main(int argc, char **argv)
{
	int status = 0;

	make_calls();
	for (int i = 1; i < argc; i++)
		status |= bench(strtoull(argv[i], NULL, 10));
	if (argc < 2)
		status = bench(1) | bench(10);
	return status != 0;
}
