/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See background_work.h.
 */
#include "core/background_work.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/attach.h"
#include "core/counters.h"
#include "core/live_threads.h"
#include "core/notices.h"
#include "core/process_metrics.h"
#include "core/rank.h"
#include "core/runtime.h"
#include "core/sampler.h"
#include "core/sources.h"
#include "core/ticks.h"

#define MILLISECOND_NS    1000000ull
#define SECOND_NS         1000000000ull
#define CLOCK_PERIOD_NS   SECOND_NS
#define JITTER_PERIOD_NS  (40 * MILLISECOND_NS)
#define TOTALS_PERIOD_NS  (20 * MILLISECOND_NS)
#define SCAN_PERIOD_NS    (20 * MILLISECOND_NS)
#define REFRESH_PERIOD_NS (5 * MILLISECOND_NS)
#define RETRY_PERIOD_NS   (100 * MILLISECOND_NS)
#define PERIOD_MAXIMUM_NS (SECOND_NS)
#define SELDOM            10u

static void fill_header(struct runtime *runtime)
{
	struct spool_file_header *header = runtime->spool.header;

	header->version_major = SPOOL_VERSION_MAJOR;
	header->version_minor = SPOOL_VERSION_MINOR;
	header->header_size = SPOOL_ALIGNMENT;
	header->pid = runtime->pid;
	header->parent_pid = (uint32_t)sys_call0(SYS_getppid);
	header->process_start = process_metrics_start_time();
	header->tick_clock = kymo_ticks_are_ns;
	header->tick_hz = runtime->sampling.tick_hz;
	header->start_ticks = ticks_now();
	header->start_monotonic_ns = ticks_clock_ns(CLOCK_MONOTONIC);
	header->start_boottime_ns = ticks_clock_ns(CLOCK_BOOTTIME);
	header->start_realtime_ns = ticks_clock_ns(CLOCK_REALTIME);
	header->state = SPOOL_STATE_OPEN;
	header->exit_status = -1;
	memcpy(header->magic, SPOOL_MAGIC, sizeof(header->magic)); /* last: the rest is valid */
}

/* Can no handler use a view that was replaced before now? */
static bool quiescent(const struct runtime *runtime)
{
	const struct thread *watcher = runtime->wall_sampler.stream;

	if ((watcher && atomic_load(&watcher->in_handler)) || atomic_load(&runtime->walkers))
		return false;
	for (const struct thread *thread = runtime->background.live; thread;
	     thread = thread->live_next) {
		if (atomic_load_explicit(&thread->in_handler, memory_order_seq_cst) ||
		    atomic_load_explicit(&thread->walking, memory_order_seq_cst))
			return false;
	}
	return true;
}

/* mkdir -p; in background because the program need not wait for it. */
static void make_directories(const char *path)
{
	char partial[OPTIONS_PATH_SIZE];

	for (size_t i = 0; path[i] && i + 1 < sizeof(partial); i++) {
		partial[i] = path[i];
		partial[i + 1] = 0;
		if (i && (path[i + 1] == '/' || !path[i + 1]))
			sys_call3(SYS_mkdirat, SYS_AT_WORKING_DIRECTORY, (long)partial, 0700);
	}
}

/* What is reserved counts against a limit of the address space, touched or not (setrlimit(2)). */
static int refuse(struct runtime *runtime, int error)
{
	track_notice(&runtime->track, SPOOL_NOTICE_DISABLED, (uint64_t)-error,
		     error == -ENOMEM
			     ? "a process ran unprofiled: kymo's tables found no room in its "
			       "address space (ulimit -v)"
			     : "a process ran unprofiled: kymo could not start in it");
	return error;
}

int background_work_open(struct runtime *runtime)
{
	struct background *background = &runtime->background;
	int error = spool_open(&runtime->spool, &runtime->options);

	if (!error)
		error = track_init(&runtime->track, &runtime->spool);
	if (error)
		return error;
	fill_header(runtime);
	background->own = threads_allocate(&runtime->threads, THREAD_INTERNAL, THREADS_NONE);
	if (!background->own)
		return refuse(runtime, -ENOMEM);
	background->own->start_ticks = ticks_now();
	threads_bind(&runtime->threads, background->own, background->thread.tid);
	background->cpus = process_metrics_cpus();
	track_clock(&runtime->track);
	process_metrics_describe(&runtime->track, runtime->environment);
	rank_begin(runtime);
	live_threads_describe(runtime, background->own);
	error = runtime->hooks ? runtime->hooks->start(runtime) : 0;
	if (error)
		return refuse(runtime, error);
	control_begin(runtime);
	return 0;
}

