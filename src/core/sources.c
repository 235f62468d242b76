/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sources.h. perf_event_open(2), timer_create(2). attr.sigtrap (Linux 5.13) delivers SIGTRAP
 * synchronously without the self-interrupt that signal-driven I/O needs, which halves the cost of a
 * sample on virtual machines.
 */
#include "core/sources.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/array.h"
#include "common/perf_events.h"
#include "common/splitmix64.h"
#include "common/syscalls.h"
#include "common/time_units.h"
#include "core/base/text.h"
#include "core/base/ticks.h"
#include "core/counters.h"
#include "core/program.h"
#include "core/runtime.h"
#include "core/sampling_source.h"
#include "core/timers.h"

#define NEW_THREAD_CPU_MAX_NS          20000000ull
#define EARLY_NEXT_SAMPLE_PERIOD_NS    (100 * MICROSECOND_NS) /* of the thread's CPU time */
#define CONTEXT_SWITCH_CHECK_PERIOD_NS (100 * MILLISECOND_NS)
#define CONTEXT_SWITCH_NOTICES_MAX     1000u /* threads of a process that notices are written of */

/* Uniform in [low, high). */
static uint64_t draw_random_between(struct thread *thread, uint64_t low, uint64_t high)
{
	return high > low ? low + splitmix64_next(&thread->random) % (high - low) : low;
}

bool sources_program_is_traced(void)
{
	static const char key[] = "TracerPid:\t";
	char buffer[4096];

	program_read_proc_file("status", buffer, sizeof(buffer));
	for (const char *at = buffer; *at; at++) {
		if (!strncmp(at, key, sizeof(key) - 1))
			return at[sizeof(key) - 1] != '0';
	}
	return false;
}

/* In order of preference. */
#define SAMPLING_SOURCE_POINTER_ROW(identifier, number, text) &sampling_source_##identifier,
static const struct sampling_source *const sampling_sources[] = {
	SAMPLING_SOURCE_LIST(SAMPLING_SOURCE_POINTER_ROW)};

static void write_notice_joining_two_texts(struct runtime *runtime, enum spool_notice kind,
					   uint64_t argument, const char *first, const char *second)
{
	char buffer[256];
	struct text_buffer text = text_buffer_init(buffer, sizeof(buffer));

	text_append_string(&text, first);
	text_append_string(&text, second);
	process_record_write_notice(&runtime->records, kind, argument, buffer);
}

/* A debugger would see every SIGTRAP, and a program that is executed unseen would be ended by one
 * that comes late (SIGURG does it no harm); a signal asked for by name rules it out as well. */
static bool source_signal_is_safe(const struct runtime *runtime,
				  const struct sampling_source *source)
{
	return source->signal != SIGTRAP || (!runtime->options.signal && !runtime->attached &&
					     !runtime->opened && !sources_program_is_traced());
}

static uint64_t read_kernel_tick_ns(void)
{
	struct timespec tick = {0, 0};

	sys_call2(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, (long)&tick);
	return (uint64_t)tick.tv_nsec;
}

void sources_choose_cpu_source(struct runtime *runtime)
{
	struct sampler *sampler = &runtime->sampler;
	enum options_sampling_source_kind wanted = runtime->options.source;
	const struct sampling_source *source = NULL;
	int error = 0, result;

	sampler->kernel_timer_tick_ns = read_kernel_tick_ns();
	/* An array of pointers. NOLINTNEXTLINE(bugprone-sizeof-expression) */
	for (size_t i = 0; i < ARRAY_SIZE(sampling_sources); i++) {
		source = sampling_sources[i];
		/* Where perf is asked for and refused, there are timers. */
		if (wanted == OPTIONS_SOURCE_TIMER && source->setting_value != OPTIONS_SOURCE_TIMER)
			continue;
		if (!source_signal_is_safe(runtime, source))
			continue;
		result = source->probe(sampler);
		if (!result)
			break;
		error = result;
	}
	sampler->source = source;
	sampler->signal = source->signal            ? source->signal
			  : runtime->options.signal ? runtime->options.signal
						    : SIGURG;
	if (source->setting_value == OPTIONS_SOURCE_TIMER && wanted != OPTIONS_SOURCE_TIMER)
		write_notice_joining_two_texts(runtime, SPOOL_NOTICE_FALLBACK, (uint64_t)error,
					       "perf events are not permitted, using a ",
					       source->name);
	sampler->may_change_source_to_timer =
		wanted == OPTIONS_SOURCE_AUTO && source->setting_value != OPTIONS_SOURCE_TIMER;
	write_notice_joining_two_texts(runtime, SPOOL_NOTICE_SOURCE, source->id, source->name,
				       source->get_limits_text(sampler));
}

