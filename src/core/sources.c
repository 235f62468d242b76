/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sources.h. perf_event_open(2), timer_create(2). attr.sigtrap (Linux 5.13) delivers SIGTRAP
 * synchronously without the self-interrupt that signal-driven I/O needs, which halves the cost of a
 * sample on virtual machines.
 */
#include "core/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "common/perf_events.h"
#include "common/syscalls.h"
#include "core/counters.h"
#include "core/maps.h"
#include "core/runtime.h"
#include "core/sampler.h"
#include "core/text.h"
#include "core/ticks.h"

#define SECOND_NS         1000000000ull
#define ARMED_AT_BIRTH_NS 20000000ull

/* Older headers lack the fields; their place is fixed by the ABI: flag bits 36 (inherit_thread), 37
 * (remove_on_exec), 38 (sigtrap), and sig_data after aux_sample_size. */
#define ATTR_SIZE_WITH_SIG_DATA 128

struct event_attr {
	struct perf_event_attr base;
	uint8_t more[ATTR_SIZE_WITH_SIG_DATA];
};

static uint64_t next_random(struct thread *thread)
{
	/* splitmix64 (Steele, Lea, Flood 2014) */
	uint64_t z = thread->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Uniform in [low, high). */
static uint64_t random_between(struct thread *thread, uint64_t low, uint64_t high)
{
	return high > low ? low + next_random(thread) % (high - low) : low;
}

struct event_how {
	bool sigtrap, kernel;
	bool on; /* from its first moment; else it is switched on later */
};

static int open_event(const struct perf_event_name *event, uint64_t period, uint32_t tid,
		      struct event_how how, uint64_t mark)
{
	struct event_attr attr = {0};

	attr.base.type = event->type;
	attr.base.config = event->config;
	attr.base.config1 = event->config1;
	attr.base.config2 = event->config2;
	attr.base.size = ATTR_SIZE_WITH_SIG_DATA;
	attr.base.sample_period = period;
	attr.base.disabled = !how.on;
	attr.base.exclude_kernel = !how.kernel;
	attr.base.exclude_hv = 1;
	attr.base.wakeup_events = 1;
	if (how.sigtrap) {
		attr.base.sigtrap = 1;
		attr.base.remove_on_exec = 1;
		attr.base.sig_data = mark;
	}
	return (int)sys_call6(SYS_perf_event_open, (long)&attr, (long)tid, -1, -1,
			      PERF_FLAG_FD_CLOEXEC, 0);
}

static const struct perf_event_name task_clock = {
	.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK, .is_clock = true};

/* Signal-driven I/O on the event's descriptor, to the one thread (F_SETOWN_EX, F_SETSIG: fcntl(2)).
 */
static int route_signal(int fd, uint32_t tid, int signal)
{
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (int)tid};
	long error = sys_call3(SYS_fcntl, fd, F_SETOWN_EX, (long)&owner);

	if (!error)
		error = sys_call3(SYS_fcntl, fd, F_SETSIG, signal);
	if (!error)
		error = sys_call3(SYS_fcntl, fd, F_SETFL, O_ASYNC | O_NONBLOCK);
	return (int)error;
}

static bool is_sigtrap(const struct runtime *runtime)
{
	return runtime->sampling.source == SPOOL_CPU_SOURCE_PERF_SIGTRAP;
}

static int open_perf(struct runtime *runtime, const struct perf_event_name *event, uint64_t period,
		     uint32_t tid, bool on, uint64_t mark)
{
	struct event_how how = {is_sigtrap(runtime), runtime->sampling.perf_kernel, on};
	int fd = open_event(event, period, tid, how, mark), error;

	if (fd < 0 || how.sigtrap)
		return fd;
	error = route_signal(fd, tid, runtime->sampling.signal);
	if (error) {
		sys_close(fd);
		return error;
	}
	return fd;
}

/* The kernel's struct sigevent, with the member that libc hides (timer_create(2), SIGEV_THREAD_ID).
 */
struct kernel_sigevent {
	uint64_t value;
	int signal, notify, tid;
	int padding[11];
};

