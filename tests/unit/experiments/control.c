/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The controller of experiments with a program that is none: a thread that visits progress points
 * by a timetable of its own, as exactly as its target's speedup says, however late the machine lets
 * it run. So what is measured has to be exact as well.
 */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/array.h"
#include "experiments/clock.h"
#include "experiments/control.h"
#include "experiments/merge.h"
#include "experiments/points.h"
#include "settings/speedups.h"

#define PERIOD_NS  2000000.
#define LATENCY_NS 1000000.
/* Of the target numbered 1, of the period and of the latency; the other one does nothing. */
#define SHARE 0.5
/* The length of visits that are only counted, in PERIOD_NS: they are dated by when they are looked
 * for, which is some ms late on a busy machine. */
#define COUNTED_LENGTH 10

enum { POINT_WORK, POINT_BEGIN, POINT_END, POINT_COUNTED };

struct program {
	struct causal_control *shared;
	struct causal_clock clock;
	pthread_t thread;
	atomic_bool over;
	bool points, only_counted;
	bool beside; /* the target runs beside the others all the time, who only pay for it */
	double lost; /* by that, in ticks */
	double samples_cost; /* share of a visit, where samples are not rare */
	double rested;       /* ticks */
	double longer;       /* by so much of itself each visit is than the one before */
	double length;       /* of a visit that costs nothing, in PERIOD_NS */
};

struct bench {
	char session[64], path[128];
	struct causal_targets *targets;
	struct causal_options request;
	struct causal_controller *controller;
	struct program program;
};

/* ---- a program ---- */

static void add_point(struct causal_control *shared, uint32_t index, const char *name,
		      enum causal_point_kind kind, enum causal_origin origin)
{
	struct causal_point *point = &shared->points[index];

	snprintf(point->name, sizeof(point->name), "%s", name);
	point->kind = kind;
	point->origin = origin;
	atomic_store(&point->state, CAUSAL_POINT_READY);
}

static void visit(struct causal_control *shared, uint32_t index, uint64_t time)
{
	struct causal_point *point = &shared->points[index];
	uint64_t count = atomic_fetch_add(&point->visits, 1) + 1;
	struct causal_visit *slot = &point->ring[count % CAUSAL_RING];

	atomic_fetch_add(&point->time_sum, time);
	atomic_store(&slot->count, 0);
	atomic_store(&slot->time, time);
	atomic_store(&slot->count, count);
}

/* The delays of a visit are there when it is over. */
static double work_beside(struct program *program, double real, uint64_t word)
{
	struct causal_control *shared = program->shared;
	double speedup = (double)(word >> CAUSAL_SPEEDUP_SHIFT & CAUSAL_SPEEDUP_MASK) / 1000;
	bool hit = word & CAUSAL_ACTIVE && (word & CAUSAL_TARGET_MASK) == 1;
	double delay = hit ? PERIOD_NS * speedup / (1 - speedup) : 0;
	uint64_t delayed = atomic_load(&shared->global_delay) - atomic_load(&shared->start_delay);

	visit(shared, POINT_WORK, (uint64_t)real - (word & CAUSAL_ACTIVE ? delayed : 0));
	atomic_fetch_add(&shared->targets[1].self_ns, (uint64_t)(PERIOD_NS + delay));
	atomic_fetch_add(&shared->targets[1].total_ns, (uint64_t)(PERIOD_NS + delay));
	delay /= program->clock.ns_per_tick;
	program->lost += delay;
	atomic_fetch_add(&shared->global_delay, (uint64_t)delay);
	atomic_fetch_add(&shared->paid, (uint64_t)delay);
	return real + PERIOD_NS / program->clock.ns_per_tick + delay;
}

