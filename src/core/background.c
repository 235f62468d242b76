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
#include "core/base/futex.h"
#include "core/base/ticks.h"
#include "core/helper.h"
#include "core/runtime.h"

#define HELPER_CHECK_INTERVAL_NS          50000000ull
#define SLEEP_MAX_DURING_EXEC_NS          1000000ull
#define FIRST_TASK_CREDENTIALS_TIMEOUT_NS 50000000ull
#define FINAL_RECORDS_TIMEOUT_NS          2000000000ull

void background_wake(struct background_state *background)
{
	/* seq_cst on both words: either the sleeper sees wake set, or we see it sleeping */
	atomic_store(&background->wake, 1);
	if (atomic_exchange(&background->sleeping, 0))
		futex_wake_all_waiters(&background->wake);
}

void background_request_sampling_throttle(struct background_state *background, uint64_t period)
{
	atomic_store_explicit(&background->too_costly_period, period, memory_order_relaxed);
	background_wake(background);
}

static void background_announce_stage(struct background_state *background, uint32_t stage)
{
	atomic_store_explicit(&background->ready, stage, memory_order_release);
	futex_wake_all_waiters(&background->ready);
}

/* Somebody may have ended the helper, which is a process like others: then nobody answers. */
static uint64_t limit_wait_to_helper_check_ns(uint64_t wait_ns)
{
	return wait_ns < HELPER_CHECK_INTERVAL_NS ? wait_ns : HELPER_CHECK_INTERVAL_NS;
}

bool background_wait_for_stage(struct background_state *background, uint32_t stage,
			       uint64_t timeout_ns)
{
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + timeout_ns, now;
	uint32_t value;

	while ((value = atomic_load_explicit(&background->ready, memory_order_acquire)) < stage) {
		now = read_posix_clock_ns(CLOCK_MONOTONIC);
		if (now >= end || helper_is_gone())
			return atomic_load(&background->ready) >= stage;
		futex_wait(&background->ready, value, limit_wait_to_helper_check_ns(end - now));
	}
	return true;
}

static void wait_until_done(_Atomic uint32_t *done_count, uint32_t wanted, uint64_t timeout_ns)
{
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + timeout_ns, now;
	uint32_t done;

	while ((int32_t)((done = atomic_load(done_count)) - wanted) < 0) {
		now = read_posix_clock_ns(CLOCK_MONOTONIC);
		if (now >= end || helper_is_gone())
			return;
		futex_wait(done_count, done, limit_wait_to_helper_check_ns(end - now));
	}
}

void background_request_flush_and_wait(struct background_state *background, uint64_t timeout_ns)
{
	uint32_t wanted = atomic_fetch_add(&background->flush_request_count, 1) + 1;

	background_wake(background);
	wait_until_done(&background->flushes_done_count, wanted, timeout_ns);
}

void background_request_modules_and_wait(struct background_state *background, uint64_t timeout_ns)
{
	uint32_t wanted = atomic_fetch_add(&background->module_request_count, 1) + 1;

	background_wake(background);
	wait_until_done(&background->module_requests_done_count, wanted, timeout_ns);
}

static void mark_done(_Atomic uint32_t *done_count, uint32_t requested)
{
	if (atomic_load(done_count) == requested)
		return;
	atomic_store(done_count, requested);
	futex_wake_all_waiters(done_count);
}

static void sleep_until_woken(struct background_state *background, uint64_t timeout_ns)
{
	if (atomic_load(&background->is_exec_pending) && timeout_ns > SLEEP_MAX_DURING_EXEC_NS)
		timeout_ns = SLEEP_MAX_DURING_EXEC_NS;
	atomic_store(&background->sleeping, 1);
	if (!atomic_load(&background->wake))
		futex_wait(&background->wake, 0, timeout_ns);
	atomic_store(&background->sleeping, 0);
	atomic_store(&background->wake, 0);
}

/* The first task writes the file, and ends the helper. */
static void write_final_records_and_rest(struct runtime *runtime)
{
	static _Atomic uint32_t never;

	background_work_write_final_records(runtime);
	atomic_store(&runtime->background.are_final_records_written, 1);
	futex_wake_all_waiters(&runtime->background.are_final_records_written);
	for (;;)
		futex_wait(&never, 0, FINAL_RECORDS_TIMEOUT_NS);
}

