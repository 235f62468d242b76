/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See background_work.h.
 */
#include "core/background_work.h"
#include "core/sampling_source.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/syscalls.h"
#include "common/time_units.h"
#include "core/attach.h"
#include "core/base/own_work.h"
#include "core/base/ticks.h"
#include "core/counters.h"
#include "core/interpreters/interpreters.h"
#include "core/live_threads.h"
#include "core/notices.h"
#include "core/process/cgroup_cpu.h"
#include "core/process_metrics.h"
#include "core/rank.h"
#include "core/runtime.h"
#include "core/sampler.h"
#include "core/sources.h"
#include "core/timers.h"

#define CLOCK_RECORD_PERIOD_NS           SECOND_NS
#define NAME_CHECK_PERIOD_FIRST_NS       20000000ull
#define NAME_CHECK_SHIFT_MAX             6 /* 1.28 s in the end */
#define SAMPLING_JITTER_UPDATE_PERIOD_NS (40 * MILLISECOND_NS)
#define HEADER_TOTALS_UPDATE_PERIOD_NS   (20 * MILLISECOND_NS)
#define SPOOL_WRITE_PERIOD_NS            (20 * MILLISECOND_NS)
#define THREAD_SCAN_PERIOD_NS            (20 * MILLISECOND_NS)
#define MODULE_REFRESH_SLEEP_LEAST_NS    (5 * MILLISECOND_NS)
#define SPOOL_GROWTH_RETRY_PERIOD_NS     (100 * MILLISECOND_NS)
#define THROTTLED_SAMPLING_PERIOD_MAX_NS (SECOND_NS)
#define REDUCED_SAMPLE_RATE_DIVISOR      10u
#define OLD_VIEW_RETRY_PAUSE_NS          50000
#define OLD_VIEW_TRIES_MAX               100

static void fill_spool_header(struct runtime *runtime)
{
	struct spool_file_header *header = runtime->spool.header;

	header->version_major = SPOOL_VERSION_MAJOR;
	header->version_minor = SPOOL_VERSION_MINOR;
	header->header_size = SPOOL_ALIGNMENT;
	header->pid = kymo_process.pid;
	header->parent_pid = kymo_process.parent_pid;
	header->process_start = process_get_start_time_clock_ticks();
	header->tick_clock = kymo_ticks_are_ns;
	header->tick_hz = runtime->sampler.tick_hz;
	header->start_ticks = ticks_now();
	header->start_monotonic_ns = read_posix_clock_ns(CLOCK_MONOTONIC);
	header->start_boottime_ns = read_posix_clock_ns(CLOCK_BOOTTIME);
	header->start_realtime_ns = read_posix_clock_ns(CLOCK_REALTIME);
	header->state = SPOOL_STATE_OPEN;
	header->exit_status = -1;
	memcpy(header->magic, SPOOL_MAGIC, sizeof(header->magic)); /* last: the rest is valid */
}

/* Can no handler use a view that was replaced before now? */
static bool no_handler_uses_old_unwind_view(const struct runtime *runtime)
{
	const struct thread *watcher = runtime->wall_sampler.stream;

	if ((watcher && atomic_load(&watcher->is_in_signal_handler)) ||
	    atomic_load(&runtime->walkers))
		return false;
	for (const struct thread *thread = runtime->background.live; thread;
	     thread = thread->live_next) {
		if (atomic_load_explicit(&thread->is_in_signal_handler, memory_order_seq_cst) ||
		    atomic_load_explicit(&thread->is_walked_outside_handler, memory_order_seq_cst))
			return false;
	}
	return true;
}

/* mkdir -p; in background because the program need not wait for it. */
static void make_directory_with_parents(const char *path)
{
	char partial[OPTIONS_PATH_SIZE];

	for (size_t i = 0; path[i] && i + 1 < sizeof(partial); i++) {
		partial[i] = path[i];
		partial[i + 1] = 0;
		if (i && (path[i + 1] == '/' || !path[i + 1]))
			sys_call3(SYS_mkdirat, SYS_WORKING_DIRECTORY_FD, (long)partial, 0700);
	}
}

