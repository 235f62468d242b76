/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See control.h: the thread, and which experiment is next. How one is measured is in window.c.
 */
#include "experiments/control_private.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/causal_global_delay.h"

/* While the controller lives it renews `expires` several times in this time. */
#define CONTROL_EXPERIMENT_LEASE_NS (1 * SECOND_NS)
#define CONTROL_SLEEP_SLICE_NS      (200 * MILLISECOND_NS)
/* How long a program has to visit a point of its own before others are used. */
#define CONTROL_USER_POINT_WAIT_NS (1 * SECOND_NS)

/* ---- the shared file ---- */

static void control_renew_experiment_lease(struct causal_controller *controller)
{
	uint64_t lease = causal_clock_ns_to_ticks(&controller->clock, CONTROL_EXPERIMENT_LEASE_NS);

	atomic_store_explicit(&controller->shared->expires,
			      causal_clock_read_ticks(&controller->clock) + lease,
			      memory_order_relaxed);
}

uint64_t control_get_virtual_now_ticks(const struct causal_controller *controller)
{
	uint64_t now = causal_clock_read_ticks(&controller->clock);

	return now - (causal_compute_global_delay(controller->shared, now) -
		      atomic_load(&controller->shared->start_delay));
}

void control_activate_experiment(struct causal_controller *controller, uint32_t target,
				 uint32_t permille)
{
	struct causal_control *shared = controller->shared;

	controller->experiment_epoch = (controller->experiment_epoch + 1) & UINT32_MAX;
	controller->experiment_epoch += !controller->experiment_epoch;
	control_renew_experiment_lease(controller);
	atomic_store(&shared->start_delay, atomic_load(&shared->global_delay));
	atomic_store(&shared->could_run[controller->experiment_epoch % 2], 0);
	atomic_store(&shared->took_part[controller->experiment_epoch % 2], 0);
	atomic_store(&shared->experiment,
		     controller->experiment_epoch << CAUSAL_EPOCH_SHIFT | CAUSAL_ACTIVE |
			     (uint64_t)permille << CAUSAL_SPEEDUP_SHIFT | target);
}

void control_deactivate_experiment(struct causal_controller *controller)
{
	atomic_store(&controller->shared->experiment,
		     controller->experiment_epoch << CAUSAL_EPOCH_SHIFT);
}

static void control_fill_shared_header(struct causal_controller *controller)
{
	struct causal_control *shared = controller->shared;

	causal_clock_init(&controller->clock);
	shared->version = CAUSAL_VERSION;
	shared->size_of_header = sizeof(*shared);
	shared->ticks_per_second = (uint64_t)(1e9 / controller->clock.ns_per_tick);
	shared->ticks_are_ns = controller->clock.ticks_are_ns;
	atomic_thread_fence(memory_order_release);
	shared->magic = CAUSAL_MAGIC;
}

/* ---- life ---- */

/* Windows are many and find the best ones among all. Runs are few: asked for, they are made for the
 * hottest target of each scope at every speedup, with one more baseline; not asked for, the two
 * hottest ones are compared. */
