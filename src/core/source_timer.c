/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * POSIX timers on a thread's CPU clock: timer_create(2), timer_settime(2), rt_tgsigqueueinfo(2).
 * They tick no finer than the kernel does. Only the process can make them: timers.h.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/base/ticks.h"
#include "core/process/state.h"
#include "core/process/thread_cpu_timer.h"
#include "core/program.h"
#include "core/runtime.h"
#include "core/sampling_source.h"
#include "core/timers.h"

#define SECOND_NS                     1000000000ull
#define MILLISECOND_NS                1000000ull
#define REMINDER_WAIT_FIRST_NS        MILLISECOND_NS
#define REMINDER_WAIT_MAX_NS          (16 * MILLISECOND_NS)
#define THREAD_HAS_RUN_CPU_LEAST_NS   (MILLISECOND_NS / 2)
#define LEFTOVER_TIMERS_MAX           64u
#define TIMERS_DELETED_POLL_PERIOD_NS 200000

static _Atomic uint32_t pending_timer_request_count; /* threads of which something is wanted */
static _Atomic uint32_t refused_timer_count;         /* timers that the kernel did not make */
static _Atomic uint32_t all_timers_deletion_count;   /* times that all were */
/* Timers of threads that have ended, + 1. Any thread deletes them; what finds no room here goes
 * with the process. */
static _Atomic uint32_t leftover_timers[LEFTOVER_TIMERS_MAX], leftover_timer_count;

static void set_thread_timer(const struct thread *thread, uint64_t first, uint64_t period)
{
	struct itimerspec time = {
		.it_interval = {(time_t)(period / SECOND_NS), (long)(period % SECOND_NS)},
		.it_value = {(time_t)(first / SECOND_NS), (long)(first % SECOND_NS)}};

	sys_call4(SYS_timer_settime, thread->timer, 0, (long)&time, 0);
}

/* The calling thread's own. */
static bool create_thread_timer(struct thread *thread)
{
	if (thread->timer < 0)
		thread->timer = thread_cpu_timer_create(thread->sampler->signals->signal,
							SAMPLER_SIGNAL_COOKIE_CPU);
	return thread->timer >= 0;
}

static bool try_start_thread_timer(struct thread *thread)
{
	uint64_t period =
		atomic_load_explicit(&thread->timer_requested_period_ns, memory_order_relaxed);

	if (!period)
		period = atomic_load(&thread->sampler->period);
	if (!create_thread_timer(thread))
		return false;
	atomic_store(&thread->timer_running_period_ns, period);
	/* The first sample comes at a random phase, so that short threads are seen as often as long
	 * ones. */
	set_thread_timer(thread, 1 + ticks_now() % period, period);
	return true;
}

static void start_timer_or_count_refused(struct thread *thread)
{
	if (!try_start_thread_timer(thread))
		atomic_fetch_add(&refused_timer_count, 1);
}

void timers_start_for_thread_if_stopped(struct thread *thread)
{
	if (!atomic_load(&thread->timer_running_period_ns))
		try_start_thread_timer(thread);
}

static void stop_thread_timer(struct thread *thread)
{
	atomic_store(&thread->timer_running_period_ns, 0);
	if (thread->timer >= 0)
		set_thread_timer(thread, 0, 0);
}

static void delete_thread_timer(struct thread *thread)
{
	int timer = thread->timer;

	thread->timer = -1;
	atomic_store(&thread->timer_running_period_ns, 0);
	if (timer >= 0)
		sys_call1(SYS_timer_delete, timer);
}

static void delete_leftover_timers(void)
{
	for (uint32_t i = 0; i < LEFTOVER_TIMERS_MAX; i++) {
		uint32_t timer = atomic_exchange(&leftover_timers[i], 0);

		if (!timer)
			continue;
		atomic_fetch_sub(&leftover_timer_count, 1);
		sys_call1(SYS_timer_delete, timer - 1);
	}
}

/* ---- threads of the program ---- */

static uint32_t fetch_and_clear_timer_request(struct thread *thread)
{
	uint32_t wish = atomic_exchange(&thread->timer_request, TIMER_REQUEST_NONE);

	if (wish != TIMER_REQUEST_NONE)
		atomic_fetch_sub(&pending_timer_request_count, 1);
	return wish;
}

