/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See events.h.
 */
#include "outside/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What an unprivileged user may lock for each CPU (perf_event_mlock_kb) holds the smaller one. */
#define RING_BYTES_MOST (4u << 20)
/* Of the whole machine, which may be busy, and with context switches. */
#define RING_BYTES_OF_MACHINE  (8u << 20)
#define CPUS_WITH_LARGE_RINGS  16u
#define RING_BYTES_LEAST       (64u << 10)
#define STACK_BYTES_LEAST      8192u
#define BUFFERED_NS            100000000u /* that a ring is to hold */
#define BUFFERED_OF_MACHINE_NS 200000000u
#define STACK_BYTES_OF_SWITCH  16384u
#define RECORD_BYTES_MAX       65536u

#define ALL_TASKS -1

static int open_event(struct perf_event_attr *attributes, pid_t tid, int cpu)
{
	long event = syscall(SYS_perf_event_open, attributes, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return event < 0 ? -errno : (int)event;
}

static struct perf_event_attr make_common_attributes(const struct outside_events *events)
{
	return (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
					.size = sizeof(struct perf_event_attr),
					.disabled = 1,
					.inherit = !events->is_whole_machine,
					.exclude_hv = 1,
					.sample_id_all = 1,
					.use_clockid = 1,
					.clockid = CLOCK_MONOTONIC};
}

static struct perf_event_attr make_tracking_attributes(const struct outside_events *events,
						       const struct outside_ring *ring,
						       bool on_exec)
{
	struct perf_event_attr attributes = make_common_attributes(events);

	attributes.config = PERF_COUNT_SW_DUMMY;
	attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attributes.exclude_kernel = 1;
	attributes.mmap = attributes.mmap2 = 1;
	attributes.comm = attributes.comm_exec = 1;
	attributes.task = 1;
	attributes.context_switch = events->with_switches;
	attributes.enable_on_exec = on_exec;
	attributes.watermark = 1;
	attributes.wakeup_watermark = (uint32_t)(ring->data_size / 4);
	return attributes;
}

static struct perf_event_attr make_sampling_attributes(const struct outside_events *events,
						       bool on_exec)
{
	struct perf_event_attr attributes = make_common_attributes(events);

	attributes.config = PERF_COUNT_SW_CPU_CLOCK;
	attributes.exclude_idle = events->is_whole_machine;
	attributes.sample_period = events->period_ns;
	attributes.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				 PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
				 PERF_SAMPLE_STACK_USER;
	attributes.exclude_kernel = events->without_kernel;
	attributes.exclude_callchain_kernel = !events->with_kernel_frames;
	attributes.sample_regs_user = OUTSIDE_REGISTERS;
	attributes.sample_stack_user =
		events->stack_bytes ? events->stack_bytes : STACK_BYTES_LEAST;
	attributes.enable_on_exec = on_exec;
	return attributes;
}

/* Each time that a task leaves its CPU, in its own context: its stack can be seen. */
static struct perf_event_attr make_switch_attributes(const struct outside_events *events,
						     bool on_exec)
{
	struct perf_event_attr attributes = make_sampling_attributes(events, on_exec);

	attributes.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	attributes.sample_period = 1;
	attributes.exclude_idle = 0;
	attributes.sample_stack_user =
		events->is_whole_machine ? STACK_BYTES_LEAST : STACK_BYTES_OF_SWITCH;
	attributes.watermark = 1;
	attributes.wakeup_watermark = RING_BYTES_LEAST / 4;
	return attributes;
}

/* Each time that a task, or an interrupt in its midst, wakes a thread. */
static struct perf_event_attr make_wakeup_attributes(const struct outside_events *events,
						     bool on_exec)
{
	struct perf_event_attr attributes = make_switch_attributes(events, on_exec);

	attributes.type = PERF_TYPE_TRACEPOINT;
	attributes.inherit = 0;
	attributes.sample_stack_user = STACK_BYTES_LEAST;
	attributes.config = events->wakeups.id;
	attributes.sample_type |= PERF_SAMPLE_RAW;
	return attributes;
}

static int read_number_in_file(const char *path, int otherwise)
{
	FILE *file = fopen(path, "re");
	int value;

	if (!file)
		return otherwise;
	if (fscanf(file, "%d", &value) != 1)
		value = otherwise;
	fclose(file);
	return value;
}

static int explain_refusal(const struct outside_events *events, int error, struct problem *problem)
{
	int paranoid = read_number_in_file("/proc/sys/kernel/perf_event_paranoid", 2);

	if (error == -ENOSYS || error == -ENOENT)
		return problem_set(problem, error, "this kernel has no perf events");
	if ((error == -EACCES || error == -EPERM) && paranoid > 0 && events->is_whole_machine)
		return problem_set(problem, error,
				   "sampling the whole machine is not permitted "
				   "(kernel.perf_event_paranoid is %d): run kymo as root or with "
				   "CAP_PERFMON, or set 'sysctl kernel.perf_event_paranoid=0'",
				   paranoid);
	if ((error == -EACCES || error == -EPERM) && paranoid > 2)
		return problem_set(
			problem, error,
			"perf events are not permitted (kernel.perf_event_paranoid is %d; "
			"'sysctl kernel.perf_event_paranoid=2' permits them)",
			paranoid);
	if (error == -EACCES || error == -EPERM)
		return problem_set(problem, error,
				   "perf events are not permitted (a seccomp filter, as containers "
				   "have, or a security module forbids them)");
	return problem_set(problem, error, "perf events cannot be opened: %s", strerror(-error));
}

/* An event of all tasks needs a CPU; the first ones may be off. */
static int open_trial_event(const struct outside_events *events)
{
	struct perf_event_attr attributes = make_sampling_attributes(events, false);
	int event = -ENODEV;

	if (!events->is_whole_machine)
		return open_event(&attributes, 0, -1);
	for (uint32_t cpu = 0; event == -ENODEV && cpu < events->cpu_count; cpu++)
		event = open_event(&attributes, ALL_TASKS, (int)cpu);
	return event;
}

int outside_events_init(struct outside_events *events, struct problem *problem)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int event;

	events->cpu_count = cpus > 0 ? (uint32_t)cpus : 1;
	for (;;) {
		event = open_trial_event(events);
		if (event >= 0 || events->without_kernel || events->is_whole_machine ||
		    (event != -EACCES && event != -EPERM))
			break;
		events->without_kernel = true;
	}
	if (event < 0)
		return explain_refusal(events, event, problem);
	close(event);
	events->with_switches &= !events->without_kernel;
	events->ring_count =
		events->with_switches ? OUTSIDE_RING_KINDS * events->cpu_count : events->cpu_count;
	events->rings = calloc(events->ring_count, sizeof(*events->rings));
	if (!events->rings)
		return problem_set(problem, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < events->ring_count; i++)
		events->rings[i].owner = -1;
	return 0;
}