/* CPU time counts from here on, or up to here: what passes while the source is off is not ours to
 * account for. A thread armed right after its birth is accounted for from its birth. */
static void begin_or_end_cpu_time_accounting(struct thread *thread, bool on)
{
	uint64_t cpu = program_thread_get_cpu_ns(thread);

	if (!on) {
		thread->collected_cpu_ns +=
			cpu > thread->cpu_ns_at_arming ? cpu - thread->cpu_ns_at_arming : 0;
		return;
	}
	if (thread->counts_cpu_before_arming) {
		thread->counts_cpu_before_arming = false;
	} else if (cpu > NEW_THREAD_CPU_MAX_NS || thread->origin == THREAD_ORIGIN_FOUND) {
		thread->cpu_ns = thread->cpu_ns_at_arming = cpu;
		atomic_store_explicit(&thread->armed_at_ticks, ticks_now(), memory_order_release);
	} else {
		thread->cpu_ns_at_arming = thread->cpu_ns;
	}
}

static bool open_cpu_source(struct runtime *runtime, struct thread *thread, uint64_t first)
{
	const struct sampling_source *timer = &sampling_source_timer;
	const struct sampler *sampler = &runtime->sampler;
	int error = sampler->source->open(sampler, thread, first), refused = error;

	thread->source = sampler->source;
	thread->event_count_at_period_change = 0;
	thread->period_since_change = first;
	if (thread->perf_event_fd >= 0)
		program_thread_set_cpu_count_base(thread, program_get_cpu_ns_by_tid(thread->tid));
	if (!error || (error == -ESRCH && sampler->source != timer)) /* ended already */
		return true;
	thread->armed = false;
	if (sampler->source != timer)
		/* Timers need a signal that sigtrap events do not take; SIGTRAP serves both. */
		error = timer->open(sampler, thread, first);
	thread->source = error ? NULL : timer;
	if (error)
		return error == -ESRCH || error == -EINVAL;
	if (!runtime->background.has_told_timer_fallback) {
		runtime->background.has_told_timer_fallback = true;
		write_notice_joining_two_texts(
			runtime, SPOOL_NOTICE_FALLBACK, (uint64_t)-refused,
			"no more perf events are available; further threads use a ", timer->name);
	}
	return true;
}

static void open_overflow_source(struct runtime *runtime, struct thread *thread)
{
	const char *name = runtime->options.overflow_event_name,
		   *code = runtime->options.overflow_event_code;
	struct perf_event_code event;
	uint64_t period = runtime->options.overflow.period;

	if (*code ? perf_event_parse_code(code, strlen(code), &event)
		  : perf_event_find_by_name(name, strlen(name), &event))
		return;
	if (event.is_clock) {
		if (period > 10000)
			period = 10000;
		period = SECOND_NS / (period ? period : 1);
	}
	thread->overflow_event_fd =
		source_perf_open_event(&runtime->sampler, &event, period, thread->tid, false,
				       SAMPLER_SIGNAL_COOKIE_OVERFLOW);
	if (thread->overflow_event_fd < 0 && !runtime->background.has_told_overflow_failure) {
		runtime->background.has_told_overflow_failure = true;
		write_notice_joining_two_texts(
			runtime, SPOOL_NOTICE_DISABLED, (uint64_t)-thread->overflow_event_fd,
			"overflow sampling: this event cannot be opened here: ",
			runtime->options.overflow_event_name);
	}
}

