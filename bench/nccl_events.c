/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the NCCL profiler plugin costs NCCL: nanoseconds a pair of start and stop, through the
 * exported table of API version 5, of collectives and of kernel channels (start, state with the
 * GPU's time, stop), from one thread and from eight, each with a communicator of its own.
 *
 *   bench/nccl_events PLUGIN.so [PAIRS]
 *
 * Pairs are timed one by one by the TSC for the percentiles: from NCCL's first call to the return
 * of the last (the cost of two readings is measured and taken off), and all together, with what
 * fills in the descriptors and reads the TSC, for the mean. Between groups of pairs there is a
 * pause; with eight threads this is some 500,000 operations a second, several times what NCCL can
 * do. Collectives are measured without, channels with kernel channels in the mask: each in a
 * process of its own.
 *
 * Instructions of a pair: valgrind --tool=callgrind --callgrind-out-file=out.%p
 * --trace-children=yes bench/nccl_events PLUGIN.so 5000; callgrind_annotate --tree=calling out.PID
 *
 * Beside it: NVIDIA's Inspector plugin took 430-780 ns a pair for collectives and 510-610 ns for
 * kernel channels, through the same calls, on an EPYC of the same class.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "nccl/versions/objects.h"

#define THREADS_MAX 8
#define GROUP       96
#define CHANNELS    24 /* an operation of eight GPUs has as many */

static struct nccl_profiler_v5 *profiler;
static size_t pairs = 50000;
static double ticks_a_ns;
static pthread_barrier_t barrier;

enum what { COLLECTIVE, CHANNEL };

struct work {
	enum what what;
	void *context;
	uint32_t *ticks;
	double mean;
	size_t lost;
};

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static float buffer[1];

static void describe_collective(struct nccl_event_v5 *event, uint64_t number)
{
	*event = (struct nccl_event_v5){.type = 2};
	event->collective.sequence = number;
	event->collective.function = "AllReduce";
	event->collective.send_buffer = buffer;
	event->collective.receive_buffer = buffer;
	event->collective.count = 1024;
	event->collective.data_type = "ncclFloat32";
	event->collective.channels = CHANNELS;
	event->collective.algorithm = "RING";
	event->collective.protocol = "LL";
}

/* Returns the ticks of the pair; *ret is its handle. */
static uint32_t collective(struct work *work, uint64_t number, void **ret)
{
	struct nccl_event_v5 event;
	unsigned unused;
	uint64_t before;

	describe_collective(&event, number);
	before = __rdtscp(&unused);
	profiler->start(work->context, ret, &event);
	profiler->stop(*ret);
	return (uint32_t)(__rdtscp(&unused) - before);
}

static uint32_t channel(struct work *work, void *parent, uint64_t number, void **ret)
{
	struct nccl_event_v5 event = {.type = 0x40, .parent = parent};
	union nccl_state_v4 state = {.gpu_time = 1700000000000000000u + number * 100 + 50};
	unsigned unused;
	uint64_t before;

	event.kernel_channel.channel = (uint8_t)(number % CHANNELS);
	event.kernel_channel.gpu_time = 1700000000000000000u + number * 100;
	before = __rdtscp(&unused);
	profiler->start(work->context, ret, &event);
	profiler->state(*ret, NCCL_STATE_KERNEL_CHANNEL_STOP, &state);
	profiler->stop(*ret);
	return (uint32_t)(__rdtscp(&unused) - before);
}

static void *run(void *argument)
{
	struct work *work = argument;
	void *parent = NULL, *handle;
	double spent = 0;

	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < pairs; i += GROUP) {
		double start = now_ns();

		for (size_t j = i; j < i + GROUP; j++) {
			if (work->what == CHANNEL && j % CHANNELS == 0)
				collective(work, i, &parent);
			work->ticks[j] = work->what == COLLECTIVE
						 ? collective(work, j, &handle)
						 : channel(work, parent, j, &handle);
			work->lost += !handle;
		}
		spent += now_ns() - start;
		usleep(1000);
	}
	work->mean = spent / (double)pairs;
	return NULL;
}

