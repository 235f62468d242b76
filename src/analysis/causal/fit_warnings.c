/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What may be wrong with the measurements as a whole, and in words.
 */
#include <math.h>
#include <unistd.h>

#include "analysis/causal/data.h"
#include "analysis/causal/fit.h"

/* Two threads that share a processor are switched some 100 to 300 times a second of CPU time;
 * kernel threads and kymo's own take it from a program some 10 times. */
#define SWITCHES_PER_CPU_SECOND_MAX 50.0
/* Share of the processors' time that a hypervisor may give to others. */
#define RUN_STOLEN_TIME_SHARE_MAX 0.005
/* Share of the processors that a program has to itself when it may be oversubscribing them. */
#define BUSY_PROCESSOR_SHARE_LEAST 0.9
/* A speedup is virtual: a visit takes as much CPU time as before. More than this, and clearly so,
 * is what pauses do: locks that are spun for, caches that grow cold. */
#define WORK_PER_VISIT_RATIO_MAX   1.2
#define WORK_STANDARD_ERRORS_LEAST 3.0
#define WORK_WINDOWS_LEAST         3u
/* A baseline that ends this much off its beginning, and clearly so, has drifted. */
#define BASELINE_DRIFT_SHARE_LEAST 0.05

unsigned causal_data_get_processor_count(const struct causal_data *data)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	for (size_t i = 0; i < data->run_count; i++) {
		if (data->runs[i].processors)
			return data->runs[i].processors;
	}
	return online > 0 ? (unsigned)online : 1;
}

uint64_t causal_data_get_thread_count_max(const struct causal_data *data)
{
	uint64_t threads = 0;

	for (size_t i = 0; i < data->window_count; i++)
		threads = data->windows[i].threads > threads ? data->windows[i].threads : threads;
	return threads;
}

/* Threads that are no more than processors may keep all of them busy, as those that wait awake do.
 */
static bool program_may_oversubscribe_cpus(const struct causal_data *data, double cpu, double real)
{
	uint64_t threads = causal_data_get_thread_count_max(data);
	unsigned processors = causal_data_get_processor_count(data);

	return cpu > BUSY_PROCESSOR_SHARE_LEAST * processors * real &&
	       (!threads || threads > processors);
}

uint32_t fit_find_run_warnings(const struct causal_data *data)
{
	double cpu = 0, real = 0, switches = 0, stolen = 0;
	bool visited = false;
	uint32_t baselines = 0, warnings = 0;

	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];

		if (window->end == CAUSAL_WINDOW_CUT_SHORT)
			continue;
		cpu += (double)window->cpu_ns;
		real += (double)window->real_ns;
		switches += (double)window->involuntary_switches;
		stolen += (double)window->stolen_ns;
		baselines += window->target == 0 || window->speedup_permille == 0;
		for (size_t j = 0; j < window->visits_entry_count; j++)
			visited |= window->visits[j].visits > 0;
	}
	if (!visited)
		warnings |= CAUSAL_WARN_NO_VISITS;
	if (baselines < 3)
		warnings |= CAUSAL_WARN_FEW_WINDOWS;
	if (switches > SWITCHES_PER_CPU_SECOND_MAX * cpu / 1e9)
		warnings |= program_may_oversubscribe_cpus(data, cpu, real)
				    ? CAUSAL_WARN_CPUS_OVERSUBSCRIBED
				    : CAUSAL_WARN_OUTSIDE_LOAD;
	if (stolen > RUN_STOLEN_TIME_SHARE_MAX * causal_data_get_processor_count(data) * real)
		warnings |= CAUSAL_WARN_OUTSIDE_LOAD;
	return warnings;
}

struct baseline_part_period_estimate {
	double period, variance;
};

/* The stretch of the baselines from `first` up to `end`. */
static struct baseline_part_period_estimate
estimate_period_of_baseline_part(const struct point_window_series *series, uint32_t first,
				 uint32_t end)
{
	const uint32_t *order = series->order + series->groups[0].first;
	double time = 0, count = 0, squares = 0, number = end - first;
	struct baseline_part_period_estimate stretch;

	for (uint32_t i = first; i < end; i++) {
		time += series->entries[order[i]].time_ns;
		count += series->entries[order[i]].count;
	}
	stretch.period = time / count;
	for (uint32_t i = first; i < end; i++) {
		const struct series_window *entry = &series->entries[order[i]];
		double rest = entry->time_ns - stretch.period * entry->count;

		squares += rest * rest;
	}
	stretch.variance = squares / (count * count) * number / (number - 1);
	return stretch;
}

