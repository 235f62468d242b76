/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See control.h.
 */
#include "core/control.h"

#include <string.h>

#include "core/base/futex.h"
#include "core/base/ticks.h"
#include "core/control_signal.h"
#include "core/live_threads.h"
#include "core/process/session_age.h"
#include "core/program.h"
#include "core/runtime.h"
#include "core/sources.h"

#define CONTROL_COMMAND_POLL_PERIOD_NS 20000000ull /* how often the header is looked at */
#define FIRST_START_TIMEOUT_NS         100000000ull /* a machine that is this busy is not waited for */

struct collection_control default_collection_control = {.closed_reasons =
								CONTROL_CLOSED_NOT_STARTED};

void control_reset(struct collection_control *control)
{
	struct background_state *background = control->background;
	const struct runtime_hooks *hooks = control->hooks;

	memset(control, 0, sizeof(*control));
	control->background = background;
	control->hooks = hooks;
	control_add_closed_reason(control, CONTROL_CLOSED_NOT_STARTED);
}

static void call_hook_if_closed_reasons_changed(const struct collection_control *control,
						uint32_t before, uint32_t now)
{
	if (before != now && control->hooks && control->hooks->on_collection_switched)
		control->hooks->on_collection_switched();
}

void control_add_closed_reason(struct collection_control *control, enum control_closed_reason why)
{
	uint32_t before = atomic_fetch_or(&control->closed_reasons, (uint32_t)why);

	call_hook_if_closed_reasons_changed(control, before, before | (uint32_t)why);
}

void control_remove_closed_reason(struct collection_control *control,
				  enum control_closed_reason why)
{
	uint32_t before = atomic_fetch_and(&control->closed_reasons, ~(uint32_t)why);

	call_hook_if_closed_reasons_changed(control, before, before & ~(uint32_t)why);
}

void control_stop_collection(struct collection_control *control)
{
	control_add_closed_reason(control, CONTROL_CLOSED_BY_STOP);
	if (runtime_is_active())
		background_wake(control->background);
}

/* With INIT_ENABLED=off the windows begin with the first start, and the sources of samples are
 * armed then: by the background thread, which never waits for the program. Later starts find them
 * there. */
static void wait_until_first_start_is_followed(struct collection_control *control)
{
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + FIRST_START_TIMEOUT_NS, now;
	uint32_t state;

	while (!(state = atomic_load_explicit(&control->first_start_state, memory_order_acquire))) {
		now = read_posix_clock_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return;
		futex_wait(&control->first_start_state, state, end - now);
	}
}

void control_start_collection(struct collection_control *control)
{
	control_remove_closed_reason(control, CONTROL_CLOSED_BY_STOP);
	if (!runtime_is_active())
		return;
	background_wake(control->background);
	wait_until_first_start_is_followed(control);
}

void control_toggle_collection(struct collection_control *control)
{
	if (!(atomic_load(&control->closed_reasons) & CONTROL_CLOSED_BY_STOP)) {
		control_stop_collection(control);
		return;
	}
	control_remove_closed_reason(control, CONTROL_CLOSED_BY_STOP);
	if (runtime_is_active())
		background_wake(control->background);
}

/* ---- single threads ---- */

/* The thread's next sample stands for its CPU time since the last one, less what passed excluded:
 * the start is moved by that. Should the source have been armed in between, the sum would lie in
 * the future. */
static void call_thread_collection_switched_hook(const struct collection_control *control)
{
	if (control->hooks && control->hooks->on_thread_exclusion_changed)
		control->hooks->on_thread_exclusion_changed();
}

void control_exclude_this_thread(const struct collection_control *control, struct thread *thread,
				 uint32_t why)
{
	/* relaxed: only the handler of this very thread reads the rest */
	uint32_t before =
		atomic_fetch_or_explicit(&thread->excluded_reasons, why, memory_order_relaxed);

	if (!before)
		thread->cpu_ns_at_exclusion = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	call_thread_collection_switched_hook(control);
}

void control_include_this_thread(const struct collection_control *control, struct thread *thread,
				 uint32_t why)
{
	uint32_t before = atomic_load_explicit(&thread->excluded_reasons, memory_order_relaxed);
	uint64_t cpu, passed;

	if (before && !(before & ~why)) {
		cpu = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		passed = cpu - thread->cpu_ns_at_exclusion;
		thread->cpu_ns = thread->cpu_ns + passed < cpu ? thread->cpu_ns + passed : cpu;
		thread->total_excluded_cpu_ns += passed;
	}
	atomic_fetch_and_explicit(&thread->excluded_reasons, ~why, memory_order_relaxed);
	call_thread_collection_switched_hook(control);
}

/* ---- background thread ---- */