int background_work_begin(struct runtime *runtime)
{
	int error;

	make_directories(runtime->options.cache_directory);
	modules_refresh(&runtime->modules, &runtime->track, quiescent(runtime));
	runtime->sampling.period = runtime->options.cpu.on ? runtime->options.cpu.period
							   : runtime->options.wall.period;
	runtime->sampling.seldom = false; /* a forked child's parent may have been */
	sources_choose(runtime);
	if (runtime->signals.signal != runtime->sampling.signal) {
		if (runtime->attached || runtime->opened)
			program_signals_note_all(&runtime->signals, runtime->sampling.signal);
		error = program_signals_take(&runtime->signals, runtime->sampling.signal,
					     (void *)sampler_handler);
		if (error)
			return error;
	}
	atomic_store(&runtime->state, RUNTIME_ACTIVE);
	return 0;
}

static void follow_debugger(struct runtime *runtime)
{
	bool traced;

	if (runtime->sampling.source != SPOOL_CPU_SOURCE_PERF_SIGTRAP)
		return;
	traced = sources_being_traced();
	if (traced != runtime->background.traced)
		track_notice(&runtime->track, SPOOL_NOTICE_CONFLICT, SIGTRAP,
			     traced ? "a debugger is attached: sampling rests"
				    : "the debugger is gone: sampling goes on");
	runtime->background.traced = traced;
}

/* Moves *next on by the period when it is due; keeps the least waiting time. */
static bool due(uint64_t *next, uint64_t period, uint64_t now, uint64_t *wait)
{
	bool is_due = now >= *next;

	if (is_due)
		*next = now + period;
	if (*next - now < *wait)
		*wait = *next - now;
	return is_due;
}

static void follow_counters(struct runtime *runtime)
{
	if (!*runtime->options.counters)
		return;
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		counters_follow(thread);
}

static void change_period(struct runtime *runtime, uint64_t period)
{
	runtime->sampling.period = period;
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		sources_jitter(runtime, thread);
}

void background_work_sample_seldom(struct runtime *runtime, bool seldom)
{
	uint64_t period = runtime->sampling.period;

	if (runtime->sampling.seldom == seldom)
		return;
	runtime->sampling.seldom = seldom;
	change_period(runtime, seldom ? period * SELDOM : period / SELDOM);
}

static void throttle(struct runtime *runtime)
{
	uint64_t costly = atomic_exchange_explicit(&runtime->background.throttle_period, 0,
						   memory_order_relaxed);
	uint64_t period = runtime->sampling.period;

	if (!costly || costly != period ||
	    period >= PERIOD_MAXIMUM_NS) /* else judged before the last change */
		return;
	change_period(runtime, period * 2);
	spool_count_loss(&runtime->spool, SPOOL_LOSS_THROTTLED);
	track_notice(&runtime->track, SPOOL_NOTICE_THROTTLE, period * 2,
		     "sampling cost more than allowed: rate halved");
}

static void jitter(struct runtime *runtime)
{
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		if (!thread->armed || thread->samples == thread->jitter_samples)
			continue;
		thread->jitter_samples = thread->samples;
		sources_jitter(runtime, thread);
	}
}

static void refresh_modules(struct runtime *runtime, uint64_t now, uint64_t *wait)
{
	struct modules *modules = &runtime->modules;
	uint64_t next = modules->last_refresh_ns + REFRESH_PERIOD_NS;

	if (!atomic_load_explicit(&modules->refresh_wanted, memory_order_relaxed))
		return;
	if (now >= next)
		modules_refresh(modules, &runtime->track, quiescent(runtime));
	if (*wait > REFRESH_PERIOD_NS &&
	    atomic_load_explicit(&modules->refresh_wanted, memory_order_relaxed))
		*wait = REFRESH_PERIOD_NS;
}

static void follow_allocations(struct runtime *runtime, bool last)
{
	void (*follow)(struct runtime *, bool) =
		atomic_load_explicit(&runtime->follow_allocations, memory_order_acquire);

	if (follow)
		follow(runtime, last);
}

