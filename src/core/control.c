/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See control.h.
 */
#include "core/control.h"

#include "core/control_signal.h"
#include "core/live_threads.h"
#include "core/runtime.h"
#include "core/session_age.h"
#include "core/sources.h"
#include "core/ticks.h"

#define COMMAND_PERIOD_NS 20000000ull /* how often the header is looked at */

static void tell(uint32_t before, uint32_t now)
{
	if (before != now && kymo_runtime.hooks && kymo_runtime.hooks->switched)
		kymo_runtime.hooks->switched();
}

void control_close(enum control_closed why)
{
	uint32_t before = atomic_fetch_or(&kymo_runtime.control.closed, (uint32_t)why);

	tell(before, before | (uint32_t)why);
}

void control_open(enum control_closed why)
{
	uint32_t before = atomic_fetch_and(&kymo_runtime.control.closed, ~(uint32_t)why);

	tell(before, before & ~(uint32_t)why);
}

void control_stop(void)
{
	control_close(CONTROL_CLOSED_STOPPED);
	if (runtime_active())
		background_wake(&kymo_runtime.background);
}

void control_start(void)
{
	control_open(CONTROL_CLOSED_STOPPED);
	if (runtime_active())
		background_wake(&kymo_runtime.background);
}

void control_toggle(void)
{
	if (atomic_load(&kymo_runtime.control.closed) & CONTROL_CLOSED_STOPPED)
		control_start();
	else
		control_stop();
}

/* ---- single threads ---- */

/* The thread's next sample stands for its CPU time since the last one, less what passed excluded:
 * the start is moved by that. Should the source have been armed in between, the sum would lie in
 * the future. */
static void tell_thread(void)
{
	if (kymo_runtime.hooks && kymo_runtime.hooks->thread_switched)
		kymo_runtime.hooks->thread_switched();
}

void control_exclude_thread(struct thread *thread, uint32_t why)
{
	/* relaxed: only the handler of this very thread reads the rest */
	uint32_t before = atomic_fetch_or_explicit(&thread->excluded, why, memory_order_relaxed);

	if (!before)
		thread->excluded_cpu_ns = ticks_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	tell_thread();
}

void control_include_thread(struct thread *thread, uint32_t why)
{
	uint32_t before = atomic_load_explicit(&thread->excluded, memory_order_relaxed);
	uint64_t cpu, passed;

	if (before && !(before & ~why)) {
		cpu = ticks_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		passed = cpu - thread->excluded_cpu_ns;
		thread->cpu_ns = thread->cpu_ns + passed < cpu ? thread->cpu_ns + passed : cpu;
		thread->passed_over_ns += passed;
	}
	atomic_fetch_and_explicit(&thread->excluded, ~why, memory_order_relaxed);
	tell_thread();
}

/* ---- background thread ---- */

static bool step(struct runtime *runtime, struct windows *windows, uint64_t *wait)
{
	uint64_t window_wait;
	bool open = windows_step(windows, runtime->background.cpus, &window_wait);

	if (window_wait < *wait)
		*wait = window_wait;
	return open;
}

/* Steps the windows of all collection; did they open or close? They begin with the first start. */
static bool step_windows(struct runtime *runtime, uint64_t *wait)
{
	struct control *control = &runtime->control;
	uint32_t before = atomic_load(&control->closed);
	bool open;

	if (!(before & CONTROL_CLOSED_STOPPED))
		control->windows_run = true;
	if (!control->windows_run)
		return false;
	open = step(runtime, &control->windows, wait);
	if (open)
		control_open(CONTROL_CLOSED_WINDOW);
	else
		control_close(CONTROL_CLOSED_WINDOW);
	return open == ((before & CONTROL_CLOSED_WINDOW) != 0);
}

/* The windows are the session's: a process that is started later finds them under way. */
static void join_session(struct control *control, const struct options *options)
{
	struct windows *const windows[] = {&control->windows, &control->cpu_window,
					   &control->wall_window, &control->overflow_window};
	uint64_t age = 0;

	for (unsigned i = 0; i < 4; i++) {
		if (!windows[i]->count)
			continue;
		if (!age)
			age = session_age_ns(options->spool_directory);
		windows_begin_earlier(windows[i], age);
	}
}