/* One visit at `real`; returns when the next one is due. */
static double work(struct program *program, double real)
{
	struct causal_control *shared = program->shared;
	uint64_t word = atomic_load(&shared->experiment);
	uint64_t speedup = word >> CAUSAL_SPEEDUP_SHIFT & CAUSAL_SPEEDUP_MASK;
	bool hit = word & CAUSAL_ACTIVE && (word & CAUSAL_TARGET_MASK) == 1;
	double factor = hit ? 1 - SHARE * (double)speedup / 1000 : 1;
	double delay = (1 - factor) * PERIOD_NS * program->length / program->clock.ns_per_tick;
	uint64_t virtual;

	if (program->beside)
		return work_beside(program, real, word);
	atomic_fetch_add(&shared->global_delay, (uint64_t)delay);
	virtual = (uint64_t)real - (word & CAUSAL_ACTIVE ? atomic_load(&shared->global_delay) -
								   atomic_load(&shared->start_delay)
							 : 0);
	atomic_fetch_add(&shared->samples, 2);
	atomic_fetch_add(&shared->samples_in_scope, 2);
	for (uint32_t id = 1; id <= 2; id++) {
		atomic_fetch_add(&shared->targets[id].self_ns, 1000000);
		atomic_fetch_add(&shared->targets[id].total_ns, 1000000);
	}
	if (program->only_counted)
		__atomic_fetch_add(&shared->points[POINT_COUNTED].coz[0], 1, __ATOMIC_RELAXED);
	if (program->points) {
		visit(shared, POINT_WORK, virtual);
		visit(shared, POINT_BEGIN, virtual);
		visit(shared, POINT_END,
		      virtual + (uint64_t)(LATENCY_NS * factor / program->clock.ns_per_tick));
	}
	program->length *= 1 + program->longer;
	factor = program->length * (atomic_load(&shared->resting) ? 1 : 1 + program->samples_cost);
	if (atomic_load(&shared->resting))
		program->rested += factor * PERIOD_NS / program->clock.ns_per_tick;
	return real + factor * PERIOD_NS / program->clock.ns_per_tick;
}

static void *run_program(void *argument)
{
	static const struct timespec moment = {.tv_nsec = 300000};
	struct program *program = argument;
	double next = (double)causal_clock_read_ticks(&program->clock);

	atomic_fetch_add(&program->shared->processes, 1);
	while (!atomic_load(&program->over)) {
		while (next <= (double)causal_clock_read_ticks(&program->clock))
			next = work(program, next);
		nanosleep(&moment, NULL);
	}
	atomic_fetch_sub(&program->shared->processes, 1);
	return NULL;
}