/* Who has a working directory keeps its file system from being unmounted; daemons leave theirs. */
static void change_directory_to_root_if_spool_absolute(const struct runtime *runtime)
{
	if (runtime->options.spool_directory[0] == '/')
		sys_call1(SYS_chdir, (long)"/");
}

/* What is reserved counts against a limit of the address space, touched or not (setrlimit(2)). */
static int write_start_failure_notice(struct runtime *runtime, int error)
{
	process_record_write_notice(
		&runtime->records, SPOOL_NOTICE_DISABLED, (uint64_t)-error,
		error == -ENOMEM ? "a process ran unprofiled: its address space has no room "
				   "for kymo's tables (ulimit -v)"
				 : "a process ran unprofiled: kymo could not start in it");
	return error;
}

int background_work_open_spool(struct runtime *runtime)
{
	struct background_state *background = &runtime->background;
	int error = spool_open(&runtime->spool, &runtime->options, kymo_process.pid);

	if (!error)
		error = process_records_init(&runtime->records, &runtime->spool);
	if (error)
		return error;
	fill_spool_header(runtime);
	atomic_store(&background->is_spool_file_open, true);
	background->own = threads_allocate_block(&runtime->threads, THREAD_ORIGIN_INTERNAL,
						 THREADS_NO_PARENT);
	if (!background->own)
		return write_start_failure_notice(runtime, -ENOMEM);
	background->own->start_ticks = ticks_now();
	threads_bind_own_tid(&runtime->threads, background->own, background->thread.tid);
	background->cpus = process_count_allowed_cpus();
	if (runtime->options.wall.on)
		cgroup_cpu_find_cgroup_of_process();
	process_record_write_clock(&runtime->records);
	process_metrics_write_identity(&runtime->records, kymo_process.pid, kymo_process.parent_pid,
				       runtime->environment);
	change_directory_to_root_if_spool_absolute(runtime);
	rank_write_from_environment(runtime);
	live_threads_write_start_record(runtime, background->own);
	error = runtime->hooks ? runtime->hooks->start(runtime) : 0;
	if (error)
		return write_start_failure_notice(runtime, error);
	control_set_runtime_ready(runtime);
	return 0;
}

int background_work_prepare_sampling(struct runtime *runtime)
{
	int error;

	make_directory_with_parents(runtime->options.cache_directory);
	modules_refresh(&runtime->modules, &runtime->records,
			no_handler_uses_old_unwind_view(runtime));
	interpreters_set_task_name_maximum(runtime->options.task_name_maximum);
	runtime->sampler.period = runtime->options.cpu.on ? runtime->options.cpu.period
							  : runtime->options.wall.period;
	runtime->sampler.is_rate_reduced = false; /* a forked child's parent may have been */
	sources_choose_cpu_source(runtime);
	if (runtime->signals.signal != runtime->sampler.signal) {
		program_signals_try_restore_action(&runtime->signals,
						   false); /* of a dormant process */
		if (runtime->attached || runtime->opened)
			program_signals_note_all_handlers(&runtime->signals,
							  runtime->sampler.signal);
		error = program_signals_take_over_signal(&runtime->signals, runtime->sampler.signal,
							 (void *)sampler_handle_signal);
		if (error)
			return error;
	}
	atomic_store(&kymo_process.state, RUNTIME_ACTIVE);
	return 0;
}

static void check_debugger_and_write_notice(struct runtime *runtime)
{
	bool traced;

	if (runtime->sampler.source != &sampling_source_perf_sigtrap)
		return;
	traced = sources_program_is_traced();
	if (traced != runtime->background.is_debugger_attached)
		process_record_write_notice(&runtime->records, SPOOL_NOTICE_CONFLICT, SIGTRAP,
					    traced ? "a debugger is attached: sampling is paused"
						   : "the debugger is gone: sampling continues");
	runtime->background.is_debugger_attached = traced;
}

