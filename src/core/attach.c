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
#include "core/background_work.h"
#include "core/live_threads.h"
#include "core/runtime.h"
#include "core/sources.h"
#include "core/text.h"
#include "core/ticks.h"

#define MILLISECOND_NS  1000000ull
#define SECOND_NS       1000000000ull
#define RECORD_NS       (5 * SECOND_NS)
#define WATCH_PERIOD_NS SECOND_NS
#define QUIET_NS        (200 * MILLISECOND_NS)
#define THREADS_END_NS  (2 * SECOND_NS)
#define LOCK_NAME       "/attached" /* beside the spool files; src/cmd/attach.c holds it */

static void pause_a_moment(void)
{
	struct timespec moment = {0, 200000};

	sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&moment, 0);
}

/* ---- start ---- */

static bool is_alive(const struct runtime *runtime, const struct thread *thread)
{
	return !sys_call3(SYS_tgkill, runtime->pid, thread->tid, 0);
}

/* The block of a thread that was sampled before, as if it had just been found. Its tid may belong
 * to another thread by now: what was known of its stack is forgotten. */
static void revive(struct runtime *runtime, struct thread *thread)
{
	thread->start_ticks = ticks_now();
	thread->end_ticks = 0;
	thread->name[0] = thread->end_name[0] = 0;
	if (thread->how != THREAD_MAIN)
		thread->bounds = (struct unwind_bounds){0, 0};
	thread->stack_seen = 0;
	thread->stack_looked_up = false;
	thread->chunk = NULL;
	thread->used = 0;
	thread->covered_ns = thread->samples = thread->signals = thread->handler_ticks = 0;
	thread->throttle_start = thread->throttle_handler = thread->metric_time = 0;
	thread->collected_ns = thread->passed_over_ns = thread->end_cpu_ns = 0;
	thread->cpu_ns = ticks_thread_cpu_ns(thread->tid);
	thread->started = thread->armed = thread->overflow_armed = false;
	thread->leaving = 0;
	thread->live_next = thread->live_previous = NULL;
	threads_announce(&runtime->threads, thread, THREAD_ANNOUNCED_NEW);
}

static void drop(struct runtime *runtime, struct thread *thread)
{
	if (runtime->hooks && thread->how != THREAD_INTERNAL)
		runtime->hooks->thread_gone(thread);
	atomic_store(&thread->state, THREAD_ENDED);
	threads_recycle(&runtime->threads, thread);
}

/* Threads of the last run: those that are still there are sampled again. */
static void revive_threads(struct runtime *runtime)
{
	uint32_t count = atomic_load(&runtime->threads.block_count);

	threads_forget_announced(&runtime->threads);
	for (uint32_t i = 0; i < count; i++) {
		struct thread *thread = threads_at(&runtime->threads, i);
		uint32_t state = thread ? atomic_load(&thread->state) : THREAD_FREE;

		if (state == THREAD_LIVE && thread->how != THREAD_INTERNAL &&
		    is_alive(runtime, thread))
			revive(runtime, thread);
		else if (state == THREAD_LIVE || state == THREAD_ENDED ||
			 (state == THREAD_NEW && thread->how == THREAD_INTERNAL))
			drop(runtime, thread);
	}
}

/* The main thread has number 0, whichever thread it is that runs this. */
static bool find_main_thread(struct runtime *runtime)
{
	struct thread *thread = threads_by_tid(&runtime->threads, runtime->pid);

	if (thread && atomic_load(&thread->state) == THREAD_LIVE)
		return true;
	thread = threads_allocate(&runtime->threads, THREAD_MAIN, THREADS_NONE);
	if (!thread)
		return false;
	thread->bounds = runtime_main_stack();
	thread->start_ticks = ticks_now();
	thread->cpu_ns = ticks_thread_cpu_ns(runtime->pid);
	if (threads_bind(&runtime->threads, thread, runtime->pid) != thread) {
		threads_discard(&runtime->threads, thread);
		return true;
	}
	atomic_store(&thread->state, THREAD_LIVE);
	threads_announce(&runtime->threads, thread, THREAD_ANNOUNCED_NEW);
	return true;
}

