/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Accuracy: three functions that share a thread's CPU time as known. The program measures the true
 * split with the thread's CPU clock and prints it as JSON, so that a test compares samples with
 * what happened and not with what was planned; and what its threads used in all.
 *
 * usage: truth MODE THREADS SECONDS [CPU-SECONDS]
 *   runs for SECONDS, and on until it has used CPU-SECONDS, which a busy machine gives it late;
 *   SECONDS may be "asked": until SIGTERM
 *   random  units of 40 us in random order; the plain case
 *   cycle   a fixed cycle of 1 ms; aliases with a fixed sampling period
 *   jiffy1  wakes 0.1 ms after each scheduler tick, works 1 ms, sleeps; tick-driven samplers
 *           never see it
 *   jiffy3  the same, 3.1 ms after the tick
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/param.h>

#include "check.h"

#define TICK_NS                                                                                    \
	4000000ull /* CONFIG_HZ=250; with another HZ the jiffy modes are merely periodic           \
		    */

enum mode { MODE_RANDOM, MODE_CYCLE, MODE_JIFFY1, MODE_JIFFY3 };

struct worker {
	pthread_t thread;
	uint64_t cpu_ns[3];
	uint64_t thread_ns; /* all that the thread used */
	uint64_t until_ns;  /* of CLOCK_MONOTONIC */
	uint64_t least_ns;  /* of CLOCK_PROCESS_CPUTIME_ID */
	unsigned seed;
	enum mode mode;
};

static void spin_until(uint64_t end)
{
	do {
		for (volatile unsigned spin = 0; spin < 1000; spin++)
			;
	} while (check_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end);
}

/* Separate, unmergeable functions: the barrier differs in each. */
__attribute__((noinline)) static void work_a(uint64_t end)
{
	spin_until(end);
	__asm__ volatile("# a" ::: "memory");
}

__attribute__((noinline)) static void work_b(uint64_t end)
{
	spin_until(end);
	__asm__ volatile("# b" ::: "memory");
}

__attribute__((noinline)) static void work_c(uint64_t end)
{
	spin_until(end);
	__asm__ volatile("# c" ::: "memory");
}

/* Runs one function for `ns` of CPU time and books what it really took. */
static void work(struct worker *worker, int which, uint64_t ns)
{
	uint64_t start = check_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	if (which == 0)
		work_a(start + ns);
	else if (which == 1)
		work_b(start + ns);
	else
		work_c(start + ns);
	worker->cpu_ns[which] += check_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

static void work_random(struct worker *worker)
{
	for (int unit = 0; unit < 25; unit++) {
		int draw = rand_r(&worker->seed) % 10;

		work(worker, draw < 5 ? 0 : draw < 8 ? 1 : 2, 40000);
	}
}

static void work_cycle(struct worker *worker)
{
	work(worker, 0, 500000);
	work(worker, 1, 300000);
	work(worker, 2, 200000);
}

static void sleep_to_tick(uint64_t offset)
{
	uint64_t now = check_clock_ns(CLOCK_MONOTONIC);
	uint64_t wake = (now / TICK_NS + 1) * TICK_NS + offset;
	struct timespec at = {(time_t)(wake / 1000000000u), (long)(wake % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static volatile sig_atomic_t asked;

static void on_asked(int signal)
{
	(void)signal;
	asked = 1;
}

static bool goes_on(const struct worker *worker)
{
	return !asked && (check_clock_ns(CLOCK_MONOTONIC) < worker->until_ns ||
			  check_clock_ns(CLOCK_PROCESS_CPUTIME_ID) < worker->least_ns);
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;

	while (goes_on(worker)) {
		if (worker->mode == MODE_RANDOM) {
			work_random(worker);
			continue;
		}
		if (worker->mode != MODE_CYCLE)
			sleep_to_tick(worker->mode == MODE_JIFFY1 ? 100000 : 3100000);
		work_cycle(worker);
	}
	worker->thread_ns = check_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static enum mode mode_from_name(const char *name)
{
	static const char *const names[] = {"random", "cycle", "jiffy1", "jiffy3"};

	for (unsigned mode = 0; mode < 4; mode++)
		if (strcmp(name, names[mode]) == 0)
			return (enum mode)mode;
	fprintf(stderr,
		"usage: truth random|cycle|jiffy1|jiffy3 THREADS SECONDS|asked [CPU-SECONDS]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	enum mode mode = mode_from_name(argc > 1 ? argv[1] : "random");
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	double seconds = argc > 3 ? atof(argv[3]) : 1.0;
	double cpu_seconds = argc > 4 ? atof(argv[4]) : 0.0;
	struct worker *workers = calloc((size_t)threads, sizeof(*workers));
	uint64_t sums[3] = {0}, threads_ns = 0, total, until;

	CHECK(threads > 0 && workers);
	until = check_clock_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
	if (argc > 3 && strcmp(argv[3], "asked") == 0) {
		struct sigaction action = {.sa_handler = on_asked, .sa_flags = SA_RESTART};

		CHECK(sigaction(SIGTERM, &action, NULL) == 0);
		until = UINT64_MAX;
	}
	for (int i = 0; i < threads; i++) {
		workers[i].mode = mode;
		workers[i].until_ns = until;
		workers[i].least_ns = (uint64_t)(cpu_seconds * 1e9);
		workers[i].seed = (unsigned)i * 7919u + 1;
		if (i > 0)
			CHECK(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) ==
			      0);
	}
	worker_main(&workers[0]);
	for (int i = 0; i < threads; i++) {
		if (i > 0)
			CHECK(pthread_join(workers[i].thread, NULL) == 0);
		threads_ns += workers[i].thread_ns;
		for (int which = 0; which < 3; which++)
			sums[which] += workers[i].cpu_ns[which];
	}
	total = sums[0] + sums[1] + sums[2];
	CHECK(total > 0);
	printf("{\"work_a\":%.5f,\"work_b\":%.5f,\"work_c\":%.5f,\"cpu_ns\":%llu,"
	       "\"threads_ns\":%llu}\n",
	       (double)sums[0] / (double)total, (double)sums[1] / (double)total,
	       (double)sums[2] / (double)total, (unsigned long long)total,
	       (unsigned long long)threads_ns);
	free(workers);
	return 0;
}