void outside_events_deinit(struct outside_events *events)
{
	for (uint32_t i = 0; i < events->count; i++)
		close(events->list[i].descriptor);
	for (uint32_t i = 0; events->rings && i < events->ring_count; i++) {
		struct outside_ring *ring = &events->rings[i];

		if (ring->page)
			munmap(ring->page, ring->data_size + (size_t)sysconf(_SC_PAGESIZE));
		if (ring->owner >= 0)
			close(ring->owner);
		free(ring->wrapped);
	}
	free(events->rings);
	free(events->list);
	*events = (struct outside_events){0};
}

static bool keep_event(struct outside_events *events, int descriptor, pid_t tid)
{
	if (events->count == events->capacity) {
		uint32_t capacity = 2 * events->capacity + 16;
		struct outside_event *more = realloc(events->list, capacity * sizeof(*more));

		if (!more)
			return false;
		events->list = more;
		events->capacity = capacity;
	}
	events->list[events->count++] = (struct outside_event){descriptor, (uint32_t)tid};
	return true;
}

void outside_events_close_unneeded(struct outside_events *events,
				   bool (*is_needed)(void *context, uint32_t tid), void *context)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < events->count; i++) {
		if (is_needed(context, events->list[i].tid))
			events->list[kept++] = events->list[i];
		else
			close(events->list[i].descriptor);
	}
	events->count = kept;
}

/* Users other than root may lock so much memory for all rings together (perf_event_mlock_kb for
 * each CPU, and RLIMIT_MEMLOCK): each gets its part, so that the first ones leave room. */