static bool thread_sampling_is_paused(const struct runtime *runtime, const struct thread *thread)
{
	return atomic_load(&thread->exec_pending) || runtime->background.is_debugger_attached;
}

static bool thread_wants_cpu_source(const struct runtime *runtime, const struct thread *thread)
{
	return !thread_sampling_is_paused(runtime, thread) &&
	       (runtime->sampler.is_cpu_window_open || runtime->sampler.is_wall_window_open);
}

static void open_thread_sources(struct runtime *runtime, struct thread *thread)
{
	const struct options *options = &runtime->options;
	uint64_t period = runtime->sampler.period;
	bool cpu = options->cpu.on &&
		   options_thread_filter_allows(&options->cpu.tids, thread->sequential_id);
	bool wall = options->wall.on &&
		    options_thread_filter_allows(&options->wall.tids, thread->sequential_id);

	thread->random =
		thread->start_ticks ^ (uint64_t)thread->tid << 32 ^ (uint64_t)thread->internal_id;
	thread->period = period;
	/* Switching on later interrupts the processor that the thread runs on a second time. */
	if ((cpu || wall) && runtime->sampler.source == &sampling_source_perf_sigtrap &&
	    !*options->counters && thread_wants_cpu_source(runtime, thread)) {
		begin_or_end_cpu_time_accounting(thread, true);
		thread->armed = true;
	}
	/* The first sample comes at a random phase, so that short threads are seen as often as long
	 * ones. */
	if (cpu || wall) {
		if (!open_cpu_source(runtime, thread,
				     options->has_period_jitter
					     ? draw_random_between(thread, period / 4,
								   period + 3 * period / 4)
					     : period))
			spool_count_loss(&runtime->spool, SPOOL_LOSS_UNARMED_THREAD);
	}
	if (options->overflow.on &&
	    options_thread_filter_allows(&options->overflow.tids, thread->sequential_id))
		open_overflow_source(runtime, thread);
	if (*options->counters)
		counters_open_for_thread(runtime, thread);
	thread->sample_count_at_period_change = 0;
}

static void arm_or_disarm_thread(struct thread *thread, bool on)
{
	begin_or_end_cpu_time_accounting(thread, on);
	thread->source->set_enabled(thread, on, draw_random_between(thread, 1, thread->period));
	thread->armed = on;
	if (on && thread->perf_event_fd >= 0)
		program_thread_set_cpu_count_base(thread, program_get_cpu_ns_by_tid(thread->tid));
}

void sources_arm_or_disarm_by_state(struct runtime *runtime, struct thread *thread)
{
	bool left_alone = thread_sampling_is_paused(runtime, thread),
	     cpu = thread_wants_cpu_source(runtime, thread);
	bool overflow = !left_alone && runtime->sampler.is_overflow_window_open;

	if (!thread->source)
		cpu = false;
	if ((cpu || overflow) != (thread->armed || thread->overflow_armed))
		counters_set_enabled_for_thread(thread, cpu || overflow);
	if (cpu != thread->armed)
		arm_or_disarm_thread(thread, cpu);
	if (overflow != thread->overflow_armed) {
		source_perf_set_event_enabled(thread->overflow_event_fd, overflow);
		thread->overflow_armed = overflow;
	}
}

void sources_open_for_thread(struct runtime *runtime, struct thread *thread)
{
	/* seq_cst on both: either the thread that leaves sees `arming`, or we see it leaving */
	atomic_store(&thread->arming, 1);
	if (!atomic_load(&thread->exec_pending)) {
		open_thread_sources(runtime, thread);
		sources_arm_or_disarm_by_state(runtime, thread);
	}
	atomic_store(&thread->arming, 0);
}

/* The kernel begins a period again where its length changes (__perf_event_period()): what had
 * passed of it is lost, in each stretch from one change to the next, and made good in the one to
 * come. */