static void follow_hooks(struct runtime *runtime, bool last)
{
	if (runtime->hooks && runtime->hooks->round)
		runtime->hooks->round(runtime, last);
}

static void run_metrics(struct runtime *runtime, uint64_t now, uint64_t *wait)
{
	struct background *background = &runtime->background;
	const struct options *options = &runtime->options;

	if (!options->process_metrics)
		return;
	if (!control_is_open(&runtime->control)) { /* the last moment belongs to the window */
		if (background->metrics_on)
			process_metrics_write(&runtime->track, 0);
		background->metrics_on = false;
		return;
	}
	if (!background->metrics_end_ns) {
		background->next_metrics_ns = now + (uint64_t)options->process_delay_ns;
		background->metrics_end_ns =
			options->process_duration_ns > 0
				? background->next_metrics_ns +
					  (uint64_t)options->process_duration_ns
				: UINT64_MAX;
	}
	if (now >= background->metrics_end_ns) {
		background->metrics_on = false;
		return;
	}
	if (due(&background->next_metrics_ns, options->process_period_ns, now, wait)) {
		process_metrics_write(&runtime->track,
				      options->cpu_frequency ? background->cpus : 0);
		background->metrics_on = true;
	}
}

uint64_t background_work_round(struct runtime *runtime, bool flush)
{
	struct background *background = &runtime->background;
	uint64_t now = ticks_clock_ns(CLOCK_MONOTONIC), wait = SECOND_NS;
	bool sampling =
		runtime->options.cpu.on || runtime->options.wall.on || runtime->options.overflow.on;

	spool_refill(&runtime->spool, runtime->spool.fd);
	notices_write(&runtime->track);
	if (runtime->spool.disk_error && wait > RETRY_PERIOD_NS)
		wait = RETRY_PERIOD_NS;
	live_threads_process(runtime);
	rank_follow(runtime);
	follow_allocations(runtime, flush);
	follow_hooks(runtime, flush);
	allocators_grow(runtime, background->program_threads);
	refresh_modules(runtime, now, &wait);
	throttle(runtime);
	control_round(runtime, &wait);
	attach_round(runtime, now, &wait);
	run_metrics(runtime, now, &wait);
	if (due(&background->next_clock_ns, CLOCK_PERIOD_NS, now, &wait)) {
		track_clock(&runtime->track);
		follow_debugger(runtime);
		live_threads_follow_names(runtime);
	}
	if (sampling &&
	    due(&background->next_jitter_ns, JITTER_PERIOD_NS / 2 + now % JITTER_PERIOD_NS, now,
		&wait) &&
	    runtime->options.jitter)
		jitter(runtime);
	/* Often, because a process may end without a word; but not at the cost of many threads. */
	if (due(&background->next_totals_ns, TOTALS_PERIOD_NS + background->live_count * 10000ull,
		now, &wait)) {
		live_threads_totals(runtime);
		follow_counters(runtime);
	}
	if (due(&background->next_scan_ns, SCAN_PERIOD_NS + 20 * background->scan_cost_ns, now,
		&wait)) {
		live_threads_scan(runtime);
		live_threads_find_stacks(runtime);
	}
	runtime->spool.header->end_ticks = ticks_now();
	return wait;
}

void background_work_end(struct runtime *runtime)
{
	live_threads_process(runtime);
	rank_follow(runtime);
	follow_allocations(runtime, true);
	follow_hooks(runtime, true);
	live_threads_follow_names(runtime);
	if (runtime->background.metrics_on)
		process_metrics_write(&runtime->track, 0);
	live_threads_totals(runtime);
	live_threads_write_totals(runtime);
	track_clock(&runtime->track);
	runtime->spool.header->state = SPOOL_STATE_EXITED;
	runtime->spool.header->end_ticks = ticks_now();
}

void background_work_stop(struct runtime *runtime)
{
	track_notice(&runtime->track, SPOOL_NOTICE_DISABLED, 0, runtime->background.stop_reason);
	background_work_end(runtime);
	control_end(runtime);
	atomic_store(&runtime->state, RUNTIME_INACTIVE);
	atomic_store(&runtime->allocators.stop, 1);
	allocators_wake(&runtime->allocators);
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		sources_close(thread);
}
