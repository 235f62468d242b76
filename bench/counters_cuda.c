/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CUDA kernels whose counts are known, for bench/counters_device. By the driver's functions alone,
 * found at run time, as in sdk_cuda.c; the driver compiles the kernels.
 *
 *   add N ROUNDS        c = a + b, N floats: reads 8 N bytes, writes 4 N
 *   matrix N ROUNDS     N x N matrix product, one thread an element: N^3 FFMA
 *   loop IT ROUNDS      132 blocks of 256 threads, IT times the same instructions in a loop
 *   clock CYCLES ROUNDS 132 blocks that wait for so many cycles
 *   again BYTES TIMES   reads so many bytes so many times: TIMES - 1 of TIMES hit the cache
 *   launch N            N empty kernels
 *   codep MS            a kernel that waits for one on another stream, for MS milliseconds at most
 *   graph N             N launches of a graph of 10 kernels
 *   busy MS             kernels one after the other for so long
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const kernels =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry nothing()\n{\n\tret;\n}\n"
	/* i = block * size + thread; if (i < n) c[i] = a[i] + b[i] */
	".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 n)\n{\n"
	"\t.reg .pred %p<2>;\n\t.reg .f32 %f<4>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %d<12>;\n"
	"\tld.param.u64 %d1, [a];\n\tld.param.u64 %d2, [b];\n\tld.param.u64 %d3, [c];\n"
	"\tld.param.u64 %d4, [n];\n\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %ntid.x;\n"
	"\tmov.u32 %r3, %tid.x;\n\tmul.wide.u32 %d5, %r1, %r2;\n\tcvt.u64.u32 %d6, %r3;\n"
	"\tadd.u64 %d5, %d5, %d6;\n\tsetp.ge.u64 %p1, %d5, %d4;\n\t@%p1 bra end;\n"
	"\tshl.b64 %d5, %d5, 2;\n\tadd.u64 %d7, %d1, %d5;\n\tadd.u64 %d8, %d2, %d5;\n"
	"\tadd.u64 %d9, %d3, %d5;\n\tld.global.f32 %f1, [%d7];\n\tld.global.f32 %f2, [%d8];\n"
	"\tadd.f32 %f3, %f1, %f2;\n\tst.global.f32 [%d9], %f3;\nend:\n\tret;\n}\n"
	/* c[row][column] = sum of a[row][k] * b[k][column] */
	".visible .entry matrix(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n"
	"\t.reg .pred %p<2>;\n\t.reg .f32 %f<4>;\n\t.reg .b32 %r<12>;\n\t.reg .b64 %d<12>;\n"
	"\tld.param.u64 %d1, [a];\n\tld.param.u64 %d2, [b];\n\tld.param.u64 %d3, [c];\n"
	"\tld.param.u32 %r1, [n];\n\tmov.u32 %r2, %ctaid.x;\n\tmov.u32 %r3, %ntid.x;\n"
	"\tmov.u32 %r4, %tid.x;\n\tmad.lo.u32 %r5, %r2, %r3, %r4;\n\tdiv.u32 %r6, %r5, %r1;\n"
	"\trem.u32 %r7, %r5, %r1;\n\tmul.lo.u32 %r8, %r6, %r1;\n\tmul.wide.u32 %d4, %r8, 4;\n"
	"\tadd.u64 %d4, %d1, %d4;\n\tmul.wide.u32 %d5, %r7, 4;\n\tadd.u64 %d5, %d2, %d5;\n"
	"\tmul.wide.u32 %d6, %r1, 4;\n\tmov.f32 %f1, 0f00000000;\n\tmov.u32 %r9, 0;\n"
	"again:\n\tld.global.f32 %f2, [%d4];\n\tld.global.f32 %f3, [%d5];\n"
	"\tfma.rn.f32 %f1, %f2, %f3, %f1;\n\tadd.u64 %d4, %d4, 4;\n\tadd.u64 %d5, %d5, %d6;\n"
	"\tadd.u32 %r9, %r9, 1;\n\tsetp.lt.u32 %p1, %r9, %r1;\n\t@%p1 bra again;\n"
	"\tmul.wide.u32 %d7, %r5, 4;\n\tadd.u64 %d7, %d3, %d7;\n\tst.global.f32 [%d7], %f1;\n"
	"\tret;\n}\n"
	".visible .entry loop(.param .u64 out, .param .u32 n)\n{\n"
	"\t.reg .pred %p<2>;\n\t.reg .f32 %f<3>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %d<2>;\n"
	"\tld.param.u64 %d1, [out];\n\tld.param.u32 %r1, [n];\n\tmov.u32 %r2, 0;\n"
	"\tmov.u32 %r3, %tid.x;\n\tcvt.rn.f32.u32 %f1, %r3;\n"
	"again:\n\tfma.rn.f32 %f1, %f1, 0f3F7FBE77, 0f3F000000;\n\tadd.u32 %r2, %r2, 1;\n"
	"\tsetp.lt.u32 %p1, %r2, %r1;\n\t@%p1 bra again;\n\tst.global.f32 [%d1], %f1;\n\tret;\n}\n"
	".visible .entry wait_cycles(.param .u64 n)\n{\n"
	"\t.reg .pred %p<2>;\n\t.reg .b64 %d<5>;\n\tld.param.u64 %d1, [n];\n"
	"\tmov.u64 %d2, %clock64;\nagain:\n\tmov.u64 %d3, %clock64;\n\tsub.u64 %d4, %d3, %d2;\n"
	"\tsetp.lt.u64 %p1, %d4, %d1;\n\t@%p1 bra again;\n\tret;\n}\n"
	/* each thread reads its floats of the whole, over and over, past the first cache */
	".visible .entry again_and_again(.param .u64 a, .param .u64 n, .param .u32 times)\n{\n"
	"\t.reg .pred %p<3>;\n\t.reg .f32 %f<4>;\n\t.reg .b32 %r<8>;\n\t.reg .b64 %d<12>;\n"
	"\tld.param.u64 %d1, [a];\n\tld.param.u64 %d2, [n];\n\tld.param.u32 %r1, [times];\n"
	"\tmov.u32 %r2, %ctaid.x;\n\tmov.u32 %r3, %ntid.x;\n\tmov.u32 %r4, %tid.x;\n"
	"\tmov.u32 %r5, %nctaid.x;\n\tmul.wide.u32 %d3, %r2, %r3;\n\tcvt.u64.u32 %d4, %r4;\n"
	"\tadd.u64 %d3, %d3, %d4;\n\tmul.wide.u32 %d5, %r5, %r3;\n\tmov.f32 %f1, 0f00000000;\n"
	"\tmov.u32 %r6, 0;\nouter:\n\tmov.u64 %d6, %d3;\n"
	"inner:\n\tshl.b64 %d7, %d6, 2;\n\tadd.u64 %d7, %d1, %d7;\n"
	"\tld.global.cg.f32 %f2, [%d7];\n\tadd.f32 %f1, %f1, %f2;\n\tadd.u64 %d6, %d6, %d5;\n"
	"\tsetp.lt.u64 %p1, %d6, %d2;\n\t@%p1 bra inner;\n\tadd.u32 %r6, %r6, 1;\n"
	"\tsetp.lt.u32 %p2, %r6, %r1;\n\t@%p2 bra outer;\n\tsetp.neu.f32 %p1, %f1, 0f4D000000;\n"
	"\t@%p1 bra end;\n\tst.global.f32 [%d1], %f1;\nend:\n\tret;\n}\n"
	".visible .entry waits(.param .u64 flag, .param .u64 seen, .param .u64 ns)\n{\n"
	"\t.reg .pred %p<3>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %d<8>;\n"
	"\tld.param.u64 %d1, [flag];\n\tld.param.u64 %d2, [seen];\n\tld.param.u64 %d3, [ns];\n"
	"\tmov.u64 %d4, %globaltimer;\nagain:\n\tld.volatile.global.u32 %r1, [%d1];\n"
	"\tsetp.ne.u32 %p1, %r1, 0;\n\t@%p1 bra done;\n\tmov.u64 %d5, %globaltimer;\n"
	"\tsub.u64 %d6, %d5, %d4;\n\tsetp.lt.u64 %p2, %d6, %d3;\n\t@%p2 bra again;\n"
	"done:\n\tst.global.u32 [%d2], %r1;\n\tret;\n}\n"
	".visible .entry signals(.param .u64 flag)\n{\n\t.reg .b32 %r<2>;\n\t.reg .b64 %d<2>;\n"
	"\tld.param.u64 %d1, [flag];\n\tmov.u32 %r1, 1;\n\tst.volatile.global.u32 [%d1], %r1;\n"
	"\tret;\n}\n";