static uint64_t compute_period_after_reset_loss(struct thread *thread, uint64_t period)
{
	uint64_t count = thread->event_count_at_period_change, lost, stretch;

	program_thread_read_perf_event_count(thread, &count);
	stretch = count > thread->event_count_at_period_change
			  ? count - thread->event_count_at_period_change
			  : 0;
	lost = thread->period_since_change ? stretch % thread->period_since_change : 0;
	thread->event_count_at_period_change = count;
	lost = lost < stretch / 2 ? lost : stretch / 2;
	return stretch ? period - (uint64_t)((unsigned __int128)period * lost / stretch) : period;
}

void sources_randomize_period_of_thread(struct runtime *runtime, struct thread *thread)
{
	uint64_t base = runtime->sampler.period;

	if (!thread->source)
		return;
	if (thread->source->restarts_period_on_change)
		base = compute_period_after_reset_loss(thread, base);
	/* Uniform over a factor of 3; scaled by ln 3, so that the mean rate is the one asked for.
	 */
	thread->period = base;
	if (runtime->options.has_period_jitter)
		thread->period =
			draw_random_between(thread, base * 5493 / 10000, base * 16479 / 10000);
	thread->period_since_change = thread->period;
	thread->source->set_period(thread, thread->period);
}

void sources_close_for_thread(struct thread *thread)
{
	counters_close_for_thread(thread);
	if (thread->source)
		thread->source->close(thread);
	if (thread->overflow_event_fd >= 0) {
		__atomic_store_n(&thread->closed_overflow_event_fd, thread->overflow_event_fd,
				 __ATOMIC_RELEASE);
		sys_close(thread->overflow_event_fd);
	}
	__atomic_store_n(&thread->overflow_event_fd, -1, __ATOMIC_RELEASE);
	thread->source = NULL;
	thread->armed = thread->overflow_armed = false;
}

/* ---- threads that change context often ---- */

static void write_switch_notice_once_per_thread(struct runtime *runtime, struct thread *thread,
						enum spool_notice kind, const char *text)
{
	if (thread->has_told_costly_switches ||
	    runtime->background.costly_switch_notice_count == CONTEXT_SWITCH_NOTICES_MAX)
		return;
	thread->has_told_costly_switches = true;
	runtime->background.costly_switch_notice_count++;
	write_notice_joining_two_texts(runtime, kind,
				       thread->switch_rate.costly_switches_per_second, text, "");
}

/* The thread has started its timer already. */
static void change_thread_to_timer(struct runtime *runtime, struct thread *thread)
{
	if (!atomic_load(&thread->timer_running_period_ns)) /* none was to be had */
		return;
	thread->source->close(thread);
	thread->is_cpu_time_from_event = false;
	thread->source = &sampling_source_timer;
	if (!thread->armed)
		thread->source->set_enabled(thread, false, 0);
	write_switch_notice_once_per_thread(runtime, thread, SPOOL_NOTICE_SOURCE_CHANGED,
					    thread->source->name);
}

static void change_thread_to_perf_event(const struct runtime *runtime, struct thread *thread)
{
	const struct sampler *sampler = &runtime->sampler;
	uint64_t first = draw_random_between(thread, 1, thread->period);

	if (sampler->source->open(sampler, thread, first))
		return;
	thread->source->close(thread);
	thread->source = sampler->source;
	thread->event_count_at_period_change = 0;
	thread->period_since_change = first;
	program_thread_set_cpu_count_base(thread, program_get_cpu_ns_by_tid(thread->tid));
	thread->source->set_period(thread, thread->period);
}

static void write_context_switch_cost_notice(struct runtime *runtime, struct thread *thread)
{
	if (thread->source && thread->source->setting_value == OPTIONS_SOURCE_PERF)
		write_switch_notice_once_per_thread(
			runtime, thread, SPOOL_NOTICE_SWITCH_COST,
			"perf events cost more than 5 % of the CPU time of a thread that "
			"changes context often, and SAMPLING_SOURCE asks for them");
	else if (thread->overflow_event_fd >= 0 || thread->counter_fd[0] >= 0)
		write_switch_notice_once_per_thread(
			runtime, thread, SPOOL_NOTICE_SWITCH_COST,
			"hardware events may cost more than 5 % of the CPU time of a thread "
			"that changes context often; no other source can replace them");
}

/* A thread whose period is long. It is asked for a timer, and has a sample soon, so that it answers
 * without a signal that might end a system call. */
