/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See collector.h. The thread sleeps until a ring is a quarter full or 100 ms have passed, and then
 * handles what all rings hold, in the order of time: what a thread did on one CPU comes before what
 * it did later on another. Records that are younger than 2 ms wait for the next round, because
 * another CPU may be about to write an older one.
 */
#include "outside/collector.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "outside/events.h"
#include "outside/kernel.h"
#include "outside/records.h"
#include "outside/requests.h"
#include "outside/running.h"

#define ROUND_MS       100
#define SETTLE_NS      2000000u
#define FLUSH_EVERY_NS 500000000u

struct outside_collector {
	struct outside_world world;
	struct outside_events events;
	struct outside_options options;
	pthread_t thread;
	bool is_started;
	int stop;      /* eventfd */
	int listening; /* socket that is asked; -1: none */
	uint64_t next_flush_ns;
};

/* The ring with the oldest record; NULL: none is older than `before`. */
static struct outside_ring *find_oldest(struct outside_events *events, uint64_t before)
{
	struct outside_ring *oldest = NULL;

	for (uint32_t i = 0; i < events->cpu_count; i++) {
		struct outside_ring *ring = &events->rings[i];
		const struct perf_event_header *record =
			ring->page ? outside_ring_peek(ring) : NULL;
		uint64_t time = record ? outside_record_get_time(record) : UINT64_MAX;

		if (time >= before)
			continue;
		before = time;
		oldest = ring;
	}
	return oldest;
}

/* Handles all records from before a time. */
static void handle_records(struct outside_collector *collector, uint64_t before)
{
	struct outside_events *events = &collector->events;
	struct outside_ring *ring;

	for (uint32_t i = 0; i < events->cpu_count; i++)
		outside_ring_update_head(&events->rings[i]);
	while ((ring = find_oldest(events, before))) {
		const struct perf_event_header *record = outside_ring_peek(ring);

		outside_record_handle(&collector->world, record);
		outside_ring_advance(ring, record);
		outside_ring_release(ring);
	}
}

static void run_round(struct outside_collector *collector, bool last)
{
	uint64_t now = monotonic_ns();

	handle_records(collector, last ? UINT64_MAX : now - SETTLE_NS);
	if (now < collector->next_flush_ns)
		return;
	collector->next_flush_ns = now + FLUSH_EVERY_NS;
	outside_world_flush(&collector->world, now);
}

/* What the thread waits for: rings, who asks, the end. A ring whose first task has ended hangs up
 * and is not waited for any more. */
struct waited_descriptors {
	struct pollfd *list;
	uint32_t rings;
	bool *has_hung_up;
};

static void wait_for_records(struct outside_collector *collector, struct waited_descriptors *waited)
{
	struct pollfd *list = waited->list;

	for (uint32_t i = 0; i < waited->rings; i++)
		list[i] = (struct pollfd){
			waited->has_hung_up[i] ? -1 : collector->events.rings[i].owner, POLLIN, 0};
	list[waited->rings] = (struct pollfd){collector->listening, POLLIN, 0};
	list[waited->rings + 1] = (struct pollfd){collector->stop, POLLIN, 0};
	poll(list, waited->rings + 2, collector->events.rings[0].page ? ROUND_MS : -1);
	for (uint32_t i = 0; i < waited->rings; i++)
		waited->has_hung_up[i] |= (list[i].revents & (POLLHUP | POLLERR)) != 0;
}

static void *run_collector(void *context)
{
	struct outside_collector *collector = context;
	struct waited_descriptors waited = {.rings = collector->events.cpu_count};

	waited.list = calloc(waited.rings + 2, sizeof(*waited.list));
	waited.has_hung_up = calloc(waited.rings, sizeof(*waited.has_hung_up));
	while (waited.list && waited.has_hung_up && !waited.list[waited.rings + 1].revents) {
		wait_for_records(collector, &waited);
		if (waited.list[waited.rings].revents)
			outside_requests_answer(collector->listening, &collector->world,
						&collector->events);
		run_round(collector, false);
	}
	free(waited.list);
	free(waited.has_hung_up);
	run_round(collector, true);
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
	collector->world.period_ns = options->period_ns;
	collector->world.depth_max = options->depth_max;
	error = outside_events_init(&collector->events, options->period_ns,
				    options->stack_bytes_max, problem);
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
	outside_world_deinit(&collector->world, monotonic_ns());
	outside_events_deinit(&collector->events);
	if (collector->stop >= 0)
		close(collector->stop);
	if (collector->listening >= 0)
		close(collector->listening);
	result = (struct outside_result){collector->world.samples, collector->world.lost};
	free(collector);
	return result;
}