static bool advance_windows_and_shorten_wait(struct runtime *runtime, struct time_windows *windows,
					     uint64_t *wait)
{
	uint64_t window_wait;
	bool open = time_windows_advance(windows, runtime->background.cpus, &window_wait);

	if (window_wait < *wait)
		*wait = window_wait;
	return open;
}

static void record_window(struct runtime *runtime, bool open, uint64_t ticks)
{
	if (runtime->control.windows.count && runtime->control.is_window_recorded)
		process_record_write_window(&runtime->records, ticks, open);
}

/* Counted first: whoever sees the window open sees that it is another one. */
static void open_window(struct runtime *runtime)
{
	struct collection_control *control = &runtime->control;
	uint64_t ticks = ticks_now();

	atomic_fetch_add(&control->outside_window_ticks,
			 ticks - atomic_load(&control->window_close_ticks));
	atomic_fetch_add(&control->opened_window_count, 1);
	control_remove_closed_reason(control, CONTROL_CLOSED_BY_WINDOW);
	record_window(runtime, true, ticks);
}

static void close_window(struct runtime *runtime)
{
	struct collection_control *control = &runtime->control;
	uint64_t ticks = ticks_now();

	atomic_store(&control->window_clock_at_close,
		     ticks - atomic_load(&control->outside_window_ticks));
	atomic_store(&control->window_close_ticks, ticks);
	control_add_closed_reason(control, CONTROL_CLOSED_BY_WINDOW);
	record_window(runtime, false, ticks);
}

/* How the windows are when the process begins. */
static void record_first_window(struct runtime *runtime)
{
	struct collection_control *control = &runtime->control;

	if (control->is_window_recorded || !control->windows.count)
		return;
	control->is_window_recorded = true;
	record_window(runtime, !(atomic_load(&control->closed_reasons) & CONTROL_CLOSED_BY_WINDOW),
		      runtime->spool.header->start_ticks);
}

/* Steps the windows of all collection; did they open or close? They begin with the first start. */
static bool advance_collection_windows(struct runtime *runtime, uint64_t *wait)
{
	struct collection_control *control = &runtime->control;
	uint32_t before = atomic_load(&control->closed_reasons);
	bool open;

	if (!(before & CONTROL_CLOSED_BY_STOP))
		control->has_started_windows = true;
	if (!control->has_started_windows)
		return false;
	open = advance_windows_and_shorten_wait(runtime, &control->windows, wait);
	if (open == !(before & CONTROL_CLOSED_BY_WINDOW))
		return false;
	if (open)
		open_window(runtime);
	else
		close_window(runtime);
	return true;
}

/* The windows are the session's: a process that is started later finds them under way. */
static void align_windows_with_session(struct collection_control *control,
				       const struct options *options)
{
	struct time_windows *const windows[] = {&control->windows, &control->cpu_sampler_windows,
						&control->wall_sampler_windows,
						&control->overflow_sampler_windows};
	uint64_t age = 0;

	for (unsigned i = 0; i < 4; i++) {
		if (!windows[i]->count)
			continue;
		if (!age)
			age = session_age_get_or_begin_ns(options->spool_directory);
		time_windows_backdate_start(windows[i], age);
	}
}

void control_set_runtime_ready(struct runtime *runtime)
{
	struct collection_control *control = &runtime->control;
	struct options *options = &runtime->options;
	uint64_t wait = TIME_WINDOWS_WAIT_NEVER_ENDS;

	if (!control->begun) {
		time_windows_init(&control->windows, options->collection_periods,
				  options->collection_period_count, program_read_clock_ns);
		time_windows_init_single_period(&control->cpu_sampler_windows, &options->cpu.window,
						program_read_clock_ns);
		time_windows_init_single_period(&control->wall_sampler_windows,
						&options->wall.window, program_read_clock_ns);
		time_windows_init_single_period(&control->overflow_sampler_windows,
						&options->overflow.window, program_read_clock_ns);
		if (!options->regions.start)
			control_add_closed_reason(control, CONTROL_CLOSED_BY_STOP);
		else
			align_windows_with_session(control, options);
	} else if (control->pid != kymo_process.pid) {
		time_windows_restart_cpu_time_period(&control->windows);
	}
	control->pid = kymo_process.pid;
	control->begun = true;
	control->was_collecting = control->told = false;
	control->answered_request = 0;
	control->is_window_recorded = false;
	/* The windows decide before anything is recorded; what opens at once is open from here on.
	 * Without windows, what is started is on at once. */
	if (control->windows.count) {
		atomic_store(&control->window_close_ticks, runtime->spool.header->start_ticks);
		atomic_store(&control->window_clock_at_close, runtime->spool.header->start_ticks);
		atomic_store(&control->outside_window_ticks, 0);
		control_add_closed_reason(control, CONTROL_CLOSED_BY_WINDOW);
	}
	control_signal_install_if_free(runtime);
	advance_collection_windows(runtime, &wait);
	control_remove_closed_reason(control, CONTROL_CLOSED_NOT_STARTED);
}

