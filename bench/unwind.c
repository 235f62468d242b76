/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Nanoseconds a stack, taken in a signal handler on the interrupted context, beside the unwinders
 * people use: libunwind's cached backtrace and its unw_step loop, glibc's backtrace(), and frame
 * pointers in a binary that has them. Medians over many signals; every signal comes from another
 * random chain of calls.
 *
 *   warm      the same stack was walked just before
 *   new       first walk of this chain: branch predictor and cache lines of other chains
 *   cold L2   the second-level cache was swept in between
 *   flushed   our pc cache was emptied in between: every frame goes to the table
 *
 * libunwind is loaded at run time, because linking it silently replaces backtrace().
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <x86intrin.h>

#include "common/array.h"
#include "own_view.h"
#include "peer_libunwind.h"
#include "unwind_chain.h"

#define FRAMES_MAX  512
#define ROUNDS_MAX  600
#define SWEEP_BYTES (8u << 20)

enum temperature { WARM, NEW, COLD, FLUSHED, TEMPERATURES };

typedef uint32_t unwinder(ucontext_t *context, uint64_t *frames);

static struct unwind_all_modules_view *view;
static struct unwind_cache *cache;
static struct unwind_stack_bounds bounds;
static struct unwind_scratch scratch;
static uint8_t *sweep;
static double ns_per_tick;
static uint64_t empty_ticks; /* two readings of the clock in a row */

/* What the handler does and what it found. */
static unwinder *volatile current;
static enum temperature temperature;
static uint64_t ticks[ROUNDS_MAX];
static uint32_t rounds, last_count;
static volatile uint64_t sink;

static uint32_t by_kymo(ucontext_t *context, uint64_t *frames)
{
	const greg_t *gregs = context->uc_mcontext.gregs;
	struct unwind_start_registers registers = {
		.ip = (uint64_t)gregs[REG_RIP],
		.sp = (uint64_t)gregs[REG_RSP],
		.bp = (uint64_t)gregs[REG_RBP],
		.gregs = (const uint64_t *)gregs,
	};
	enum spool_stack_end end;

	return unwind_walk_stack(view, cache, &registers, &bounds, &scratch, frames, FRAMES_MAX,
				 &end);
}

static uint32_t by_frame_pointers(ucontext_t *context, uint64_t *frames)
{
	uint64_t bp = (uint64_t)context->uc_mcontext.gregs[REG_RBP];
	uint64_t low = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
	uint32_t count = 1;

	frames[0] = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	while (count < FRAMES_MAX && bp >= low && bp + 16 <= bounds.high && !(bp & 7)) {
		const uint64_t *frame = (const uint64_t *)bp;

		frames[count++] = frame[1];
		low = bp + 16;
		bp = frame[0];
	}
	return count;
}

static uint32_t by_libunwind_step(ucontext_t *context, uint64_t *frames)
{
	return peer_libunwind_step(context, frames, FRAMES_MAX);
}

static uint32_t by_libunwind_backtrace(ucontext_t *context, uint64_t *frames)
{
	return peer_libunwind_backtrace(context, frames, FRAMES_MAX);
}

static uint32_t by_glibc(ucontext_t *context, uint64_t *frames)
{
	(void)context;
	return (uint32_t)backtrace((void **)frames, FRAMES_MAX);
}

static uint64_t now(void)
{
	unsigned processor;
	uint64_t value = __rdtscp(&processor);

	_mm_lfence();
	return value;
}

static void sweep_caches(void)
{
	for (uint32_t i = 0; i < SWEEP_BYTES; i += 64)
		sink += sweep[i];
}

static void on_signal(int number, siginfo_t *information, void *argument)
{
	uint64_t frames[FRAMES_MAX], start, elapsed;
	unwinder *walk = current;

	(void)number;
	(void)information;
	if (temperature != NEW)
		walk(argument, frames);
	if (temperature == COLD)
		sweep_caches();
	else if (temperature == FLUSHED)
		unwind_cache_clear(cache);
	start = now();
	last_count = walk(argument, frames);
	elapsed = now() - start;
	ticks[rounds++ % ROUNDS_MAX] = elapsed > empty_ticks ? elapsed - empty_ticks : 0;
}

static void bottom(void)
{
	raise(SIGUSR1);
}

