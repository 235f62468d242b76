/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Probing; see probe.h. Every probe opens what libkymo would open, for this process, and closes it.
 *
 * attr.sigtrap came with Linux 5.13 and glibc's header of Debian 12 has it; an older kernel answers
 * E2BIG or EINVAL.
 */
#include "settings/probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int probe_try_opening_event(struct perf_event_attr *attributes)
{
	long file;

	attributes->size = sizeof(*attributes);
	attributes->disabled = 1;
	attributes->exclude_hv = 1;
	file = syscall(SYS_perf_event_open, attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (file < 0 && (errno == EACCES || errno == EPERM) && !attributes->exclude_kernel) {
		attributes->exclude_kernel = 1; /* paranoid 2 permits user mode only */
		file = syscall(SYS_perf_event_open, attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (file < 0)
		return errno;
	close((int)file);
	return 0;
}

int probe_get_perf_event_open_error(const struct perf_event_code *event)
{
	struct perf_event_attr attributes = {.type = event->type,
					     .config = event->config,
					     .config1 = event->config1,
					     .config2 = event->config2};

	return probe_try_opening_event(&attributes);
}

const char *probe_event_error_to_text(int error)
{
	switch (error) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return "this machine does not have it";
	case EACCES:
	case EPERM:
		return "not permitted: sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON";
	case EINVAL:
		return "not available per thread";
	default:
		return strerror(error);
	}
}

int probe_read_paranoid_level(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = -100;

	if (!file)
		return level;
	if (fscanf(file, "%d", &level) != 1)
		level = -100;
	fclose(file);
	return level;
}

static void probe_set_source_detail(struct probed_sampling_source *source, int error,
				    bool user_only)
{
	int paranoid = probe_read_paranoid_level();

	source->works = !error;
	if (!error)
		snprintf(source->detail, sizeof(source->detail), "exact rates%s",
			 user_only ? "; user mode only: kernel.perf_event_paranoid is above 1"
				   : "");
	else if (error == EACCES || error == EPERM)
		snprintf(source->detail, sizeof(source->detail),
			 "not permitted%s: sysctl kernel.perf_event_paranoid=1 (it is %d), or "
			 "CAP_PERFMON; in a container also allow perf_event_open in its seccomp "
			 "profile",
			 paranoid <= 2 ? " by seccomp or a security module" : "", paranoid);
	else if (error == ENOSYS)
		snprintf(source->detail, sizeof(source->detail),
			 "this kernel has no perf events, or a seccomp filter hides them");
	else
		snprintf(source->detail, sizeof(source->detail), "this kernel cannot (%s)",
			 strerror(error));
}

static void probe_perf_source(struct probed_sampling_source *source, bool sigtrap)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = 1000000,
	};
	int error;

	attributes.sigtrap = sigtrap;
	attributes.remove_on_exec = sigtrap; /* the kernel demands it */
	error = probe_try_opening_event(&attributes);
	probe_set_source_detail(source, error, attributes.exclude_kernel);
}

static void probe_timer_source(struct probed_sampling_source *source)
{
	struct sigevent event = {.sigev_notify = SIGEV_NONE};
	struct timespec tick = {0};
	timer_t timer;

	source->works = !timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer);
	if (!source->works) {
		snprintf(source->detail, sizeof(source->detail), "timer_create: %s",
			 strerror(errno));
		return;
	}
	timer_delete(timer);
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick); /* one tick */
	snprintf(source->detail, sizeof(source->detail),
		 "at most %.0f samples a second (the kernel's tick); sums stay right",
		 tick.tv_nsec ? 1e9 / (double)tick.tv_nsec : 0);
}

void probe_sampling_sources(struct probed_sampling_source ret[PROBE_SOURCE_COUNT])
{
	memset(ret, 0, PROBE_SOURCE_COUNT * sizeof(*ret));
	ret[0].name = "perf-sigtrap";
	ret[0].description = "perf task-clock event, delivered in the thread itself";
	ret[1].name = "perf-signal";
	ret[1].description = "perf task-clock event, delivered by a signal";
	ret[2].name = "timer";
	ret[2].description = "POSIX CPU-time timers";
	probe_perf_source(&ret[0], true);
	probe_perf_source(&ret[1], false);
	probe_timer_source(&ret[2]);
}
