/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What windows happened to meet. Speedups are virtual: the work of a visit, in CPU time, is the
 * same with and without. So where a group of windows had more work a visit than others, or more of
 * the target, that is chance: phases of the program, the processor's clock, and samples, of which a
 * window has some hundred and by which others are delayed. Chance is taken off as far as it shows
 * in what is measured beside the periods (ratio and regression estimators; Cochran, Sampling
 * Techniques, 1977, chapters 6 and 7):
 *
 *   work         Baselines tell by how much periods follow it. Where they do, a window counts as so
 *                many visits of usual work as its work makes: all periods become those of such.
 *   the target   A gain is in proportion to the target's time, by as much as the windows of the
 *                target's own groups show. The group's gain is that of the usual time.
 *   work again   The same for what work tells of the gain: phases without the target.
 *
 * What is not told with certainty counts by as much less (the positive part of Stein's estimator),
 * and makes the gain less certain. Nothing is used that grows or falls with the speedup, so is no
 * chance: threads that work all the time, whether there is progress or not, do more of it
 * where progress is delayed.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/causal_fit.h"

/* Fewer baselines tell nothing of that. */
#define LEAST_BASELINES 8u
/* Of what happens by chance in one of a hundred cases: deviations of a normal distribution. */
#define RARE 2.326
/* Degrees of freedom that a slope needs. */
#define LEAST_FREEDOM 3.0
/* A group that met less than this share of the usual says little of what it would gain by it. */
#define HARDLY 0.25

struct slope {
	double value, variance;
};

/* ---- statistics ---- */

/* y over x by least squares through 0, of sums of squares and products. */
static struct slope slope_of(double xx, double xy, double yy, double freedom)
{
	struct slope slope = {0};

	if (freedom < LEAST_FREEDOM || !(xx > 0))
		return slope;
	slope.value = xy / xx;
	slope.variance = fmax(yy - slope.value * xy, 0) / freedom / xx;
	return slope;
}

static double shrunk(const struct slope *slope, double value)
{
	double square = slope->value * slope->value;

	return square > slope->variance ? value * (1 - slope->variance / square) : 0;
}

/* Is the ratio of two variances larger than by chance? (Paulson, 1942) */
static bool is_rare(double ratio, double above, double below)
{
	double root = cbrt(ratio), a = 2 / (9 * above), b = 2 / (9 * below);

	return (root * (1 - b) - (1 - a)) / sqrt(b * root * root + a) > RARE;
}

/* Sums for a line over speedups through one value without any, with a slope for each target. */
struct doses {
	double count, sum, squares;           /* of all values */
	double speedups, speedups2, products; /* of the target at hand */
	double counts, sums, explained;       /* of all targets before */
	uint32_t targets;
};

static void doses_end_target(struct doses *doses)
{
	if (doses->speedups2 > 0) {
		doses->counts += doses->speedups * doses->speedups / doses->speedups2;
		doses->sums += doses->speedups * doses->products / doses->speedups2;
		doses->explained += doses->products * doses->products / doses->speedups2;
		doses->targets++;
	}
	doses->speedups = doses->speedups2 = doses->products = 0;
}

static void doses_add_group(struct doses *doses, const struct fit_series *series,
			    const struct fit_group *group, const double *values)
{
	double speedup = group->target ? group->speedup / 1000.0 : 0;

	for (uint32_t i = 0; i < group->count; i++) {
		double value = values[series->order[group->first + i]];

		doses->count++;
		doses->sum += value;
		doses->squares += value * value;
		doses->speedups += speedup;
		doses->speedups2 += speedup * speedup;
		doses->products += speedup * value;
	}
}

/* Do values change with the speedup, of any of the targets of these groups? */
static bool follows_speedup(const struct fit_series *series, const double *values, uint32_t first,
			    uint32_t end)
{
	struct doses doses = {0};
	double all, rest, freedom;

	doses_add_group(&doses, series, &series->groups[0], values);
	for (uint32_t g = first; g < end; g++) {
		doses_add_group(&doses, series, &series->groups[g], values);
		if (g + 1 == end || series->groups[g + 1].target != series->groups[g].target)
			doses_end_target(&doses);
	}
	freedom = doses.count - doses.targets - 1;
	if (!doses.targets || freedom < LEAST_FREEDOM)
		return true;
	all = doses.squares - doses.sum * doses.sum / doses.count;
	rest = doses.squares - doses.explained -
	       (doses.sum - doses.sums) * (doses.sum - doses.sums) / (doses.count - doses.counts);
	rest = fmax(rest, 1e-12 * doses.squares);
	return is_rare((all - rest) / doses.targets / (rest / freedom), doses.targets, freedom);
}

/* ---- work ---- */

/* Sets the CPU time of a visit; false where that is not known of some window. */
static bool find_work(const struct causal_data *data, struct fit_series *series)
{
	bool known = true;

	for (uint32_t i = 0; i < series->count; i++) {
		struct fit_entry *entry = &series->entries[i];
		const struct causal_data_window *window = &data->windows[entry->window];

		entry->work = 0;
		for (size_t j = 0; j < window->time_count; j++)
			entry->work += (double)window->times[j].self_ns;
		entry->work /= entry->visits;
		known &= entry->work > 0 && isfinite(entry->work) && entry->time > 0;
	}
	return known;
}

/* Of periods by work, in baselines: 1 where they are in proportion, 0 where there is no relation.
 * Work is in logarithms. */
static double elasticity(const struct fit_series *series, const double *work)
{
	const struct fit_group *group = &series->groups[0];
	double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
	struct slope slope;

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t place = series->order[group->first + i];
		double period = log(series->entries[place].time / series->entries[place].count);

		x += work[place];
		y += period;
		xx += work[place] * work[place];
		xy += work[place] * period;
		yy += period * period;
	}
	slope = slope_of(xx - x * x / group->count, xy - x * y / group->count,
			 yy - y * y / group->count, group->count - 2.0);
	return shrunk(&slope, fmin(fmax(slope.value, 0), 1));
}

