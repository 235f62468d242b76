/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What one sample costs inside the handler: the real handler of a running collector, called with
 * the context of a stack of known depth, so that no signal delivery is in the figure; beside it,
 * what the kernel takes to deliver an empty signal. For instruction counts: valgrind
 * --tool=callgrind --toggle-collect=sampler_handle_signal BENCH 30 1000.
 *
 * usage: handler [DEPTH [SAMPLES]]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "common/array.h"
#include "core/runtime.h"
#include "core/sampler.h"

#define TRAP_PERF_CODE 6 /* asm-generic/siginfo.h */

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static double take_samples(unsigned count)
{
	siginfo_t information = {.si_signo = SIGTRAP, .si_code = TRAP_PERF_CODE};
	uint64_t mark = SAMPLER_SIGNAL_COOKIE_CPU, start;
	ucontext_t context;

	memcpy((char *)&information.si_addr + sizeof(void *), &mark, sizeof(mark));
	getcontext(&context);
	for (unsigned i = 0; i < count / 10; i++) /* warm */
		sampler_handle_signal(SIGTRAP, &information, &context);
	start = now_ns();
	for (unsigned i = 0; i < count; i++)
		sampler_handle_signal(SIGTRAP, &information, &context);
	return (double)(now_ns() - start) / count;
}

__attribute__((noinline)) static double at_depth(unsigned depth, unsigned count)
{
	double result = depth ? at_depth(depth - 1, count) : take_samples(count);

	__asm__ volatile("" ::: "memory"); /* no tail call */
	return result;
}

static void empty_handler(int signal)
{
	(void)signal;
}

static double deliver_signals(unsigned count)
{
	uint64_t start;
	int process = getpid(), thread = (int)syscall(SYS_gettid);

	signal(SIGUSR1, empty_handler);
	start = now_ns();
	for (unsigned i = 0; i < count; i++)
		syscall(SYS_tgkill, process, thread, SIGUSR1);
	return (double)(now_ns() - start) / count;
}

static double call_kernel(unsigned count)
{
	uint64_t start = now_ns();

	for (unsigned i = 0; i < count; i++)
		syscall(SYS_getppid);
	return (double)(now_ns() - start) / count;
}

static void measure(unsigned depth, unsigned count)
{
	uint64_t before = kymo_thread->sample_count, written;
	double ns = at_depth(depth, count);

	written = kymo_thread->sample_count - before;
	if (!written) /* signals were sent, but nobody has taken a sample: that costs nothing */
		printf("handler, stack %4u deeper than main   no sample was written: no cost is "
		       "known\n",
		       depth);
	else
		printf("handler, stack %4u deeper than main   %8.0f ns a sample   (%llu written)\n",
		       depth, ns, (unsigned long long)written);
}

int main(int argc, char **argv)
{
	static const unsigned depths[] = {0, 10, 30, 100};
	unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 20000;
	char directory[] = "/tmp/kymo-bench-XXXXXX", variable[64], command[64];
	char *environment[] = {variable, "KYMO_SAMPLING_FREQ=0.1", "KYMO_SAMPLING_OVERHEAD_LIMIT=0",
			       "KYMO_SAMPLING_SOURCE=perf", NULL};

	if (!mkdtemp(directory))
		return 1;
	snprintf(variable, sizeof(variable), "KYMO_SPOOL_DIRECTORY=%s", directory);
	runtime_start(environment);
	if (!runtime_is_active() || kymo_runtime.signals.signal != SIGTRAP) {
		printf("handler: perf events with sigtrap are not permitted here\n");
		return 0;
	}
	if (argc > 1) {
		measure((unsigned)atoi(argv[1]), count);
	} else {
		for (unsigned i = 0; i < ARRAY_SIZE(depths); i++)
			measure(depths[i], count);
		printf("of it, two system calls               %8.0f ns each\n", call_kernel(count));
		printf("an empty signal to oneself            %8.0f ns\n", deliver_signals(count));
	}
	runtime_finish();
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command) ? 1 : 0;
}
