/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See collector.h. Another thread (drain.h) moves records from the rings to queues when a ring is a
 * quarter full or 100 ms have passed. This one then handles what all queues hold, in the order of
 * time: what a thread did on one CPU comes before what it did later on another. Records that are
 * younger than 2 ms wait for the next round, because another CPU may be about to write an older
 * one.
 */
#include "outside/collector.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "outside/blocking.h"
#include "outside/drain.h"
#include "outside/events.h"
#include "outside/kernel.h"
#include "outside/machine.h"
#include "outside/records.h"
#include "outside/requests.h"
#include "outside/running.h"

#define ROUND_MS  100
#define SETTLE_NS 2000000u
/* Who wakes whom is seen on two CPUs, of which a hypervisor may stop one meanwhile. */
#define SETTLE_OFF_CPU_NS 20000000u
#define FLUSH_EVERY_NS    500000000u
#define PHASE_SHIFT_PART  81u
#define BUSY_NICENESS     -10
#define END_LINGERS_NS    50000000u /* of a thread: from its report to the last sample, at most */

struct outside_collector {
	struct outside_world world;
	struct outside_events events;
	struct outside_drain drain;
	struct outside_options options;
	pthread_t thread;
	bool is_started;
	int stop;      /* eventfd */
	int listening; /* socket that is asked; -1: none */
	uint64_t next_flush_ns;
};

/* The queue with the oldest record; NULL: none is older than `before`. */
static struct outside_queue *find_oldest(struct outside_collector *collector, uint64_t before)
{
	struct outside_queue *oldest = NULL;

	for (uint32_t i = 0; i < collector->events.ring_count; i++) {
		struct outside_queue *queue = &collector->drain.queues[i];
		const struct perf_event_header *record = outside_queue_peek(queue);
		uint64_t time = record ? outside_record_get_time(record) : UINT64_MAX;

		if (time >= before)
			continue;
		before = time;
		oldest = queue;
	}
	return oldest;
}

/* Handles all records from before a time. */
static void handle_records(struct outside_collector *collector, uint64_t before)
{
	struct outside_queue *queue;

	while ((queue = find_oldest(collector, before))) {
		const struct perf_event_header *record = outside_queue_peek(queue);

		uint32_t ring = (uint32_t)(queue - collector->drain.queues);

		collector->world.cpu = ring % collector->events.cpu_count;
		collector->world.ring_kind =
			(enum outside_ring_kind)(ring / collector->events.cpu_count);
		outside_record_handle(&collector->world, record);
		outside_queue_pass(&collector->drain, queue, record);
	}
}

/* Queues are whole up to a time (drain.h); another CPU may then have been about to write an older
 * record. */
static void run_round(struct outside_collector *collector, bool last)
{
	uint64_t now = monotonic_ns();
	/* acquire: what is in the queues by then is seen */
	uint64_t complete =
		atomic_load_explicit(&collector->drain.complete_ns, memory_order_acquire);
	uint64_t settle = collector->events.with_switches ? SETTLE_OFF_CPU_NS : SETTLE_NS;
	uint64_t before = complete > settle ? complete - settle : 0;

	handle_records(collector, last ? UINT64_MAX : before);
	if (collector->world.keeps_ended && before > END_LINGERS_NS)
		outside_world_remove_ended(&collector->world, before - END_LINGERS_NS);
	if (now < collector->next_flush_ns)
		return;
	collector->next_flush_ns = now + FLUSH_EVERY_NS;
	outside_world_flush(&collector->world, now);
}

/* Events are opened while no ring is read. */
static void answer_requests(struct outside_collector *collector)
{
	pthread_mutex_lock(&collector->drain.lock);
	outside_requests_answer(collector->listening, &collector->world, &collector->events);
	pthread_mutex_unlock(&collector->drain.lock);
	outside_drain_wake(&collector->drain);
}