#define DRIVER(X)                                                                                  \
	X(cuInit, (unsigned flags))                                                                \
	X(cuDeviceGet, (int *device, int ordinal))                                                 \
	X(cuDevicePrimaryCtxRetain, (void **context, int device))                                  \
	X(cuCtxSetCurrent, (void *context))                                                        \
	X(cuCtxSynchronize, (void))                                                                \
	X(cuModuleLoadData, (void **module, const void *image))                                    \
	X(cuModuleGetFunction, (void **function, void *module, const char *name))                  \
	X(cuMemAlloc_v2, (uint64_t * address, size_t bytes))                                       \
	X(cuMemsetD32_v2, (uint64_t address, unsigned value, size_t count))                        \
	X(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))                                \
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

#define ONE_WAVE 132 /* blocks: one on each multiprocessor of an H100 or H200 */

static void *context, *module;
/* Where a program spends its time before its first kernel has been launched. */
static double memory_us, first_launch_us, driver_us;

static void check(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "counters_cuda: %s: error %d\n", what, result);
	exit(3);
}
#define CHECK(call) check(call, #call)

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void start_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int device;

	if (library == NULL) {
		fprintf(stderr, "counters_cuda: %s\n", dlerror());
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
}

static void *function(const char *name)
{
	void *found = NULL;

	CHECK(cuModuleGetFunction(&found, module, name));
	return found;
}

