/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_control.h: the shared file, the thread, and which experiment is next. How one is
 * measured is in causal_window.c.
 */
#include "cmd/causal_control_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/causal_most.h"

/* While the controller lives it renews `expires` several times in this time. */
#define CONTROL_LEASE (1 * SECOND)
#define CONTROL_SLICE (200 * MILLISECOND)
/* How long a program has to visit a point of its own before others are used. */
#define CONTROL_PATIENCE (1 * SECOND)

/* ---- the shared file ---- */

static void control_renew(struct causal_controller *controller)
{
	uint64_t lease = causal_clock_from_ns(&controller->clock, CONTROL_LEASE);

	atomic_store_explicit(&controller->shared->expires,
			      causal_clock_ticks(&controller->clock) + lease, memory_order_relaxed);
}

uint64_t control_virtual_now(const struct causal_controller *controller)
{
	uint64_t now = causal_clock_ticks(&controller->clock);

	return now - (causal_most(controller->shared, now) -
		      atomic_load(&controller->shared->start_delay));
}

void control_activate(struct causal_controller *controller, uint32_t target, uint32_t permille)
{
	struct causal_control *shared = controller->shared;

	controller->epoch = (controller->epoch + 1) & UINT32_MAX;
	controller->epoch += !controller->epoch;
	control_renew(controller);
	atomic_store(&shared->start_delay, atomic_load(&shared->delay));
	atomic_store(&shared->could_run[controller->epoch % 2], 0);
	atomic_store(&shared->took_part[controller->epoch % 2], 0);
	atomic_store(&shared->experiment, controller->epoch << CAUSAL_EPOCH_SHIFT | CAUSAL_ACTIVE |
						  (uint64_t)permille << CAUSAL_SPEEDUP_SHIFT |
						  target);
}

void control_deactivate(struct causal_controller *controller)
{
	atomic_store(&controller->shared->experiment, controller->epoch << CAUSAL_EPOCH_SHIFT);
}

/* The parts that every process touches are made now, while a full disk is an error and not a
 * signal (SIGBUS) in the program. */
static int control_map(struct causal_controller *controller, struct problem *problem)
{
	static const off_t first_targets = 1 << 16;
	char path[PATH_MAX];
	int file, error;

	snprintf(path, sizeof(path), "%s/causal/control", controller->options.session);
	/* cutting it would end the processes of a session that is still there with SIGBUS */
	unlink(path);
	file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0)
		return problem_set(problem, -errno, "cannot write '%s': %s", path, strerror(errno));
	error = posix_fallocate(file, 0,
				(off_t)offsetof(struct causal_control, targets) +
					first_targets * (off_t)sizeof(struct causal_target_time));
	if (!error && ftruncate(file, sizeof(struct causal_control)))
		error = errno;
	if (!error) {
		controller->shared = mmap(NULL, sizeof(struct causal_control),
					  PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		if (controller->shared == MAP_FAILED) {
			error = errno;
			controller->shared = NULL;
		}
	}
	close(file);
	if (!error)
		return 0;
	unlink(path);
	return problem_set(problem, -error, "cannot make '%s': %s", path, strerror(error));
}

static void control_fill(struct causal_controller *controller)
{
	struct causal_control *shared = controller->shared;

	causal_clock_init(&controller->clock);
	shared->version = CAUSAL_VERSION;
	shared->size_of_header = sizeof(*shared);
	shared->ticks_per_second = (uint64_t)(1e9 / controller->clock.ns_per_tick);
	shared->ticks_are_ns = controller->clock.is_ns;
	atomic_thread_fence(memory_order_release);
	shared->magic = CAUSAL_MAGIC;
}

/* ---- life ---- */

/* Windows are many and find the best ones among all. Runs are few: asked for, they are made for the
 * hottest target of each scope at every speedup, with one more baseline; not asked for, the two
 * hottest ones are compared. */
static int control_make_plan(struct causal_controller *controller, bool few)
{
	const struct causal_options *request = controller->options.request;
	static const uint32_t few_speedups[] = {500, 1000};
	struct causal_plan_options options = {
		.speedups = request->speedups.permille,
		.speedup_count = request->speedups.count,
		.until_ci = request->until_ci,
		.seed = request->seed,
		.fixed_speedup = UINT32_MAX,
	};

	if (few) {
		options.targets = 2;
		options.speedups = request->speedups_given ? options.speedups : few_speedups;
		options.speedup_count = request->speedups_given ? options.speedup_count : 2;
	} else if (controller->end_to_end) {
		options.targets = controller->options.scopes;
		options.per_baseline = options.targets * (unsigned)options.speedup_count;
	} else if (control_is_careful(controller)) {
		options.may_try = control_may_try;
		options.context = controller;
	}
	causal_plan_destroy(controller->plan);
	controller->plan = NULL;
	return causal_plan_create(&options, &controller->plan);
}

