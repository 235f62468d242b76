/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CUDA programs to be traced, by the driver's functions alone, found at run time: builds without
 * CUDA, and the driver compiles the kernels (PTX below). Each mode prints one line;
 * bench/sdk_device runs them.
 *
 *   launch N [ROUNDS]     N empty kernels back to back
 *   threads T N           T threads with a stream each, N empty kernels a thread
 *   graph NODES N         N launches of a graph of NODES empty kernels
 *   copies N BYTES        N times to the device, within it and back, with a kernel between, on two
 * streams end HOW               1000 empty kernels, then after 300 ms: return, exit, _exit, abort,
 * kill spin N US             N kernels of US microseconds
 *   turns LIBRARY LAPS    empty kernels in rounds with and without recording, by roctx of kymo's,
 *                         or by what is asked of CUPTI (cupti_floor.c)
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const kernels =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry nothing()\n{\n\tret;\n}\n"
	".visible .entry spin(.param .u64 ns)\n{\n"
	"\t.reg .pred %p<2>;\n\t.reg .b64 %r<5>;\n"
	"\tld.param.u64 %r1, [ns];\n\tmov.u64 %r2, %globaltimer;\n"
	"again:\n\tmov.u64 %r3, %globaltimer;\n\tsub.u64 %r4, %r3, %r2;\n"
	"\tsetp.lt.u64 %p1, %r4, %r1;\n\t@%p1 bra again;\n\tret;\n}\n";

#define DRIVER(X)                                                                                  \
	X(cuInit, (unsigned flags))                                                                \
	X(cuDeviceGet, (int *device, int ordinal))                                                 \
	X(cuDevicePrimaryCtxRetain, (void **context, int device))                                  \
	X(cuCtxSetCurrent, (void *context))                                                        \
	X(cuCtxSynchronize, (void))                                                                \
	X(cuModuleLoadData, (void **module, const void *image))                                    \
	X(cuModuleGetFunction, (void **function, void *module, const char *name))                  \
	X(cuMemAlloc_v2, (uint64_t * address, size_t bytes))                                       \
	X(cuMemFree_v2, (uint64_t address))                                                        \
	X(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                           \
	X(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream))       \
	X(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream))          \
	X(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream))             \
	X(cuStreamCreate, (void **stream, unsigned flags))                                         \
	X(cuStreamSynchronize, (void *stream))                                                     \
	X(cuStreamBeginCapture_v2, (void *stream, int mode))                                       \
	X(cuStreamEndCapture, (void *stream, void **graph))                                        \
	X(cuGraphInstantiateWithFlags, (void **executable, void *graph, unsigned long long flags)) \
	X(cuGraphLaunch, (void *executable, void *stream))                                         \
	X(cuLaunchKernel, (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,      \
			   unsigned block_x, unsigned block_y, unsigned block_z,                   \
			   unsigned shared_bytes, void *stream, void **parameters, void **extra))

#define X(name, parameters) static int(*name) parameters;
DRIVER(X)
#undef X

static void *context, *nothing, *spin;

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void check(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "sdk_cuda: %s: error %d\n", what, result);
	exit(3);
}
#define CHECK(call) check(call, #call)

static void start_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *module;
	int device;

	if (library == NULL) {
		fprintf(stderr, "sdk_cuda: %s\n", dlerror());
		exit(2);
	}
#define X(name, parameters)                                                                        \
	*(void **)&name = dlsym(library, #name);                                                   \
	if (name == NULL)                                                                          \
		check(1, "no " #name);
	DRIVER(X)
#undef X
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, kernels));
	CHECK(cuModuleGetFunction(&nothing, module, "nothing"));
	CHECK(cuModuleGetFunction(&spin, module, "spin"));
}

static void launch(void *stream)
{
	CHECK(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

static int run_launches(int count, char **values)
{
	int launches = count > 0 ? atoi(values[0]) : 100000;
	int rounds = count > 1 ? atoi(values[1]) : 1;
	double best = 1e30;

	for (int i = 0; i < 2000; i++)
		launch(NULL);
	CHECK(cuCtxSynchronize());
	for (int round = 0; round < rounds; round++) {
		double start = now_us(), us;

		for (int i = 0; i < launches; i++)
			launch(NULL);
		CHECK(cuCtxSynchronize());
		us = (now_us() - start) / launches;
		best = us < best ? us : best;
	}
	printf("launch: %.3f us a kernel, kernels %ld\n", best, 2000 + (long)launches * rounds);
	return 0;
}

static int thread_launches;

static void *launch_thread(void *unused)
{
	void *stream;

	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&stream, 1));
	for (int i = 0; i < thread_launches; i++)
		launch(stream);
	CHECK(cuStreamSynchronize(stream));
	return unused;
}

