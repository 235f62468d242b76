/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a region costs: ns a begin and end, in a process of its own for each way of recording, with
 * one thread and with eight. Beside it what the time stamps alone cost (two of them are in every
 * recorded pair) and, where they are installed, LTTng-UST and uftrace on the same loop
 * (regions_peers.py runs those).
 *
 * usage: regions [PAIRS]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "common/array.h"
#include "core/runtime.h"
#include "regions/regions.h"

#define THREADS 8

static unsigned long pairs = 5000000;

/* More threads than CPUs wait for each other: then it is CPU time that counts. */
static clockid_t measure_clock = CLOCK_MONOTONIC;

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(measure_clock, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void loop_names(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		region_begin_by_name(NULL, "iteration");
		region_end_by_name(NULL, "iteration");
	}
}

static void loop_ids(unsigned long count)
{
	region_id region = region_find_or_add_name(REGION_INSTRUMENTED, "function");

	if (!region) /* the runtime is off: what a caller would hold from before */
		region = 1;
	for (unsigned long i = 0; i < count; i++) {
		region_begin(region);
		region_end(region);
	}
}

static void loop_clock(unsigned long count)
{
	uint64_t sum = 0;

	for (unsigned long i = 0; i < count; i++) {
		sum += __rdtsc();
		sum += __rdtsc();
	}
	__asm__ volatile("" ::"r"(sum));
}

struct way {
	const char *name;
	void (*loop)(unsigned long count);
	const char *settings[4];
	bool start, stop;
};

static const struct way ways[] = {
	{"two time stamps alone", loop_clock, {NULL}, false, false},
	{"by name, kymo inactive", loop_names, {NULL}, false, false},
	{"by name, stopped", loop_names, {"KYMO_DISABLE_CATEGORIES=user"}, true, true},
	{"by name, trace", loop_names, {"KYMO_PROFILE=off"}, true, false},
	{"by id, trace", loop_ids, {"KYMO_PROFILE=off"}, true, false},
	{"by name, profile of wall_clock", loop_names, {"KYMO_TRACE=off"}, true, false},
	{"by id, profile of wall_clock", loop_ids, {"KYMO_TRACE=off"}, true, false},
	{"by id, profile of wall_clock and thread_cpu_clock",
	 loop_ids,
	 {"KYMO_TRACE=off", "KYMO_COMPONENTS=wall_clock,thread_cpu_clock"},
	 true,
	 false},
	{"by id, profile of faults and switches",
	 loop_ids,
	 {"KYMO_TRACE=off", "KYMO_COMPONENTS=wall_clock,num_minor_page_faults,"
			    "voluntary_context_switch"},
	 true,
	 false},
};

struct work {
	const struct way *way;
	unsigned long count;
	double ns;
};

static void *run_thread(void *argument)
{
	struct work *work = argument;
	double start;

	work->way->loop(work->count / 100); /* warm */
	start = now_ns();
	work->way->loop(work->count);
	work->ns = (now_ns() - start) / (double)work->count;
	return NULL;
}

static double run_threads(const struct way *way, unsigned threads)
{
	struct work works[THREADS];
	pthread_t ids[THREADS];
	double sum = 0;

	measure_clock = threads > 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
	for (unsigned i = 0; i < threads; i++) {
		works[i] = (struct work){way, pairs / threads, 0};
		pthread_create(&ids[i], NULL, run_thread, &works[i]);
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		sum += works[i].ns;
	}
	return sum / threads;
}

extern char **environ;

/* In a process of its own: settings are read once. */
static void measure(const struct way *way, const char *directory)
{
	int child = fork(), status;

	if (child) {
		waitpid(child, &status, 0);
		return;
	}
	setenv("KYMO_SPOOL_DIRECTORY", directory, 1);
	setenv("KYMO_USE_SAMPLING", "off", 1);
	for (unsigned i = 0; way->settings[i]; i++)
		putenv((char *)way->settings[i]);
	if (way->start) {
		kymo_runtime.hooks = &regions_hook_table;
		runtime_start(environ);
	}
	if (way->stop)
		regions_add_closed_reason(REGIONS_CLOSED_BY_STOP);
	printf("%-52s %8.1f", way->name, run_threads(way, 1));
	printf(" %8.1f", run_threads(way, THREADS));
	printf("   lost %lu\n",
	       kymo_runtime.spool.header
		       ? (unsigned long)kymo_runtime.spool.header->losses[SPOOL_LOSS_REGION_EVENTS]
		       : 0);
	fflush(stdout);
	_exit(0);
}

int main(int count, char **arguments)
{
	char directory[] = "/tmp/kymo-bench-XXXXXX", command[64];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (count > 1)
		pairs = strtoul(arguments[1], NULL, 10);
	if (!mkdtemp(directory))
		return 1;
	printf("ns a begin and end (8 threads: of CPU time each); %lu pairs; %ld CPUs\n", pairs,
	       cpus);
	printf("%-52s %8s %8s\n", "", "1 thread", "8");
	fflush(stdout);
	for (unsigned i = 0; i < ARRAY_SIZE(ways); i++)
		measure(&ways[i], directory);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command) != 0;
}