static void *run_collector(void *context)
{
	struct outside_collector *collector = context;
	struct pollfd waited[3] = {{.revents = 0}};
	uint64_t unused;

	/* On a busy machine it would fall behind while it waits for a CPU. */
	if (collector->world.keeps_ended)
		setpriority(PRIO_PROCESS, (id_t)gettid(), BUSY_NICENESS);
	while (!waited[2].revents) {
		waited[0] = (struct pollfd){collector->drain.notify, POLLIN, 0};
		waited[1] = (struct pollfd){collector->listening, POLLIN, 0};
		waited[2] = (struct pollfd){collector->stop, POLLIN, 0};
		if (poll(waited, 3, -1) < 0)
			continue;
		if (waited[0].revents && read(waited[0].fd, &unused, sizeof(unused)) < 0)
			continue;
		if (waited[1].revents)
			answer_requests(collector);
		run_round(collector, false);
	}
	outside_drain_stop(&collector->drain);
	run_round(collector, true);
	outside_blocks_end(&collector->world, monotonic_ns());
	collector->world.thread_cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

int outside_collector_create(const struct outside_options *options, struct outside_collector **ret,
			     struct problem *problem)
{
	struct outside_collector *collector = calloc(1, sizeof(*collector));
	int error;

	if (!collector)
		return problem_set(problem, -ENOMEM, "out of memory");
	collector->stop = eventfd(0, EFD_CLOEXEC);
	collector->listening = -1;
	collector->options = *options;
	/* A CPU's timer runs whatever the CPU does: in step with the scheduler's tick it would meet
	 * some tasks too often. */
	if (options->scope)
		collector->options.period_ns -= options->period_ns / PHASE_SHIFT_PART;
	collector->world.period_ns = collector->options.period_ns;
	collector->world.depth_max = options->depth_max;
	collector->world.scope = options->scope;
	collector->world.keeps_ended = options->scope || options->with_off_cpu;
	collector->events = (struct outside_events){.period_ns = collector->options.period_ns,
						    .stack_bytes_max = options->stack_bytes_max,
						    .is_whole_machine = options->scope != NULL,
						    .with_switches = options->with_off_cpu};
	if (options->with_off_cpu)
		collector->events.wakeups = outside_tracepoint_find_waking();
	error = outside_events_init(&collector->events, problem);
	collector->world.cpu_count = collector->events.cpu_count;
	collector->world.raw_pid_offset = collector->events.wakeups.pid_offset;
	if (!error && (collector->stop < 0 || outside_world_init(&collector->world)))
		error = problem_set(problem, -ENOMEM, "out of memory");
	if (error) {
		outside_collector_finish(collector);
		return error;
	}
	if (options->with_kernel_frames && !collector->events.without_kernel)
		collector->world.kernel_start = outside_kernel_find_start();
	collector->events.with_kernel_frames = collector->world.kernel_start != 0;
	collector->world.source_text =
		collector->events.without_kernel
			? "from outside: without CPU time in the kernel, which "
			  "kernel.perf_event_paranoid keeps from this user"
			: "from outside";
	*ret = collector;
	return 0;
}

bool outside_collector_has_kernel_frames(const struct outside_collector *collector,
					 const char **ret_why)
{
	*ret_why =
		collector->events.without_kernel
			? "kernel.perf_event_paranoid is 2 or more; 1, or CAP_PERFMON, permits them"
			: "kernel.kptr_restrict hides the kernel's addresses in /proc/kallsyms";
	return collector->world.kernel_start != 0;
}

bool outside_collector_has_off_cpu(const struct outside_collector *collector)
{
	return collector->events.with_switches;
}

const char *outside_collector_find_off_cpu_gap(const struct outside_collector *collector)
{
	if (!collector->events.with_switches)
		return "kernel.perf_event_paranoid is 2 or more; 1, or CAP_PERFMON, permits it";
	return collector->events.wakeups.id ? NULL : collector->events.wakeups.why_not;
}

int outside_collector_set_directory(struct outside_collector *collector, const char *session,
				    struct problem *problem)
{
	if (asprintf(&collector->world.spool_directory, "%s/spool", session) >= 0)
		return 0;
	collector->world.spool_directory = NULL;
	return problem_set(problem, -ENOMEM, "out of memory");
}

static int start_thread(struct outside_collector *collector)
{
	const struct outside_options *options = &collector->options;
	sigset_t all, before;
	int error;

	collector->world.from_ns = monotonic_ns() + options->delay_ns;
	collector->world.to_ns =
		options->duration_ns ? collector->world.from_ns + options->duration_ns : UINT64_MAX;
	/* Signals are for the thread that waits for the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	error = outside_drain_start(&collector->drain, &collector->events,
				    collector->world.keeps_ended ? BUSY_NICENESS : 0);
	if (!error)
		error = -pthread_create(&collector->thread, NULL, run_collector, collector);
	collector->is_started = !error;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

int outside_collector_start(struct outside_collector *collector, pid_t pid)
{
	int error = outside_events_open_task(&collector->events, pid, true);

	collector->world.root_pid = (uint32_t)pid;
	return error ? error : start_thread(collector);
}

int outside_collector_serve(struct outside_collector *collector)
{
	collector->listening = outside_requests_listen(collector->world.spool_directory);
	return collector->listening < 0 ? collector->listening : start_thread(collector);
}

int outside_collector_attach(struct outside_collector *collector, pid_t pid)
{
	int error;

	collector->world.root_pid = (uint32_t)pid;
	error = outside_running_open(&collector->world, &collector->events, pid, monotonic_ns());
	return error ? error : start_thread(collector);
}

int outside_collector_start_machine(struct outside_collector *collector)
{
	int error;

	/* What kymo's own process uses is in the results in any case. */
	collector->world.root_pid = (uint32_t)getpid();
	error = outside_machine_open(&collector->world, &collector->events, monotonic_ns());
	return error ? error : start_thread(collector);
}

struct outside_result outside_collector_finish(struct outside_collector *collector)
{
	static const uint64_t one = 1;
	struct outside_result result;

	if (collector->is_started && write(collector->stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(collector->thread, NULL);
	for (const struct outside_image *image = collector->world.images.list; image;
	     image = image->next) {
		if (image->is_elsewhere && image->file >= 0)
			collector->options.keep_file(image->file);
	}
	outside_drain_deinit(&collector->drain);
	outside_world_deinit(&collector->world, monotonic_ns());
	outside_events_deinit(&collector->events);
	if (collector->stop >= 0)
		close(collector->stop);
	if (collector->listening >= 0)
		close(collector->listening);
	result = (struct outside_result){collector->world.samples, collector->world.lost,
					 collector->world.unknown_scope};
	free(collector);
	return result;
}