static int run_threads(int count, char **values)
{
	int threads = count > 0 ? atoi(values[0]) : 8;
	pthread_t ids[64];
	double start = now_us();

	thread_launches = count > 1 ? atoi(values[1]) : 50000;
	if (threads > 64)
		threads = 64;
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, launch_thread, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("threads: %.3f us a kernel, kernels %ld\n",
	       (now_us() - start) / (threads * (double)thread_launches),
	       (long)threads * thread_launches);
	return 0;
}

static int run_graph(int count, char **values)
{
	int nodes = count > 0 ? atoi(values[0]) : 100,
	    launches = count > 1 ? atoi(values[1]) : 5000;
	void *stream, *graph, *executable;
	double start;

	CHECK(cuStreamCreate(&stream, 1));
	CHECK(cuStreamBeginCapture_v2(stream, 1));
	for (int i = 0; i < nodes; i++)
		launch(stream);
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	for (int i = 0; i < 20; i++)
		CHECK(cuGraphLaunch(executable, stream));
	CHECK(cuStreamSynchronize(stream));
	start = now_us();
	for (int i = 0; i < launches; i++)
		CHECK(cuGraphLaunch(executable, stream));
	CHECK(cuStreamSynchronize(stream));
	printf("graph: %.3f us a launch of %d nodes, launches %d\n", (now_us() - start) / launches,
	       nodes, launches + 20);
	return 0;
}

static int run_copies(int count, char **values)
{
	int rounds = count > 0 ? atoi(values[0]) : 100;
	size_t bytes = count > 1 ? (size_t)atol(values[1]) : 4u << 20;
	void *host, *streams[2];
	uint64_t from, to;

	CHECK(cuMemHostAlloc(&host, bytes, 0));
	memset(host, 7, bytes);
	CHECK(cuMemAlloc_v2(&from, bytes));
	CHECK(cuMemAlloc_v2(&to, bytes));
	CHECK(cuStreamCreate(&streams[0], 1));
	CHECK(cuStreamCreate(&streams[1], 1));
	for (int i = 0; i < rounds; i++) {
		void *stream = streams[i % 2];

		CHECK(cuMemcpyHtoDAsync_v2(from, host, bytes, stream));
		launch(stream);
		CHECK(cuMemcpyDtoDAsync_v2(to, from, bytes, stream));
		CHECK(cuMemcpyDtoHAsync_v2(host, to, bytes, stream));
		CHECK(cuStreamSynchronize(stream));
	}
	CHECK(cuMemFree_v2(from));
	CHECK(cuMemFree_v2(to));
	printf("copies: kernels %d copies %d bytes %zu\n", rounds, rounds * 3,
	       bytes * (size_t)rounds * 3);
	return 0;
}

static int run_spin(int count, char **values)
{
	int launches = count > 0 ? atoi(values[0]) : 100;
	uint64_t ns = (count > 1 ? (uint64_t)atol(values[1]) : 1000) * 1000;
	void *parameters[] = {&ns};

	for (int i = 0; i < launches; i++)
		CHECK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	CHECK(cuCtxSynchronize());
	printf("spin: kernels %d\n", launches);
	return 0;
}

static int run_end(int count, char **values)
{
	const char *how = count > 0 ? values[0] : "return";

	for (int i = 0; i < 1000; i++)
		launch(NULL);
	CHECK(cuCtxSynchronize());
	usleep(300000);
	printf("end: %s, kernels 1000\n", how);
	fflush(stdout);
	if (strcmp(how, "exit") == 0)
		exit(0);
	if (strcmp(how, "_exit") == 0)
		_exit(0);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	return 0;
}

/* ---- turns ---- */

#define ROUND_LAUNCHES 10000
#define LAPS_MAX       64

static int (*roctx_pause)(uint64_t), (*roctx_resume)(uint64_t);
static void (*floor_turn)(int kinds, int flush_ms, size_t bytes, int clear, int callbacks);