void timers_execute_request(struct thread *thread)
{
	uint64_t period;

	if (__builtin_expect(thread->timer_request != TIMER_REQUEST_NONE, 0)) {
		switch (fetch_and_clear_timer_request(thread)) {
		case TIMER_REQUEST_START:
			start_timer_or_count_refused(thread);
			break;
		case TIMER_REQUEST_STOP:
			stop_thread_timer(thread);
			break;
		case TIMER_REQUEST_DELETE:
			delete_thread_timer(thread);
			break;
		default:
			break;
		}
	} else if (thread->timer >= 0) {
		period = atomic_load_explicit(&thread->timer_requested_period_ns,
					      memory_order_relaxed);
		if (period && thread->timer_running_period_ns &&
		    period != thread->timer_running_period_ns) {
			atomic_store(&thread->timer_running_period_ns, period);
			set_thread_timer(thread, period, period);
		}
	}
	if (__builtin_expect(atomic_load_explicit(&leftover_timer_count, memory_order_relaxed) != 0,
			     0))
		delete_leftover_timers();
}

void timers_start_for_new_thread(struct thread *thread)
{
	const struct sampler *sampler = thread->sampler;
	const struct options *options = sampler->options;

	if (!runtime_is_active() || sampler->source != &sampling_source_timer ||
	    !(sampler->is_cpu_window_open || sampler->is_wall_window_open) ||
	    !((options->cpu.on &&
	       options_thread_filter_allows(&options->cpu.tids, thread->sequential_id)) ||
	      (options->wall.on &&
	       options_thread_filter_allows(&options->wall.tids, thread->sequential_id))))
		return;
	start_timer_or_count_refused(thread);
}

void timers_delete_for_thread(struct thread *thread)
{
	fetch_and_clear_timer_request(thread);
	delete_thread_timer(thread);
}

void timers_delete_for_all_threads(struct threads *threads)
{
	uint32_t count = atomic_load(&threads->block_count);

	for (uint32_t i = 0; i < count; i++) {
		struct thread *thread = threads_get_block_at_index(threads, i);

		if (thread && thread->timer >= 0)
			timers_delete_for_thread(thread);
	}
	delete_leftover_timers();
	atomic_fetch_add(&all_timers_deletion_count, 1);
}

void timers_handle_request_signal(struct thread *thread, uint64_t mark)
{
	if (!thread)
		return;
	if (mark == SAMPLER_SIGNAL_COOKIE_DELETE_TIMERS)
		timers_delete_for_all_threads(thread->sampler->threads);
	else
		timers_execute_request(thread);
}

/* ---- the helper ---- */

void timers_set_request_of_thread(struct thread *thread, enum timer_request wish)
{
	bool runs = atomic_load(&thread->timer_running_period_ns) != 0;

	/* A thread that began with one, or has none to be turned off. */
	if (thread->timer_request == TIMER_REQUEST_NONE &&
	    (wish == TIMER_REQUEST_START  ? runs
	     : wish == TIMER_REQUEST_STOP ? !runs
					  : thread->timer < 0))
		return;
	if (atomic_exchange(&thread->timer_request, wish) == TIMER_REQUEST_NONE)
		atomic_fetch_add(&pending_timer_request_count, 1);
	thread->timer_look_interval_ns = REMINDER_WAIT_FIRST_NS;
	thread->timer_next_look_ns = 0;
	thread->cpu_ns_at_timer_look = UINT64_MAX;
}

void timers_request_period_of_thread(struct thread *thread, uint64_t period)
{
	atomic_store_explicit(&thread->timer_requested_period_ns, period, memory_order_relaxed);
}

/* A user may say of a signal that he queued it, and what it means (sigqueue(3)). */
static long queue_timer_request_to_thread(struct runtime *runtime, uint32_t tid, uint64_t mark)
{
	siginfo_t information;

	memset(&information, 0, sizeof(information));
	information.si_signo = runtime->signals.signal;
	information.si_code = SI_QUEUE;
	information.si_pid = sys_getpid();
	information.si_uid = (uid_t)sys_call0(SYS_getuid);
	information.si_value.sival_ptr = (void *)mark;
	return sys_call4(SYS_rt_tgsigqueueinfo, kymo_process.pid, tid, runtime->signals.signal,
			 (long)&information);
}

/* A request that came in the midst of exec would end the new image, which does not handle it. */
static void send_request_unless_exec_pending(struct runtime *runtime, struct thread *thread)
{
	/* seq_cst on both, as in sources_open_for_thread() */
	atomic_store(&thread->arming, 1);
	if (!atomic_load(&thread->exec_pending))
		queue_timer_request_to_thread(runtime, thread->tid,
					      SAMPLER_SIGNAL_COOKIE_TIMER_REQUEST);
	atomic_store(&thread->arming, 0);
}

/* Only what runs is sent a signal: a thread that waits needs no timer yet, and its system call
 * might end by it. */
static void remind_thread_of_request_if_running(struct runtime *runtime, struct thread *thread,
						uint64_t now)
{
	uint64_t cpu, before = thread->cpu_ns_at_timer_look;

	if (now < thread->timer_next_look_ns)
		return;
	thread->timer_next_look_ns = now + thread->timer_look_interval_ns;
	cpu = program_get_cpu_ns_by_tid(thread->tid);
	thread->cpu_ns_at_timer_look = cpu;
	if (before == UINT64_MAX)
		return;
	if (cpu > before + THREAD_HAS_RUN_CPU_LEAST_NS)
		send_request_unless_exec_pending(runtime, thread);
	else if (cpu == before && thread->timer_look_interval_ns < REMINDER_WAIT_MAX_NS)
		thread->timer_look_interval_ns *= 2;
}

