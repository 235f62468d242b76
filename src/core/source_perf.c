/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Perf events on a thread's task clock: perf_event_open(2). attr.sigtrap (Linux 5.13) delivers
 * SIGTRAP synchronously without the self-interrupt that signal-driven I/O needs, which halves the
 * cost of a sample on virtual machines.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "common/syscalls.h"
#include "common/time_units.h"
#include "core/process/state.h"
#include "core/sampling_source.h"

/* Older headers lack the fields; their place is fixed by the ABI: flag bits 36 (inherit_thread), 37
 * (remove_on_exec), 38 (sigtrap), and sig_data after aux_sample_size. */
#define ATTR_SIZE_WITH_SIG_DATA 128

struct perf_attr_with_sig_data {
	struct perf_event_attr base;
	uint8_t more[ATTR_SIZE_WITH_SIG_DATA];
};

struct perf_event_settings {
	bool sends_sigtrap, counts_kernel;
	bool starts_enabled; /* from its first moment; else it is switched on later */
};

static int open_perf_event(const struct perf_event_code *event, uint64_t period, uint32_t tid,
			   struct perf_event_settings how, uint64_t mark)
{
	struct perf_attr_with_sig_data attr = {0};

	attr.base.type = event->type;
	attr.base.config = event->config;
	attr.base.config1 = event->config1;
	attr.base.config2 = event->config2;
	attr.base.size = ATTR_SIZE_WITH_SIG_DATA;
	attr.base.sample_period = period;
	attr.base.disabled = !how.starts_enabled;
	attr.base.exclude_kernel = !how.counts_kernel;
	attr.base.exclude_hv = 1;
	attr.base.wakeup_events = 1;
	if (how.sends_sigtrap) {
		attr.base.sigtrap = 1;
		attr.base.remove_on_exec = 1;
		attr.base.sig_data = mark;
	}
	return (int)sys_call6(SYS_perf_event_open, (long)&attr, (long)tid, -1, -1,
			      PERF_FLAG_FD_CLOEXEC, 0);
}

static const struct perf_event_code task_clock_perf_event_code = {
	.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK, .is_clock = true};

/* Signal-driven I/O on the event's descriptor, to the one thread (F_SETOWN_EX, F_SETSIG: fcntl(2)).
 */
static int set_signal_of_perf_event(int fd, uint32_t tid, int signal)
{
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (int)tid};
	long error = sys_call3(SYS_fcntl, fd, F_SETOWN_EX, (long)&owner);

	if (!error)
		error = sys_call3(SYS_fcntl, fd, F_SETSIG, signal);
	if (!error)
		error = sys_call3(SYS_fcntl, fd, F_SETFL, O_ASYNC | O_NONBLOCK);
	return (int)error;
}

int source_perf_open_event(const struct sampler *sampler, const struct perf_event_code *event,
			   uint64_t period, uint32_t tid, bool on, uint64_t mark)
{
	struct perf_event_settings how = {sampler->source == &sampling_source_perf_sigtrap,
					  sampler->can_perf_count_kernel, on};
	int fd = open_perf_event(event, period, tid, how, mark), error;

	if (fd < 0 || how.sends_sigtrap)
		return fd;
	error = set_signal_of_perf_event(fd, tid, sampler->signal);
	if (error) {
		sys_close(fd);
		return error;
	}
	return fd;
}

void source_perf_set_event_enabled(int fd, bool on)
{
	if (fd >= 0)
		sys_call3(SYS_ioctl, fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

/* With the kernel's time, or else without. */
static int probe_perf_source(struct sampler *sampler, bool sigtrap)
{
	static const bool kernel[] = {true, false};
	int fd = 0;

	for (int i = 0; i < 2; i++) {
		struct perf_event_settings how = {.sends_sigtrap = sigtrap,
						  .counts_kernel = kernel[i]};
		fd = open_perf_event(&task_clock_perf_event_code, SECOND_NS, kymo_process.pid, how,
				     SAMPLER_SIGNAL_COOKIE_CPU);
		if (fd < 0)
			continue;
		sys_close(fd);
		sampler->can_perf_count_kernel = kernel[i];
		return 0;
	}
	return -fd;
}

static int probe_perf_sigtrap(struct sampler *sampler)
{
	return probe_perf_source(sampler, true);
}

static int probe_perf_signal(struct sampler *sampler)
{
	return probe_perf_source(sampler, false);
}

static const char *perf_source_get_limits_text(const struct sampler *sampler)
{
	return sampler->can_perf_count_kernel ? "" : ": user time only";
}

static int perf_source_open_for_thread(const struct sampler *sampler, struct thread *thread,
				       uint64_t first)
{
	/* Its plain signals are known by the descriptor, which has to be noted before one comes. */
	bool sigtrap = sampler->source == &sampling_source_perf_sigtrap;
	int fd = source_perf_open_event(sampler, &task_clock_perf_event_code, first, thread->tid,
					thread->armed && sigtrap, SAMPLER_SIGNAL_COOKIE_CPU);

	__atomic_store_n(&thread->perf_event_fd, fd >= 0 ? fd : -1, __ATOMIC_SEQ_CST);
	if (thread->armed && !sigtrap)
		source_perf_set_event_enabled(fd, true);
	return fd >= 0 ? 0 : fd;
}

static void perf_source_set_enabled(struct thread *thread, bool on, uint64_t first)
{
	(void)first; /* the event goes on in the period that it was in */
	source_perf_set_event_enabled(thread->perf_event_fd, on);
}

static void perf_source_set_period(struct thread *thread, uint64_t period)
{
	if (thread->perf_event_fd >= 0)
		sys_call3(SYS_ioctl, thread->perf_event_fd, PERF_EVENT_IOC_PERIOD, (long)&period);
}

/* Another thread of the helper may be about to read what the event counted (program.c). */
static void perf_source_close(struct thread *thread)
{
	int fd = thread->perf_event_fd;

	if (fd >= 0)
		__atomic_store_n(&thread->closed_perf_event_fd, fd, __ATOMIC_RELEASE);
	__atomic_store_n(&thread->perf_event_fd, -1, __ATOMIC_RELEASE);
	if (fd >= 0)
		sys_close(fd);
}

const struct sampling_source sampling_source_perf_sigtrap = {
	.name = "perf task-clock event, SIGTRAP",
	.id = SPOOL_CPU_SOURCE_PERF_SIGTRAP,
	.setting_value = OPTIONS_SOURCE_PERF,
	.signal = SIGTRAP,
	.get_limits_text = perf_source_get_limits_text,
	.probe = probe_perf_sigtrap,
	.open = perf_source_open_for_thread,
	.set_enabled = perf_source_set_enabled,
	.set_period = perf_source_set_period,
	.close = perf_source_close,
	.restarts_period_on_change = true,
};

const struct sampling_source sampling_source_perf_signal = {
	.name = "perf task-clock event, signal",
	.id = SPOOL_CPU_SOURCE_PERF_SIGNAL,
	.setting_value = OPTIONS_SOURCE_PERF,
	.get_limits_text = perf_source_get_limits_text,
	.probe = probe_perf_signal,
	.open = perf_source_open_for_thread,
	.set_enabled = perf_source_set_enabled,
	.set_period = perf_source_set_period,
	.close = perf_source_close,
	.restarts_period_on_change = true,
};