/* The first time in this process, or again; in a child of a process that was left, no thread is
 * what its block says. */
static bool begin(struct runtime *runtime)
{
	bool again = runtime->prepared;

	if (!runtime_prepare(runtime))
		return false;
	runtime_set_up(runtime);
	if (!again)
		return find_main_thread(runtime);
	runtime_forget_run(runtime);
	memset(&runtime->control, 0, sizeof(runtime->control));
	control_close(CONTROL_CLOSED_START);
	if (!*runtime->same_process) {
		*(volatile uint32_t *)runtime->same_process = 1;
		threads_forget_all(&runtime->threads);
	} else {
		revive_threads(runtime);
	}
	return find_main_thread(runtime);
}

int attach_start(char *const *environment)
{
	struct runtime *runtime = &kymo_runtime;
	uint32_t state = atomic_load(&runtime->state);

	if (runtime->prepared && *runtime->same_process &&
	    (state == RUNTIME_ACTIVE || state == RUNTIME_STARTING))
		return -EALREADY;
	if (state == RUNTIME_FAILED || kymo_runtime.sealed)
		return -ENOTRECOVERABLE;
	options_read(&runtime->options, environment);
	if (!runtime->options.enabled || !runtime->options.spool_directory[0])
		return -EINVAL;
	/* Until this thread is back where it was: a signal that waited for that would end the
	 * system call that it was in. */
	runtime->options.regions.start = false;
	runtime->environment = environment;
	runtime->pid = (uint32_t)sys_getpid();
	runtime->attached = true;
	atomic_store(&runtime->state, RUNTIME_STARTING);
	if (!begin(runtime) || background_start(runtime)) {
		atomic_store(&runtime->state, RUNTIME_INACTIVE);
		return -ENOMEM;
	}
	if (!background_wait(&runtime->background, BACKGROUND_RECORDING, RECORD_NS))
		return -ETIMEDOUT;
	if (atomic_load(&runtime->background.ready) == BACKGROUND_FAILED) {
		atomic_store(&runtime->state, RUNTIME_INACTIVE);
		return -EIO;
	}
	if (runtime->options.wall.on)
		wall_sampler_start(runtime);
	return 0;
}

/* ---- while it runs ---- */

/* flock(2): whoever attached holds the file locked; the kernel lets go of the lock with its last
 * descriptor, however it ends. */
static bool is_alone(const struct runtime *runtime)
{
	char path[OPTIONS_PATH_SIZE + 16];
	struct text text = text_on(path, sizeof(path));
	bool alone;
	long fd;

	text_string(&text, runtime->options.spool_directory);
	text_string(&text, LOCK_NAME);
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return true;
	alone = !sys_call2(SYS_flock, fd, LOCK_SH | LOCK_NB);
	sys_close((int)fd);
	return alone;
}

void attach_round(struct runtime *runtime, uint64_t now, uint64_t *wait)
{
	struct background *background = &runtime->background;

	if (!runtime->attached)
		return;
	if (now >= background->next_watch_ns) {
		background->next_watch_ns = now + WATCH_PERIOD_NS;
		background->alone = is_alone(runtime);
		background->detach = background->detach || background->alone;
	}
	if (background->next_watch_ns - now < *wait)
		*wait = background->next_watch_ns - now;
}

/* ---- end ---- */