static void program_start(struct bench *bench)
{
	struct program *program = &bench->program;
	int file;

	snprintf(bench->path, sizeof(bench->path), "%s/causal/control", bench->session);
	file = open(bench->path, O_RDWR);
	assert_true(file >= 0);
	program->shared =
		mmap(NULL, sizeof(*program->shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_true(program->shared != MAP_FAILED);
	close(file);
	assert_int_equal(program->shared->magic, CAUSAL_MAGIC);
	causal_clock_init(&program->clock);
	program->length = program->only_counted ? COUNTED_LENGTH : 1;
	if (program->points) {
		add_point(program->shared, POINT_WORK, "work", CAUSAL_POINT_PROGRESS,
			  CAUSAL_ORIGIN_USER);
		add_point(program->shared, POINT_BEGIN, "wait", CAUSAL_POINT_BEGIN,
			  CAUSAL_ORIGIN_USER);
		add_point(program->shared, POINT_END, "wait", CAUSAL_POINT_END, CAUSAL_ORIGIN_USER);
	}
	if (program->only_counted)
		add_point(program->shared, POINT_COUNTED, "counted", CAUSAL_POINT_PROGRESS,
			  CAUSAL_ORIGIN_COZ);
	atomic_store(&program->over, false);
	assert_int_equal(pthread_create(&program->thread, NULL, run_program, program), 0);
}

static void program_end(struct bench *bench)
{
	atomic_store(&bench->program.over, true);
	pthread_join(bench->program.thread, NULL);
	munmap(bench->program.shared, sizeof(*bench->program.shared));
}

/* ---- a session ---- */

static const uint32_t usual[] = {500, 1000};

static int set_up(void **state)
{
	static struct bench bench;
	char path[96];

	memset(&bench, 0, sizeof(bench));
	snprintf(bench.session, sizeof(bench.session), "/tmp/kymo-control-XXXXXX");
	if (!mkdtemp(bench.session))
		return -1;
	snprintf(path, sizeof(path), "%s/causal", bench.session);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/spool", bench.session);
	mkdir(path, 0700);
	if (causal_targets_create(&bench.targets))
		return -1;
	causal_targets_find_or_add_function(bench.targets, "/bin/x", "useful", "x.c", 1);
	causal_targets_find_or_add_function(bench.targets, "/bin/x", "useless", "x.c", 9);
	memcpy(bench.request.speedups.permille, usual, sizeof(usual));
	bench.request.speedups.count = 2;
	bench.request.speedups_given = true;
	bench.request.iterations = 1;
	bench.request.random_seed = 5;
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;
	char command[96];

	causal_control_destroy(bench->controller);
	causal_targets_destroy(bench->targets);
	snprintf(command, sizeof(command), "rm -r '%s'", bench->session);
	return system(command);
}

static void session_start(struct bench *bench)
{
	static char name[] = "x";
	static char *const command[] = {name, NULL};
	struct causal_control_options options = {.request = &bench->request,
						 .session = bench->session,
						 .scopes = 1,
						 .command = command,
						 .targets = bench->targets};
	struct problem problem;

	assert_int_equal(causal_control_create(&options, &bench->controller, &problem), 0);
}

/* Until there are so many windows, as the file has them: nothing else may be read meanwhile. */
static void wait_for_windows(const struct bench *bench, unsigned wanted)
{
	static const struct timespec moment = {.tv_nsec = 20000000};
	unsigned found = 0;
	char path[96];

	snprintf(path, sizeof(path), "%s/causal/windows.ndjson", bench->session);
	while (found < wanted) {
		char *line = NULL;
		size_t size = 0;
		FILE *file = fopen(path, "r");

		nanosleep(&moment, NULL);
		assert_non_null(file);
		for (found = 0; getline(&line, &size, file) > 0;)
			found += strstr(line, "\"window\"") != NULL;
		free(line);
		fclose(file);
	}
}

static const struct causal_data *measure(struct bench *bench, unsigned windows)
{
	session_start(bench);
	assert_int_equal(causal_control_begin_run(bench->controller), 0);
	program_start(bench);
	wait_for_windows(bench, windows);
	program_end(bench);
	causal_control_end_run(bench->controller, 3 << 8, NULL);
	return causal_control_get_recorded_data(bench->controller);
}

/* ---- tests ---- */

static void periods_are_exact(void **state)
{
	struct bench *bench = *state;
	const struct causal_data *data;
	unsigned tried[3] = {0};

	bench->program.points = true;
	data = measure(bench, 12);
	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];
		double factor =
			window->target == 1 ? 1 - SHARE * window->speedup_permille / 1000. : 1;

		for (size_t j = 0;
		     window->end == CAUSAL_WINDOW_ENDED_BY_VISITS && j < window->visits_entry_count;
		     j++) {
			const struct causal_data_window_visits *visits = &window->visits[j];
			double is = (double)(visits->end_point == UINT32_MAX
						     ? visits->intervals_virtual_ns
						     : visits->inside_count_integral_ns) /
				    (double)visits->visits;
			double should =
				factor * (visits->end_point == UINT32_MAX ? PERIOD_NS : LATENCY_NS);

			assert_true(visits->visits >= 8);
			assert_true(fabs(is / should - 1) < 0.02);
			tried[window->target]++;
		}
		assert_true(window->delay_ns == 0 || window->target == 1);
	}
	assert_true(tried[0] && tried[1] && tried[2]);
	assert_int_equal(data->run_count, 1);
	assert_int_equal(data->runs[0].status, 3);
	assert_int_equal(data->point_count, 3);
	assert_string_equal(data->targets[0].function, "useful");
}

/* Nobody asked for anything: little is lost, though a window of the target costs up to three times
 * as much as it takes. */
