/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See attach.h. The end: sources are closed first, so that no signal of ours is made any more; then
 * every handler that is at work is waited for; then the file is completed and let go.
 */
#include "core/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "common/settings.h"
#include "common/syscalls.h"
#include "common/time_units.h"
#include "core/background_work.h"
#include "core/base/text.h"
#include "core/base/ticks.h"
#include "core/live_threads.h"
#include "core/program.h"
#include "core/runtime.h"
#include "core/sources.h"
#include "core/timers.h"

#define RECORDING_START_TIMEOUT_NS     (5 * SECOND_NS)
#define ATTACHER_CHECK_PERIOD_NS       SECOND_NS
#define SIGNAL_HANDLERS_END_TIMEOUT_NS (200 * MILLISECOND_NS)
#define OWN_THREADS_END_TIMEOUT_NS     (2 * SECOND_NS)
#define ATTACHER_LOCK_FILE_NAME                                                                    \
	"/attached" /* beside the spool files; src/cmd/attach.c holds it                           \
		     */

static void sleep_briefly(void)
{
	struct timespec moment = {0, 200000};

	sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&moment, 0);
}

/* ---- start ---- */

static bool thread_is_alive(const struct thread *thread)
{
	return !sys_call3(SYS_tgkill, kymo_process.pid, thread->tid, 0);
}

/* The block of a thread that was sampled before, as if it had just been found. Its tid may belong
 * to another thread by now: what was known of its stack is forgotten. */
static void reset_thread_for_new_run(struct runtime *runtime, struct thread *thread)
{
	thread->start_ticks = ticks_now();
	thread->end_ticks = 0;
	thread->name[0] = thread->end_name[0] = 0;
	if (thread->origin != THREAD_ORIGIN_MAIN)
		thread->stack_bounds = (struct unwind_stack_bounds){0, 0};
	thread->seen_stack_pointer = 0;
	thread->was_stack_looked_up = false;
	thread->chunk = NULL;
	thread->used = 0;
	thread->covered_ns = thread->sample_count = thread->signal_count = thread->handler_ticks =
		0;
	thread->throttle_span_start_ticks = thread->throttle_span_handler_ticks =
		thread->last_metrics_ticks = 0;
	thread->collected_cpu_ns = thread->total_excluded_cpu_ns = thread->end_cpu_ns = 0;
	thread->cpu_ns = read_cpu_ns_of_tid(thread->tid);
	thread->started = thread->armed = thread->overflow_armed = false;
	thread->exec_pending = 0;
	thread->live_next = thread->live_previous = NULL;
	threads_hand_block_to_background(&runtime->threads, thread, THREAD_ANNOUNCED_NEW);
}

static void recycle_ended_thread(struct runtime *runtime, struct thread *thread)
{
	if (runtime->hooks && thread->origin != THREAD_ORIGIN_INTERNAL)
		runtime->hooks->on_thread_gone_silently(thread);
	atomic_store(&thread->state, THREAD_STATE_ENDED);
	threads_unbind_and_free_one_block(&runtime->threads, thread);
}

/* Threads of the last run: those that are still there are sampled again. */
static void reset_or_recycle_threads_of_last_run(struct runtime *runtime)
{
	uint32_t count = atomic_load(&runtime->threads.block_count);

	threads_discard_announcements(&runtime->threads);
	for (uint32_t i = 0; i < count; i++) {
		struct thread *thread = threads_get_block_at_index(&runtime->threads, i);
		uint32_t state = thread ? atomic_load(&thread->state) : THREAD_STATE_FREE;

		if (thread_state_is_live(state) && thread->origin != THREAD_ORIGIN_INTERNAL &&
		    thread_is_alive(thread))
			reset_thread_for_new_run(runtime, thread);
		else if (thread_state_is_live(state) || state == THREAD_STATE_ENDED ||
			 (state == THREAD_STATE_NEW && thread->origin == THREAD_ORIGIN_INTERNAL))
			recycle_ended_thread(runtime, thread);
	}
}

/* The main thread has number 0, whichever thread it is that runs this. */
static bool find_or_add_main_thread(struct runtime *runtime)
{
	struct thread *thread = threads_find_by_tid(&runtime->threads, kymo_process.pid);

	if (thread && thread_state_is_live(atomic_load(&thread->state)))
		return true;
	thread = threads_allocate_block(&runtime->threads, THREAD_ORIGIN_MAIN, THREADS_NO_PARENT);
	if (!thread)
		return false;
	thread->stack_bounds = runtime_find_main_stack_bounds();
	thread->start_ticks = ticks_now();
	thread->cpu_ns = read_cpu_ns_of_tid(kymo_process.pid);
	if (!threads_bind_found_tid(&runtime->threads, thread, kymo_process.pid)) {
		threads_free_block(&runtime->threads, thread);
		return true;
	}
	atomic_store(&thread->state, THREAD_STATE_LIVE);
	threads_hand_block_to_background(&runtime->threads, thread, THREAD_ANNOUNCED_NEW);
	return true;
}