/* In logarithms, of the mean. */
static void find_relative_work(const struct fit_series *series, double *work)
{
	double mean = 0;

	for (uint32_t i = 0; i < series->count; i++)
		mean += series->entries[i].work / series->count;
	for (uint32_t i = 0; i < series->count; i++)
		work[i] = log(series->entries[i].work / mean);
}

static bool has_variates(const struct fit_series *series)
{
	return series->groups[0].count >= LEAST_BASELINES && !series->process;
}

int fit_level_work(const struct causal_data *data, struct fit_series *series)
{
	double *work, power = 0;
	bool known;

	if (!has_variates(series) || !find_work(data, series))
		return 0;
	work = calloc((size_t)series->count + 1, sizeof(*work));
	if (!work)
		return -ENOMEM;
	find_relative_work(series, work);
	known = !follows_speedup(series, work, 1, series->group_count);
	if (known)
		power = elasticity(series, work);
	for (uint32_t i = 0; i < series->count; i++) {
		series->entries[i].work = known ? exp(work[i]) : 0;
		series->entries[i].count *= pow(exp(work[i]), power);
	}
	free(work);
	return 0;
}

/* ---- what tells of gains ---- */

/* Something that windows met, by the visit. */
struct variate {
	const double *values;
	double mean, variance; /* of all windows; the variance is the mean's */
	bool is_time;          /* the target's: what has none of it gains nothing */
};

/* 0 or -ENOMEM. */
static int variate_make(const struct fit_series *series, const double *values, struct variate *ret)
{
	struct variate variate = {.values = values};
	double *errors = calloc((size_t)series->count + 1, sizeof(*errors));
	double counts = 0, squares = 0;

	if (!errors)
		return -ENOMEM;
	for (uint32_t i = 0; i < series->count; i++) {
		variate.mean += values[i] * series->entries[i].count;
		counts += series->entries[i].count;
	}
	variate.mean /= counts;
	for (uint32_t i = 0; i < series->count; i++) {
		double value = values[i] - variate.mean;

		errors[i] = value * series->entries[i].count * series->count / counts;
		squares += value * value;
	}
	squares += fit_common_variance(errors, series->count);
	variate.variance = squares / series->count / series->count;
	free(errors);
	*ret = variate;
	return 0;
}

/* Means of a group, and by how much more it gains where the value is larger by one, if all of the
 * gain is the target's, or if the value tells of phases. */
struct means {
	double period, value, slope;
	bool hardly; /* it met too little for that */
};

static struct means means_of(const struct fit_series *series, const struct fit_group *group,
			     const struct variate *variate, double baseline)
{
	struct means means = {0};
	double counts = 0, least = HARDLY * variate->mean;

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t place = series->order[group->first + i];

		means.period += series->entries[place].time;
		means.value += variate->values[place] * series->entries[place].count;
		counts += series->entries[place].count;
	}
	means.period /= counts;
	means.value /= counts;
	means.hardly = variate->is_time && means.value < least;
	means.slope = variate->is_time ? (baseline - means.period) / fmax(means.value, least)
				       : baseline * group->speedup / 1000;
	return means;
}