void control_begin(struct runtime *runtime)
{
	struct control *control = &runtime->control;
	struct options *options = &runtime->options;
	uint64_t wait = WINDOWS_NEVER;

	if (!control->begun) {
		windows_init(&control->windows, options->periods, options->period_count,
			     ticks_clock_ns);
		windows_init_single(&control->cpu_window, &options->cpu.window, ticks_clock_ns);
		windows_init_single(&control->wall_window, &options->wall.window, ticks_clock_ns);
		windows_init_single(&control->overflow_window, &options->overflow.window,
				    ticks_clock_ns);
		if (!options->regions.start)
			control_close(CONTROL_CLOSED_STOPPED);
		else
			join_session(control, options);
	} else if (control->pid != runtime->pid) {
		windows_follow_fork(&control->windows);
	}
	control->pid = runtime->pid;
	control->begun = true;
	control->was_open = control->told = false;
	control->answered = 0;
	/* The windows decide before anything is recorded; what opens at once is open from here on.
	 */
	control_close(CONTROL_CLOSED_WINDOW);
	control_signal_take(runtime);
	step_windows(runtime, &wait);
	control_open(CONTROL_CLOSED_START);
}

void control_end(struct runtime *runtime)
{
	control_close(CONTROL_CLOSED_START);
	control_signal_give_back(runtime);
	if (runtime->spool.header)
		runtime->spool.header->collecting = 0;
}

/* What the samplers' own windows say counts within the collection's. */
static void open_samplers(struct runtime *runtime, bool open, uint64_t *wait)
{
	struct sampling *sampling = &runtime->sampling;
	struct control *control = &runtime->control;
	const struct options *options = &runtime->options;
	bool cpu = step(runtime, &control->cpu_window, wait) && open && options->cpu.on;
	bool wall = step(runtime, &control->wall_window, wait) && open && options->wall.on;
	bool overflow =
		step(runtime, &control->overflow_window, wait) && open && options->overflow.on;
	bool wall_changes = wall != atomic_load(&sampling->wall_open);

	atomic_store_explicit(&sampling->cpu_open, cpu, memory_order_relaxed);
	atomic_store_explicit(&sampling->wall_open, wall, memory_order_relaxed);
	atomic_store_explicit(&sampling->overflow_open, overflow, memory_order_relaxed);
	if (wall_changes)
		wall_sampler_wake(&runtime->wall_sampler);
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		sources_follow(runtime, thread);
}

static void tell_change(struct runtime *runtime, bool open, bool by_window)
{
	struct control *control = &runtime->control;

	/* That a process without windows collects from its start is no news. */
	if (!control->told && open && !control->windows.count)
		control->was_open = true;
	by_window = by_window || (!control->told && control->windows.count);
	if (!control->told && !control->windows_run)
		track_notice(&runtime->track, SPOOL_NOTICE_WINDOW, 0,
			     "collection waits for the first start");
	control->told = true;
	__atomic_store_n(&runtime->spool.header->collecting, open, __ATOMIC_RELEASE);
	if (open == control->was_open)
		return;
	control->was_open = open;
	track_notice(&runtime->track, SPOOL_NOTICE_WINDOW, open,
		     by_window ? open ? "window opened" : "window closed"
		     : open    ? "collection started"
			       : "collection stopped");
}

static void run_windows(struct runtime *runtime, uint64_t *wait)
{
	struct control *control = &runtime->control;
	bool window_changes = step_windows(runtime, wait), open = control_is_open(control);

	if (control->windows_run)
		open_samplers(runtime, open, wait);
	tell_change(runtime, open, window_changes);
}

static void flush(struct runtime *runtime)
{
	live_threads_process(runtime);
	live_threads_totals(runtime);
	track_clock(&runtime->track);
	runtime->spool.header->end_ticks = ticks_now();
}

static void obey(struct runtime *runtime, uint32_t command)
{
	switch (command) {
	case SPOOL_CONTROL_START:
		control_open(CONTROL_CLOSED_STOPPED);
		break;
	case SPOOL_CONTROL_STOP:
		control_close(CONTROL_CLOSED_STOPPED);
		break;
	case SPOOL_CONTROL_FLUSH:
		flush(runtime);
		break;
	case SPOOL_CONTROL_DETACH:
		runtime->background.detach = true;
		break;
	default:
		break;
	}
}

void control_round(struct runtime *runtime, uint64_t *wait)
{
	struct spool_file_header *header = runtime->spool.header;
	/* acquire: the command was written before the request was counted */
	uint32_t request = __atomic_load_n(&header->control_request, __ATOMIC_ACQUIRE);
	bool asked = request != runtime->control.answered;

	if (asked)
		obey(runtime, __atomic_load_n(&header->control_command, __ATOMIC_RELAXED));
	control_signal_tell(runtime);
	run_windows(runtime, wait);
	if (asked) {
		runtime->control.answered = request;
		__atomic_store_n(&header->control_answer, request, __ATOMIC_RELEASE);
	}
	if (*wait > COMMAND_PERIOD_NS)
		*wait = COMMAND_PERIOD_NS;
}