void timers_remind_threads_of_requests(struct runtime *runtime, uint64_t now, uint64_t *wait)
{
	if (!atomic_load(&pending_timer_request_count))
		return;
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		uint32_t wish = atomic_load(&thread->timer_request);

		if (wish == TIMER_REQUEST_NONE || thread->exec_pending)
			continue;
		remind_thread_of_request_if_running(runtime, thread, now);
		/* One that is to be turned off goes off, and its thread sees to it then. */
		if (wish == TIMER_REQUEST_START && thread->timer_next_look_ns > now &&
		    thread->timer_next_look_ns - now < *wait)
			*wait = thread->timer_next_look_ns - now;
	}
}

void timers_queue_deletion_for_ended_thread(struct thread *thread)
{
	uint32_t none = 0;

	fetch_and_clear_timer_request(thread);
	for (uint32_t i = 0; i < LEFTOVER_TIMERS_MAX && thread->timer >= 0; i++, none = 0) {
		if (!atomic_compare_exchange_strong(&leftover_timers[i], &none,
						    (uint32_t)thread->timer + 1))
			continue;
		atomic_fetch_add(&leftover_timer_count, 1);
		break;
	}
	thread->timer = -1;
}

void timers_make_thread_delete_all(struct runtime *runtime, uint64_t timeout_ns)
{
	struct timespec pause = {0, TIMERS_DELETED_POLL_PERIOD_NS};
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + timeout_ns;
	uint32_t before = atomic_load(&all_timers_deletion_count);
	bool any = atomic_load(&leftover_timer_count) != 0;
	const struct thread *chosen = NULL;

	for (const struct thread *thread = runtime->background.live; thread;
	     thread = thread->live_next) {
		any = any || thread->timer >= 0;
		if (thread->origin != THREAD_ORIGIN_INTERNAL && !thread->has_own_seccomp_filter &&
		    !thread->wants_signal_blocked &&
		    (!chosen || thread->origin == THREAD_ORIGIN_MAIN))
			chosen = thread;
	}
	if (!any || !chosen ||
	    queue_timer_request_to_thread(runtime, chosen->tid,
					  SAMPLER_SIGNAL_COOKIE_DELETE_TIMERS))
		return;
	while (atomic_load(&all_timers_deletion_count) == before &&
	       read_posix_clock_ns(CLOCK_MONOTONIC) < end)
		sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&pause, 0);
}

uint32_t timers_fetch_refused_count(void)
{
	return atomic_exchange(&refused_timer_count, 0);
}

void timers_reset_after_fork(void)
{
	for (uint32_t i = 0; i < LEFTOVER_TIMERS_MAX; i++)
		leftover_timers[i] = 0;
	pending_timer_request_count = leftover_timer_count = refused_timer_count = 0;
}

/* ---- the source ---- */

/* The thread makes it when it is to be on. */
static int timer_source_open_does_nothing(const struct sampler *sampler, struct thread *thread,
					  uint64_t first)
{
	(void)sampler;
	(void)thread;
	(void)first;
	return 0;
}

static const char *timer_source_get_limits_text(const struct sampler *sampler)
{
	(void)sampler;
	return ": limited to the kernel's tick";
}

static int timer_source_probe_always_works(struct sampler *sampler)
{
	(void)sampler;
	return 0;
}

static void timer_source_request_start_or_stop(struct thread *thread, bool on, uint64_t first)
{
	(void)first; /* the thread draws it */
	timers_set_request_of_thread(thread, on ? TIMER_REQUEST_START : TIMER_REQUEST_STOP);
}

static void timer_source_request_deletion(struct thread *thread)
{
	if (sys_call3(SYS_tgkill, kymo_process.pid, thread->tid, 0) == -ESRCH)
		timers_queue_deletion_for_ended_thread(thread);
	else
		timers_set_request_of_thread(thread, TIMER_REQUEST_DELETE);
}

const struct sampling_source sampling_source_timer = {
	.name = "POSIX CPU timer",
	.id = SPOOL_CPU_SOURCE_TIMER,
	.setting_value = OPTIONS_SOURCE_TIMER,
	.get_limits_text = timer_source_get_limits_text,
	.probe = timer_source_probe_always_works,
	.open = timer_source_open_does_nothing,
	.set_enabled = timer_source_request_start_or_stop,
	.set_period = timers_request_period_of_thread,
	.close = timer_source_request_deletion,
};