/* How much of that gains differ by from window to window, within the target's groups. */
static struct slope response(const struct fit_series *series, const struct variate *variate,
			     uint32_t first, uint32_t end, double baseline)
{
	double xx = 0, xy = 0, yy = 0, freedom = -1;

	for (uint32_t g = first; g < end; g++) {
		const struct fit_group *group = &series->groups[g];
		struct means means = means_of(series, group, variate, baseline);

		for (uint32_t i = 0; i < group->count; i++) {
			uint32_t place = series->order[group->first + i];
			const struct fit_entry *entry = &series->entries[place];
			double x = means.slope * (variate->values[place] - means.value);
			double y = means.period - entry->time / entry->count;

			xx += x * x;
			xy += x * y;
			yy += y * y;
		}
		freedom += group->count - 1.0;
	}
	return slope_of(xx, xy, yy, freedom);
}

/* Standard error of a gain by what the group has hardly met: anything up to the target's share. */
static double unseen(const struct fit_group *group, const struct means *means,
		     const struct variate *variate, double baseline)
{
	double most = fmin(variate->mean / baseline, 1) * group->speedup / 1000;

	return means->hardly ? most * (1 - means->value / (HARDLY * variate->mean)) / 2 : 0;
}

static void bring(struct fit_series *series, const struct variate *variate, uint32_t first,
		  uint32_t end, double baseline)
{
	struct slope slope = response(series, variate, first, end, baseline);
	/* no more than all of a gain is the target's */
	double part =
		shrunk(&slope, variate->is_time ? fmin(fmax(slope.value, 0), 1) : slope.value);

	for (uint32_t g = first; g < end && part != 0; g++) {
		const struct fit_group *group = &series->groups[g];
		struct means means = means_of(series, group, variate, baseline);
		double by = means.slope / baseline, off = means.value - variate->mean;
		double variance =
			by * by * (part * part * variate->variance + slope.variance * off * off);
		double missing = part * unseen(group, &means, variate, baseline);

		for (uint32_t i = 0; i < group->count; i++) {
			uint32_t place = series->order[group->first + i];
			struct fit_entry *entry = &series->entries[place];
			double more = part * means.slope * (variate->values[place] - variate->mean);

			entry->time = fmax(entry->time + more * entry->count, entry->time / 100);
			entry->error =
				sqrt(entry->error * entry->error + variance + missing * missing);
		}
	}
}

static double baseline_period(const struct fit_series *series)
{
	const struct fit_group *group = &series->groups[0];
	double time = 0, count = 0;

	for (uint32_t i = 0; i < group->count; i++) {
		time += series->entries[series->order[group->first + i]].time;
		count += series->entries[series->order[group->first + i]].count;
	}
	return time / count;
}

/* Time of the target, with what it calls, by the visit of usual work. */
static void find_time(const struct causal_data *data, const struct fit_series *series,
		      uint32_t target, double *time)
{
	for (uint32_t i = 0; i < series->count; i++) {
		const struct causal_data_window *window = &data->windows[series->entries[i].window];

		time[i] = 0;
		for (size_t j = 0; j < window->time_count; j++) {
			if (window->times[j].target == target)
				time[i] = (double)window->times[j].total_ns;
		}
		time[i] /= series->entries[i].count;
	}
}

static int bring_target(const struct causal_data *data, struct fit_series *series, uint32_t first,
			uint32_t end, double *values)
{
	double baseline = baseline_period(series);
	struct variate variate;
	int result;

	find_time(data, series, series->groups[first].target, values);
	result = variate_make(series, values, &variate);
	if (result < 0)
		return result;
	variate.is_time = true;
	if (variate.mean > 0 && !follows_speedup(series, values, first, end))
		bring(series, &variate, first, end, baseline);
	for (uint32_t i = 0; i < series->count; i++)
		values[i] = series->entries[i].work;
	result = variate_make(series, values, &variate);
	if (result == 0)
		bring(series, &variate, first, end, baseline);
	return result;
}

int fit_level_gains(const struct causal_data *data, struct fit_series *series)
{
	double *values;
	int result = 0;

	if (!has_variates(series))
		return 0;
	values = calloc((size_t)series->count + 1, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (uint32_t first = 1, end; result == 0 && first < series->group_count; first = end) {
		for (end = first; end < series->group_count &&
				  series->groups[end].target == series->groups[first].target;)
			end++;
		result = bring_target(data, series, first, end, values);
	}
	free(values);
	return result;
}
