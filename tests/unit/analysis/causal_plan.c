/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which experiments are chosen, against programs that answer as their truth and some noise say.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../assert_at.h"
#include "analysis/causal/causal.h"
#include "common/splitmix64.h"

enum { TARGETS_MAX = 16 };

/* A program whose period is 10 ms less what targets gain at full speedup, in parts of it. */
struct responder {
	struct causal_data data;
	struct causal_data_target_time_row times[TARGETS_MAX];
	size_t targets;
	double gain[TARGETS_MAX]; /* by id - 1 */
	double noise;             /* of a window, in parts */
	uint64_t random;
	unsigned windows[TARGETS_MAX + 1]; /* by id; 0: baselines */
};

static double uniform(struct responder *responder)
{
	return ((double)(splitmix64_next(&responder->random) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct responder *responder)
{
	return sqrt(-2 * log(uniform(responder))) * cos(6.283185307179586 * uniform(responder));
}

static void responder_init(struct responder *responder, size_t targets, const double *gain,
			   double noise)
{
	struct causal_data_progress_point point = {.id = 0,
						   .kind = CAUSAL_POINT_PROGRESS,
						   .name = (char[]){"work"},
						   .origin = (char[]){"user"}};
	struct causal_data_program_run run = {.number = 0};

	*responder = (struct responder){.targets = targets, .noise = noise, .random = 1};
	assert_int_equal(causal_data_add_run(&responder->data, &run), 0);
	assert_int_equal(causal_data_add_point(&responder->data, &point), 0);
	for (uint32_t i = 0; i < targets; i++) {
		struct causal_data_target target = {.id = i + 1, .function = (char[]){"f"}};

		responder->gain[i] = gain[i];
		responder->times[i] = (struct causal_data_target_time_row){
			i + 1, 1000000000u >> i / 2, 1000000000u};
		assert_int_equal(causal_data_add_target(&responder->data, &target), 0);
	}
}

static void responder_answer(struct responder *responder, uint32_t target, uint32_t permille)
{
	double gain = target ? responder->gain[target - 1] * permille / 1000 : 0;
	struct causal_data_window_visits visits = {
		.point = 0, .end_point = UINT32_MAX, .visits = 20};
	struct causal_data_window window = {.target = target,
					    .speedup_permille = permille,
					    .start_ns = responder->data.window_count * 220000000u,
					    .real_ns = 200000000,
					    .visits = &visits,
					    .visits_entry_count = 1};

	visits.intervals_virtual_ns =
		(int64_t)(2e8 * (1 - gain) * (1 + responder->noise * normal(responder)));
	responder->windows[target]++;
	assert_int_equal(causal_data_add_window(&responder->data, &window), 0);
}

/* Returns how many windows there were until it is done, at most `limit`. */
static unsigned play(struct responder *responder, struct causal_window_planner *plan,
		     unsigned limit)
{
	unsigned count = 0;

	for (; count < limit; count++) {
		uint32_t target, permille;
		enum causal_plan_decision state =
			causal_plan_choose_next_window(plan, &responder->data, responder->times,
						       responder->targets, &target, &permille);

		if (state == CAUSAL_PLAN_DONE)
			break;
		assert_int_equal(state, CAUSAL_PLAN_TRY_WINDOW);
		assert_true(target <= responder->targets && permille <= 1000);
		assert_int_equal(!target, !permille);
		responder_answer(responder, target, permille);
	}
	return count;
}

static const uint32_t levels[] = {250, 500, 750, 1000};

static struct causal_window_planner *make(double until_ci)
{
	struct causal_plan_options options = {.speedups = levels,
					      .speedup_count = 4,
					      .until_ci = until_ci,
					      .seed = 42,
					      .fixed_speedup_permille = UINT32_MAX};
	struct causal_window_planner *plan;

	assert_int_equal(causal_plan_create(&options, &plan), 0);
	return plan;
}

static void nothing_is_tried_before_there_are_targets(void **state)
{
	struct causal_window_planner *plan = make(0);
	struct causal_data data = {0};
	struct causal_data_target_time_row time = {3, 50000000, 50000000};
	uint32_t target = 9, permille = 9;

	(void)state;
	assert_int_equal(causal_plan_choose_next_window(plan, &data, NULL, 0, &target, &permille),
			 CAUSAL_PLAN_WAIT);
	assert_int_equal(target, 0);
	assert_int_equal(permille, 0);
	/* a few samples are no ground to choose by */
	time.self_ns = 10000000;
	assert_int_equal(causal_plan_choose_next_window(plan, &data, &time, 1, &target, &permille),
			 CAUSAL_PLAN_WAIT);
	time.self_ns = 200000000;
	assert_int_equal(causal_plan_choose_next_window(plan, &data, &time, 1, &target, &permille),
			 CAUSAL_PLAN_TRY_WINDOW);
	causal_plan_destroy(plan);
}

static void baselines_are_a_third_and_near_everything(void **state)
{
	static const double gain[] = {0.5, 0.3, 0.1};
	struct causal_window_planner *plan = make(0);
	struct responder responder;
	unsigned since = 0;

	(void)state;
	responder_init(&responder, 3, gain, 0.02);
	assert_int_equal(play(&responder, plan, 300), 300);
	for (size_t i = 0; i < responder.data.window_count; i++) {
		since = responder.data.windows[i].target ? since + 1 : 0;
		assert_in_range(since, 0, 2);
	}
	assert_in_range(responder.windows[0], 95, 105);
	causal_data_deinit(&responder.data);
	causal_plan_destroy(plan);
}

static void all_speedups_get_the_same_share(void **state)
{
	static const double gain[] = {0.5, 0.5};
	unsigned windows[3][1001] = {{0}};
	struct causal_window_planner *plan = make(0);
	struct responder responder;

	(void)state;
	responder_init(&responder, 2, gain, 0.05);
	play(&responder, plan, 240);
	for (size_t i = 0; i < responder.data.window_count; i++)
		windows[responder.data.windows[i].target]
		       [responder.data.windows[i].speedup_permille]++;
	for (unsigned target = 1; target <= 2; target++) {
		for (unsigned i = 0; i < 4; i++)
			assert_in_range(windows[target][levels[i]], 19, 21);
	}
	causal_data_deinit(&responder.data);
	causal_plan_destroy(plan);
}

static void windows_go_to_those_that_may_lead(void **state)
{
	static const double gain[] = {0.02, 0.5, 0.01, 0.45, 0.0, -0.1, 0.03, 0.01};
	struct causal_window_planner *plan = make(0);
	struct responder responder;

	(void)state;
	responder_init(&responder, 8, gain, 0.03);
	play(&responder, plan, 600);
	for (uint32_t id = 1; id <= 8; id++) {
		assert_true(responder.windows[id] >= 8);
		if (gain[id - 1] < 0.4 && id != 1 && id != 7)
			assert_true(responder.windows[2] > 2 * responder.windows[id]);
	}
	assert_true(responder.windows[4] > 2 * responder.windows[6]);
	causal_data_deinit(&responder.data);
	causal_plan_destroy(plan);
}

static void it_ends_when_the_leaders_are_known(void **state)
{
	static const double gain[] = {0.6, 0.3, 0.15, 0.02, 0.01};
	unsigned quiet, noisy;
	struct causal_window_planner *plan = make(5);
	struct responder responder;

	(void)state;
	responder_init(&responder, 5, gain, 0.01);
	quiet = play(&responder, plan, 5000);
	assert_in_range(quiet, 6, 200);
	causal_data_deinit(&responder.data);
	causal_plan_destroy(plan);

	plan = make(5);
	responder_init(&responder, 5, gain, 0.1);
	noisy = play(&responder, plan, 5000);
	assert_in_range(noisy, quiet, 2000);
	causal_data_deinit(&responder.data);
	causal_plan_destroy(plan);
}

static void it_goes_on_where_that_was_not_asked_for(void **state)
{
	static const double gain[] = {0.6};
	struct causal_window_planner *plan = make(0);
	struct responder responder;

	(void)state;
	responder_init(&responder, 1, gain, 0.001);
	assert_int_equal(play(&responder, plan, 1000), 1000);
	causal_data_deinit(&responder.data);
	causal_plan_destroy(plan);
}

static void small_targets_and_too_many_are_left_out(void **state)
{
	double gain[TARGETS_MAX] = {0};
	struct causal_window_planner *plan = make(0);
	struct responder responder;
	unsigned tried = 0;

	(void)state;
	responder_init(&responder, TARGETS_MAX, gain, 0.01);
	responder.times[0].self_ns = 1000000; /* a thousandth */
	play(&responder, plan, 400);
	for (uint32_t id = 1; id <= TARGETS_MAX; id++)
		tried += responder.windows[id] > 0;
	assert_int_equal(responder.windows[1], 0);
	assert_int_equal(tried, 8);
	causal_data_deinit(&responder.data);
	causal_plan_destroy(plan);
}

/* Twenty small functions have all of the time; three call them: one half of them, one all, and one
 * nothing but the first one. */
static void functions_that_call_small_ones_are_tried(void **state)
{
	double gain[TARGETS_MAX] = {0};
	struct causal_window_planner *plan = make(0);
	struct responder responder;

	(void)state;
	responder_init(&responder, TARGETS_MAX, gain, 0.01);
	for (uint32_t i = 0; i < TARGETS_MAX; i++)
		responder.times[i].self_ns = responder.times[i].total_ns = 100000000 + i;
	for (uint32_t i = 0; i < 3; i++)
		responder.times[i].self_ns = 0;
	responder.times[0].total_ns = 650000000;
	responder.times[1].total_ns = 1300000000;
	responder.times[2].total_ns = responder.times[3].total_ns = 120000000;
	play(&responder, plan, 100);
	assert_true(responder.windows[1] > 4);
	assert_int_equal(responder.windows[2], 0);
	assert_int_equal(responder.windows[3], 0);
	causal_data_deinit(&responder.data);
	causal_plan_destroy(plan);
}

/* So that the first gains are known soon. */
static void a_speedup_is_tried_twice_before_another_one_is(void **state)
{
	static const double gain[] = {0.5, 0.3};
	unsigned windows[3][1001] = {{0}}, known = 0;
	struct causal_window_planner *plan = make(0);
	struct responder responder;

	(void)state;
	responder_init(&responder, 2, gain, 0.05);
	play(&responder, plan, 6);
	for (size_t i = 0; i < responder.data.window_count; i++)
		known += ++windows[responder.data.windows[i].target]
				  [responder.data.windows[i].speedup_permille] == 2 &&
			 responder.data.windows[i].target;
	assert_int_equal(known, 2);
	causal_data_deinit(&responder.data);
	causal_plan_destroy(plan);
}

static void what_is_fixed_is_kept(void **state)
{
	static const double gain[] = {0.6, 0.1, 0.2};
	struct causal_plan_options options = {.speedups = levels,
					      .speedup_count = 4,
					      .fixed_target_id = 2,
					      .fixed_speedup_permille = 330};
	struct responder responder;
	struct causal_window_planner *plan;

	(void)state;
	assert_int_equal(causal_plan_create(&options, &plan), 0);
	responder_init(&responder, 3, gain, 0.01);
	play(&responder, plan, 100);
	assert_int_equal(responder.windows[1] + responder.windows[3], 0);
	assert_in_range(responder.windows[2], 66, 67);
	for (size_t i = 0; i < responder.data.window_count; i++)
		assert_int_equal_at(i, responder.data.windows[i].speedup_permille,
				    responder.data.windows[i].target ? 330 : 0);
	causal_data_deinit(&responder.data);
	causal_plan_destroy(plan);
}

static bool is_cheap(void *context, uint32_t target, uint32_t permille)
{
	const uint32_t *most = context;

	return permille <= most[target];
}

static void what_may_not_be_tried_is_left_out(void **state)
{
	static const double gain[] = {0.6, 0.1, 0.2};
	uint32_t most[] = {0, 1000, 250, 0};
	struct causal_plan_options options = {.speedups = levels,
					      .speedup_count = 4,
					      .fixed_speedup_permille = UINT32_MAX,
					      .may_try_window = is_cheap,
					      .context = most};
	struct responder responder;
	struct causal_window_planner *plan;

	(void)state;
	assert_int_equal(causal_plan_create(&options, &plan), 0);
	responder_init(&responder, 3, gain, 0.01);
	play(&responder, plan, 60);
	assert_true(responder.windows[1] && responder.windows[2] && !responder.windows[3]);
	for (size_t i = 0; i < responder.data.window_count; i++)
		assert_true(responder.data.windows[i].target != 2 ||
			    responder.data.windows[i].speedup_permille == 250);
	most[1] = most[2] = 0;
	most[3] = 250;
	play(&responder, plan, 20);
	assert_true(responder.windows[3] > 4);
	most[3] = 0;
	responder.windows[0] = 0;
	play(&responder, plan, 20);
	assert_true(responder.windows[0] > 16);
	causal_data_deinit(&responder.data);
	causal_plan_destroy(plan);
}

static void the_same_seed_is_the_same_order(void **state)
{
	static const double gain[] = {0.6, 0.1, 0.2};
	struct responder one, two;
	struct causal_window_planner *first = make(0), *second = make(0);

	(void)state;
	responder_init(&one, 3, gain, 0.03);
	responder_init(&two, 3, gain, 0.03);
	play(&one, first, 100);
	play(&two, second, 100);
	for (size_t i = 0; i < 100; i++) {
		assert_int_equal(one.data.windows[i].target, two.data.windows[i].target);
		assert_int_equal(one.data.windows[i].speedup_permille,
				 two.data.windows[i].speedup_permille);
	}
	causal_data_deinit(&one.data);
	causal_data_deinit(&two.data);
	causal_plan_destroy(first);
	causal_plan_destroy(second);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_tried_before_there_are_targets),
		cmocka_unit_test(baselines_are_a_third_and_near_everything),
		cmocka_unit_test(all_speedups_get_the_same_share),
		cmocka_unit_test(windows_go_to_those_that_may_lead),
		cmocka_unit_test(it_ends_when_the_leaders_are_known),
		cmocka_unit_test(it_goes_on_where_that_was_not_asked_for),
		cmocka_unit_test(small_targets_and_too_many_are_left_out),
		cmocka_unit_test(functions_that_call_small_ones_are_tried),
		cmocka_unit_test(a_speedup_is_tried_twice_before_another_one_is),
		cmocka_unit_test(what_is_fixed_is_kept),
		cmocka_unit_test(what_may_not_be_tried_is_left_out),
		cmocka_unit_test(the_same_seed_is_the_same_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