static int compare_ticks(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double measure(unwinder *walk, bool pointers, unsigned depth, enum temperature how)
{
	uint32_t count = how == COLD ? 60 : 300;

	current = walk;
	temperature = how;
	rounds = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t seed = (i + 1) * 0x9e3779b97f4a7c15u;

		sink += pointers ? chain_with_pointers(depth, seed, bottom)
				 : chain_without_pointers(depth, seed, bottom);
	}
	qsort(ticks, rounds, sizeof(ticks[0]), compare_ticks);
	return (double)ticks[rounds / 2] * ns_per_tick;
}

static void calibrate(void)
{
	struct timespec a, b;
	uint64_t start, least = UINT64_MAX;

	clock_gettime(CLOCK_MONOTONIC, &a);
	start = now();
	do {
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < 50000000);
	ns_per_tick = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
		      (double)(now() - start);
	for (int i = 0; i < 1000; i++) {
		uint64_t first = now(), difference = now() - first;

		if (difference < least)
			least = difference;
	}
	empty_ticks = least;
}

static void table(void)
{
	static const struct {
		const char *name;
		unwinder *walk;
		bool pointers;
	} rows[] = {
		{"kymo", by_kymo, false},
		{"libunwind backtrace", by_libunwind_backtrace, false},
		{"libunwind unw_step", by_libunwind_step, false},
		{"glibc backtrace", by_glibc, false},
		{"frame pointers", by_frame_pointers, true},
	};
	static const unsigned depths[] = {10, 30, 100};

	printf("%-20s %5s %7s %9s %9s %9s %9s\n", "ns a stack (median)", "depth", "frames", "warm",
	       "new", "cold L2", "flushed");
	for (unsigned d = 0; d < 3; d++) {
		for (unsigned r = 0; r < ARRAY_SIZE(rows); r++) {
			/* The handler's own and raise()'s frames come on top of the chain. */
			unsigned depth = depths[d] - 8;

			printf("%-20s %5u", rows[r].name, depths[d]);
			for (unsigned how = WARM; how < TEMPERATURES; how++) {
				double ns;

				if (how == FLUSHED && rows[r].walk != by_kymo) {
					printf(" %9s", "-");
					continue;
				}
				ns = measure(rows[r].walk, rows[r].pointers, depth, how);
				if (how == WARM)
					printf(" %7u", last_count);
				printf(" %9.0f", ns);
			}
			printf("\n");
		}
	}
}

/* ---- instructions, counted by single-stepping ---- */

static volatile uint64_t steps;

static void on_trap(int number)
{
	(void)number;
	steps++;
}

static void count_instructions(int number, siginfo_t *information, void *argument)
{
	uint64_t frames[FRAMES_MAX];
	unwinder *walk = current;

	(void)number;
	(void)information;
	if (temperature == WARM)
		walk(argument, frames);
	steps = 0;
	__asm__ volatile("subq $128,%%rsp; pushfq; orq $0x100,(%%rsp); popfq; addq $128,%%rsp" ::
				 : "memory", "cc");
	last_count = walk(argument, frames);
	__asm__ volatile("subq $128,%%rsp; pushfq; andq $-257,(%%rsp); popfq; addq $128,%%rsp" ::
				 : "memory", "cc");
}

static double instructions_per_frame(enum temperature how)
{
	uint64_t seed = 0x9e3779b97f4a7c15u, shallow, shallow_frames;

	/* The cache knows both chains before they count. */
	for (int round = 0; round < 3; round++) {
		temperature = round < 2 ? WARM : how;
		chain_without_pointers(100, seed, bottom);
		shallow = steps;
		shallow_frames = last_count;
		chain_without_pointers(10, seed * 3, bottom);
	}
	return (double)(shallow - steps) / (double)(shallow_frames - last_count);
}

static void instructions(void)
{
	struct sigaction action = {.sa_sigaction = count_instructions, .sa_flags = SA_SIGINFO};

	signal(SIGTRAP, on_trap);
	sigaction(SIGUSR1, &action, NULL);
	current = by_kymo;
	printf("\nkymo, instructions a frame: %.1f warm, %.1f new\n", instructions_per_frame(WARM),
	       instructions_per_frame(NEW));
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	uint64_t frames[FRAMES_MAX];

	if (!peer_libunwind_open())
		return 1;
	view = own_view_create();
	cache = unwind_cache_create();
	bounds = own_bounds(frames);
	sweep = malloc(SWEEP_BYTES);
	if (!cache || !sweep)
		return 1;
	memset(sweep, 1, SWEEP_BYTES);
	calibrate();
	by_glibc(NULL, frames); /* loads libgcc_s */
	sigaction(SIGUSR1, &action, NULL);
	printf("libunwind backtrace is %s\n", peer_libunwind_backtrace_name());
	table();
	instructions();
	return 0;
}