/* The first time in this process, or again; in a child of a process that was left, no thread is
 * what its block says. */
static bool prepare_runtime_for_attach(struct runtime *runtime)
{
	bool again = runtime->prepared;

	if (!runtime_prepare_once(runtime))
		return false;
	runtime_apply_options(runtime);
	if (!again)
		return find_or_add_main_thread(runtime);
	runtime_reset_state_for_new_run(runtime);
	control_reset(&runtime->control);
	if (!process_is_where_runtime_started()) {
		process_state_reset_fork_detector();
		threads_forget_all_keep_blocks(&runtime->threads);
	} else {
		reset_or_recycle_threads_of_last_run(runtime);
	}
	return find_or_add_main_thread(runtime);
}

int attach_start_profiling(struct runtime *runtime, char *const *environment)
{
	uint32_t state = atomic_load(&kymo_process.state);

	if (runtime->prepared && process_is_where_runtime_started() &&
	    (state == RUNTIME_ACTIVE || state == RUNTIME_STARTING))
		return -EALREADY;
	if (state == RUNTIME_FAILED || process_has_seccomp_thread())
		return -ENOTRECOVERABLE;
	options_read_environment(&runtime->options, environment);
	if (!runtime->options.enabled || !runtime->options.spool_directory[0])
		return -EINVAL;
	/* Until this thread is back where it was: a signal that waited for that would end the
	 * system call that it was in. */
	runtime->options.regions.start = false;
	runtime->environment = environment;
	kymo_process.pid = (uint32_t)sys_getpid();
	runtime->attached = true;
	atomic_store(&kymo_process.state, RUNTIME_STARTING);
	if (!prepare_runtime_for_attach(runtime) || background_start(runtime)) {
		atomic_store(&kymo_process.state, RUNTIME_INACTIVE);
		return -ENOMEM;
	}
	if (!background_wait_for_stage(&runtime->background, BACKGROUND_STAGE_RECORDING,
				       RECORDING_START_TIMEOUT_NS))
		return -ETIMEDOUT;
	if (atomic_load(&runtime->background.ready) == BACKGROUND_STAGE_FAILED) {
		atomic_store(&kymo_process.state, RUNTIME_INACTIVE);
		return -EIO;
	}
	if (runtime->options.wall.on)
		wall_sampler_start(runtime);
	return 0;
}

/* ---- while it runs ---- */

/* flock(2): whoever attached holds the file locked; the kernel lets go of the lock with its last
 * descriptor, however it ends. */
static bool attacher_is_gone(const struct runtime *runtime)
{
	char path[OPTIONS_PATH_SIZE + 16];
	struct text_buffer text = text_buffer_init(path, sizeof(path));
	bool alone;
	long fd;

	text_append_string(&text, runtime->options.spool_directory);
	text_append_string(&text, ATTACHER_LOCK_FILE_NAME);
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return true;
	alone = !sys_call2(SYS_flock, fd, LOCK_SH | LOCK_NB);
	sys_close((int)fd);
	return alone;
}

void attach_request_detach_if_attacher_gone(struct runtime *runtime, uint64_t now, uint64_t *wait)
{
	struct background_state *background = &runtime->background;

	if (!runtime->attached)
		return;
	if (now >= background->next_attacher_check_ns) {
		background->next_attacher_check_ns = now + ATTACHER_CHECK_PERIOD_NS;
		background->is_attacher_gone = attacher_is_gone(runtime);
		background->is_detach_wanted =
			background->is_detach_wanted || background->is_attacher_gone;
	}
	if (background->next_attacher_check_ns - now < *wait)
		*wait = background->next_attacher_check_ns - now;
}

/* ---- end ---- */