static size_t limit_to_permitted_part(const struct outside_events *events, size_t bytes)
{
	int for_each_cpu = read_number_in_file("/proc/sys/kernel/perf_event_mlock_kb", 516);
	struct rlimit limit;
	uint64_t part;

	if (!geteuid() || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return bytes;
	part = ((uint64_t)for_each_cpu * 1024 * events->cpu_count + limit.rlim_cur) /
	       events->ring_count;
	while (bytes > RING_BYTES_LEAST && bytes + (size_t)sysconf(_SC_PAGESIZE) > part)
		bytes /= 2;
	return bytes;
}

static size_t choose_ring_bytes(const struct outside_events *events, enum outside_ring_kind kind)
{
	size_t bytes = events->cpu_count <= CPUS_WITH_LARGE_RINGS ? RING_BYTES_OF_MACHINE
								  : RING_BYTES_MOST;

	if (!events->is_whole_machine && !events->with_switches)
		return RING_BYTES_MOST;
	return limit_to_permitted_part(events, kind == OUTSIDE_RING_MAIN ? bytes : 2 * bytes);
}

/* Maps the ring of an event, as large as is permitted. */
static int map_ring(struct outside_ring *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (; ring->data_size >= RING_BYTES_LEAST; ring->data_size /= 2) {
		void *memory = mmap(NULL, page + ring->data_size, PROT_READ | PROT_WRITE,
				    MAP_SHARED, ring->owner, 0);

		if (memory != MAP_FAILED) {
			ring->page = memory;
			ring->wrapped = malloc(RECORD_BYTES_MAX);
			return ring->wrapped ? 0 : -ENOMEM;
		}
	}
	return -EPERM;
}

/* Pieces of the stack as large as wanted, but so that the ring holds the samples of 100 ms. The
 * kernel reserves the whole piece for each sample. */
static uint32_t choose_stack_bytes(const struct outside_events *events, size_t ring_bytes)
{
	uint64_t held_ns = events->is_whole_machine ? BUFFERED_OF_MACHINE_NS : BUFFERED_NS;
	uint64_t fitting = ring_bytes * events->period_ns / held_ns;

	if (fitting > events->stack_bytes_max)
		fitting = events->stack_bytes_max;
	return fitting > STACK_BYTES_LEAST ? (uint32_t)fitting & ~7u : STACK_BYTES_LEAST;
}

/* The event that reports what a task does, into the CPU's ring. */
static int open_tracking_event(struct outside_events *events, pid_t tid, uint32_t cpu, bool on_exec)
{
	struct outside_ring *ring = &events->rings[cpu];
	struct perf_event_attr attributes;
	int event;

	if (!ring->data_size)
		ring->data_size = choose_ring_bytes(events, OUTSIDE_RING_MAIN);
	attributes = make_tracking_attributes(events, ring, on_exec);
	event = open_event(&attributes, tid, (int)cpu);
	if (event < 0)
		return event;
	if (ring->owner < 0) {
		int error;

		ring->owner = event;
		error = map_ring(ring);
		if (!error && !events->stack_bytes)
			events->stack_bytes = choose_stack_bytes(events, ring->data_size);
		return error;
	}
	if (ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, ring->owner) ||
	    !keep_event(events, event, tid)) {
		close(event);
		return -EINVAL;
	}
	return on_exec || !ioctl(event, PERF_EVENT_IOC_ENABLE, 0) ? 0 : -errno;
}

static int open_sampling_event(struct outside_events *events, pid_t tid, uint32_t cpu, bool on_exec)
{
	struct perf_event_attr attributes = make_sampling_attributes(events, on_exec);
	int event = open_event(&attributes, tid, (int)cpu);

	if (event < 0)
		return event;
	if (ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, events->rings[cpu].owner) ||
	    !keep_event(events, event, tid)) {
		close(event);
		return -EINVAL;
	}
	return on_exec || !ioctl(event, PERF_EVENT_IOC_ENABLE, 0) ? 0 : -errno;
}

/* Its ring is owned by the first event of its kind on the CPU. */
static int open_event_of_kind(struct outside_events *events, enum outside_ring_kind kind, pid_t tid,
			      uint32_t cpu, bool on_exec)
{
	struct outside_ring *ring = &events->rings[kind * events->cpu_count + cpu];
	struct perf_event_attr attributes = kind == OUTSIDE_RING_SWITCHES
						    ? make_switch_attributes(events, on_exec)
						    : make_wakeup_attributes(events, on_exec);
	int event, error;

	if (!ring->data_size)
		ring->data_size = choose_ring_bytes(events, kind);
	attributes.wakeup_watermark = (uint32_t)(ring->data_size / 4);
	event = open_event(&attributes, tid, (int)cpu);
	if (event < 0)
		return event;
	if (ring->owner < 0) {
		ring->owner = event;
		error = map_ring(ring);
		if (error)
			return error;
	} else if (ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, ring->owner) ||
		   !keep_event(events, event, tid)) {
		close(event);
		return -EINVAL;
	}
	return on_exec || !ioctl(event, PERF_EVENT_IOC_ENABLE, 0) ? 0 : -errno;
}

