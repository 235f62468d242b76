/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See helper.h. All signals are blocked in the thread. It looks every 50 ms while NCCL is busy,
 * every 250 ms while it is not.
 */
#include "nccl/helper.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nccl/call_trace.h"
#include "nccl/clock.h"
#include "nccl/communicators.h"
#include "nccl/log.h"
#include "nccl/options.h"
#include "nccl/prometheus.h"
#include "nccl/recorder.h"
#include "nccl/sealing.h"
#include "nccl/stall.h"
#include "nccl/store.h"

#define BUSY_NS        50000000u
#define IDLE_NS        250000000u
#define CLOCK_NS       1000000000u
#define CLOCK_FIRST_NS 4000000u

static _Atomic uint32_t wake_word;
static pthread_mutex_t rounds = PTHREAD_MUTEX_INITIALIZER;
static uint64_t clock_due_ns, clock_step_ns;

void helper_wake(void)
{
	if (!atomic_exchange_explicit(&wake_word, 1, memory_order_relaxed))
		syscall(SYS_futex, &wake_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* ---- clocks ---- */

static void take_clock(void)
{
	uint32_t count = store.header->clock_count;
	struct nccl_clock *at =
		&store.header->clocks[count ? 1 + (count - 1) % (NCCL_CLOCKS - 1) : 0];
	struct ticks_clocks now = ticks_clocks_now();

	SET(at->ticks, now.ticks);
	SET(at->monotonic_ns, now.monotonic_ns);
	SET(at->boottime_ns, now.boottime_ns);
	SET(at->realtime_ns, now.realtime_ns);
	__atomic_store_n(&store.header->clock_count, count + 1, __ATOMIC_RELEASE);
}

/* Often at first, so that runs of milliseconds have two; later ever more seldom, so that those kept
 * span the whole run. */
static void follow_clock(uint64_t now_ns)
{
	if (now_ns < clock_due_ns)
		return;
	clock_step_ns = !clock_step_ns                 ? CLOCK_FIRST_NS
			: clock_step_ns < CLOCK_NS / 4 ? 2 * clock_step_ns
						       : clock_step_ns + clock_step_ns / 4;
	if (clock_step_ns > 30ull * CLOCK_NS)
		clock_step_ns = 30ull * CLOCK_NS;
	clock_due_ns = now_ns + clock_step_ns;
	take_clock();
}

/* ---- rounds ---- */

static uint64_t own_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Returns whether anything was recorded since the last round. */
static bool round_now(bool last)
{
	static uint64_t seen;
	uint64_t ticks = clock_ticks(), now_ns = clock_ns(CLOCK_MONOTONIC), sum = 0;

	store_refill();
	sealing_round(ticks);
	store_refill(); /* of what is finished now */
	stall_round(ticks);
	follow_clock(now_ns);
	if (last)
		take_clock();
	prometheus_round(now_ns, last);
	call_trace_round();
	for (uint32_t i = 1; i <= communicators_count(); i++)
		sum += GET(communicators_get(i)->record->operations);
	sum += GET(store.header->chunks_taken);
	SET(store.header->heartbeat_ticks, ticks);
	SET(store.header->heartbeats, store.header->heartbeats + 1);
	if (sum == seen)
		return false;
	seen = sum;
	return true;
}

static void wait_for(uint64_t ns)
{
	struct timespec time = {0, (long)ns};

	if (!atomic_load_explicit(&wake_word, memory_order_relaxed))
		syscall(SYS_futex, &wake_word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
	atomic_store_explicit(&wake_word, 0, memory_order_relaxed);
}

static void *run(void *unused)
{
	unsigned quiet = 0;

	pthread_setname_np(pthread_self(), "kymo-nccl");
	while (recorder_is_on()) {
		wait_for(quiet > 20 ? IDLE_NS : BUSY_NS);
		pthread_mutex_lock(&rounds);
		if (recorder_is_on()) {
			quiet = round_now(false) ? 0 : quiet + 1;
			SET(store.header->helper_cpu_ns, own_cpu_ns());
		}
		pthread_mutex_unlock(&rounds);
	}
	return unused;
}

int helper_start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	int result;

	take_clock();
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, 512u << 10);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = -pthread_create(&thread, &attributes, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return result;
}

void helper_make_room(void)
{
	pthread_mutex_lock(&rounds);
	store_refill();
	pthread_mutex_unlock(&rounds);
}

void helper_finish(void)
{
	struct timespec limit;

	if (!recorder_is_on())
		return;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 2;
	if (pthread_mutex_timedlock(&rounds, &limit))
		return;
	round_now(true);
	SET(store.header->state, NCCL_FILE_EXITED);
	pthread_mutex_unlock(&rounds);
}

void helper_no_room(int error)
{
	char *problem = store.header->problem;

	if (store.ring)
		snprintf(problem, sizeof(store.header->problem),
			 "the file cannot grow any more (%s): the oldest records are overwritten",
			 strerror(-error));
	else
		snprintf(problem, sizeof(store.header->problem),
			 "the file cannot grow any more (%s): nothing more is recorded",
			 error == -EDQUOT ? "NCCL_SIZE is reached" : strerror(-error));
	if (!store.ring)
		SET(store.header->state, NCCL_FILE_FULL);
	log_report("%s: %s", store.path, problem);
}

void helper_tell(const char *why)
{
	char *problem = store.header->problem;

	if (!*problem)
		strncpy(problem, why, sizeof(store.header->problem) - 1);
}

void helper_before_fork(void)
{
	pthread_mutex_lock(&rounds);
}

void helper_after_fork(void)
{
	pthread_mutex_unlock(&rounds);
}