int causal_control_create(const struct causal_control_options *options,
			  struct causal_controller **ret, struct problem *problem)
{
	struct causal_controller *controller = calloc(1, sizeof(*controller));
	char path[PATH_MAX];
	int error;

	if (!controller)
		return problem_set(problem, -ENOMEM, "out of memory");
	controller->options = *options;
	controller->end_to_end = options->request->end_to_end;
	controller->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = controller->wake < 0 ? problem_set(problem, -errno, "eventfd: %s", strerror(errno))
				     : control_map(controller, problem);
	snprintf(path, sizeof(path), "%s/causal/windows.ndjson", options->session);
	if (!error)
		error = causal_journal_open(&controller->journal, path, problem);
	if (!error && control_make_plan(controller, false))
		error = problem_set(problem, -ENOMEM, "out of memory");
	if (error) {
		causal_control_destroy(controller);
		return error;
	}
	control_fill(controller);
	controller->points.shared = controller->shared;
	*ret = controller;
	return 0;
}

void causal_control_destroy(struct causal_controller *controller)
{
	if (!controller)
		return;
	causal_control_end(controller, 0, NULL);
	causal_journal_deinit(&controller->journal);
	causal_plan_destroy(controller->plan);
	causal_budget_deinit(&controller->budget);
	if (controller->shared)
		munmap(controller->shared, sizeof(*controller->shared));
	if (controller->wake >= 0)
		close(controller->wake);
	free(controller->times);
	free(controller->times_before);
	free(controller);
}

/* ---- the thread ---- */

bool control_sleep(struct causal_controller *controller, uint64_t ns)
{
	uint64_t begin = causal_clock_ns(), now = begin;
	struct pollfd wake = {controller->wake, POLLIN, 0};

	while (!controller->over && now - begin < ns) {
		uint64_t left = ns - (now - begin);
		uint64_t slice = left < CONTROL_SLICE ? left : CONTROL_SLICE;
		struct timespec time = {(time_t)(slice / SECOND), (long)(slice % SECOND)};

		if (ppoll(&wake, 1, &time, NULL) > 0)
			controller->over = true;
		control_renew(controller);
		left = now;
		now = causal_clock_ns();
		controller->stalled |= now - left > CONTROL_LEASE * 9 / 10;
	}
	return !controller->over;
}

static bool control_grow_times(struct causal_controller *controller, size_t count)
{
	struct causal_data_time *times, *before;

	if (count <= controller->time_capacity)
		return true;
	count = count < 256 ? 256 : count * 2;
	times = reallocarray(controller->times, count, sizeof(*times));
	if (times)
		controller->times = times;
	before = reallocarray(controller->times_before, count, sizeof(*before));
	if (before)
		controller->times_before = before;
	if (!times || !before)
		return false;
	controller->time_capacity = count;
	return true;
}

void control_times(struct causal_controller *controller)
{
	size_t count = causal_targets_count(controller->options.targets);

	if (count >= CAUSAL_TARGETS)
		count = CAUSAL_TARGETS - 1;
	if (!control_grow_times(controller, count))
		return;
	for (uint32_t id = 1; id <= count; id++) {
		const struct causal_target_time *time = &controller->shared->targets[id];

		controller->times[id - 1] = (struct causal_data_time){
			id, atomic_load_explicit(&time->self_ns, memory_order_relaxed),
			atomic_load_explicit(&time->total_ns, memory_order_relaxed)};
	}
	controller->time_count = count;
}

/* Waits until there is a process, and the delay asked for is over. */
static bool control_await_program(struct causal_controller *controller)
{
	uint64_t delay = controller->options.request->delay_ns, passed;

	while (!atomic_load(&controller->shared->processes)) {
		if (!control_sleep(controller, 5 * MILLISECOND))
			return false;
	}
	controller->taken_part = true;
	controller->own_point_ns = causal_clock_ns();
	passed = causal_clock_ns() - controller->run_start_ns;
	return passed >= delay || control_sleep(controller, delay - passed);
}

/* Written down, for the reports, and to be said at the end. */
static void control_note_given_up(struct causal_controller *controller)
{
	for (uint32_t i = 0; i < controller->points.count; i++) {
		struct causal_known_point *point = &controller->points.list[i];

		if (!point->known || point->given_up || point->origin != CAUSAL_ORIGIN_NAMED ||
		    !causal_points_given_up(&controller->points, i))
			continue;
		point->given_up = true;
		controller->journal.points[i] = false;
		causal_journal_point(&controller->journal, i, point);
	}
}

