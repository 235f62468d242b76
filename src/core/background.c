/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See background.h. This file: making the thread, waking it, and its loop; what it does in each
 * round is in background_work.c.
 */
#include "core/background.h"

#include <time.h>

#include "common/syscalls.h"
#include "core/attach.h"
#include "core/background_work.h"
#include "core/futex.h"
#include "core/runtime.h"
#include "core/ticks.h"

void background_wake(struct background *background)
{
	/* seq_cst on both words: either the sleeper sees wake set, or we see it sleeping */
	atomic_store(&background->wake, 1);
	if (atomic_exchange(&background->sleeping, 0))
		futex_wake(&background->wake);
}

void background_throttle(struct background *background, uint64_t period)
{
	atomic_store_explicit(&background->throttle_period, period, memory_order_relaxed);
	background_wake(background);
}

static void announce_stage(struct background *background, uint32_t stage)
{
	atomic_store_explicit(&background->ready, stage, memory_order_release);
	futex_wake(&background->ready);
}

bool background_wait(struct background *background, uint32_t stage, uint64_t timeout_ns)
{
	uint64_t end = ticks_clock_ns(CLOCK_MONOTONIC) + timeout_ns, now;
	uint32_t value;

	while ((value = atomic_load_explicit(&background->ready, memory_order_acquire)) < stage) {
		now = ticks_clock_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return false;
		futex_wait(&background->ready, value, end - now);
	}
	return true;
}

void background_flush(struct background *background, uint64_t timeout_ns)
{
	uint64_t end = ticks_clock_ns(CLOCK_MONOTONIC) + timeout_ns, now;
	uint32_t wanted = atomic_fetch_add(&background->flush_wanted, 1) + 1, done;

	background_wake(background);
	while ((int32_t)((done = atomic_load(&background->flushed)) - wanted) < 0) {
		now = ticks_clock_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return;
		futex_wait(&background->flushed, done, end - now);
	}
}

static void sleep_until_wanted(struct background *background, uint64_t timeout_ns)
{
	atomic_store(&background->sleeping, 1);
	if (!atomic_load(&background->wake))
		futex_wait(&background->wake, 0, timeout_ns);
	atomic_store(&background->sleeping, 0);
	atomic_store(&background->wake, 0);
}

static void run(void *argument)
{
	struct runtime *runtime = argument;
	struct background *background = &runtime->background;

	announce_stage(background, BACKGROUND_RUNNING);
	if (background_work_open(runtime)) {
		announce_stage(background, BACKGROUND_FAILED);
		return;
	}
	announce_stage(background, BACKGROUND_RECORDING);
	if (background_work_begin(runtime)) {
		announce_stage(background, BACKGROUND_FAILED);
		return;
	}
	announce_stage(background, BACKGROUND_COLLECTING);
	for (;;) {
		uint32_t flush = atomic_load(&background->flush_wanted);
		bool finish = atomic_exchange(&background->finish, 0);
		uint64_t wait_ns;

		own_thread_follow_credentials(&background->thread);
		wait_ns =
			background_work_round(runtime, atomic_load(&background->flushed) != flush);
		if (finish) { /* and go on: other threads run until the process ends */
			background_work_end(runtime);
			announce_stage(background, BACKGROUND_FINISHED);
		}
		if (atomic_load(&background->stop)) {
			background_work_stop(runtime);
			announce_stage(background, BACKGROUND_STOPPED);
			return;
		}
		if (background->detach) {
			attach_leave(runtime);
			announce_stage(background, BACKGROUND_STOPPED);
			return;
		}
		if (atomic_load(&background->flushed) != flush) {
			atomic_store(&background->flushed, flush);
			futex_wake(&background->flushed);
		}
		sleep_until_wanted(background, wait_ns);
	}
}

int background_start(struct runtime *runtime)
{
	return own_thread_start(&runtime->background.thread, "kymo", run, runtime);
}