static void a_window_costs_no_more_than_the_run_may_lose(void **state)
{
	static const uint32_t speedups[] = {250, 500, 750};
	struct bench *bench = *state;
	const struct causal_data *data;
	double lost, may;
	unsigned tried = 0;

	memcpy(bench->request.speedups.permille, speedups, sizeof(speedups));
	bench->request.speedups.count = 3;
	bench->request.speedups_given = false;
	bench->program.points = bench->program.beside = true;
	data = measure(bench, 30); /* long enough for a window also where the machine is busy */
	lost = bench->program.lost * bench->program.clock.ns_per_tick;
	may = (double)data->runs[0].real_ns * 0.05;
	assert_true(lost < (may > 50e6 ? may : 50e6) + 40e6);
	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];

		tried += window->target == 1 && window->end == CAUSAL_WINDOW_ENDED_BY_VISITS;
		assert_true(window->speedup_permille < 750);
	}
	assert_true(tried >= 1);
}

/* Where samples cost so much of a visit: what is said of that, and the share of the run that was
 * rested. */
static double rested_of_samples(struct bench *bench, double cost, double within)
{
	const struct causal_data_program_run *run;

	bench->request.speedups_given = false;
	bench->program.points = true;
	bench->program.samples_cost = cost;
	run = measure(bench, 24)->runs;
	assert_true(run->is_samples_cost_known);
	assert_true(fabs((double)run->samples_cost_ppm / 1e6 - cost) < within);
	return bench->program.rested * bench->program.clock.ns_per_tick / (double)run->real_ns;
}

/* Of rests little is made where samples cost little, and more where they cost much. */
static void rests_tell_what_samples_cost(void **state)
{
	double rested = rested_of_samples(*state, 0.01, 0.005);

	assert_true(rested > 0.05 && rested < 0.3);
}

static void dear_samples_are_rested_from(void **state)
{
	double rested = rested_of_samples(*state, 0.2, 0.02);

	assert_true(rested > 0.3 && rested < 0.6);
}

/* A program whose visits become longer and longer. */
static void what_changes_by_itself_is_no_cost(void **state)
{
	struct bench *bench = *state;

	bench->program.longer = 0.0003;
	assert_true(rested_of_samples(bench, 0, 0.05) < 0.3);
}

/* What the program counts by itself carries no times. */
static void counted_points_are_dated_by_looking(void **state)
{
	struct bench *bench = *state;
	const struct causal_data *data;
	double sums[2] = {0}, visits[2] = {0};

	bench->program.only_counted = true;
	data = measure(bench, 9);
	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];
		bool full = window->target == 1 && window->speedup_permille == 1000;

		if (window->end != CAUSAL_WINDOW_ENDED_BY_VISITS || (window->target == 1 && !full))
			continue;
		sums[full] += (double)window->visits[0].intervals_virtual_ns;
		visits[full] += (double)window->visits[0].visits;
	}
	assert_true(visits[0] > 0 && visits[1] > 0);
	assert_true(fabs(sums[1] / visits[1] / (sums[0] / visits[0]) - (1 - SHARE)) < 0.15);
}

/* What a run is for has begun, and lasts for thirty visits. */
static void let_run(const struct causal_control *shared, bool baseline)
{
	static const struct timespec moment = {.tv_nsec = 1000000};
	uint64_t samples;

	while (!baseline && !(atomic_load(&shared->experiment) & CAUSAL_ACTIVE))
		nanosleep(&moment, NULL);
	samples = atomic_load(&shared->samples);
	while (atomic_load(&shared->samples) < samples + 60)
		nanosleep(&moment, NULL);
}