static int by_size(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

static double empty_ticks(void)
{
	uint32_t best = UINT32_MAX;
	unsigned unused;

	for (int i = 0; i < 10000; i++) {
		uint64_t before = __rdtscp(&unused);
		uint32_t ticks = (uint32_t)(__rdtscp(&unused) - before);

		best = ticks < best ? ticks : best;
	}
	return best;
}

static void measure(enum what what, unsigned threads)
{
	struct work works[THREADS_MAX] = {0};
	pthread_t ids[THREADS_MAX];
	uint32_t *all = malloc(threads * (pairs + GROUP) * sizeof(*all));
	double empty = empty_ticks(), mean = 0;
	size_t count = 0, lost = 0;
	int mask = 0;

	pthread_barrier_init(&barrier, NULL, threads);
	for (unsigned i = 0; all && i < threads; i++) {
		works[i].what = what;
		works[i].ticks = all + i * pairs;
		profiler->init(&works[i].context, 0x1234, &mask, "bench", 1, 8, (int)i, NULL);
		pthread_create(&ids[i], NULL, run, &works[i]);
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		profiler->finalize(works[i].context);
		mean += works[i].mean / threads;
		lost += works[i].lost;
		count += pairs;
	}
	qsort(all, count, sizeof(*all), by_size);
	printf("%-15s %u thread%s  median %6.0f ns  p99 %7.0f ns  p99.9 %7.0f ns  mean with timing "
	       "%6.0f ns  not recorded %zu of %zu\n",
	       what == COLLECTIVE ? "collective" : "kernel channel", threads,
	       threads > 1 ? "s" : " ", ((double)all[count / 2] - empty) / ticks_a_ns,
	       ((double)all[count / 100 * 99] - empty) / ticks_a_ns,
	       ((double)all[count / 1000 * 999] - empty) / ticks_a_ns, mean, lost, count);
	free(all);
}

static void print_memory(void)
{
	char line[256];
	FILE *in = fopen("/proc/self/status", "r");

	while (in && fgets(line, sizeof(line), in)) {
		if (!strncmp(line, "VmRSS", 5) || !strncmp(line, "RssAnon", 7) ||
		    !strncmp(line, "RssShmem", 8) || !strncmp(line, "RssFile", 7))
			printf("%s", line);
	}
	if (in)
		fclose(in);
}

static int run_all(const char *path, enum what what)
{
	void *library;

	setenv("KYMO_NCCL_EVENTS", what == COLLECTIVE ? "coll" : "coll,kernel-channel", 1);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	profiler = library ? dlsym(library, "ncclProfiler_v5") : NULL;
	if (!profiler) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	measure(what, 1);
	measure(what, THREADS_MAX);
	print_memory();
	return 0;
}

int main(int argc, char **argv)
{
	double start = now_ns();
	uint64_t ticks = __rdtsc();

	if (argc < 2) {
		fputs("usage: nccl_events PLUGIN.so [PAIRS]\n", stderr);
		return 1;
	}
	if (argc > 2)
		pairs = strtoul(argv[2], NULL, 10) / GROUP * GROUP + GROUP;
	usleep(50000);
	ticks_a_ns = (double)(__rdtsc() - ticks) / (now_ns() - start);
	for (unsigned what = COLLECTIVE; what <= CHANNEL; what++) {
		pid_t child;
		int status;

		fflush(stdout);
		child = fork();
		if (!child)
			exit(run_all(argv[1], what));
		if (waitpid(child, &status, 0) != child || status)
			return 1;
	}
	puts("for comparison: NVIDIA Inspector 430-780 ns a collective, 510-610 ns a kernel "
	     "channel, one thread");
	return 0;
}
