/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the call path of a launch costs the thread that launches: libkymo's function for it, as
 * kymo's tool calls it at each launch, below native frames and below functions of Python; the same
 * stack again and again, and many stacks in turns. Beside each the same calls without it, which are
 * taken off. Needs no device. Refuses where no call path is recorded.
 *
 * usage: kymo sample -- launch_paths [LIBPYTHON [LAUNCHES]]
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "kymo/gpu_records.h"
#include "libkymo/api.h"

#define ROUNDS    40  /* the best of them: on a busy machine most are disturbed */
#define TURN_BITS 10u /* 1024 stacks, all of the same depth */
#define SETTLE_US 1500000

static unsigned launch_count = 20480; /* a round */
static uint32_t (*find_launch_path)(void);
static uint32_t (*volatile asked)(void);
static uint32_t last_path;
static unsigned python_depth;

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

__attribute__((noinline)) static uint32_t find_nothing(void)
{
	__asm__ volatile("");
	return 1;
}

/* Each bit of `turn` is a place to call from, so that stacks of one depth differ by return
 * addresses alone. */
__attribute__((noinline)) static uint32_t launch_in_turn(unsigned bits, unsigned turn)
{
	uint32_t path;

	if (bits == 0)
		return asked();
	if (turn & 1) {
		path = launch_in_turn(bits - 1, turn >> 1);
		__asm__ volatile("nop");
	} else {
		path = launch_in_turn(bits - 1, turn >> 1);
		__asm__ volatile("nop; nop");
	}
	return path;
}

static double time_round(uint32_t (*function)(void), unsigned stacks)
{
	uint64_t start;

	asked = function;
	start = now_ns();
	for (unsigned i = 0; i < launch_count; i++)
		last_path = launch_in_turn(TURN_BITS, i % stacks);
	return (double)(now_ns() - start) / launch_count;
}

static void measure_stacks(unsigned native, unsigned stacks)
{
	double with = 1e9, without = 1e9;

	for (unsigned round = 0; round < ROUNDS; round++) {
		double ns = time_round(find_nothing, stacks);

		without = ns < without ? ns : without;
		ns = time_round(find_launch_path, stacks);
		with = ns < with ? ns : with;
		if (last_path == GPU_LAUNCH_PATH_NONE || last_path > GPU_LAUNCH_PATH_LAST) {
			printf("launch_paths: no call path was recorded (%u): no cost is known\n",
			       last_path);
			return;
		}
	}
	printf("%4u native frames of its own, %3u of Python, %4u stacks in turns   %6.0f ns a "
	       "launch\n",
	       native, python_depth, stacks, with - without);
}

__attribute__((noinline)) static void go_down(unsigned left, unsigned native)
{
	static const unsigned stacks[] = {1, 100, 1 << TURN_BITS};

	if (left > 0) {
		go_down(left - 1, native);
		__asm__ volatile("");
		return;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(stacks); i++)
		measure_stacks(native, stacks[i]);
}

static void measure_at(unsigned native)
{
	go_down(native - TURN_BITS - 1, native);
}

static void measure_below_python(void)
{
	measure_at(30); /* those of Python and ctypes are as many */
}

static int run_python(void *library)
{
	static const unsigned depths[] = {1, 30};
	void (*initialize)(int) = (void (*)(int))dlsym(library, "Py_InitializeEx");
	int (*run)(const char *) = (int (*)(const char *))dlsym(library, "PyRun_SimpleString");
	char text[512];
	int result = 0;

	initialize(0);
	usleep(SETTLE_US);
	for (unsigned i = 0; i < ARRAY_SIZE(depths) && !result; i++) {
		python_depth = depths[i] + 1;
		snprintf(text, sizeof(text),
			 "import ctypes\n"
			 "measure = ctypes.PYFUNCTYPE(None)(%llu)\n"
			 "def down(n):\n"
			 "    return down(n - 1) if n > 1 else measure()\n"
			 "down(%u)\n",
			 (unsigned long long)(uintptr_t)measure_below_python, depths[i]);
		result = run(text);
	}
	return result;
}

int main(int argc, char **argv)
{
	const struct runtime_api *(*get_api)(void);
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;

	*(void **)&get_api = dlsym(RTLD_DEFAULT, KYMO_RUNTIME_API_NAME);
	if (get_api == NULL || !get_api()->active()) {
		printf("launch_paths: kymo records nothing here: run it with kymo sample\n");
		return 0;
	}
	if (argc > 1 && library == NULL) {
		printf("launch_paths: %s\n", dlerror());
		return 1;
	}
	if (argc > 2)
		launch_count = (unsigned)atoi(argv[2]);
	find_launch_path = get_api()->find_launch_path;
	usleep(SETTLE_US);
	measure_at(20);
	measure_at(60);
	return library != NULL ? run_python(library) : 0;
}