/* A thread is woken in the midst of any other: these events are of all tasks on each CPU. Without
 * wakers, where a thread blocks is worth having as well. */
static void open_wakeup_event(struct outside_events *events, uint32_t cpu)
{
	const struct outside_ring *ring =
		&events->rings[OUTSIDE_RING_WAKEUPS * events->cpu_count + cpu];

	if (events->wakeups.id && ring->owner < 0 &&
	    open_event_of_kind(events, OUTSIDE_RING_WAKEUPS, ALL_TASKS, cpu, false))
		events->wakeups = (struct outside_tracepoint){
			.why_not = "the kernel does not permit the tracepoint sched:sched_waking: "
				   "root or CAP_PERFMON are needed"};
}

static int open_switch_events(struct outside_events *events, pid_t tid, uint32_t cpu, bool on_exec)
{
	int error;

	if (!events->with_switches)
		return 0;
	error = open_event_of_kind(events, OUTSIDE_RING_SWITCHES, tid, cpu, on_exec);
	if (!error)
		open_wakeup_event(events, cpu);
	return error;
}

int outside_events_open_task(struct outside_events *events, pid_t tid, bool on_exec)
{
	uint32_t opened = 0;
	int error = 0;

	for (uint32_t cpu = 0; !error && cpu < events->cpu_count; cpu++) {
		error = open_tracking_event(events, tid, cpu, on_exec);
		if (error == -ENODEV) { /* the CPU is off */
			error = 0;
			continue;
		}
		if (!error && !on_exec)
			ioctl(events->rings[cpu].owner, PERF_EVENT_IOC_ENABLE, 0);
		if (!error)
			error = open_sampling_event(events, tid, cpu, on_exec);
		if (!error)
			error = open_switch_events(events, tid, cpu, on_exec);
		opened += !error;
	}
	return error ? error : opened ? 0 : -ENODEV;
}

static int open_machine_event(struct outside_events *events, uint32_t cpu, int cgroup)
{
	struct perf_event_attr attributes = make_sampling_attributes(events, false);
	long event = syscall(SYS_perf_event_open, &attributes, cgroup, (int)cpu, -1,
			     PERF_FLAG_FD_CLOEXEC | (cgroup >= 0 ? PERF_FLAG_PID_CGROUP : 0));

	if (event < 0)
		return -errno;
	if (ioctl((int)event, PERF_EVENT_IOC_SET_OUTPUT, events->rings[cpu].owner) ||
	    !keep_event(events, (int)event, ALL_TASKS)) {
		close((int)event);
		return -EINVAL;
	}
	return ioctl((int)event, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

int outside_events_open_machine(struct outside_events *events, int cgroup)
{
	uint32_t opened = 0;

	for (uint32_t cpu = 0; cpu < events->cpu_count; cpu++) {
		int error = open_tracking_event(events, ALL_TASKS, cpu, false);

		if (error == -ENODEV) /* the CPU is off */
			continue;
		if (!error)
			ioctl(events->rings[cpu].owner, PERF_EVENT_IOC_ENABLE, 0);
		if (!error)
			error = open_machine_event(events, cpu, cgroup);
		if (!error)
			error = open_switch_events(events, ALL_TASKS, cpu, false);
		if (error)
			return error;
		opened++;
	}
	return opened ? 0 : -ENODEV;
}

/* ---- rings (include/uapi/linux/perf_event.h, struct perf_event_mmap_page) ---- */

void outside_ring_update_head(struct outside_ring *ring)
{
	/* acquire: records before the head are whole */
	ring->head = ring->page ? __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE) : 0;
}

const struct perf_event_header *outside_ring_peek(struct outside_ring *ring)
{
	const uint8_t *data = (const uint8_t *)ring->page + ring->page->data_offset;
	size_t at = ring->tail & (ring->data_size - 1), first = ring->data_size - at;
	const struct perf_event_header *record = (const struct perf_event_header *)(data + at);

	if (ring->tail == ring->head)
		return NULL;
	if (record->size <= first)
		return record;
	memcpy(ring->wrapped, data + at, first);
	memcpy(ring->wrapped + first, data, record->size - first);
	return (const struct perf_event_header *)ring->wrapped;
}

void outside_ring_advance(struct outside_ring *ring, const struct perf_event_header *record)
{
	ring->tail += record->size;
}

void outside_ring_release(struct outside_ring *ring)
{
	/* release: the kernel may write there only when everything was read */
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}