/* Points of the user's come first; others count when these are not visited for a while. */
static bool control_await_point(struct causal_controller *controller, uint32_t *ret)
{
	uint64_t pause = 10 * MILLISECOND;

	for (;;) {
		uint64_t now = causal_clock_ns();
		bool patient = now - controller->own_point_ns < CONTROL_PATIENCE;

		*ret = control_choose_point(controller, patient);
		control_note_given_up(controller);
		if (*ret != CAUSAL_NO_POINT &&
		    controller->points.list[*ret].origin != CAUSAL_ORIGIN_AUTOMATIC)
			controller->own_point_ns = now;
		if (*ret != CAUSAL_NO_POINT)
			return true;
		if (!control_sleep(controller, pause))
			return false;
		if (pause < 100 * MILLISECOND)
			pause += pause / 4;
	}
}

/* ---- which experiment ---- */

/* A baseline where nothing else can be tried. False: it is enough. */
static bool control_choose(struct causal_controller *controller, uint32_t *target,
			   uint32_t *permille)
{
	const struct causal_options *request = controller->options.request;
	uint64_t duration = request->duration_ns;

	*target = *permille = 0;
	if (duration && controller->experiments_ns >= duration)
		return false;
	if (control_needs_baseline(controller))
		return true;
	if (!controller->windows) /* else they are those of the last window's end */
		control_times(controller);
	if (!control_choose_postponed(controller, target, permille) &&
	    causal_plan_next(controller->plan, &controller->journal.data, controller->times,
			     controller->time_count, target, permille) == CAUSAL_PLAN_DONE)
		return false;
	control_afford(controller, target, permille);
	causal_journal_target(&controller->journal, controller->options.targets, *target);
	return true;
}

static void control_experiments(struct causal_controller *controller)
{
	uint32_t point, target, permille;

	if (controller->done || !control_await_program(controller))
		return;
	while (control_await_point(controller, &point)) {
		uint64_t begin = causal_clock_ns();
		bool going;

		if (!controller->paces[point].wanted) {
			if (!control_pace_points(controller))
				return;
			continue;
		}
		controller->point = point;
		controller->done = !control_choose(controller, &target, &permille);
		if (controller->done)
			return;
		if (!target && control_rests_instead(controller)) {
			if (!control_rest_instead(controller))
				return;
			continue;
		}
		going = control_window(controller, point, target, permille) &&
			control_rest(controller);
		controller->experiments_ns += causal_clock_ns() - begin;
		if (!going)
			return;
	}
}

static void *control_thread(void *argument)
{
	struct causal_controller *controller = argument;

	if (!controller->end_to_end) {
		control_experiments(controller);
		control_deactivate(controller);
	}
	while (control_sleep(controller, SECOND))
		controller->taken_part |= atomic_load(&controller->shared->processes) > 0;
	return NULL;
}

/* ---- runs ---- */

static struct control_counts control_counts(const struct causal_control *shared)
{
	return (struct control_counts){
		atomic_load(&shared->samples),  atomic_load(&shared->samples_in_scope),
		atomic_load(&shared->paid),     atomic_load(&shared->overslept),
		atomic_load(&shared->credited), atomic_load(&shared->pauses),
	};
}

/* The experiment begins before the program does. */
static void control_begin_whole(struct causal_controller *controller)
{
	controller->target = controller->speedup_permille = 0;
	if (!control_choose(controller, &controller->target, &controller->speedup_permille))
		controller->done = true;
	if (controller->time_count)
		memcpy(controller->times_before, controller->times,
		       controller->time_count * sizeof(*controller->times));
	controller->before_count = controller->time_count;
	controller->run_start_delay = atomic_load(&controller->shared->delay);
	control_activate(controller, controller->target, controller->speedup_permille);
}

static int control_start_thread(struct causal_controller *controller)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&controller->thread, NULL, control_thread, controller);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	controller->running = !error;
	return -error;
}

int causal_control_begin(struct causal_controller *controller)
{
	const struct causal_options *request = controller->options.request;
	uint64_t ignored;

	if (read(controller->wake, &ignored, sizeof(ignored)) < 0 && errno != EAGAIN)
		return -errno;
	controller->over = controller->stalled = false;
	controller->run = controller->runs++;
	controller->run_start_ns = causal_clock_ns();
	causal_budget_restart(&controller->budget);
	controller->postponed = false;
	control_rests_restart(controller);
	controller->run_start_delay = atomic_load(&controller->shared->delay);
	controller->start_counts = control_counts(controller->shared);
	for (uint32_t i = 0; i < CAUSAL_POINTS; i++)
		controller->start_visits[i] = causal_points_visits(&controller->points, i);
	causal_journal_run(&controller->journal,
			   &(struct causal_journal_run){
				   .number = controller->run,
				   .command = controller->options.command,
				   .mode = request->lines ? "line" : "function",
				   .seed = request->seed,
				   .ticks_per_second = controller->shared->ticks_per_second,
				   .end_to_end = controller->end_to_end});
	if (controller->end_to_end)
		control_begin_whole(controller);
	return control_start_thread(controller);
}