void control_set_runtime_stopped(struct runtime *runtime)
{
	control_add_closed_reason(&runtime->control, CONTROL_CLOSED_NOT_STARTED);
	control_signal_restore_default(runtime);
	if (runtime->spool.header)
		runtime->spool.header->collecting = 0;
}

/* What the samplers' own windows say counts within the collection's. */
static void update_samplers_by_windows(struct runtime *runtime, bool open, uint64_t *wait)
{
	struct sampler *sampler = &runtime->sampler;
	struct collection_control *control = &runtime->control;
	const struct options *options = &runtime->options;
	bool cpu = advance_windows_and_shorten_wait(runtime, &control->cpu_sampler_windows, wait) &&
		   open && options->cpu.on;
	bool wall =
		advance_windows_and_shorten_wait(runtime, &control->wall_sampler_windows, wait) &&
		open && options->wall.on;
	bool overflow = advance_windows_and_shorten_wait(
				runtime, &control->overflow_sampler_windows, wait) &&
			open && options->overflow.on;
	bool wall_changes = wall != atomic_load(&sampler->is_wall_window_open);

	atomic_store_explicit(&sampler->is_cpu_window_open, cpu, memory_order_relaxed);
	atomic_store_explicit(&sampler->is_wall_window_open, wall, memory_order_relaxed);
	atomic_store_explicit(&sampler->is_overflow_window_open, overflow, memory_order_relaxed);
	if (wall_changes)
		wall_sampler_wake(&runtime->wall_sampler);
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		sources_arm_or_disarm_by_state(runtime, thread);
}

static void write_notice_if_collection_changed(struct runtime *runtime, bool open, bool by_window)
{
	struct collection_control *control = &runtime->control;

	/* That a process without windows collects from its start is no news. */
	if (!control->told && open && !control->windows.count)
		control->was_collecting = true;
	by_window = by_window || (!control->told && control->windows.count);
	if (!control->told && !control->has_started_windows)
		process_record_write_notice(&runtime->records, SPOOL_NOTICE_WINDOW, 0,
					    "collection waits for the first start");
	control->told = true;
	__atomic_store_n(&runtime->spool.header->collecting, open, __ATOMIC_RELEASE);
	if (open == control->was_collecting)
		return;
	control->was_collecting = open;
	process_record_write_notice(&runtime->records, SPOOL_NOTICE_WINDOW, open,
				    by_window ? open ? "window opened" : "window closed"
				    : open    ? "collection started"
					      : "collection stopped");
}

static void tell_first_start_is_followed(struct collection_control *control)
{
	if (atomic_exchange_explicit(&control->first_start_state, 1, memory_order_release) == 0)
		futex_wake_all_waiters(&control->first_start_state);
}

static void update_collection_by_windows(struct runtime *runtime, uint64_t *wait)
{
	struct collection_control *control = &runtime->control;
	bool window_changes, open;

	record_first_window(runtime);
	window_changes = advance_collection_windows(runtime, wait);
	open = control_is_collecting(control);
	if (control->has_started_windows) {
		update_samplers_by_windows(runtime, open, wait);
		tell_first_start_is_followed(control);
	}
	write_notice_if_collection_changed(runtime, open, window_changes);
}

static void write_threads_and_totals_to_spool(struct runtime *runtime)
{
	live_threads_process_announced(runtime);
	live_threads_sum_totals_into_header(runtime);
	process_record_write_clock(&runtime->records);
	runtime->spool.header->end_ticks = ticks_now();
}

static void execute_control_command(struct runtime *runtime, uint32_t command)
{
	switch (command) {
	case SPOOL_CONTROL_START:
		control_remove_closed_reason(&runtime->control, CONTROL_CLOSED_BY_STOP);
		break;
	case SPOOL_CONTROL_STOP:
		control_add_closed_reason(&runtime->control, CONTROL_CLOSED_BY_STOP);
		break;
	case SPOOL_CONTROL_FLUSH:
		write_threads_and_totals_to_spool(runtime);
		break;
	case SPOOL_CONTROL_DETACH:
		runtime->background.is_detach_wanted = true;
		break;
	default:
		break;
	}
}

void control_run_round(struct runtime *runtime, uint64_t *wait)
{
	uint32_t command = 0, request = spool_read_control_request(&runtime->spool, &command);
	bool asked = request != runtime->control.answered_request;

	if (asked)
		execute_control_command(runtime, command);
	control_signal_write_notice_if_lost(runtime);
	update_collection_by_windows(runtime, wait);
	if (asked) {
		runtime->control.answered_request = request;
		runtime->spool.header->control_answer = request;
		runtime->background.write_now = true;
	}
	if (*wait > CONTROL_COMMAND_POLL_PERIOD_NS)
		*wait = CONTROL_COMMAND_POLL_PERIOD_NS;
}