static int open_timer(struct runtime *runtime, struct thread *thread)
{
	struct kernel_sigevent event = {.value = SAMPLER_MARK_CPU,
					.signal = runtime->sampling.signal,
					.notify = SIGEV_THREAD_ID,
					.tid = (int)thread->tid};
	int timer = -1;
	/* clock id of another thread's CPU time: ~tid << 3, per-thread bit 4, scheduler clock 2
	 * (kernel, include/linux/posix-timers.h) */
	long clock = (long)(int)(~thread->tid << 3 | 4 | 2);
	long error = sys_call3(SYS_timer_create, clock, (long)&event, (long)&timer);

	return error ? (int)error : timer;
}

static void set_timer(struct thread *thread, uint64_t first, uint64_t period)
{
	struct itimerspec time = {
		.it_interval = {(time_t)(period / SECOND_NS), (long)(period % SECOND_NS)},
		.it_value = {(time_t)(first / SECOND_NS), (long)(first % SECOND_NS)}};

	sys_call4(SYS_timer_settime, thread->timer, 0, (long)&time, 0);
}

bool sources_being_traced(void)
{
	static char *buffer;
	static uint64_t size;
	const char *key = "TracerPid:\t";
	char *at;

	if (maps_read("/proc/self/status", &buffer, &size) <= 0)
		return false;
	for (at = buffer; *at; at++) {
		if (!strncmp(at, key, strlen(key)))
			return at[strlen(key)] != '0';
	}
	return false;
}

static const char *const source_names[] = {"none", "perf task-clock event, SIGTRAP",
					   "perf task-clock event, signal", "POSIX CPU timer"};

static void say(struct runtime *runtime, enum spool_notice kind, uint64_t argument,
		const char *first, const char *second)
{
	char buffer[256];
	struct text text = text_on(buffer, sizeof(buffer));

	text_string(&text, first);
	text_string(&text, second);
	track_notice(&runtime->track, kind, argument, buffer);
}

static bool try_perf(struct runtime *runtime, bool sigtrap, int *ret_error)
{
	static const bool kernel[] = {true, false};

	for (int i = 0; i < 2; i++) {
		struct event_how how = {.sigtrap = sigtrap, .kernel = kernel[i]};
		int fd = open_event(&task_clock, SECOND_NS, 0, how, SAMPLER_MARK_CPU);
		*ret_error = fd < 0 ? -fd : 0;
		if (fd < 0)
			continue;
		sys_close(fd);
		runtime->sampling.perf_kernel = kernel[i];
		return true;
	}
	return false;
}

void sources_choose(struct runtime *runtime)
{
	struct sampling *sampling = &runtime->sampling;
	int error = 0;

	sampling->signal = runtime->options.signal ? runtime->options.signal : SIGURG;
	sampling->source = SPOOL_CPU_SOURCE_TIMER;
	if (runtime->options.source != OPTIONS_SOURCE_TIMER) {
		/* A debugger would see every SIGTRAP, and a program that is executed unseen would
		 * be ended by one that comes late (SIGURG does it no harm); a signal asked for by
		 * name rules it out as well. */
		if (!runtime->options.signal && !runtime->attached && !runtime->opened &&
		    !sources_being_traced() && try_perf(runtime, true, &error)) {
			sampling->source = SPOOL_CPU_SOURCE_PERF_SIGTRAP;
			sampling->signal = SIGTRAP;
		} else if (try_perf(runtime, false, &error)) {
			sampling->source = SPOOL_CPU_SOURCE_PERF_SIGNAL;
		} else {
			say(runtime, SPOOL_NOTICE_FALLBACK, (uint64_t)error,
			    "perf events are not permitted, using a ",
			    source_names[SPOOL_CPU_SOURCE_TIMER]);
		}
	}
	say(runtime, SPOOL_NOTICE_SOURCE, sampling->source, source_names[sampling->source],
	    sampling->source == SPOOL_CPU_SOURCE_TIMER ? ": limited to the kernel's tick"
	    : sampling->perf_kernel                    ? ""
						       : ": user time only");
}