bool fit_baseline_has_drifted(const struct point_window_series *series)
{
	uint32_t count = series->groups[0].count;
	struct baseline_part_period_estimate first, last;
	double change;

	if (count < 6)
		return false;
	first = estimate_period_of_baseline_part(series, 0, count / 3);
	last = estimate_period_of_baseline_part(series, count - count / 3, count);
	change = fabs(last.period - first.period);
	return change > BASELINE_DRIFT_SHARE_LEAST * fmin(first.period, last.period) &&
	       change > 4 * sqrt(first.variance + last.variance);
}

/* Mean of windows, and its variance. */
struct work_mean {
	double sum, square_sum, mean, variance;
	uint32_t count;
};

static void add_work_of_group(const struct causal_data *data,
			      const struct point_window_series *series,
			      const struct series_window_group *group, struct work_mean *mean)
{
	for (uint32_t i = 0; i < group->count; i++) {
		const struct series_window *entry =
			&series->entries[series->order[group->first + i]];
		const struct causal_data_window *window = &data->windows[entry->window];
		double work = 0;

		for (size_t j = 0; j < window->time_count; j++)
			work += (double)window->times[j].self_ns;
		work /= fmax(entry->visits, 1);
		mean->sum += work;
		mean->square_sum += work * work;
		mean->count++;
	}
}

static void compute_work_mean(struct work_mean *mean)
{
	double count = mean->count;

	mean->mean = mean->sum / fmax(count, 1);
	mean->variance =
		fmax(mean->square_sum - mean->sum * mean->mean, 0) / fmax((count - 1) * count, 1);
}

bool fit_groups_need_more_work(const struct causal_data *data,
			       const struct point_window_series *series, uint32_t first,
			       uint32_t count)
{
	struct work_mean usual = {0}, found = {0};
	double more;

	add_work_of_group(data, series, &series->groups[0], &usual);
	for (uint32_t i = 0; i < count; i++)
		add_work_of_group(data, series, &series->groups[first + i], &found);
	compute_work_mean(&usual);
	compute_work_mean(&found);
	more = found.mean - usual.mean;
	return usual.count >= WORK_WINDOWS_LEAST && found.count >= WORK_WINDOWS_LEAST &&
	       found.mean > WORK_PER_VISIT_RATIO_MAX * usual.mean &&
	       more > WORK_STANDARD_ERRORS_LEAST * sqrt(usual.variance + found.variance);
}

const char *causal_warning_get_text(enum causal_warning_bit warning)
{
	switch (warning) {
	case CAUSAL_WARN_NO_VISITS:
		return "the program did not reach the progress point during these experiments";
	case CAUSAL_WARN_FEW_VISITS:
		return "fewer than five visits of the progress point in an experiment: run longer, "
		       "or choose a progress point that is reached more often";
	case CAUSAL_WARN_NO_TARGET_SAMPLES:
		return "kymo took no sample in it, so no experiment made it faster";
	case CAUSAL_WARN_OUTSIDE_LOAD:
		return "other programs used the CPUs: repeat the run on a quiet machine";
	case CAUSAL_WARN_WIDE_INTERVALS:
		return "the interval is wider than the gain: run longer";
	case CAUSAL_WARN_FEW_WINDOWS:
		return "too few experiments: run longer";
	case CAUSAL_WARN_CPUS_OVERSUBSCRIBED:
		return "more threads want to run than there are CPUs: other threads use what one "
		       "of them saves, so predictions are less certain than the intervals say";
	case CAUSAL_WARN_BASELINE_DRIFT:
		return "the program became faster or slower during the run; each experiment is "
		       "compared with baselines close in time";
	case CAUSAL_WARN_EXTRA_WORK:
		return "a visit took more CPU time in these experiments than without: they "
		       "disturbed the program (threads that spin for a lock, for instance), so "
		       "this is not the loss that a faster target would be";
	}
	return "unknown";
}