static int controller_create_experiment_plan(struct causal_controller *controller, bool few)
{
	const struct causal_options *request = controller->options.request;
	static const uint32_t few_speedups[] = {500, 1000};
	struct causal_plan_options options = {
		.speedups = request->speedups.permille,
		.speedup_count = request->speedups.count,
		.until_ci = request->until_ci_width,
		.seed = request->random_seed,
		.fixed_speedup_permille = UINT32_MAX,
	};

	if (few) {
		options.targets = 2;
		options.speedups = request->speedups_given ? options.speedups : few_speedups;
		options.speedup_count = request->speedups_given ? options.speedup_count : 2;
	} else if (controller->end_to_end) {
		options.targets = controller->options.scopes;
		options.experiments_per_baseline =
			options.targets * (unsigned)options.speedup_count;
	} else if (control_is_cost_limited(controller)) {
		options.may_try_window = control_can_afford_experiment;
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
	controller->file = -1;
	controller->end_to_end = options->request->end_to_end;
	controller->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = controller->wake < 0 ? problem_set(problem, -errno, "eventfd: %s", strerror(errno))
				     : control_map_new_shared_file(controller, problem);
	snprintf(path, sizeof(path), "%s/causal/windows.ndjson", options->session);
	if (!error)
		error = causal_journal_open(&controller->journal, path, problem);
	if (!error && controller_create_experiment_plan(controller, false))
		error = problem_set(problem, -ENOMEM, "out of memory");
	if (error) {
		causal_control_destroy(controller);
		return error;
	}
	control_fill_shared_header(controller);
	controller->points.shared = controller->shared;
	*ret = controller;
	return 0;
}

void causal_control_destroy(struct causal_controller *controller)
{
	if (!controller)
		return;
	causal_control_end_run(controller, 0, NULL);
	causal_journal_deinit(&controller->journal);
	causal_plan_destroy(controller->plan);
	causal_budget_deinit(&controller->budget);
	if (controller->shared)
		munmap(controller->shared, sizeof(*controller->shared));
	if (controller->file >= 0)
		close(controller->file);
	if (controller->wake >= 0)
		close(controller->wake);
	free(controller->target_times);
	free(controller->target_times_at_begin);
	free(controller);
}

/* ---- the thread ---- */

bool control_sleep_and_renew_lease(struct causal_controller *controller, uint64_t ns)
{
	uint64_t begin = monotonic_ns(), now = begin;
	struct pollfd wake = {controller->wake, POLLIN, 0};

	while (!controller->is_run_over && now - begin < ns) {
		uint64_t left = ns - (now - begin);
		uint64_t slice = left < CONTROL_SLEEP_SLICE_NS ? left : CONTROL_SLEEP_SLICE_NS;
		struct timespec time = {(time_t)(slice / SECOND_NS), (long)(slice % SECOND_NS)};

		if (ppoll(&wake, 1, &time, NULL) > 0)
			controller->is_run_over = true;
		control_renew_experiment_lease(controller);
		left = now;
		now = monotonic_ns();
		controller->has_stalled |= now - left > CONTROL_EXPERIMENT_LEASE_NS * 9 / 10;
	}
	return !controller->is_run_over;
}

static bool control_grow_target_times(struct causal_controller *controller, size_t count)
{
	struct causal_data_target_time_row *times, *before;

	if (count <= controller->target_time_capacity)
		return true;
	count = count < 256 ? 256 : count * 2;
	times = reallocarray(controller->target_times, count, sizeof(*times));
	if (times)
		controller->target_times = times;
	before = reallocarray(controller->target_times_at_begin, count, sizeof(*before));
	if (before)
		controller->target_times_at_begin = before;
	if (!times || !before)
		return false;
	controller->target_time_capacity = count;
	return true;
}

void control_read_target_times(struct causal_controller *controller)
{
	size_t count = causal_targets_get_count(controller->options.targets);

	if (count >= CAUSAL_TARGETS)
		count = CAUSAL_TARGETS - 1;
	if (!control_grow_target_times(controller, count))
		return;
	for (uint32_t id = 1; id <= count; id++) {
		const struct causal_target_time *time = &controller->shared->targets[id];

		controller->target_times[id - 1] = (struct causal_data_target_time_row){
			id, atomic_load_explicit(&time->self_ns, memory_order_relaxed),
			atomic_load_explicit(&time->total_ns, memory_order_relaxed)};
	}
	controller->target_time_count = count;
}

/* Waits until there is a process, and the delay asked for is over. */
static bool control_wait_for_program(struct causal_controller *controller)
{
	uint64_t delay = controller->options.request->delay_before_experiments_ns, passed;

	while (!atomic_load(&controller->shared->processes)) {
		if (!control_sleep_and_renew_lease(controller, 5 * MILLISECOND_NS))
			return false;
	}
	controller->any_process_took_part = true;
	controller->user_point_last_seen_ns = monotonic_ns();
	passed = monotonic_ns() - controller->run_start_ns;
	return passed >= delay || control_sleep_and_renew_lease(controller, delay - passed);
}

/* Written down, for the reports, and to be said at the end. */
static void control_record_given_up_points(struct causal_controller *controller)
{
	for (uint32_t i = 0; i < controller->points.count; i++) {
		struct causal_point_info *point = &controller->points.list[i];

		if (!point->known || point->given_up || point->origin != CAUSAL_ORIGIN_NAMED ||
		    !causal_point_is_given_up(&controller->points, i))
			continue;
		point->given_up = true;
		controller->journal.points[i] = false;
		causal_journal_write_point_once(&controller->journal, i, point);
	}
}

/* Points of the user's come first; others count when these are not visited for a while. */
static bool control_wait_for_window_point(struct causal_controller *controller, uint32_t *ret)
{
	uint64_t pause = 10 * MILLISECOND_NS;

	for (;;) {
		uint64_t now = monotonic_ns();
		bool patient =
			now - controller->user_point_last_seen_ns < CONTROL_USER_POINT_WAIT_NS;

		*ret = control_choose_window_point(controller, patient);
		control_record_given_up_points(controller);
		if (*ret != CAUSAL_NO_POINT &&
		    controller->points.list[*ret].origin != CAUSAL_ORIGIN_AUTOMATIC)
			controller->user_point_last_seen_ns = now;
		if (*ret != CAUSAL_NO_POINT)
			return true;
		if (!control_sleep_and_renew_lease(controller, pause))
			return false;
		if (pause < 100 * MILLISECOND_NS)
			pause += pause / 4;
	}
}

/* ---- which experiment ---- */

/* A baseline where nothing else can be tried. False: it is enough. */
static bool control_choose_experiment(struct causal_controller *controller, uint32_t *target,
				      uint32_t *permille)
{
	const struct causal_options *request = controller->options.request;
	uint64_t duration = request->experiments_duration_max_ns;

	*target = *permille = 0;
	if (duration && controller->experiments_ns >= duration)
		return false;
	if (control_needs_baseline(controller))
		return true;
	if (!controller->windows) /* else they are those of the last window's end */
		control_read_target_times(controller);
	if (!control_choose_postponed_if_affordable(controller, target, permille) &&
	    causal_plan_choose_next_window(controller->plan, &controller->journal.data,
					   controller->target_times, controller->target_time_count,
					   target, permille) == CAUSAL_PLAN_DONE)
		return false;
	control_postpone_if_costly(controller, target, permille);
	causal_journal_write_target_once(&controller->journal, controller->options.targets,
					 *target);
	return true;
}

static void control_run_experiments(struct causal_controller *controller)
{
	uint32_t point, target, permille;

	if (controller->done || !control_wait_for_program(controller))
		return;
	while (control_wait_for_window_point(controller, &point)) {
		uint64_t begin = monotonic_ns();
		bool going;

		if (!controller->visit_rates[point].wanted) {
			if (!control_measure_visit_rates(controller))
				return;
			continue;
		}
		controller->point = point;
		controller->done = !control_choose_experiment(controller, &target, &permille);
		if (controller->done)
			return;
		if (!target && control_prefers_cooldown_to_baseline(controller)) {
			if (!control_run_cooldown_instead_of_baseline(controller))
				return;
			continue;
		}
		going = control_run_window(controller, point, target, permille) &&
			control_run_cooldown_if_due(controller);
		controller->experiments_ns += monotonic_ns() - begin;
		if (!going)
			return;
	}
}

/* Beside a program of real-time threads, whose priority kymo was started with, the controller would
 * look at windows when they are long over. */
static void control_take_precedence_over_realtime_program(void)
{
	struct sched_param parameters;
	int policy;

	if (pthread_getschedparam(pthread_self(), &policy, &parameters) ||
	    (policy != SCHED_FIFO && policy != SCHED_RR) ||
	    parameters.sched_priority >= sched_get_priority_max(policy))
		return;
	parameters.sched_priority++;
	pthread_setschedparam(pthread_self(), policy, &parameters);
}

static void *control_thread_main(void *argument)
{
	struct causal_controller *controller = argument;

	control_take_precedence_over_realtime_program();
	if (controller->has_brief_runs) {
		control_measure_brief_run(controller);
	} else if (!controller->end_to_end) {
		control_run_experiments(controller);
		control_deactivate_experiment(controller);
	}
	while (control_sleep_and_renew_lease(controller, SECOND_NS))
		controller->any_process_took_part |=
			atomic_load(&controller->shared->processes) > 0;
	return NULL;
}

/* ---- runs ---- */

static struct control_shared_counters
control_read_shared_counters(const struct causal_control *shared)
{
	return (struct control_shared_counters){
		atomic_load(&shared->samples),  atomic_load(&shared->samples_in_scope),
		atomic_load(&shared->paid),     atomic_load(&shared->overslept),
		atomic_load(&shared->credited), atomic_load(&shared->pauses),
	};
}

/* The experiment begins before the program does. */
static void control_begin_experiment_of_run(struct causal_controller *controller)
{
	controller->target = controller->speedup_permille = 0;
	if (!control_choose_experiment(controller, &controller->target,
				       &controller->speedup_permille))
		controller->done = true;
	if (controller->target_time_count)
		memcpy(controller->target_times_at_begin, controller->target_times,
		       controller->target_time_count * sizeof(*controller->target_times));
	controller->target_time_count_at_begin = controller->target_time_count;
	controller->run_start_global_delay_ticks = atomic_load(&controller->shared->global_delay);
	control_activate_experiment(controller, controller->target, controller->speedup_permille);
}

static int control_start_thread(struct causal_controller *controller)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&controller->thread, NULL, control_thread_main, controller);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	controller->running = !error;
	return -error;
}