static void disarm_all_sampling_sources(struct runtime *runtime)
{
	struct sampler *sampler = &runtime->sampler;

	control_set_runtime_stopped(runtime);
	atomic_store(&sampler->is_cpu_window_open, 0);
	atomic_store(&sampler->is_wall_window_open, 0);
	atomic_store(&sampler->is_overflow_window_open, 0);
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		sources_arm_or_disarm_by_state(runtime, thread);
	/* Every thread that runs has seen that nothing is collected any more. */
	sys_call3(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

static bool no_thread_is_in_signal_handler(const struct runtime *runtime)
{
	for (const struct thread *thread = runtime->background.live; thread;
	     thread = thread->live_next) {
		if (atomic_load(&thread->is_in_signal_handler))
			return false;
	}
	return true;
}

/* On a busy machine they may take longer than anybody waits. */
static bool wait_until_signal_handlers_have_returned(const struct runtime *runtime)
{
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + SIGNAL_HANDLERS_END_TIMEOUT_NS;

	while (!no_thread_is_in_signal_handler(runtime) &&
	       read_posix_clock_ns(CLOCK_MONOTONIC) < end)
		sleep_briefly();
	return no_thread_is_in_signal_handler(runtime);
}

static void wait_for_own_thread_end(const struct own_thread *thread)
{
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + OWN_THREADS_END_TIMEOUT_NS;

	while (!own_thread_is_gone(thread) && read_posix_clock_ns(CLOCK_MONOTONIC) < end)
		sleep_briefly();
}

static void end_wall_sampler_and_chunk_allocators(struct runtime *runtime)
{
	if (runtime->wall_sampler.stream) {
		wall_sampler_flush_with_timeout(runtime);
		atomic_store(&runtime->wall_sampler.stop, 1);
		wall_sampler_wake(&runtime->wall_sampler);
		wait_for_own_thread_end(&runtime->wall_sampler.thread);
	}
	atomic_store(&runtime->chunk_allocators.stop, 1);
	chunk_allocators_wake_all_threads(&runtime->chunk_allocators);
	for (uint32_t i = 0; i < runtime->chunk_allocators.count; i++)
		wait_for_own_thread_end(&runtime->chunk_allocators.allocator_threads[i].thread);
}

/* /proc/PID/status: "SigPnd:\t0000000000000000" of the thread, "ShdPnd:" of the process. */
static bool thread_has_pending_signal(uint32_t tid, int signal)
{
	static const char *const keys[] = {"SigPnd:\t", "ShdPnd:\t"};
	char buffer[4096];

	program_read_task_file(tid, "status", buffer, sizeof(buffer));
	for (int i = 0; i < 2; i++) {
		const char *at = strstr(buffer, keys[i]);
		/* the digit that the bit is in, counted from the end of 16 */
		char digit = at ? at[8 + 15 - (signal - 1) / 4] : '0';
		unsigned bits = digit >= 'a' ? digit - 'a' + 10u : digit - (unsigned)'0';

		if (bits >> ((signal - 1) % 4) & 1)
			return true;
	}
	return false;
}

/* A timer that could not be deleted sends it again. */
static bool sampling_signal_is_pending_after_wait(const struct runtime *runtime)
{
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + SIGNAL_HANDLERS_END_TIMEOUT_NS;
	bool pending = true;

	while (pending && read_posix_clock_ns(CLOCK_MONOTONIC) < end) {
		pending = false;
		for (const struct thread *thread = runtime->background.live; thread && !pending;
		     thread = thread->live_next)
			pending = thread->timer >= 0 ||
				  thread_has_pending_signal(thread->tid, runtime->signals.signal);
		if (pending)
			sleep_briefly();
	}
	return pending;
}

/* Chunks of the program's threads go back; where they come from is gone afterwards. */
static void close_sampling_sources_and_return_chunks(struct runtime *runtime)
{
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		if (runtime->hooks)
			runtime->hooks->on_detach_thread(thread);
		thread->chunk = NULL;
		sources_close_for_thread(thread);
	}
	if (runtime->hooks)
		runtime->hooks->on_detach_process();
}

void attach_stop_and_detach(struct runtime *runtime)
{
	uint32_t command = 0;
	bool quiet;

	end_wall_sampler_and_chunk_allocators(runtime);
	disarm_all_sampling_sources(runtime);
	/* No handler starts a timer from here on; what one has started is deleted. */
	atomic_store(&runtime->sampler.may_change_source_to_timer, 0);
	wait_until_signal_handlers_have_returned(runtime);
	timers_make_thread_delete_all(runtime, SIGNAL_HANDLERS_END_TIMEOUT_NS);
	quiet = wait_until_signal_handlers_have_returned(runtime);
	background_work_write_last_records(runtime);
	runtime->spool.header->state = SPOOL_STATE_LEFT;
	atomic_store(&kymo_process.state, RUNTIME_INACTIVE);
	close_sampling_sources_and_return_chunks(runtime);
	program_signals_try_restore_action(&runtime->signals,
					   sampling_signal_is_pending_after_wait(runtime));
	runtime->attached = false;
	runtime->spool.header->control_answer =
		spool_read_control_request(&runtime->spool, &command);
	background_work_flush_spool(runtime);
	/* Who attached would have made sure that no thread is in the midst of an instrumented call.
	 */
	spool_detach_from_file(&runtime->spool, runtime->background.is_attacher_gone || !quiet);
	modules_free_maps_buffer(&runtime->modules);
}