static void check_thread_switch_rate(const struct runtime *runtime, struct thread *thread,
				     uint64_t now)
{
	const struct sampler *sampler = &runtime->sampler;
	struct switch_rate_reading look = {.real_ns = now};
	enum switch_rate_verdict verdict;

	look.cpu_ns = program_read_task_cpu_and_arrivals(thread->tid, &look.switch_count);
	if (!switch_rate_reading_is_due(&thread->switch_rate, look.cpu_ns))
		return;
	verdict =
		switch_rate_judge_reading(&thread->switch_rate, &look,
					  switch_rate_choose_cost_by_period_ns(
						  sampler->period, sampler->kernel_timer_tick_ns));
	if (verdict == SWITCH_RATE_COSTLY && sampler->may_change_source_to_timer &&
	    thread->source == sampler->source && thread->armed) {
		timers_set_request_of_thread(thread, TIMER_REQUEST_START);
		thread->source->set_period(thread, EARLY_NEXT_SAMPLE_PERIOD_NS);
		verdict = SWITCH_RATE_COSTLY_TIMER_COMING;
	}
	if (verdict != SWITCH_RATE_UNCHANGED)
		atomic_store(&thread->switch_rate_verdict, verdict);
}

static void check_switch_rates_of_threads_if_due(struct runtime *runtime, uint64_t now)
{
	uint64_t *next = &runtime->background.next_switch_rate_check_ns;

	if (runtime->sampler.period <= SWITCH_RATE_IN_HANDLER_PERIOD_MAX_NS || now < *next)
		return;
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		if (thread->origin != THREAD_ORIGIN_INTERNAL && thread->source &&
		    !thread->exec_pending)
			check_thread_switch_rate(runtime, thread, now);
	}
	atomic_store(&runtime->sampler.has_switch_rate_verdicts, 1);
	*next = now + CONTEXT_SWITCH_CHECK_PERIOD_NS +
		50 * (read_posix_clock_ns(CLOCK_MONOTONIC) - now);
}

static void change_thread_source(struct runtime *runtime, struct thread *thread, uint32_t verdict)
{
	bool is_costly =
		verdict == SWITCH_RATE_COSTLY || verdict == SWITCH_RATE_COSTLY_TIMER_COMING;

	if (is_costly && thread->source == runtime->sampler.source)
		change_thread_to_timer(runtime, thread);
	else if (verdict == SWITCH_RATE_CHEAP && thread->source == &sampling_source_timer)
		change_thread_to_perf_event(runtime, thread);
	else if (verdict == SWITCH_RATE_CHEAP) /* it was costly for less than a round */
		sampling_source_timer.close(thread);
}

static void change_source_by_switch_verdict(struct runtime *runtime, struct thread *thread)
{
	uint32_t verdict = atomic_exchange(&thread->switch_rate_verdict, SWITCH_RATE_UNCHANGED);

	if (verdict == SWITCH_RATE_UNCHANGED)
		return;
	if (verdict == SWITCH_RATE_COSTLY_TIMER_COMING &&
	    atomic_load(&thread->timer_request) == TIMER_REQUEST_START) {
		atomic_store(&thread->switch_rate_verdict, verdict); /* it is not yet there */
		atomic_store(&runtime->sampler.has_switch_rate_verdicts, 1);
		return;
	}
	/* seq_cst on both, as in sources_open_for_thread() */
	atomic_store(&thread->arming, 1);
	if (!atomic_load(&thread->exec_pending) && runtime->sampler.may_change_source_to_timer)
		change_thread_source(runtime, thread, verdict);
	atomic_store(&thread->arming, 0);
	if (verdict != SWITCH_RATE_CHEAP)
		write_context_switch_cost_notice(runtime, thread);
}

void sources_change_by_switch_rates(struct runtime *runtime, uint64_t now)
{
	check_switch_rates_of_threads_if_due(runtime, now);
	if (!atomic_exchange(&runtime->sampler.has_switch_rate_verdicts, 0))
		return;
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		change_source_by_switch_verdict(runtime, thread);
}