int causal_control_begin_run(struct causal_controller *controller)
{
	const struct causal_options *request = controller->options.request;
	uint64_t ignored;

	if (read(controller->wake, &ignored, sizeof(ignored)) < 0 && errno != EAGAIN)
		return -errno;
	controller->is_run_over = controller->has_stalled = false;
	controller->run = controller->runs++;
	controller->run_start_ns = monotonic_ns();
	controller->windows_at_run_start = controller->windows;
	causal_budget_reset_for_run(&controller->budget);
	controller->has_postponed_experiment = false;
	control_cooldown_reset_for_run(controller);
	controller->run_start_global_delay_ticks = atomic_load(&controller->shared->global_delay);
	controller->run_start_counters = control_read_shared_counters(controller->shared);
	for (uint32_t i = 0; i < CAUSAL_POINTS; i++)
		controller->run_start_visit_counts[i] =
			causal_point_get_visit_count(&controller->points, i);
	causal_journal_write_run_begin(
		&controller->journal,
		&(struct causal_journal_run_description){
			.number = controller->run,
			.command = controller->options.command,
			.mode = request->lines ? "line" : "function",
			.seed = request->random_seed,
			.ticks_per_second = controller->shared->ticks_per_second,
			.end_to_end = controller->end_to_end});
	if (controller->end_to_end || controller->has_brief_runs)
		control_begin_experiment_of_run(controller);
	return control_start_thread(controller);
}

