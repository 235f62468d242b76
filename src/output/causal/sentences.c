/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sentences.h. A sentence takes the speedup that people can imagine best, twice as fast, where
 * it was tried; else the largest one that was.
 */
#include "output/causal/sentences.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal/data.h"
#include "output/causal/view.h"
#include "output/format.h"

#define NAME_BUFFER_SIZE         1024
#define SENTENCE_NAME_COLUMNS    40u
#define SPEEDUP_TWICE_AS_FAST    50.0
#define UNTRIED_TIME_SHARE_LEAST 0.01

static const struct causal_gain_estimate_at_speedup *
choose_estimate_to_tell(const struct causal_prediction *prediction)
{
	size_t count = prediction->speedup_estimate_count;

	for (size_t i = 0; i < count; i++) {
		if (prediction->speedup_estimates[i].speedup_percent == SPEEDUP_TWICE_AS_FAST)
			return &prediction->speedup_estimates[i];
	}
	return count ? &prediction->speedup_estimates[count - 1] : NULL;
}

static void write_how_much_faster(double speedup_percent, FILE *stream)
{
	if (speedup_percent == SPEEDUP_TWICE_AS_FAST)
		fputs(" twice as fast: ", stream);
	else if (speedup_percent >= 100)
		fputs(" take no time: ", stream);
	else
		fprintf(stream, " %.0f %% faster: ", speedup_percent);
}

/* What becomes shorter. */
static const char *get_subject_of_point(const struct causal_data *data,
					const struct causal_prediction *prediction)
{
	const struct causal_data_progress_point *point =
		causal_data_find_point(data, prediction->point);

	if (prediction->end_point != UINT32_MAX)
		return "a pass";
	return point && point->origin && !strcmp(point->origin, "process") ? "a run" : "a visit";
}

static void write_gain(const char *subject, const struct causal_gain_estimate_at_speedup *estimate,
		       FILE *stream)
{
	double gain = estimate->predicted_gain_percent, low = estimate->gain_interval_low_percent,
	       high = estimate->gain_interval_high_percent;

	if (low > 0)
		fprintf(stream, "%s takes %.1f %% less time (%.1f to %.1f).\n", subject, gain, low,
			high);
	else if (high < 0)
		fprintf(stream, "%s takes %.1f %% more time (%.1f to %.1f).\n", subject, -gain,
			-high, -low);
	else
		fprintf(stream,
			"no certain change (%s takes between %.1f %% more and %.1f %% less "
			"time).\n",
			subject, -low, high);
}

void causal_sentences_write(const struct causal_data *data,
			    const struct causal_prediction *predictions, size_t count, size_t limit,
			    FILE *stream)
{
	char name[NAME_BUFFER_SIZE];
	size_t written = 0;

	for (size_t i = 0; i < count && written < limit; i++) {
		const struct causal_gain_estimate_at_speedup *estimate =
			choose_estimate_to_tell(&predictions[i]);

		if (!predictions[i].is_supported_by_data || !estimate)
			continue;
		causal_view_format_target_name(data, predictions[i].target, name, sizeof(name));
		fputs(written++ ? "  Make " : "\n  Make ", stream);
		format_write_cut_to_width(stream, name, SENTENCE_NAME_COLUMNS);
		write_how_much_faster(estimate->speedup_percent, stream);
		write_gain(get_subject_of_point(data, &predictions[i]), estimate, stream);
	}
}

/* ---- what was not tried ---- */

struct untried_target {
	uint32_t id;
	double share;
};

static int compare_untried_targets(const void *left, const void *right)
{
	const struct untried_target *a = left, *b = right;

	if (a->share != b->share)
		return a->share > b->share ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static bool target_was_tried(const struct causal_fit_result *result, uint32_t id)
{
	for (size_t i = 0; i < result->prediction_count; i++) {
		if (result->predictions[i].target == id)
			return true;
	}
	return false;
}

static size_t find_untried_targets(const struct causal_data *data,
				   const struct causal_fit_result *result,
				   const struct causal_view_target_times *times,
				   struct untried_target *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < data->target_count; i++) {
		double share = (double)times[i].total_ns / fmax(result->cpu_ns, 1);

		if (share >= UNTRIED_TIME_SHARE_LEAST &&
		    !target_was_tried(result, data->targets[i].id))
			ret[count++] = (struct untried_target){data->targets[i].id, fmin(share, 1)};
	}
	qsort(ret, count, sizeof(*ret), compare_untried_targets);
	return count;
}

void causal_sentences_write_untried_targets(const struct causal_data *data,
					    const struct causal_fit_result *result, size_t limit,
					    FILE *stream)
{
	struct causal_view_target_times *times = causal_view_sum_target_times(data);
	struct untried_target *untried = calloc(data->target_count + 1, sizeof(*untried));
	size_t count = times && untried ? find_untried_targets(data, result, times, untried) : 0;
	char name[NAME_BUFFER_SIZE];

	for (size_t i = 0; i < count && i < limit; i++) {
		causal_view_format_target_name(data, untried[i].id, name, sizeof(name));
		fputs(i ? ", " : "\nNot tried (share of the CPU time with what it calls): ",
		      stream);
		format_write_cut_to_width(stream, name, SENTENCE_NAME_COLUMNS);
		fprintf(stream, " %.1f %%", 100 * untried[i].share);
	}
	if (count > limit)
		fprintf(stream, " and %zu more", count - limit);
	if (count)
		fputs(count > limit ? "\n" : ".\n", stream);
	free(untried);
	free(times);
}