static void switch_event(int fd, bool on)
{
	if (fd >= 0)
		sys_call3(SYS_ioctl, fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

/* CPU time counts from here on, or up to here: what passes while the source is off is not ours to
 * account for. A thread armed right after its birth is accounted for from its birth. */
static void count_cpu(struct thread *thread, bool on)
{
	uint64_t cpu = ticks_thread_cpu_ns(thread->tid);

	if (!on) {
		thread->collected_ns += cpu > thread->armed_cpu_ns ? cpu - thread->armed_cpu_ns : 0;
		return;
	}
	if (cpu > ARMED_AT_BIRTH_NS || thread->how == THREAD_FOUND)
		thread->cpu_ns = thread->armed_cpu_ns = cpu;
	else
		thread->armed_cpu_ns = thread->cpu_ns;
}

static bool open_cpu(struct runtime *runtime, struct thread *thread, uint64_t first)
{
	int result;

	if (runtime->sampling.source != SPOOL_CPU_SOURCE_TIMER) {
		thread->perf_fd = open_perf(runtime, &task_clock, first, thread->tid, thread->armed,
					    SAMPLER_MARK_CPU);
		thread->source = THREAD_SOURCE_PERF;
		if (thread->perf_fd >= 0)
			return true;
		if (thread->perf_fd == -ESRCH) /* ended already */
			return true;
	}
	/* Timers need a signal that sigtrap events do not take; SIGTRAP serves both. */
	thread->armed = false;
	result = open_timer(runtime, thread);
	thread->timer = result >= 0 ? result : -1;
	thread->source = result >= 0 ? THREAD_SOURCE_TIMER : THREAD_SOURCE_NONE;
	if (result < 0)
		return result == -ESRCH || result == -EINVAL;
	if (runtime->sampling.source != SPOOL_CPU_SOURCE_TIMER &&
	    !runtime->background.told_timer_fallback) {
		runtime->background.told_timer_fallback = true;
		say(runtime, SPOOL_NOTICE_FALLBACK, (uint64_t)-thread->perf_fd,
		    "no more perf events to be had, threads from here on use a ",
		    source_names[SPOOL_CPU_SOURCE_TIMER]);
	}
	return true;
}

static void open_overflow(struct runtime *runtime, struct thread *thread)
{
	const char *name = runtime->options.overflow_event, *code = runtime->options.overflow_code;
	struct perf_event_name event;
	uint64_t period = runtime->options.overflow.period;

	if (*code ? perf_event_parse_code(code, strlen(code), &event)
		  : perf_event_find(name, strlen(name), &event))
		return;
	if (event.is_clock) {
		if (period > 10000)
			period = 10000;
		period = SECOND_NS / (period ? period : 1);
	}
	thread->overflow_fd =
		open_perf(runtime, &event, period, thread->tid, false, SAMPLER_MARK_OVERFLOW);
	if (thread->overflow_fd < 0 && !runtime->background.told_overflow) {
		runtime->background.told_overflow = true;
		say(runtime, SPOOL_NOTICE_DISABLED, (uint64_t)-thread->overflow_fd,
		    "overflow sampling: this event cannot be opened here: ",
		    runtime->options.overflow_event);
	}
}

static bool is_left_alone(const struct runtime *runtime, const struct thread *thread)
{
	return atomic_load(&thread->leaving) || runtime->background.traced;
}

static bool wants_cpu(const struct runtime *runtime, const struct thread *thread)
{
	return !is_left_alone(runtime, thread) &&
	       (runtime->sampling.cpu_open || runtime->sampling.wall_open);
}

static void open_all(struct runtime *runtime, struct thread *thread)
{
	const struct options *options = &runtime->options;
	uint64_t period = runtime->sampling.period;
	bool cpu = options->cpu.on && options_tids_allow(&options->cpu.tids, thread->sequent_id);
	bool wall = options->wall.on && options_tids_allow(&options->wall.tids, thread->sequent_id);

	thread->random =
		thread->start_ticks ^ (uint64_t)thread->tid << 32 ^ (uint64_t)thread->internal_id;
	thread->period = period;
	/* Switching on later interrupts the processor that the thread runs on a second time. */
	if ((cpu || wall) && is_sigtrap(runtime) && !*options->counters &&
	    wants_cpu(runtime, thread)) {
		count_cpu(thread, true);
		thread->armed = true;
	}
	/* The first sample comes at a random phase, so that short threads are seen as often as long
	 * ones. */
	if (cpu || wall) {
		if (!open_cpu(runtime, thread,
			      options->jitter
				      ? random_between(thread, period / 4, period + 3 * period / 4)
				      : period))
			spool_count_loss(&runtime->spool, SPOOL_LOSS_UNARMED_THREAD);
	}
	if (options->overflow.on && options_tids_allow(&options->overflow.tids, thread->sequent_id))
		open_overflow(runtime, thread);
	if (*options->counters)
		counters_open(runtime, thread);
	thread->jitter_samples = 0;
}

static void arm(struct thread *thread, bool on)
{
	count_cpu(thread, on);
	switch_event(thread->perf_fd, on);
	if (thread->timer >= 0)
		set_timer(thread, on ? random_between(thread, 1, thread->period) : 0,
			  on ? thread->period : 0);
	thread->armed = on;
}

void sources_follow(struct runtime *runtime, struct thread *thread)
{
	bool left_alone = is_left_alone(runtime, thread), cpu = wants_cpu(runtime, thread);
	bool overflow = !left_alone && runtime->sampling.overflow_open;

	if (thread->source == THREAD_SOURCE_NONE)
		cpu = false;
	if ((cpu || overflow) != (thread->armed || thread->overflow_armed))
		counters_switch(thread, cpu || overflow);
	if (cpu != thread->armed)
		arm(thread, cpu);
	if (overflow != thread->overflow_armed) {
		switch_event(thread->overflow_fd, overflow);
		thread->overflow_armed = overflow;
	}
}

void sources_open(struct runtime *runtime, struct thread *thread)
{
	/* seq_cst on both: either the thread that leaves sees `arming`, or we see it leaving */
	atomic_store(&thread->arming, 1);
	if (!atomic_load(&thread->leaving)) {
		open_all(runtime, thread);
		sources_follow(runtime, thread);
	}
	atomic_store(&thread->arming, 0);
}

/* The kernel begins a period anew where its length changes (__perf_event_period()): what had passed
 * of it is lost, in each stretch from one change to the next, and made good in the one to come. */
static uint64_t less_what_is_lost(struct thread *thread, uint64_t period)
{
	uint64_t now = ticks_thread_cpu_ns(thread->tid);
	uint64_t lost = now > thread->cpu_ns ? now - thread->cpu_ns : 0;
	uint64_t stretch = now > thread->jitter_cpu_ns ? now - thread->jitter_cpu_ns : 0;

	thread->jitter_cpu_ns = now;
	lost = lost < stretch / 2 ? lost : stretch / 2;
	return stretch ? period - (uint64_t)((unsigned __int128)period * lost / stretch) : period;
}

void sources_jitter(struct runtime *runtime, struct thread *thread)
{
	uint64_t base = runtime->sampling.period;

	if (thread->perf_fd >= 0)
		base = less_what_is_lost(thread, base);
	/* Uniform over a factor of 3; scaled by ln 3, so that the mean rate is the one asked for.
	 */
	thread->period = base;
	if (runtime->options.jitter)
		thread->period = random_between(thread, base * 5493 / 10000, base * 16479 / 10000);
	if (thread->perf_fd >= 0)
		sys_call3(SYS_ioctl, thread->perf_fd, PERF_EVENT_IOC_PERIOD, (long)&thread->period);
	else if (thread->timer >= 0 && thread->armed)
		set_timer(thread, thread->period, thread->period);
}

void sources_close(struct thread *thread)
{
	counters_close(thread);
	if (thread->perf_fd >= 0)
		sys_close(thread->perf_fd);
	if (thread->overflow_fd >= 0)
		sys_close(thread->overflow_fd);
	if (thread->timer >= 0)
		sys_call1(SYS_timer_delete, thread->timer);
	thread->perf_fd = thread->overflow_fd = thread->timer = -1;
	thread->source = THREAD_SOURCE_NONE;
	thread->armed = thread->overflow_armed = false;
}