static void run(void *kernel, unsigned blocks, unsigned threads, void *stream, void **parameters)
{
	double start = first_launch_us == 0 ? now_us() : 0;

	CHECK(cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL));
	if (first_launch_us == 0)
		first_launch_us = now_us() - start;
}

static uint64_t memory(size_t floats)
{
	double start = now_us();
	uint64_t address = 0;

	CHECK(cuMemAlloc_v2(&address, floats * 4));
	CHECK(cuMemsetD32_v2(address, 0x3f800000, floats));
	memory_us += now_us() - start;
	return address;
}

static void run_add(uint64_t n, unsigned rounds)
{
	uint64_t a = memory(n), b = memory(n), c = memory(n);
	void *parameters[] = {&a, &b, &c, &n}, *add = function("add");

	for (unsigned i = 0; i < rounds; i++)
		run(add, (unsigned)((n + 255) / 256), 256, NULL, parameters);
	CHECK(cuCtxSynchronize());
	printf("add: warps %llu, bytes read %llu, written %llu\n", (unsigned long long)(n / 32),
	       (unsigned long long)n * 8, (unsigned long long)n * 4);
}

static void run_matrix(uint64_t n, unsigned rounds)
{
	uint64_t a = memory(n * n), b = memory(n * n), c = memory(n * n);
	uint32_t size = (uint32_t)n;
	void *parameters[] = {&a, &b, &c, &size}, *matrix = function("matrix");

	for (unsigned i = 0; i < rounds; i++)
		run(matrix, (unsigned)(n * n / 256), 256, NULL, parameters);
	CHECK(cuCtxSynchronize());
	printf("matrix: warps %llu, ffma of threads %llu\n", (unsigned long long)(n * n / 32),
	       (unsigned long long)(n * n * n));
}

static void run_loop(uint64_t n, unsigned rounds)
{
	uint64_t out = memory(64);
	uint32_t times = (uint32_t)n;
	void *parameters[] = {&out, &times}, *loop = function("loop");

	for (unsigned i = 0; i < rounds; i++)
		run(loop, ONE_WAVE, 256, NULL, parameters);
	CHECK(cuCtxSynchronize());
	printf("loop: warps %u, ffma of threads %llu\n", ONE_WAVE * 256 / 32,
	       (unsigned long long)(ONE_WAVE * 256 * n));
}

static void run_clock(uint64_t cycles, unsigned rounds)
{
	void *parameters[] = {&cycles}, *wait = function("wait_cycles");

	for (unsigned i = 0; i < rounds; i++)
		run(wait, ONE_WAVE, 32, NULL, parameters);
	CHECK(cuCtxSynchronize());
	printf("clock: cycles %llu at least\n", (unsigned long long)cycles);
}

static void run_again(uint64_t bytes, unsigned times)
{
	uint64_t n = bytes / 4, a = memory(n), other = memory((size_t)256 << 20);
	void *parameters[] = {&a, &n, &times}, *again = function("again_and_again");

	CHECK(cuMemsetD32_v2(other, 0, (size_t)256 << 20)); /* the cache has none of it */
	CHECK(cuCtxSynchronize());
	for (unsigned i = 0; i < 2; i++) { /* the second time what fits is there */
		run(again, ONE_WAVE * 4, 512, NULL, parameters);
		CHECK(cuCtxSynchronize());
	}
	printf("again: %llu bytes %u times, at first %.4f %% of the sectors at most are hits\n",
	       (unsigned long long)bytes, times, 100.0 * (times - 1) / times);
}

