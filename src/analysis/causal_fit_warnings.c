/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What may be wrong with the measurements as a whole, and in words.
 */
#include <math.h>
#include <unistd.h>

#include "analysis/causal_data.h"
#include "analysis/causal_fit.h"

/* Two threads that share a processor are switched some 100 to 300 times a second of CPU time;
 * kernel threads and kymo's own take it from a program some 10 times. */
#define SWITCHES_PER_SECOND 50.0
/* Share of the processors' time that a hypervisor may give to others. */
#define STOLEN 0.005
/* Share of the processors that a program has to itself when it may be oversubscribing them. */
#define BUSY 0.9
/* A baseline that ends this much off its beginning, and clearly so, has drifted. */
#define DRIFT 0.05

unsigned fit_processors_of(const struct causal_data *data)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	for (size_t i = 0; i < data->run_count; i++) {
		if (data->runs[i].processors)
			return data->runs[i].processors;
	}
	return online > 0 ? (unsigned)online : 1;
}

uint64_t fit_threads_of(const struct causal_data *data)
{
	uint64_t threads = 0;

	for (size_t i = 0; i < data->window_count; i++)
		threads = data->windows[i].threads > threads ? data->windows[i].threads : threads;
	return threads;
}

/* Threads that are no more than processors may keep all of them busy, as those that wait awake do.
 */
static bool may_oversubscribe(const struct causal_data *data, double cpu, double real)
{
	uint64_t threads = fit_threads_of(data);
	unsigned processors = fit_processors_of(data);

	return cpu > BUSY * processors * real && (!threads || threads > processors);
}

uint32_t fit_warnings_of_run(const struct causal_data *data)
{
	double cpu = 0, real = 0, switches = 0, stolen = 0;
	bool visited = false;
	uint32_t baselines = 0, warnings = 0;

	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];

		if (window->end == CAUSAL_ENDED_CUT)
			continue;
		cpu += (double)window->cpu_ns;
		real += (double)window->real_ns;
		switches += (double)window->involuntary_switches;
		stolen += (double)window->stolen_ns;
		baselines += window->target == 0 || window->speedup_permille == 0;
		for (size_t j = 0; j < window->visit_count; j++)
			visited |= window->visits[j].visits > 0;
	}
	if (!visited)
		warnings |= CAUSAL_WARN_NO_VISITS;
	if (baselines < 3)
		warnings |= CAUSAL_WARN_FEW_WINDOWS;
	if (switches > SWITCHES_PER_SECOND * cpu / 1e9)
		warnings |= may_oversubscribe(data, cpu, real) ? CAUSAL_WARN_OVERSUBSCRIBED
							       : CAUSAL_WARN_LOAD;
	if (stolen > STOLEN * fit_processors_of(data) * real)
		warnings |= CAUSAL_WARN_LOAD;
	return warnings;
}

struct stretch {
	double period, variance;
};

/* Of the baselines from `first` up to `end`. */
static struct stretch stretch_of(const struct fit_series *series, uint32_t first, uint32_t end)
{
	const uint32_t *order = series->order + series->groups[0].first;
	double time = 0, count = 0, squares = 0, number = end - first;
	struct stretch stretch;

	for (uint32_t i = first; i < end; i++) {
		time += series->entries[order[i]].time;
		count += series->entries[order[i]].count;
	}
	stretch.period = time / count;
	for (uint32_t i = first; i < end; i++) {
		const struct fit_entry *entry = &series->entries[order[i]];
		double rest = entry->time - stretch.period * entry->count;

		squares += rest * rest;
	}
	stretch.variance = squares / (count * count) * number / (number - 1);
	return stretch;
}

bool fit_drifts(const struct fit_series *series)
{
	uint32_t count = series->groups[0].count;
	struct stretch first, last;
	double change;

	if (count < 6)
		return false;
	first = stretch_of(series, 0, count / 3);
	last = stretch_of(series, count - count / 3, count);
	change = fabs(last.period - first.period);
	return change > DRIFT * fmin(first.period, last.period) &&
	       change > 4 * sqrt(first.variance + last.variance);
}

const char *causal_warning_text(enum causal_warning warning)
{
	switch (warning) {
	case CAUSAL_WARN_NO_VISITS:
		return "the progress point was not visited while this was measured";
	case CAUSAL_WARN_FEW_VISITS:
		return "fewer than five visits of the progress point in a window: let it run "
		       "longer, or "
		       "put the point where it is passed more often";
	case CAUSAL_WARN_NO_SAMPLES:
		return "no sample fell into it: nothing was made faster";
	case CAUSAL_WARN_LOAD:
		return "other programs took the processors away: repeat it on a quiet machine";
	case CAUSAL_WARN_WIDE:
		return "the interval is wider than the effect: let it run longer";
	case CAUSAL_WARN_FEW_WINDOWS:
		return "too few windows were measured: let it run longer";
	case CAUSAL_WARN_OVERSUBSCRIBED:
		return "more threads want to run than there are processors: what one of them saves "
		       "is "
		       "used by others, and predictions are less certain than their intervals say";
	case CAUSAL_WARN_DRIFT:
		return "the program itself became faster or slower along the run; windows were "
		       "compared "
		       "with baselines near in time";
	}
	return "unknown";
}
