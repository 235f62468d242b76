/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts of a run that are told apart: regions at known times, and functions that use CPU time while
 * collection is on or off.
 *
 * usage: control outer       outer_a to outer_d, 0.45 s each, one after the other, with a counter;
 *                            prints nothing
 *        control switches    stops and starts collection, of the process and of its threads
 *        control chosen      works inside a region named "chosen", and outside
 *        control signal      sends itself SIGUSR2 twice; then it has a handler of its own for it
 *        control counters    page faults: 1000 before kymo_stop_trace(), 5000 after it, 1000 after
 *                            the start
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"
#include "kymo/user.h"

#define PART_MS 200

/* Uses CPU time; each caller is a function of its own in the results. */
#define WORK(name)                                                                                 \
	__attribute__((noinline)) static void name(void)                                           \
	{                                                                                          \
		uint64_t end = check_clock_ns(CLOCK_THREAD_CPUTIME_ID) + PART_MS * NS_PER_MS;      \
                                                                                                   \
		while (check_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)                              \
			;                                                                          \
		__asm__ volatile("# " #name); /* what differs is not merged */                     \
	}

WORK(work_before)
WORK(work_stopped)
WORK(work_after)
WORK(work_thread_stopped)
WORK(work_other_thread)
WORK(work_last)

static void sleep_until(uint64_t ns)
{
	struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
		;
}

static void outer(void)
{
	static const char *const names[] = {"outer_a", "outer_b", "outer_c", "outer_d"};
	uint64_t start = check_clock_ns(CLOCK_MONOTONIC);

	for (unsigned i = 0; i < 4; i++) {
		kymo_push_region(names[i]);
		kymo_counter("part", i);
		sleep_until(start + (i + 1) * 450 * NS_PER_MS);
		kymo_pop_region(names[i]);
	}
}

static void *other_thread(void *argument)
{
	work_other_thread();
	return argument;
}

static void switches(void)
{
	pthread_t thread;

	work_before();
	kymo_stop_trace();
	work_stopped();
	kymo_start_trace();
	work_after();
	kymo_stop_thread_trace();
	CHECK(!pthread_create(&thread, NULL, other_thread, NULL));
	work_thread_stopped();
	CHECK(!pthread_join(thread, NULL));
	kymo_start_thread_trace();
	/* Off and on at once is on. */
	for (int i = 0; i < 1000; i++) {
		kymo_stop_trace();
		kymo_start_trace();
	}
	work_last();
}

static void chosen(void)
{
	pthread_t thread;

	work_before();
	for (int i = 0; i < 10; i++) {
		kymo_push_region("chosen");
		if (i == 5)
			work_after();
		kymo_pop_region("chosen");
	}
	CHECK(!pthread_create(&thread, NULL, other_thread, NULL));
	CHECK(!pthread_join(thread, NULL));
	kymo_push_region("another");
	kymo_push_region("chosen");
	work_last();
	kymo_pop_region("chosen");
	work_stopped();
	kymo_pop_region("another");
}

static volatile sig_atomic_t handled;

static void handle(int signal)
{
	(void)signal;
	handled++;
}

static void signals(void)
{
	struct sigaction action = {.sa_handler = handle}, previous;

	CHECK(!sigaction(SIGUSR2, NULL, &previous));
	CHECK(previous.sa_handler == SIG_DFL);
	CHECK(signal(SIGUSR2, SIG_DFL) == SIG_DFL);
	work_before();
	raise(SIGUSR2);
	work_stopped();
	raise(SIGUSR2);
	work_after();
	CHECK(!sigaction(SIGUSR2, &action, &previous));
	CHECK(previous.sa_handler == SIG_DFL);
	raise(SIGUSR2);
	CHECK(handled == 1);
	work_last();
	CHECK(signal(SIGUSR2, SIG_IGN) == handle);
	raise(SIGUSR2);
	CHECK(handled == 1);
}

static void fault(size_t pages)
{
	volatile char *memory = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	madvise((void *)memory, pages * 4096, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		memory[i * 4096] = 1;
	munmap((void *)memory, pages * 4096);
}

static void counters(void)
{
	work_before();
	fault(1000);
	work_before();
	kymo_stop_trace();
	work_stopped(); /* the counters are off by now */
	kymo_push_region("fault");
	fault(5000);
	kymo_pop_region("fault");
	kymo_start_trace();
	work_after();
	fault(1000);
	work_after();
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {{"outer", outer},
		     {"switches", switches},
		     {"chosen", chosen},
		     {"signal", signals},
		     {"counters", counters}};

	CHECK(count == 2);
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(modes[i].name, arguments[1])) {
			modes[i].run();
			return 0;
		}
	}
	return 2;
}
