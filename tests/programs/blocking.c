/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Known blocked time, for real-time sampling: `wait_in_poll` 40 %, `wait_in_sleep` 30 %,
 * `wait_in_lock` 20 % of a second, the rest work. Each wait must last its time.
 *
 * usage: blocking [times]    times: prints what each really took, as JSON; a busy machine stretches
 *                            it
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "check.h"

#define KEEP_FRAME __asm__ volatile("" ::: "memory")

static uint64_t unit_ms = 100;

__attribute__((noinline)) static void wait_in_poll(void)
{
	CHECK(poll(NULL, 0, (int)(4 * unit_ms)) == 0);
	KEEP_FRAME;
}

__attribute__((noinline)) static void wait_in_sleep(void)
{
	CHECK(usleep((useconds_t)(3000 * unit_ms)) == 0);
	KEEP_FRAME;
}

__attribute__((noinline)) static void wait_in_lock(sem_t *semaphore)
{
	struct timespec at;
	uint64_t end = check_clock_ns(CLOCK_REALTIME) + 2 * unit_ms * NS_PER_MS;

	at = (struct timespec){(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
	CHECK(sem_timedwait(semaphore, &at) == -1 && errno == ETIMEDOUT);
	KEEP_FRAME;
}

static unsigned long long since(uint64_t *then)
{
	uint64_t now = check_clock_ns(CLOCK_MONOTONIC), passed = now - *then;

	*then = now;
	return passed;
}

int main(int argc, char **argv)
{
	uint64_t start = check_clock_ns(CLOCK_MONOTONIC), then = start;
	unsigned long long in_poll = 0, in_sleep = 0, in_lock = 0, at_work = 0;
	sem_t semaphore;

	CHECK(sem_init(&semaphore, 0, 0) == 0);
	for (int round = 0; round < 2; round++) {
		wait_in_poll();
		in_poll += since(&then);
		wait_in_sleep();
		in_sleep += since(&then);
		wait_in_lock(&semaphore);
		in_lock += since(&then);
		check_burn_ms(unit_ms);
		at_work += since(&then);
	}
	CHECK(then - start >= 18 * unit_ms * NS_PER_MS);
	if (argc > 1 && !strcmp(argv[1], "times")) {
		printf("{\"wait_in_poll\":%llu,\"wait_in_sleep\":%llu,\"wait_in_lock\":%llu,"
		       "\"work\":%llu}\n",
		       in_poll, in_sleep, in_lock, at_work);
		return 0;
	}
	return check_passed("blocking");
}