/* Moves *next on by the period when it is due; keeps the least waiting time. */
static bool advance_due_time_and_shorten_wait(uint64_t *next, uint64_t period, uint64_t now,
					      uint64_t *wait)
{
	bool is_due = now >= *next;

	if (is_due)
		*next = now + period;
	if (*next - now < *wait)
		*wait = *next - now;
	return is_due;
}

static void read_counters_of_all_threads(struct runtime *runtime)
{
	if (!*runtime->options.counters)
		return;
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		counters_update_from_descriptors(thread);
}

static void change_period_of_all_threads(struct runtime *runtime, uint64_t period)
{
	runtime->sampler.period = period;
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		sources_randomize_period_of_thread(runtime, thread);
}

void background_work_set_sampling_reduced(struct runtime *runtime, bool reduced)
{
	uint64_t period = runtime->sampler.period;

	if (runtime->sampler.is_rate_reduced == reduced)
		return;
	runtime->sampler.is_rate_reduced = reduced;
	change_period_of_all_threads(runtime, reduced ? period * REDUCED_SAMPLE_RATE_DIVISOR
						      : period / REDUCED_SAMPLE_RATE_DIVISOR);
}

static void halve_rate_if_sampling_is_costly(struct runtime *runtime)
{
	uint64_t costly = atomic_exchange_explicit(&runtime->background.too_costly_period, 0,
						   memory_order_relaxed);
	uint64_t period = runtime->sampler.period;

	if (!costly || costly != period ||
	    period >= THROTTLED_SAMPLING_PERIOD_MAX_NS) /* else judged before the last change */
		return;
	change_period_of_all_threads(runtime, period * 2);
	spool_count_loss(&runtime->spool, SPOOL_LOSS_THROTTLED);
	process_record_write_notice(&runtime->records, SPOOL_NOTICE_THROTTLE, period * 2,
				    "sampling exceeded SAMPLING_OVERHEAD_LIMIT: rate halved");
}

static void remind_timer_requests_and_count_refusals(struct runtime *runtime, uint64_t now,
						     uint64_t *wait)
{
	timers_remind_threads_of_requests(runtime, now, wait);
	for (uint32_t refused = timers_fetch_refused_count(); refused; refused--)
		spool_count_loss(&runtime->spool, SPOOL_LOSS_UNARMED_THREAD);
}

static void randomize_periods_of_sampled_threads(struct runtime *runtime)
{
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		if (!thread->armed || thread->sample_count == thread->sample_count_at_period_change)
			continue;
		thread->sample_count_at_period_change = thread->sample_count;
		sources_randomize_period_of_thread(runtime, thread);
	}
}

static void refresh_modules_if_due(struct runtime *runtime, uint64_t now, uint64_t *wait)
{
	struct loaded_modules *modules = &runtime->modules;
	uint64_t due_ns = modules_get_refresh_due_ns(modules);

	if (now >= due_ns) {
		modules_refresh(modules, &runtime->records,
				no_handler_uses_old_unwind_view(runtime));
		due_ns = modules_get_refresh_due_ns(modules);
	}
	if (due_ns < now + *wait)
		*wait = due_ns > now + MODULE_REFRESH_SLEEP_LEAST_NS
				? due_ns - now
				: MODULE_REFRESH_SLEEP_LEAST_NS;
}

static void call_follow_allocations_hook(struct runtime *runtime, bool last)
{
	void (*follow)(struct runtime *, bool) =
		atomic_load_explicit(&runtime->follow_allocations, memory_order_acquire);

	if (follow)
		follow(runtime, last);
}

void background_work_look_at_modules(struct runtime *runtime)
{
	const struct timespec pause = {0, OLD_VIEW_RETRY_PAUSE_NS};

	for (int tries = 0; runtime->modules.retired && tries < OLD_VIEW_TRIES_MAX &&
			    !no_handler_uses_old_unwind_view(runtime);
	     tries++)
		sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&pause, 0);
	modules_refresh(&runtime->modules, &runtime->records,
			no_handler_uses_old_unwind_view(runtime));
	call_follow_allocations_hook(runtime, false);
}

