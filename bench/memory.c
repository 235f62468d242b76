/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What TRACE_MEMORY costs: ns of CPU time of a malloc and free, bare and under kymo, at several
 * depths of the stack that tells one site from another.
 *
 * usage: memory KYMO
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS = 1000000, LIVE = 1000, BATCHES = 5 };

static void *volatile sink;

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* A thousand other blocks live; each round frees the oldest. */
static double pairs(void)
{
	static void *blocks[LIVE];
	double begin = now_ns();

	for (int i = 0; i < PAIRS; i++) {
		void **block = &blocks[i % LIVE];

		free(*block);
		*block = malloc(16 + (size_t)i % 200);
		sink = *block;
	}
	return (now_ns() - begin) / PAIRS;
}

/* So that the stack has as many frames as the walk may take. */
__attribute__((noinline)) static double below(int frames)
{
	double best = frames ? below(frames - 1) : pairs();

	__asm__ volatile("" : "+x"(best));
	return best;
}

static int measure(const char *what)
{
	double best = 1e9;

	for (int i = 0; i < BATCHES; i++) {
		double ns = below(60);

		best = ns < best ? ns : best;
	}
	printf("%-32s %6.1f ns a malloc and free\n", what, best);
	return 0;
}

static void under(const char *kymo, char *self, const char *depth)
{
	char option[64], what[64], directory[] = "/tmp/kymo-bench-memory-XXXXXX";
	int status;
	pid_t child;

	snprintf(option, sizeof(option), "--memory-site-depth=%s", depth);
	snprintf(what, sizeof(what), "sites of %s frames", depth);
	if (!mkdtemp(directory))
		exit(1);
	fflush(stdout);
	child = fork();
	if (!child) {
		execl(kymo, kymo, "sample", "-q", "-o", directory, "--time-output=off",
		      "--trace-memory=on", option, "--", self, "--measure", what, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || status)
		fprintf(stderr, "kymo failed\n");
	snprintf(option, sizeof(option), "rm -rf %s", directory);
	if (system(option))
		fprintf(stderr, "%s is left\n", directory);
}

int main(int count, char **arguments)
{
	if (count == 3 && !strcmp(arguments[1], "--measure"))
		return measure(arguments[2]);
	if (count != 2) {
		fprintf(stderr, "usage: memory KYMO\n");
		return 2;
	}
	measure("bare");
	under(arguments[1], arguments[0], "1");
	under(arguments[1], arguments[0], "8");
	under(arguments[1], arguments[0], "32");
	return 0;
}