static void run_launch(uint64_t n, unsigned rounds)
{
	void *nothing = function("nothing");
	double start;

	(void)rounds;
	run(nothing, 1, 32, NULL, NULL);
	CHECK(cuCtxSynchronize());
	start = now_us();
	for (uint64_t i = 0; i < n; i++)
		run(nothing, 1, 32, NULL, NULL);
	CHECK(cuCtxSynchronize());
	printf("launch: %.3f us a kernel\n", (now_us() - start) / (double)n);
}

static void run_codep(uint64_t ms, unsigned rounds)
{
	uint64_t flag = memory(16), seen = memory(16), ns = ms * 1000000, short_ns = 1;
	void *of_waits[] = {&flag, &seen, &short_ns}, *of_signals[] = {&flag};
	void *waits = function("waits"), *signals = function("signals"), *streams[2];
	uint32_t saw = 0;

	CHECK(cuStreamCreate(&streams[0], 1));
	CHECK(cuStreamCreate(&streams[1], 1));
	for (unsigned i = 0; i < (rounds ? rounds : 1); i++) {
		double start;

		CHECK(cuMemsetD32_v2(flag, 0, 1));
		CHECK(cuMemsetD32_v2(seen, 0, 1));
		CHECK(cuCtxSynchronize());
		of_waits[2] = &ns;
		start = now_us();
		run(waits, 1, 1, streams[0], of_waits);
		run(signals, 1, 1, streams[1], of_signals);
		CHECK(cuStreamSynchronize(streams[0]));
		CHECK(cuStreamSynchronize(streams[1]));
		CHECK(cuMemcpyDtoH_v2(&saw, seen, 4));
		printf("codep: %s after %.3f ms\n", saw ? "both ran" : "starved",
		       (now_us() - start) / 1e3);
	}
}

static void run_graph(uint64_t n, unsigned rounds)
{
	uint64_t out = memory(64);
	uint32_t times = 1000;
	void *parameters[] = {&out, &times}, *loop = function("loop"), *stream, *graph, *executable;

	(void)rounds;
	CHECK(cuStreamCreate(&stream, 1));
	CHECK(cuStreamBeginCapture_v2(stream, 1));
	for (unsigned i = 0; i < 10; i++)
		run(loop, ONE_WAVE, 256, stream, parameters);
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	for (uint64_t i = 0; i < n; i++)
		CHECK(cuGraphLaunch(executable, stream));
	CHECK(cuStreamSynchronize(stream));
	printf("graph: %llu launches of 10 loops of 1000\n", (unsigned long long)n);
}

static void run_busy(uint64_t ms, unsigned rounds)
{
	uint64_t out = memory(64), kernels_run = 0;
	uint32_t times = 100000;
	void *parameters[] = {&out, &times}, *loop = function("loop");
	double until = now_us() + (double)ms * 1e3;

	(void)rounds;
	while (now_us() < until) {
		for (unsigned i = 0; i < 10; i++, kernels_run++)
			run(loop, ONE_WAVE * 4, 256, NULL, parameters);
		CHECK(cuCtxSynchronize());
	}
	printf("busy: kernels %llu, ffma of warps %llu\n", (unsigned long long)kernels_run,
	       (unsigned long long)(kernels_run * ONE_WAVE * 4 * 8 * times));
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(uint64_t first, unsigned second);
	} modes[] = {{"add", run_add},     {"matrix", run_matrix}, {"loop", run_loop},
		     {"clock", run_clock}, {"again", run_again},   {"launch", run_launch},
		     {"codep", run_codep}, {"graph", run_graph},   {"busy", run_busy}};

	for (size_t i = 0; count > 2 && i < sizeof(modes) / sizeof(*modes); i++) {
		if (strcmp(arguments[1], modes[i].name) != 0)
			continue;
		driver_us = now_us();
		start_driver();
		driver_us = now_us() - driver_us;
		modes[i].run(strtoull(arguments[2], NULL, 10),
			     count > 3 ? (unsigned)atoi(arguments[3]) : 1);
		printf("took: driver %.0f ms, memory %.0f ms, first launch %.0f ms\n",
		       driver_us / 1e3, memory_us / 1e3, first_launch_us / 1e3);
		return 0;
	}
	fprintf(stderr, "usage: counters_cuda MODE NUMBER [NUMBER] (see the source)\n");
	return 2;
}
