/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Programs whose truth is known, measured in windows as the controller does (a number of visits,
 * random order, baselines between them), many times over: how often do the intervals contain the
 * truth? Prints a line for each kind of program, and fails where 95 % intervals contain it in less
 * than 88 % of cases, or where the estimates are off on average: by a point, or a tenth of the
 * interval.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal/causal.h"
#include "common/array.h"
#include "common/splitmix64.h"

#define TARGETS 3
#define LEVELS  4

static const uint32_t speedups[LEVELS] = {250, 500, 750, 1000};

static uint64_t random_state;

static double uniform(void)
{
	return ((double)(splitmix64_next(&random_state) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* Time of visit number `visit` (of the whole run, which has about `all` of them). */
struct program {
	const char *name;
	unsigned windows; /* of each target and speedup */
	unsigned visits;  /* a window */
	double (*period)(uint64_t visit, double all, unsigned target, double speedup);
	double (*truth)(unsigned target, double speedup);
	double visit_noise;  /* sigma of the logarithm */
	double window_noise; /* the same for whole windows: what the machine does */
	double slow_noise;   /* the same, like the window before */
	bool latency;
	double disturbed; /* share of windows that lose the processor for a while */
	double changing;  /* sigma of how much longer target 1 takes, like the window before */
	bool unseen;      /* by its CPU time */
};

/* Target 1 is on the critical path, target 2 makes something else critical, target 3 does no good
 * and, in the end, harm. */
static double usual_gain(unsigned target, double speedup)
{
	switch (target) {
	case 1:
		return 0.6 * speedup;
	case 2:
		return fmin(0.5 * speedup, 0.2);
	case 3:
		return -0.15 * speedup * speedup;
	default:
		return 0;
	}
}

static double constant_period(uint64_t visit, double all, unsigned target, double speedup)
{
	(void)visit, (void)all;
	return 1e7 * (1 - usual_gain(target, speedup));
}

static double drifting_period(uint64_t visit, double all, unsigned target, double speedup)
{
	return 1e7 * (1 + 0.8 * (double)visit / all) * (1 - usual_gain(target, speedup));
}

static double wavy_period(uint64_t visit, double all, unsigned target, double speedup)
{
	return 1e7 * (1 + 0.4 * sin(12 * (double)visit / all)) * (1 - usual_gain(target, speedup));
}

/* Two phases of 300 visits each; the second one is three times as slow, and there target 1 does
 * nothing and target 2 much. */
static double phase_gain(bool second, unsigned target, double speedup)
{
	if (target == 1)
		return second ? 0 : 0.7 * speedup;
	if (target == 2)
		return second ? 0.5 * speedup : 0;
	return 0;
}

static double phase_period(uint64_t visit, double all, unsigned target, double speedup)
{
	bool second = visit / 300 % 2;

	(void)all;
	return (second ? 15e6 : 5e6) * (1 - phase_gain(second, target, speedup));
}

static double phase_truth(unsigned target, double speedup)
{
	return (phase_gain(false, target, speedup) + 3 * phase_gain(true, target, speedup)) / 4;
}

static const struct program programs[] = {
	{"constant", 20, 20, constant_period, usual_gain, 0.05, 0.02, 0, false, 0, 0, false},
	{"lognormal", 15, 12, constant_period, usual_gain, 1.0, 0.02, 0, false, 0, 0, false},
	{"drifting", 15, 20, drifting_period, usual_gain, 0.1, 0.02, 0, false, 0, 0, false},
	{"waves", 15, 20, wavy_period, usual_gain, 0.1, 0.02, 0, false, 0, 0, false},
	{"slow noise", 15, 20, constant_period, usual_gain, 0.1, 0.02, 0.08, false, 0, 0, false},
	{"phases", 25, 25, phase_period, phase_truth, 0.1, 0.02, 0, false, 0, 0, false},
	{"few windows", 2, 20, constant_period, usual_gain, 0.3, 0.03, 0, false, 0, 0, false},
	{"three windows", 3, 20, constant_period, usual_gain, 0.1, 0.05, 0, false, 0, 0, false},
	{"five windows", 5, 10, constant_period, usual_gain, 0.5, 0.02, 0, false, 0, 0, false},
	{"latency", 12, 40, constant_period, usual_gain, 0.6, 0.05, 0, true, 0, 0, false},
	{"disturbed", 11, 38, constant_period, usual_gain, 0.2, 0.06, 0, false, 0.2, 0, false},
	{"disturbed few", 4, 38, constant_period, usual_gain, 0.2, 0.06, 0, false, 0.25, 0, false},
	{"changing", 15, 20, constant_period, usual_gain, 0.1, 0.02, 0, false, 0, 0.3, false},
	{"changes unseen", 15, 20, constant_period, usual_gain, 0.1, 0.02, 0, false, 0, 0.3, true},
};

/* ---- one run ---- */

struct trial {
	unsigned target, speedup;
};

static size_t make_trials(const struct program *program, struct trial *trials)
{
	size_t count = 0;

	for (unsigned window = 0; window < program->windows; window++) {
		for (unsigned target = 1; target <= TARGETS; target++) {
			for (unsigned level = 0; level < LEVELS; level++) {
				trials[count++] = (struct trial){target, speedups[level]};
				if (count % 4 == 3)
					trials[count++] = (struct trial){0, 0};
			}
		}
	}
	for (size_t i = count; i > 1; i--) {
		size_t other = (size_t)(uniform() * (double)i);
		struct trial swapped = trials[i - 1];

		trials[i - 1] = trials[other];
		trials[other] = swapped;
	}
	return count;
}

/* How things are at the time: the machine's speed, and that of target 1. */
struct state {
	double slow, change;
};

static double follow(double before, double sigma, double alike)
{
	return alike * before + sqrt(1 - alike * alike) * sigma * normal();
}

static void measure(const struct program *program, const struct trial *trial, uint64_t *visit,
		    double all, const struct state *state, double *start, struct causal_data *data)
{
	double more = 0, change = 0.6 * fmax(state->change, -0.9);
	double left = trial->target == 1 ? 1 - trial->speedup / 1000.0 : 1;
	double time = 0, work = 0, scale = exp(program->window_noise * normal() + state->slow);
	struct causal_data_window_visits visits = {.point = 0, .end_point = UINT32_MAX};
	struct causal_data_target_time_row cpu[TARGETS];
	struct causal_data_window window = {.target = trial->target,
					    .speedup_permille = trial->speedup,
					    .start_ns = (uint64_t)*start,
					    .visits = &visits,
					    .visits_entry_count = 1,
					    .times = cpu,
					    .time_count = TARGETS};

	/* Speedups are virtual: the CPU time of a visit is the same with and without. */
	for (unsigned i = 0; i < program->visits; i++) {
		double noise = exp(program->visit_noise * normal());

		work += program->period(*visit, all, 0, 0) * noise;
		time += program->period((*visit)++, all, trial->target, trial->speedup / 1000.0) *
			noise;
		more += program->period(*visit, all, 0, 0) * noise * change;
	}
	time += more * left;
	if (!program->unseen)
		work += more;
	/* Visits between windows: the cool-off. */
	*visit += (uint64_t)(uniform() * 6);
	time *= scale;
	if (uniform() < program->disturbed)
		time *= 1 - 3 * log(uniform());
	visits.visits = program->visits;
	visits.intervals_virtual_ns = (int64_t)time;
	if (program->latency) {
		visits.end_point = 1;
		visits.inside_count_integral_ns = (int64_t)time;
	}
	for (unsigned i = 0; i < TARGETS; i++)
		cpu[i] = (struct causal_data_target_time_row){i + 1, (uint64_t)(work / 4),
							      (uint64_t)(work / 3)};
	/* Target 1 is 60 % of the work, with all of what changes. */
	if (program->changing > 0)
		cpu[0].total_ns = (uint64_t)(0.6 * work + (program->unseen ? 0 : 0.4 * more));
	window.real_ns = window.cpu_ns = (uint64_t)time;
	window.involuntary_switches = program->disturbed > 0 ? (uint64_t)(time / 5e6) : 0;
	*start += time;
	if (causal_data_add_window(data, &window) < 0)
		abort();
}

static void simulate(const struct program *program, struct causal_data *data)
{
	static struct trial trials[4096];
	size_t count = make_trials(program, trials);
	uint64_t visit = (uint64_t)(uniform() * 600);
	double start = 1;
	struct state state = {program->slow_noise * normal(), 0};

	if (program->changing > 0)
		state.change = program->changing * normal();

	for (size_t i = 0; i < count; i++) {
		state.slow = follow(state.slow, program->slow_noise, 0.9);
		if (program->changing > 0)
			state.change = follow(state.change, program->changing, 0.95);
		measure(program, &trials[i], &visit, (double)count * (program->visits + 3), &state,
			&start, data);
	}
}

/* ---- how good were the predictions? ---- */

struct score {
	unsigned points, covered, bests, bests_covered, slopes_ordered, fits, ranked;
	double errors, bias, width, best_errors, best_width, best_bias[TARGETS];
};

static void judge(const struct program *program, const struct causal_fit_result *result,
		  struct score *score)
{
	for (size_t i = 0; i < result->prediction_count; i++) {
		const struct causal_prediction *prediction = &result->predictions[i];
		double truth = 100 * program->truth(prediction->target, 1);

		for (size_t j = 0; j < prediction->speedup_estimate_count; j++) {
			const struct causal_gain_estimate_at_speedup *estimate =
				&prediction->speedup_estimates[j];
			double expected = 100 * program->truth(prediction->target,
							       estimate->speedup_percent / 100);
			score->points++;
			score->covered += estimate->gain_interval_low_percent <= expected &&
					  expected <= estimate->gain_interval_high_percent;
			score->errors += fabs(estimate->predicted_gain_percent - expected);
			score->bias += estimate->predicted_gain_percent - expected;
			score->width += estimate->gain_interval_high_percent -
					estimate->gain_interval_low_percent;
		}
		score->bests++;
		score->ranked += prediction->is_supported_by_data;
		score->bests_covered += prediction->headline_gain_low_percent <= truth &&
					truth <= prediction->headline_gain_high_percent;
		score->best_errors += fabs(prediction->headline_gain_percent - truth);
		score->best_width += prediction->headline_gain_high_percent -
				     prediction->headline_gain_low_percent;
		score->best_bias[prediction->target - 1] +=
			prediction->headline_gain_percent - truth;
	}
	score->fits++;
}

static int check(const struct program *program, unsigned repeats)
{
	struct score score = {0};
	double covered, bests_covered, bias;

	for (unsigned i = 0; i < repeats; i++) {
		struct causal_fit_options options = {.bootstrap = 300, .seed = i};
		struct causal_data data = {0};
		struct causal_fit_result result;

		random_state = 1000003u * (i + 1);
		simulate(program, &data);
		if (causal_compute_predictions(&data, &options, &result) < 0)
			abort();
		judge(program, &result, &score);
		causal_fit_result_deinit(&result);
		causal_data_deinit(&data);
	}
	covered = 100.0 * score.covered / score.points;
	bests_covered = 100.0 * score.bests_covered / score.bests;
	bias = score.bias / score.points;
	printf("%-14s points: covered %5.1f %%, error %5.2f, bias %+5.2f, width %5.2f; "
	       "at 100 %%: covered %5.1f %%, error %5.2f, bias %+5.2f %+5.2f %+5.2f, width %5.2f; "
	       "ranked %3.0f %%\n",
	       program->name, covered, score.errors / score.points, bias,
	       score.width / score.points, bests_covered, score.best_errors / score.bests,
	       score.best_bias[0] / score.fits, score.best_bias[1] / score.fits,
	       score.best_bias[2] / score.fits, score.best_width / score.bests,
	       100.0 * score.ranked / score.bests);
	return covered < 88 || bests_covered < 88 ||
	       fabs(bias) > fmax(1, score.width / score.points / 10);
}

int main(int argc, char **argv)
{
	unsigned repeats = argc > 1 ? (unsigned)atoi(argv[1]) : 60;
	int status = 0;

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		int failed = check(&programs[i], repeats);

		if (failed)
			printf("%s: FAILED\n", programs[i].name);
		status |= failed;
	}
	return status;
}