static void a_run_is_one_window_end_to_end(void **state)
{
	struct bench *bench = *state;
	const struct causal_data *data;

	bench->request.end_to_end = true;
	session_start(bench);
	for (unsigned run = 0; run < 3; run++) {
		assert_int_equal(causal_control_begin_run(bench->controller), 0);
		program_start(bench);
		let_run(bench->program.shared, run == 0);
		program_end(bench);
		causal_control_end_run(
			bench->controller, 0,
			&(struct causal_session_usage){.cpu_ns = 1000, .involuntary_switches = 7});
	}
	data = causal_control_get_recorded_data(bench->controller);
	assert_int_equal(data->window_count, 3);
	assert_int_equal(data->run_count, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct causal_data_window *window = &data->windows[i];
		double saved =
			(double)((int64_t)window->real_ns - window->visits[0].intervals_virtual_ns);

		assert_int_equal(window->visits_entry_count, 1);
		assert_int_equal(window->visits[0].visits, 1);
		assert_int_equal(window->involuntary_switches, 7);
		assert_int_equal(window->run, i);
		assert_int_equal(window->target, i > 0);
		assert_true(fabs(saved - (double)window->delay_ns) < 1000);
		assert_true(i ? saved > 5e6 : saved == 0);
	}
}

static void nothing_is_tried_without_a_program(void **state)
{
	static const struct timespec time = {.tv_nsec = 50000000};
	struct bench *bench = *state;
	struct causal_program_activity seen;

	session_start(bench);
	assert_int_equal(causal_control_begin_run(bench->controller), 0);
	nanosleep(&time, NULL);
	causal_control_end_run(bench->controller, 9, NULL);
	causal_control_end_run(bench->controller, 9, NULL); /* nothing */
	causal_control_get_program_activity(bench->controller, &seen);
	assert_false(seen.taken_part);
	assert_int_equal(causal_control_get_recorded_data(bench->controller)->window_count, 0);
	assert_int_equal(causal_control_get_recorded_data(bench->controller)->runs[0].status, 137);
}

/* Whatever a process writes there, the journal stays one that can be read. */
static void nonsense_in_the_file_does_no_harm(void **state)
{
	static const struct timespec moment = {.tv_nsec = 1000000};
	struct bench *bench = *state;
	unsigned seed = 3;

	bench->program.points = true;
	session_start(bench);
	assert_int_equal(causal_control_begin_run(bench->controller), 0);
	program_start(bench);
	for (unsigned i = 0; i < 1500; i++) {
		struct causal_control *shared = bench->program.shared;
		struct causal_point *point = &shared->points[(unsigned)rand_r(&seed) % 8];
		uint64_t value = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 34);

		switch (rand_r(&seed) % 8) {
		case 0:
			atomic_store(&point->visits, value);
			break;
		case 1:
			atomic_store(&point->time_sum, value);
			break;
		case 2:
			atomic_store(&point->ring[value % CAUSAL_RING].time, value);
			break;
		case 3:
			memset(point->name, (int)value | 0x80, sizeof(point->name));
			break;
		case 4:
			point->kind = (uint32_t)value % 5;
			atomic_store(&point->state, (uint32_t)value % 4);
			break;
		case 5:
			atomic_store(&shared->global_delay, value);
			break;
		case 6:
			atomic_store(&shared->targets[value % 8].self_ns, value);
			break;
		default:
			__atomic_store_n(&point->coz[0], value, __ATOMIC_RELAXED);
		}
		nanosleep(&moment, NULL);
	}
	program_end(bench);
	causal_control_end_run(bench->controller, 0, NULL);
	assert_int_equal(causal_control_get_recorded_data(bench->controller)->bad_line_count, 0);
}

/* ---- what is beside it ---- */

static void speedups_are_lists_of_ranges(void **state)
{
	static const uint32_t expected[] = {25, 100, 300, 350, 400, 1000};
	struct causal_speedups speedups;
	struct problem problem;

	(void)state;
	assert_int_equal(causal_speedups_parse("30-40 100,0, 10,2.5 10", "x", &speedups, &problem),
			 0);
	assert_true(speedups.has_baseline);
	assert_int_equal(speedups.count, 6);
	assert_memory_equal(speedups.permille, expected, sizeof(expected));
	assert_int_equal(causal_speedups_parse("0-100:1", "x", &speedups, &problem), 0);
	assert_int_equal(speedups.count, 100);
	assert_int_equal(causal_speedups_parse("", "x", &speedups, &problem), 0);
	assert_int_equal(speedups.count, 0);
	assert_false(speedups.has_baseline);
}