static void call_round_hook(struct runtime *runtime, bool last)
{
	if (runtime->hooks && runtime->hooks->round)
		runtime->hooks->round(runtime, last);
}

static void write_process_metrics_if_due(struct runtime *runtime, uint64_t now, uint64_t *wait)
{
	struct background_state *background = &runtime->background;
	const struct options *options = &runtime->options;

	if (!options->records_process_metrics)
		return;
	if (!control_is_collecting(&runtime->control)) { /* the last moment belongs to the window */
		if (background->is_writing_process_metrics)
			process_metrics_write_record(&runtime->records, 0);
		background->is_writing_process_metrics = false;
		return;
	}
	if (!background->process_metrics_end_ns) {
		background->next_process_metrics_ns =
			now + (uint64_t)options->process_metrics_delay_ns;
		background->process_metrics_end_ns =
			options->process_metrics_duration_ns > 0
				? background->next_process_metrics_ns +
					  (uint64_t)options->process_metrics_duration_ns
				: UINT64_MAX;
	}
	if (now >= background->process_metrics_end_ns) {
		background->is_writing_process_metrics = false;
		return;
	}
	if (advance_due_time_and_shorten_wait(&background->next_process_metrics_ns,
					      options->process_metrics_period_ns, now, wait)) {
		process_metrics_write_record(&runtime->records,
					     options->records_cpu_frequency ? background->cpus : 0);
		background->is_writing_process_metrics = true;
	}
}

/* Often, because a process may end without a word and its helper with it. */
static void write_spool_if_due(struct runtime *runtime, uint64_t now, bool flush, uint64_t *wait)
{
	struct background_state *background = &runtime->background;
	struct spool_writer *spool = &runtime->spool;

	if (advance_due_time_and_shorten_wait(
		    &background->next_spool_write_ns,
		    SPOOL_WRITE_PERIOD_NS + background->live_thread_count * 50000ull, now, wait) ||
	    flush || background->write_now)
		spool_write_new_records(spool, spool->fd, flush || background->write_now);
	background->write_now = false;
	if (!spool->was_file_shortened)
		return;
	spool->was_file_shortened = false;
	process_record_write_notice(
		&runtime->records, SPOOL_NOTICE_DISABLED, 0,
		"somebody shortened a spool file while the program ran: part of "
		"what was recorded is missing");
}

/* Programs and forked children name their threads soon after they start, and may not live long. */
static void record_changed_names_if_due(struct runtime *runtime, uint64_t now, uint64_t *wait)
{
	struct background_state *background = &runtime->background;

	if (!advance_due_time_and_shorten_wait(
		    &background->next_name_check_ns,
		    NAME_CHECK_PERIOD_FIRST_NS << background->name_check_shift, now, wait))
		return;
	if (background->name_check_shift < NAME_CHECK_SHIFT_MAX)
		background->name_check_shift++;
	live_threads_record_changed_names(runtime);
}

