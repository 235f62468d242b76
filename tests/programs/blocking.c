/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Known blocked time, for real-time sampling: `wait_in_poll` 40 %, `wait_in_sleep` 30 %,
 * `wait_in_lock` 20 % of a second, the rest work. Each wait must last its time.
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

int main(void)
{
	uint64_t start = check_clock_ns(CLOCK_MONOTONIC);
	sem_t semaphore;

	CHECK(sem_init(&semaphore, 0, 0) == 0);
	for (int round = 0; round < 2; round++) {
		wait_in_poll();
		wait_in_sleep();
		wait_in_lock(&semaphore);
		check_burn_ms(unit_ms);
	}
	CHECK(check_clock_ns(CLOCK_MONOTONIC) - start >= 18 * unit_ms * NS_PER_MS);
	return check_passed("blocking");
}