/* The run is a window of one visit, that of its end. */
static void control_end_whole_run_experiment(struct causal_controller *controller)
{
	uint64_t delay = atomic_load(&controller->shared->global_delay) -
			 controller->run_start_global_delay_ticks;
	int64_t delay_ns = causal_clock_ticks_to_ns(&controller->clock, (int64_t)delay);
	struct causal_data_window_visits visits = {
		.point = CAUSAL_JOURNAL_EXIT_POINT_ID,
		.end_point = CAUSAL_NO_POINT,
		.visits = 1,
		.intervals_virtual_ns = (int64_t)controller->last_run_ns - delay_ns};
	struct causal_data_window window = {
		.run = controller->run,
		.target = controller->target,
		.speedup_permille = controller->speedup_permille,
		.end = controller->has_stalled ? CAUSAL_WINDOW_CUT_SHORT
					       : CAUSAL_WINDOW_ENDED_BY_VISITS,
		.start_ns = controller->run_start_ns,
		.real_ns = controller->last_run_ns,
		.cpu_ns = controller->last_run_usage.cpu_ns,
		.involuntary_switches = controller->last_run_usage.involuntary_switches,
		.delay_ns = delay_ns > 0 ? (uint64_t)delay_ns : 0,
		.visits = &visits,
		.visits_entry_count = 1};

	controller->experiments_ns += controller->last_run_ns;
	causal_journal_write_exit_point(&controller->journal, controller->options.command[0]);
	control_read_target_times(controller);
	control_write_window_to_journal(controller, &window);
}