static const struct turn {
	const char *name;
	int kinds, flush_ms;
	size_t bytes;
	int clear, callbacks;
} floor_turns[] = {
	{"kernels, never flushed", 1, 0, 1 << 20, 1, 0},
	{"kernels, never flushed, 4 MiB, CUPTI clears", 1, 0, 4 << 20, 0, 0},
	{"kernels and graphs", 3, 0, 1 << 20, 1, 0},
	{"kernels and copies", 5, 0, 1 << 20, 1, 0},
	{"all, flushed every 100 ms", 7, 100, 1 << 20, 1, 0},
	{"all, flushed every 100 ms, callbacks", 7, 100, 1 << 20, 1, 1},
};

static double round_of_launches(void)
{
	double start;

	for (int i = 0; i < 1000; i++)
		launch(NULL);
	CHECK(cuCtxSynchronize());
	start = now_us();
	for (int i = 0; i < ROUND_LAUNCHES; i++)
		launch(NULL);
	CHECK(cuCtxSynchronize());
	return (now_us() - start) / ROUND_LAUNCHES;
}

static int compare_numbers(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

static void take_turn(const struct turn *turn, bool recorded)
{
	if (floor_turn != NULL)
		floor_turn(recorded ? turn->kinds : 0, recorded ? turn->flush_ms : 0, turn->bytes,
			   turn->clear, recorded && turn->callbacks);
	else if (recorded)
		roctx_resume(0);
	else
		roctx_pause(0);
}

/* Medians, and the ratio of the lower quarters, which others on the machine disturb less. */
static void take_turns(const struct turn *turn, int laps)
{
	double without[LAPS_MAX], with[LAPS_MAX], ratios[LAPS_MAX];

	for (int i = 0; i < laps; i++) {
		take_turn(turn, false);
		without[i] = round_of_launches();
		take_turn(turn, true);
		with[i] = round_of_launches();
		ratios[i] = with[i] / without[i];
	}
	take_turn(turn, false);
	qsort(without, (size_t)laps, sizeof(double), compare_numbers);
	qsort(with, (size_t)laps, sizeof(double), compare_numbers);
	qsort(ratios, (size_t)laps, sizeof(double), compare_numbers);
	printf("turns: %-44s %.3f -> %.3f us, of neighbours %.3f (%.3f to %.3f), of lower quarters "
	       "%.3f\n",
	       turn->name, without[laps / 2], with[laps / 2], ratios[laps / 2], ratios[laps / 4],
	       ratios[laps * 3 / 4], with[laps / 4] / without[laps / 4]);
	fflush(stdout);
}

static void *function_of(void *library, const char *name)
{
	return library != NULL ? dlsym(library, name) : NULL;
}

static int run_turns(int count, char **values)
{
	static const struct turn kymo = {"kymo", 0, 0, 0, 0, 0};
	void *library = count > 0 ? dlopen(values[0], RTLD_NOW) : NULL;
	int laps = count > 1 ? atoi(values[1]) : 20;

	laps = laps < 1 ? 1 : laps > LAPS_MAX ? LAPS_MAX : laps;
	*(void **)&floor_turn = function_of(library, "floor_turn");
	*(void **)&roctx_pause = function_of(library, "roctxProfilerPause");
	*(void **)&roctx_resume = function_of(library, "roctxProfilerResume");
	if (floor_turn == NULL && (roctx_pause == NULL || roctx_resume == NULL)) {
		fprintf(stderr, "sdk_cuda: turns needs roctx or cupti_floor\n");
		return 2;
	}
	if (floor_turn == NULL) {
		take_turns(&kymo, laps);
		return 0;
	}
	for (size_t i = 0; i < sizeof(floor_turns) / sizeof(*floor_turns); i++)
		take_turns(&floor_turns[i], laps);
	return 0;
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		int (*run)(int count, char **values);
	} modes[] = {{"launch", run_launches}, {"threads", run_threads}, {"graph", run_graph},
		     {"copies", run_copies},   {"spin", run_spin},       {"end", run_end},
		     {"turns", run_turns}};

	for (size_t i = 0; count > 1 && i < sizeof(modes) / sizeof(*modes); i++) {
		if (strcmp(arguments[1], modes[i].name) != 0)
			continue;
		start_driver();
		return modes[i].run(count - 2, arguments + 2);
	}
	fprintf(stderr, "usage: sdk_cuda launch|threads|graph|copies|spin|end|turns ...\n");
	return 2;
}