uint64_t background_work_run_round(struct runtime *runtime, bool flush)
{
	struct background_state *background = &runtime->background;
	uint64_t now = read_posix_clock_ns(CLOCK_MONOTONIC), wait = SECOND_NS;
	bool sampling =
		runtime->options.cpu.on || runtime->options.wall.on || runtime->options.overflow.on;

	spool_refill_ready_chunks(&runtime->spool, runtime->spool.fd);
	notices_write_posted(&runtime->records);
	if (runtime->spool.growth_errno && wait > SPOOL_GROWTH_RETRY_PERIOD_NS)
		wait = SPOOL_GROWTH_RETRY_PERIOD_NS;
	live_threads_process_announced(runtime);
	rank_write_if_changed(runtime);
	call_follow_allocations_hook(runtime, flush);
	call_round_hook(runtime, flush);
	chunk_allocators_start_if_needed(runtime, background->program_thread_count);
	refresh_modules_if_due(runtime, now, &wait);
	interpreters_run_round();
	halve_rate_if_sampling_is_costly(runtime);
	sources_change_by_switch_rates(runtime, now);
	remind_timer_requests_and_count_refusals(runtime, now, &wait);
	control_run_round(runtime, &wait);
	attach_request_detach_if_attacher_gone(runtime, now, &wait);
	write_process_metrics_if_due(runtime, now, &wait);
	if (advance_due_time_and_shorten_wait(&background->next_clock_record_ns,
					      CLOCK_RECORD_PERIOD_NS, now, &wait)) {
		process_record_write_clock(&runtime->records);
		check_debugger_and_write_notice(runtime);
	}
	record_changed_names_if_due(runtime, now, &wait);
	if (sampling &&
	    advance_due_time_and_shorten_wait(&background->next_period_jitter_ns,
					      SAMPLING_JITTER_UPDATE_PERIOD_NS / 2 +
						      now % SAMPLING_JITTER_UPDATE_PERIOD_NS,
					      now, &wait) &&
	    runtime->options.has_period_jitter)
		randomize_periods_of_sampled_threads(runtime);
	/* Often, because a process may end without a word; but not at the cost of many threads. */
	if (advance_due_time_and_shorten_wait(&background->next_totals_update_ns,
					      HEADER_TOTALS_UPDATE_PERIOD_NS +
						      background->live_thread_count * 10000ull,
					      now, &wait)) {
		live_threads_sum_totals_into_header(runtime);
		read_counters_of_all_threads(runtime);
	}
	if (advance_due_time_and_shorten_wait(
		    &background->next_thread_scan_ns,
		    THREAD_SCAN_PERIOD_NS + 20 * background->thread_scan_cost_ns, now, &wait)) {
		live_threads_scan_tasks(runtime);
		live_threads_find_stack_bounds(runtime);
	}
	runtime->spool.header->end_ticks = ticks_now();
	write_spool_if_due(runtime, now, flush, &wait);
	return wait;
}

void background_work_flush_spool(struct runtime *runtime)
{
	if (atomic_load(&runtime->background.is_spool_file_open))
		spool_write_new_records(&runtime->spool, runtime->spool.fd, true);
}

/* The program ended without a word: until now, calls were open. */
static void note_end_of_data(struct runtime *runtime)
{
	if (runtime->spool.header->state == SPOOL_STATE_OPEN &&
	    !atomic_load(&runtime->background.are_final_records_written))
		runtime->spool.header->end_ticks = ticks_now();
}

void background_work_flush_after_death(struct runtime *runtime)
{
	if (!atomic_load(&runtime->background.is_spool_file_open))
		return;
	own_work_write_to_header(runtime->spool.header);
	note_end_of_data(runtime);
	spool_write_after_program_end(&runtime->spool, runtime->spool.fd);
}

void background_work_write_final_records(struct runtime *runtime)
{
	note_end_of_data(runtime);
	call_follow_allocations_hook(runtime, true);
}

void background_work_write_last_records(struct runtime *runtime)
{
	live_threads_process_announced(runtime);
	rank_write_if_changed(runtime);
	call_follow_allocations_hook(runtime, true);
	call_round_hook(runtime, true);
	live_threads_record_changed_names(runtime);
	if (runtime->background.is_writing_process_metrics)
		process_metrics_write_record(&runtime->records, 0);
	live_threads_sum_totals_into_header(runtime);
	live_threads_write_end_records(runtime);
	process_record_write_clock(&runtime->records);
	runtime->spool.header->state = atomic_load(&runtime->background.is_exec_pending)
					       ? SPOOL_STATE_EXEC
					       : SPOOL_STATE_EXITED;
	runtime->spool.header->end_ticks = ticks_now();
}

void background_work_stop_collection_for_good(struct runtime *runtime)
{
	process_record_write_notice(&runtime->records, SPOOL_NOTICE_DISABLED, 0,
				    runtime->background.stop_reason);
	background_work_write_last_records(runtime);
	control_set_runtime_stopped(runtime);
	atomic_store(&kymo_process.state, RUNTIME_INACTIVE);
	atomic_store(&runtime->chunk_allocators.stop, 1);
	chunk_allocators_wake_all_threads(&runtime->chunk_allocators);
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		sources_close_for_thread(thread);
}