void causal_control_end_run(struct causal_controller *controller, int status,
			    const struct causal_session_usage *used)
{
	static const uint64_t one = 1;
	uint64_t real_ns = monotonic_ns() - controller->run_start_ns;
	struct control_shared_counters now;
	struct causal_data_program_run end;
	double cost, error;

	if (!controller->running)
		return;
	while (write(controller->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(controller->thread, NULL);
	controller->running = false;
	controller->last_run_ns = real_ns;
	controller->last_run_usage = used ? *used : (struct causal_session_usage){0};
	causal_clock_measure_rate(&controller->clock);
	if (controller->end_to_end)
		control_end_whole_run_experiment(controller);
	control_deactivate_experiment(controller);
	now = control_read_shared_counters(controller->shared);
	end = (struct causal_data_program_run){
		.number = controller->run,
		.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		.real_ns = real_ns,
		.samples = now.samples - controller->run_start_counters.samples,
		.samples_in_scope =
			now.samples_in_scope - controller->run_start_counters.samples_in_scope,
		.pauses = now.pauses - controller->run_start_counters.pauses,
	};
	end.paid_delay_ns = (uint64_t)control_ticks_to_ns(
		controller, now.paid_delay_ticks - controller->run_start_counters.paid_delay_ticks);
	end.overslept_ns = (uint64_t)control_ticks_to_ns(
		controller, now.overslept_ticks - controller->run_start_counters.overslept_ticks);
	end.credited_delay_ns = (uint64_t)control_ticks_to_ns(
		controller,
		now.credited_delay_ticks - controller->run_start_counters.credited_delay_ticks);
	end.is_samples_cost_known =
		control_cooldown_estimate_sample_cost(controller, &cost, &error);
	end.samples_cost_ppm =
		llround(1e6 * fmin(cost, CAUSAL_SAMPLING_COST_PER_VISIT_PPM_MAX / 1e6));
	end.samples_cost_error_ppm =
		llround(1e6 * fmin(error, CAUSAL_SAMPLING_COST_PER_VISIT_PPM_MAX / 1e6));
	causal_journal_write_run_end(&controller->journal, &end);
}

/* ---- what others want to know ---- */

void causal_control_switch_to_end_to_end(struct causal_controller *controller)
{
	/* the run so far was undisturbed: a baseline */
	controller->target = controller->speedup_permille = 0;
	controller->target_time_count_at_begin = 0;
	control_end_whole_run_experiment(controller);
	controller->end_to_end = true;
	controller->done = controller_create_experiment_plan(controller, true) != 0;
}

bool causal_control_try_switch_to_brief_runs(struct causal_controller *controller)
{
	return controller->has_brief_runs || control_try_switch_to_brief_runs(controller);
}

uint64_t causal_control_get_last_run_ns(const struct causal_controller *controller)
{
	return controller->last_run_ns;
}

uint32_t causal_control_get_run_count(const struct causal_controller *controller)
{
	return controller->runs;
}

uint32_t causal_control_count_visited_points(const struct causal_controller *controller)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < controller->points.count; i++)
		count += controller->points.list[i].known &&
			 causal_point_get_visit_count(&controller->points, i) > 0;
	return count;
}

bool causal_control_wants_more_experiments(const struct causal_controller *controller)
{
	return !controller->done;
}

const struct causal_data *
causal_control_get_recorded_data(const struct causal_controller *controller)
{
	return &controller->journal.data;
}

void causal_control_get_program_activity(const struct causal_controller *controller,
					 struct causal_program_activity *ret)
{
	*ret = (struct causal_program_activity){
		.taken_part = controller->any_process_took_part,
		.points = causal_control_count_visited_points(controller),
		.samples = atomic_load(&controller->shared->samples),
		.samples_in_scope = atomic_load(&controller->shared->samples_in_scope),
		.journal_failed = controller->journal.failed};
}