static void run_background_loop(struct runtime *runtime)
{
	struct background_state *background = &runtime->background;

	background_announce_stage(background, BACKGROUND_STAGE_RUNNING);
	if (background_work_open_spool(runtime)) {
		background_work_flush_spool(runtime);
		background_announce_stage(background, BACKGROUND_STAGE_FAILED);
		return;
	}
	background_work_flush_spool(runtime); /* a process that is killed from here on is known */
	background_announce_stage(background, BACKGROUND_STAGE_RECORDING);
	if (background_work_prepare_sampling(runtime)) {
		background_work_flush_spool(runtime);
		background_announce_stage(background, BACKGROUND_STAGE_FAILED);
		return;
	}
	background_announce_stage(background, BACKGROUND_STAGE_COLLECTING);
	for (;;) {
		uint32_t flush = atomic_load(&background->flush_request_count);
		uint32_t modules = atomic_load(&background->module_request_count);
		uint32_t finish = atomic_exchange(&background->finish, 0);
		uint64_t wait_ns;

		if (atomic_load(&background->has_program_ended))
			write_final_records_and_rest(runtime);
		if (helper_program_is_gone()) {
			background_work_write_final_records(runtime);
			background_work_flush_spool(runtime);
			helper_exit_now();
		}
		if (own_thread_apply_credentials_if_new(&background->thread))
			helper_update_first_task_credentials(FIRST_TASK_CREDENTIALS_TIMEOUT_NS);
		own_threads_start_all_requested(&runtime->threads);
		if (atomic_load(&background->module_requests_done_count) != modules)
			background_work_look_at_modules(runtime);
		mark_done(&background->module_requests_done_count, modules);
		wait_ns = background_work_run_round(
			runtime, atomic_load(&background->flushes_done_count) != flush);
		if (finish) { /* and go on: other threads run until the process ends */
			background_work_write_last_records(runtime);
			background_work_flush_spool(runtime);
			background_announce_stage(background, BACKGROUND_STAGE_FINISHED);
			if (finish == BACKGROUND_FINISH_AND_END_HELPER)
				helper_exit_now();
		}
		if (atomic_load(&background->stop)) {
			background_work_stop_collection_for_good(runtime);
			background_work_flush_spool(runtime);
			background_announce_stage(background, BACKGROUND_STAGE_STOPPED);
			return;
		}
		if (background->is_detach_wanted) {
			attach_stop_and_detach(runtime);
			background_announce_stage(background, BACKGROUND_STAGE_STOPPED);
			return;
		}
		mark_done(&background->flushes_done_count, flush);
		sleep_until_woken(background, wait_ns);
	}
}

/* Without this thread there is nothing to be done for the others. */
static void run_background_thread(void *argument)
{
	run_background_loop(argument);
	helper_exit_after_threads();
}

static bool background_is_at_work(struct background_state *background)
{
	uint32_t stage = atomic_load(&background->ready);

	return stage == BACKGROUND_STAGE_COLLECTING || stage == BACKGROUND_STAGE_FINISHED;
}

/* The program has ended without a word, by SIGKILL for instance. What its threads only counted is
 * in memory still, and the background thread writes it. */
static void write_spool_after_program_end(void *argument)
{
	struct background_state *background = &((struct runtime *)argument)->background;
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + FINAL_RECORDS_TIMEOUT_NS, now;

	atomic_store(&background->has_program_ended, 1);
	background_wake(background);
	while (background_is_at_work(background) &&
	       !atomic_load(&background->are_final_records_written) &&
	       (now = read_posix_clock_ns(CLOCK_MONOTONIC)) < end)
		futex_wait(&background->are_final_records_written, 0, end - now);
	background_work_flush_after_death(argument);
}

int background_start(struct runtime *runtime)
{
	int error;

	kymo_process.parent_pid = (uint32_t)sys_call0(SYS_getppid);
	helper_set_program_end_callback(write_spool_after_program_end);
	error = helper_start(&runtime->background.thread, "kymo", run_background_thread, runtime,
			     runtime->options.spool_directory);
	if (!error && !runtime->attached)
		helper_allow_to_ptrace_program();
	return error;
}
