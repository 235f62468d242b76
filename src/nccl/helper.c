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
#include "nccl/completion.h"
#include "nccl/keeper.h"
#include "nccl/log.h"
#include "nccl/options.h"
#include "nccl/prometheus.h"
#include "nccl/recorder.h"
#include "nccl/stall.h"
#include "nccl/store.h"
#include "nccl/write_out.h"

#define BUSY_ROUND_INTERVAL_NS          50000000u
#define IDLE_ROUND_INTERVAL_NS          250000000u
#define ONE_SECOND_NS                   1000000000u
#define FIRST_CLOCK_READING_INTERVAL_NS 4000000u

static _Atomic uint32_t helper_wakeup_futex_word;
static pthread_mutex_t helper_rounds_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_clock_reading_time_ns, clock_reading_interval_ns;

void helper_wake(void)
{
	if (!atomic_exchange_explicit(&helper_wakeup_futex_word, 1, memory_order_relaxed))
		syscall(SYS_futex, &helper_wakeup_futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* ---- clocks ---- */

static void write_clock_reading(void)
{
	uint32_t count = store.header->clock_count;
	struct nccl_clock *at =
		&store.header->clocks[count ? 1 + (count - 1) % (NCCL_CLOCKS - 1) : 0];
	struct clocks_snapshot now = read_clocks_snapshot();

	RELAXED_STORE(at->ticks, now.ticks);
	RELAXED_STORE(at->monotonic_ns, now.monotonic_ns);
	RELAXED_STORE(at->boottime_ns, now.boottime_ns);
	RELAXED_STORE(at->realtime_ns, now.realtime_ns);
	__atomic_store_n(&store.header->clock_count, count + 1, __ATOMIC_RELEASE);
}

/* Often at first, so that runs of milliseconds have two; later ever more seldom, so that those kept
 * span the whole run. */
static void write_clock_reading_if_due(uint64_t now_ns)
{
	if (now_ns < next_clock_reading_time_ns)
		return;
	clock_reading_interval_ns =
		!clock_reading_interval_ns ? FIRST_CLOCK_READING_INTERVAL_NS
		: clock_reading_interval_ns < ONE_SECOND_NS / 4
			? 2 * clock_reading_interval_ns
			: clock_reading_interval_ns + clock_reading_interval_ns / 4;
	if (clock_reading_interval_ns > 30ull * ONE_SECOND_NS)
		clock_reading_interval_ns = 30ull * ONE_SECOND_NS;
	next_clock_reading_time_ns = now_ns + clock_reading_interval_ns;
	write_clock_reading();
}

/* ---- rounds ---- */

static uint64_t read_thread_cpu_ns(void)
{
	return nccl_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Where a ring is full, what finalized communicators still hold is given back at once: a program
 * that makes one after the other is faster than the time that late events are waited for. */
static void make_room_from_finalized_communicators(uint64_t ticks)
{
	if (!store_is_short_of_chunks())
		return;
	completion_run_round(&(struct completion_round){.ticks = ticks, .needs_room = true});
	store_refill_ready_chunks();
}

/* Returns whether anything was recorded since the last round. */
static bool run_helper_round(bool last)
{
	static uint64_t seen;
	uint64_t ticks = nccl_clock_read_ticks(), now_ns = nccl_clock_read_ns(CLOCK_MONOTONIC),
		 sum = 0;

	store_refill_ready_chunks();
	completion_run_round(&(struct completion_round){.ticks = ticks, .is_last = last});
	store_refill_ready_chunks(); /* of what is finished now */
	make_room_from_finalized_communicators(ticks);
	stall_check_communicators(ticks);
	write_clock_reading_if_due(now_ns);
	if (last)
		write_clock_reading();
	prometheus_write_if_due(now_ns, last);
	call_trace_report_write_error_once();
	for (uint32_t i = 1; i <= communicators_get_count(); i++) {
		const struct communicator_recording_state *communicator =
			communicators_get_by_creation_number(i);

		sum += communicator ? RELAXED_LOAD(communicator->record->operations) : 0;
	}
	sum += RELAXED_LOAD(store.header->chunks_taken);
	RELAXED_STORE(store.header->heartbeat_ticks, ticks);
	RELAXED_STORE(store.header->heartbeats, store.header->heartbeats + 1);
	if (sum == seen)
		return false;
	seen = sum;
	return true;
}

static void wait_for_wake_or_timeout(uint64_t ns)
{
	struct timespec time = {0, (long)ns};

	if (!atomic_load_explicit(&helper_wakeup_futex_word, memory_order_relaxed))
		syscall(SYS_futex, &helper_wakeup_futex_word, FUTEX_WAIT_PRIVATE, 0, &time, NULL,
			0);
	atomic_store_explicit(&helper_wakeup_futex_word, 0, memory_order_relaxed);
}

static void *run_helper_thread(void *unused)
{
	unsigned quiet = 0;

	pthread_setname_np(pthread_self(), "kymo-nccl");
	while (recorder_is_on()) {
		wait_for_wake_or_timeout(quiet > 20 ? IDLE_ROUND_INTERVAL_NS
						    : BUSY_ROUND_INTERVAL_NS);
		pthread_mutex_lock(&helper_rounds_lock);
		if (recorder_is_on()) {
			quiet = run_helper_round(false) ? 0 : quiet + 1;
			RELAXED_STORE(store.header->helper_cpu_ns,
				      read_thread_cpu_ns() + keeper_get_cpu_ns());
			if (!keeper_is_running())
				write_out_with_file_opened();
		}
		pthread_mutex_unlock(&helper_rounds_lock);
	}
	return unused;
}

int helper_start_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	int result;

	write_clock_reading();
	write_out_with_file_opened();
	keeper_start();
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, 512u << 10);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = -pthread_create(&thread, &attributes, run_helper_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return result;
}

void helper_refill_ready_chunks(void)
{
	pthread_mutex_lock(&helper_rounds_lock);
	store_refill_ready_chunks();
	make_room_from_finalized_communicators(nccl_clock_read_ticks());
	pthread_mutex_unlock(&helper_rounds_lock);
}

void helper_run_last_round(void)
{
	struct timespec limit;

	if (!recorder_is_on())
		return;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 2;
	if (pthread_mutex_timedlock(&helper_rounds_lock, &limit))
		return;
	run_helper_round(true);
	RELAXED_STORE(store.header->state, NCCL_FILE_EXITED);
	keeper_stop();
	write_out_with_file_opened();
	pthread_mutex_unlock(&helper_rounds_lock);
}

void helper_report_store_cannot_grow(int error)
{
	char *problem = store.header->problem;

	if (store.is_ring)
		snprintf(problem, sizeof(store.header->problem),
			 "the file cannot grow any more (%s): the oldest records are overwritten",
			 strerror(-error));
	else
		snprintf(problem, sizeof(store.header->problem),
			 "the file cannot grow any more (%s): nothing more is recorded",
			 error == -EDQUOT ? "NCCL_SIZE is reached" : strerror(-error));
	if (!store.is_ring)
		RELAXED_STORE(store.header->state, NCCL_FILE_FULL);
	log_report_on_stderr("%s: %s", store.file.path, problem);
}

void helper_write_first_problem_to_header(const char *why)
{
	char *problem = store.header->problem;

	if (!*problem)
		strncpy(problem, why, sizeof(store.header->problem) - 1);
}

void helper_lock_before_fork(void)
{
	pthread_mutex_lock(&helper_rounds_lock);
}

void helper_unlock_after_fork(void)
{
	pthread_mutex_unlock(&helper_rounds_lock);
}