/* The run is a window of one visit, that of its end. */
static void control_end_whole(struct causal_controller *controller)
{
	uint64_t delay = atomic_load(&controller->shared->delay) - controller->run_start_delay;
	int64_t delay_ns = causal_clock_to_ns(&controller->clock, (int64_t)delay);
	struct causal_data_visits visits = {.point = CAUSAL_JOURNAL_PROCESS,
					    .end_point = CAUSAL_NO_POINT,
					    .visits = 1,
					    .virtual_ns = (int64_t)controller->run_ns - delay_ns};
	struct causal_data_window window = {
		.run = controller->run,
		.target = controller->target,
		.speedup_permille = controller->speedup_permille,
		.end = controller->stalled ? CAUSAL_ENDED_CUT : CAUSAL_ENDED_BY_VISITS,
		.start_ns = controller->run_start_ns,
		.real_ns = controller->run_ns,
		.cpu_ns = controller->run_load.cpu_ns,
		.involuntary_switches = controller->run_load.involuntary_switches,
		.delay_ns = delay_ns > 0 ? (uint64_t)delay_ns : 0,
		.visits = &visits,
		.visit_count = 1};

	controller->experiments_ns += controller->run_ns;
	causal_journal_process_point(&controller->journal, controller->options.command[0]);
	control_times(controller);
	control_write_window(controller, &window);
}

void causal_control_end(struct causal_controller *controller, int status,
			const struct causal_load *used)
{
	static const uint64_t one = 1;
	uint64_t real_ns = causal_clock_ns() - controller->run_start_ns;
	struct control_counts now;
	struct causal_data_run end;
	double cost, error;

	if (!controller->running)
		return;
	while (write(controller->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(controller->thread, NULL);
	controller->running = false;
	controller->run_ns = real_ns;
	controller->run_load = used ? *used : (struct causal_load){0};
	causal_clock_measure(&controller->clock);
	if (controller->end_to_end)
		control_end_whole(controller);
	control_deactivate(controller);
	now = control_counts(controller->shared);
	end = (struct causal_data_run){
		.number = controller->run,
		.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		.real_ns = real_ns,
		.samples = now.samples - controller->start_counts.samples,
		.samples_in_scope =
			now.samples_in_scope - controller->start_counts.samples_in_scope,
		.pauses = now.pauses - controller->start_counts.pauses,
	};
	end.paid_ns =
		(uint64_t)control_duration(controller, now.paid - controller->start_counts.paid);
	end.overslept_ns = (uint64_t)control_duration(
		controller, now.overslept - controller->start_counts.overslept);
	end.credited_ns = (uint64_t)control_duration(
		controller, now.credited - controller->start_counts.credited);
	end.samples_cost_known = control_rests_cost(controller, &cost, &error);
	end.samples_cost_ppm = llround(1e6 * fmin(cost, CAUSAL_COST_PPM_MOST / 1e6));
	end.samples_cost_error_ppm = llround(1e6 * fmin(error, CAUSAL_COST_PPM_MOST / 1e6));
	causal_journal_end(&controller->journal, &end);
}

/* ---- what others want to know ---- */

void causal_control_end_to_end(struct causal_controller *controller)
{
	/* the run so far was undisturbed: a baseline */
	controller->target = controller->speedup_permille = 0;
	controller->before_count = 0;
	control_end_whole(controller);
	controller->end_to_end = true;
	controller->done = control_make_plan(controller, true) != 0;
}

uint32_t causal_control_runs(const struct causal_controller *controller)
{
	return controller->runs;
}

uint32_t causal_control_points(const struct causal_controller *controller)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < controller->points.count; i++)
		count += controller->points.list[i].known &&
			 causal_points_visits(&controller->points, i) > 0;
	return count;
}

bool causal_control_unfinished(const struct causal_controller *controller)
{
	return !controller->done;
}

const struct causal_data *causal_control_data(const struct causal_controller *controller)
{
	return &controller->journal.data;
}

void causal_control_seen(const struct causal_controller *controller,
			 struct causal_control_seen *ret)
{
	*ret = (struct causal_control_seen){
		.taken_part = controller->taken_part,
		.points = causal_control_points(controller),
		.samples = atomic_load(&controller->shared->samples),
		.samples_in_scope = atomic_load(&controller->shared->samples_in_scope),
		.journal_failed = controller->journal.failed};
}