static void disarm(struct runtime *runtime)
{
	struct sampling *sampling = &runtime->sampling;

	control_end(runtime);
	atomic_store(&sampling->cpu_open, 0);
	atomic_store(&sampling->wall_open, 0);
	atomic_store(&sampling->overflow_open, 0);
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		sources_follow(runtime, thread);
	/* Every thread that runs has seen that nothing is collected any more. */
	sys_call3(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

static bool is_quiet(const struct runtime *runtime)
{
	for (const struct thread *thread = runtime->background.live; thread;
	     thread = thread->live_next) {
		if (atomic_load(&thread->in_handler))
			return false;
	}
	return true;
}

/* On a busy machine they may take longer than anybody waits. */
static bool wait_for_handlers(const struct runtime *runtime)
{
	uint64_t end = ticks_clock_ns(CLOCK_MONOTONIC) + QUIET_NS;

	while (!is_quiet(runtime) && ticks_clock_ns(CLOCK_MONOTONIC) < end)
		pause_a_moment();
	return is_quiet(runtime);
}

static void wait_for_own_thread(const struct own_thread *thread)
{
	uint64_t end = ticks_clock_ns(CLOCK_MONOTONIC) + THREADS_END_NS;

	while (!own_thread_is_gone(thread) && ticks_clock_ns(CLOCK_MONOTONIC) < end)
		pause_a_moment();
}

static void end_own_threads(struct runtime *runtime)
{
	if (runtime->wall_sampler.stream) {
		wall_sampler_finish(runtime);
		atomic_store(&runtime->wall_sampler.stop, 1);
		wall_sampler_wake(&runtime->wall_sampler);
		wait_for_own_thread(&runtime->wall_sampler.thread);
	}
	atomic_store(&runtime->allocators.stop, 1);
	allocators_wake(&runtime->allocators);
	for (uint32_t i = 0; i < runtime->allocators.count; i++)
		wait_for_own_thread(&runtime->allocators.allocator[i].thread);
}

/* /proc/PID/status: "SigPnd:\t0000000000000000" of the thread, "ShdPnd:" of the process. */
static bool has_pending(uint32_t tid, int signal)
{
	static const char *const keys[] = {"SigPnd:\t", "ShdPnd:\t"};
	char path[64], buffer[4096];
	struct text text = text_on(path, sizeof(path));
	long fd, length;

	text_string(&text, "/proc/self/task/");
	text_unsigned(&text, tid);
	text_string(&text, "/status");
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	length = sys_read((int)fd, buffer, sizeof(buffer) - 1);
	sys_close((int)fd);
	buffer[length > 0 ? length : 0] = 0;
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

static bool is_pending(const struct runtime *runtime)
{
	uint64_t end = ticks_clock_ns(CLOCK_MONOTONIC) + QUIET_NS;
	bool pending = true;

	while (pending && ticks_clock_ns(CLOCK_MONOTONIC) < end) {
		pending = false;
		for (const struct thread *thread = runtime->background.live; thread && !pending;
		     thread = thread->live_next)
			pending = has_pending(thread->tid, runtime->signals.signal);
		if (pending)
			pause_a_moment();
	}
	return pending;
}

/* Chunks of the program's threads go back; where they come from is gone afterwards. */
static void close_streams(struct runtime *runtime)
{
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		if (runtime->hooks)
			runtime->hooks->thread_left(thread);
		thread->chunk = NULL;
		sources_close(thread);
	}
	if (runtime->hooks)
		runtime->hooks->left();
}

void attach_leave(struct runtime *runtime)
{
	bool quiet;

	end_own_threads(runtime);
	disarm(runtime);
	quiet = wait_for_handlers(runtime);
	background_work_end(runtime);
	runtime->spool.header->state = SPOOL_STATE_LEFT;
	atomic_store(&runtime->state, RUNTIME_INACTIVE);
	close_streams(runtime);
	program_signals_give_back(&runtime->signals, is_pending(runtime));
	runtime->attached = false;
	runtime->spool.header->control_answer = runtime->spool.header->control_request;
	/* Who attached would have made sure that no thread is in the midst of an instrumented call.
	 */
	spool_let_go(&runtime->spool, runtime->background.alone || !quiet);
	modules_let_go(&runtime->modules);
}