static void bad_speedups_are_refused(void **state)
{
	static const char *const bad[] = {"-1",   "101", "1-",      "-",          "50-10",
					  "10:5", "x",   "10-20:",  "10-20:0",    "1-2-3",
					  "1e9",  "nan", "10-20:x", "0-100:0.001"};
	struct causal_speedups speedups;
	struct problem problem;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(causal_speedups_parse(bad[i], "--speedups", &speedups, &problem) < 0);
		assert_true(!strncmp(problem.text, "--speedups: ", 12));
	}
}

static void write_lines(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Numbers of targets and points are each session's own. */
static void sessions_are_added_by_name(void **state)
{
	struct bench *bench = *state;
	struct causal_data data = {0};
	char earlier[96], latest[96];
	struct problem problem;

	snprintf(earlier, sizeof(earlier), "%s/earlier", bench->session);
	snprintf(latest, sizeof(latest), "%s/latest", bench->session);
	write_lines(earlier, "{\"kind\":\"run\",\"run\":0}\n"
			     "{\"kind\":\"target\",\"id\":4,\"function\":\"f\"}\n"
			     "{\"kind\":\"point\",\"id\":0,\"name\":\"p\",\"type\":\"progress\"}\n"
			     "{\"kind\":\"window\",\"run\":0,\"target\":4,\"speedup_permille\":500,"
			     "\"ended\":\"visits\",\"points\":[{\"id\":0,\"visits\":8,"
			     "\"virtual_ns\":1}]}\n"
			     "{\"kind\":\"window\",\"ru");
	write_lines(latest,
		    "{\"kind\":\"run\",\"run\":0}\n"
		    "{\"kind\":\"target\",\"id\":4,\"function\":\"g\"}\n"
		    "{\"kind\":\"target\",\"id\":7,\"function\":\"f\"}\n"
		    "{\"kind\":\"point\",\"id\":0,\"name\":\"q\",\"type\":\"progress\"}\n"
		    "{\"kind\":\"point\",\"id\":1,\"name\":\"p\",\"type\":\"progress\"}\n"
		    "{\"kind\":\"window\",\"run\":0,\"target\":7,\"speedup_permille\":500,"
		    "\"ended\":\"visits\",\"points\":[{\"id\":0,\"visits\":8,\"virtual_ns\":1},"
		    "{\"id\":1,\"visits\":9,\"virtual_ns\":1}],\"times\":[[4,1,1],[7,2,2]]}\n");
	assert_int_equal(causal_merge_journals(earlier, latest, &problem), 0);
	assert_int_equal(causal_data_read_file(&data, latest, &problem), 0);
	assert_int_equal(data.bad_line_count, 0);
	assert_int_equal(data.run_count, 2);
	assert_int_equal(data.target_count, 2);
	assert_int_equal(data.point_count, 2);
	assert_int_equal(data.window_count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct causal_data_window *window = &data.windows[i];

		assert_int_equal(window->target, 4);
		if (!window->run)
			continue;
		assert_int_equal(window->time_count, 2);
		assert_int_equal(window->times[0].target, 5);
		assert_int_equal(window->times[1].target, 4);
		assert_int_equal(window->visits[1].point, 0);
		assert_true(window->visits[0].point > CAUSAL_POINTS);
	}
	causal_data_deinit(&data);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(periods_are_exact, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_window_costs_no_more_than_the_run_may_lose,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(rests_tell_what_samples_cost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(dear_samples_are_rested_from, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_changes_by_itself_is_no_cost, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(counted_points_are_dated_by_looking, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_run_is_one_window_end_to_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_tried_without_a_program, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nonsense_in_the_file_does_no_harm, set_up,
						tear_down),
		cmocka_unit_test(speedups_are_lists_of_ranges),
		cmocka_unit_test(bad_speedups_are_refused),
		cmocka_unit_test_setup_teardown(sessions_are_added_by_name, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
