/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Is it more than noise? Whether two sides differ is asked of all ways to divide the same runs into
 * two sides, as if which code ran were a matter of chance (Fisher's permutation test): at most 5 %
 * of them may differ as much. With few repeats this holds where the quantiles of a bootstrap are
 * too narrow. Rows are many, so each is compared with the largest difference of any row in each
 * division (Westfall and Young, 1993): 5 % is the chance that a table without a cause names any
 * row.
 *
 * What is compared makes the most of few runs, and the divisions make it right whatever it is:
 *   - Machines drift: runs that follow each other are alike. So the difference of the total is that
 *     of generalised least squares, with neighbours correlated by DRIFT: a run counts against those
 *     around it. Hence runs are in the order of time. Where there is no drift, sides in turn then
 *     differ more than other divisions do: TOTAL_PROBABILITY is that much lower.
 *   - What disturbs a run (other programs, a cold cache) adds time and takes none away: the highest
 *     values count as the highest of the others.
 *
 * Where one side's runs came before the other's, a drift looks like a change, and divisions that
 * mix the sides do not show how much: less is then allowed, and more drift is expected.
 *
 * Fewer than four runs a side cannot tell noise from change by themselves: 5 % of noise is then
 * assumed beside what the runs show and what the number of samples makes uncertain.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/splitmix64.h"
#include "output/diff/diff.h"

#define ERROR_PROBABILITY 0.05
#define TOTAL_PROBABILITY 0.04
/* Where the runs of one side came first, what drifts looks like a change. */
#define APART_PROBABILITY    0.02
#define APART_DRIFT          0.6
#define DRIFT                0.3 /* what a run shares with the next one */
#define PLAIN_SHARE          0.8 /* of the runs; the values of the others are too high */
#define ROWS_JUDGED_MAX      1000
#define DIVISIONS_LISTED_MAX 5000 /* else that many are drawn */
#define DIVISIONS_DRAWN      2000
#define DIVISIONS_MIN        40 /* four runs of each side have 70 */
#define ASSUMED_NOISE        0.05
#define ASSUMED_DEGREES      4     /* as if it had been seen in five runs */
#define UNEVENNESS           0.005 /* least noise of a row, of its size */
#define ASSUMED_ROWS_FACTOR  2     /* many rows: what is rare in one is not in all */
#define NORMAL_QUANTILE      1.959964

/* The difference between the sides of a division is this times the values. */
struct contrast {
	double of_run[DIFF_RUNS_MAX];
	double size; /* what a difference of 1 makes of it */
	double drift;
};

struct judge {
	struct diff *diff;
	size_t n, judged;             /* runs; rows */
	uint8_t sides[DIFF_RUNS_MAX]; /* of the division under way, in order of time */
	struct contrast row_contrast, total_contrast;
	double *plain;  /* values without what is too high: of rows, then the total */
	double *spread; /* of each row: its sum of squares */
	double *largest, *total_scores; /* by division: scores of any row, and of the total */
	size_t division_count;
	bool is_total_alone; /* no scores of rows are wanted */
	double row_probability, total_probability;
};

/* ---- one division ---- */

/* The inverse of the correlations drift^|i - k|, times a vector. */
static void multiply_by_weights(const double *vector, size_t n, double drift, double *ret)
{
	const double scale = 1 / (1 - drift * drift);

	for (size_t i = 0; i < n; i++) {
		double own = i == 0 || i == n - 1 ? 1 : 1 + drift * drift;

		ret[i] = own * vector[i];
		ret[i] -= i > 0 ? drift * vector[i - 1] : 0;
		ret[i] -= i + 1 < n ? drift * vector[i + 1] : 0;
		ret[i] *= scale;
	}
}

static double multiply(const double *left, const double *right, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += left[i] * right[i];
	return sum;
}

static void set_contrast(const struct judge *judge, struct contrast *contrast)
{
	double side[DIFF_RUNS_MAX], ones[DIFF_RUNS_MAX], weights[DIFF_RUNS_MAX], mean;
	size_t n = judge->n;

	for (size_t i = 0; i < n; i++) {
		side[i] = judge->sides[i];
		ones[i] = 1;
	}
	multiply_by_weights(ones, n, contrast->drift, weights);
	mean = multiply(weights, side, n) / multiply(weights, ones, n);
	for (size_t i = 0; i < n; i++)
		side[i] -= mean;
	multiply_by_weights(side, n, contrast->drift, contrast->of_run);
	contrast->size = sqrt(multiply(contrast->of_run, side, n));
	for (size_t i = 0; i < n; i++)
		contrast->of_run[i] /= contrast->size;
}

static void set_contrasts(struct judge *judge)
{
	set_contrast(judge, &judge->row_contrast);
	set_contrast(judge, &judge->total_contrast);
}

static double difference_of_row(const struct judge *judge, size_t row)
{
	return multiply(judge->row_contrast.of_run, judge->plain + row * judge->n, judge->n);
}

/* Of the least noise that a row may have. */
static double compute_least_variance(const struct judge *judge, const struct diff_row *row,
				     const double *values)
{
	double size = 0;

	if (row->is_exact)
		return 0;
	for (size_t i = 0; i < judge->n; i++)
		size += values[i] / (double)judge->n;
	return pow(UNEVENNESS * size, 2) + size * judge->diff->sample_weight;
}

/* What is left around the means of the sides, as a standard deviation. */
static double compute_noise(const struct judge *judge, size_t row)
{
	const double *values = judge->plain + row * judge->n;
	double difference = difference_of_row(judge, row);
	double left = judge->spread[row] - difference * difference;

	return sqrt(fmax(left, 0) / ((double)judge->n - DIFF_SIDE_COUNT) +
		    compute_least_variance(judge, &judge->diff->rows[row], values));
}

static double score_row(const struct judge *judge, size_t row)
{
	double noise = compute_noise(judge, row);

	return noise > 0 ? fabs(difference_of_row(judge, row)) / noise : 0;
}

/* Of the total alone the difference itself is the score: there is nothing to compare it with. */
static double difference_of_total(const struct judge *judge)
{
	return multiply(judge->total_contrast.of_run, judge->plain + judge->judged * judge->n,
			judge->n);
}

static void score_division(struct judge *judge)
{
	double largest = 0;

	set_contrasts(judge);
	for (size_t i = 0; !judge->is_total_alone && i < judge->judged; i++)
		largest = fmax(largest, score_row(judge, i));
	judge->largest[judge->division_count] = largest;
	judge->total_scores[judge->division_count++] = fabs(difference_of_total(judge));
}

/* ---- all divisions ---- */

static double count_divisions(const struct judge *judge)
{
	size_t k = judge->diff->side_count[DIFF_AFTER];
	double count = 1;

	for (size_t i = 1; i <= k; i++)
		count = count * (double)(judge->n - k + i) / (double)i;
	return count;
}

/* The next larger number with as many bits (Gosper, HAKMEM 175); some bit is set. */
static uint32_t next_with_same_bits(uint32_t bits)
{
	uint32_t ripple = bits + (bits & -bits);

	return ripple | (bits ^ ripple) >> 2 >> __builtin_ctz(bits);
}

static void score_all_divisions(struct judge *judge)
{
	uint32_t bits = (UINT32_C(1) << judge->diff->side_count[DIFF_AFTER]) - 1;

	for (; bits && bits < UINT32_C(1) << judge->n; bits = next_with_same_bits(bits)) {
		for (size_t i = 0; i < judge->n; i++)
			judge->sides[i] = bits >> i & 1;
		score_division(judge);
	}
}

static void set_sides_as_run(struct judge *judge)
{
	for (size_t i = 0; i < judge->n; i++)
		judge->sides[i] = (uint8_t)judge->diff->runs[i].side;
	set_contrasts(judge);
}

/* The division that was run is one of them. */
static void score_drawn_divisions(struct judge *judge)
{
	uint64_t random = 1;

	set_sides_as_run(judge);
	score_division(judge);
	while (judge->division_count < DIVISIONS_DRAWN) {
		for (size_t i = judge->n - 1; i > 0; i--) {
			size_t other = (size_t)((splitmix64_next(&random) >> 32) * (i + 1) >> 32);
			uint8_t side = judge->sides[i];

			judge->sides[i] = judge->sides[other];
			judge->sides[other] = side;
		}
		score_division(judge);
	}
}

static int compare_descending(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a < b) - (a > b);
}

static void score_divisions(struct judge *judge)
{
	judge->division_count = 0;
	if (count_divisions(judge) <= DIVISIONS_LISTED_MAX)
		score_all_divisions(judge);
	else
		score_drawn_divisions(judge);
	qsort(judge->largest, judge->division_count, sizeof(double), compare_descending);
	qsort(judge->total_scores, judge->division_count, sizeof(double), compare_descending);
	set_sides_as_run(judge);
}

/* ---- verdicts ---- */

static void set_row_verdict(struct diff_row *row, bool is_change)
{
	row->verdict = !is_change                 ? DIFF_UNCHANGED
		       : row->after > row->before ? DIFF_HIGHER
						  : DIFF_LOWER;
}

static size_t count_allowed_divisions(const struct judge *judge, double probability)
{
	return (size_t)(probability * (double)judge->division_count);
}

/* How many of the divisions differ as much. `scores` descend. */
static size_t count_scores_from(const struct judge *judge, const double *scores, double score)
{
	size_t count = 0;

	while (count < judge->division_count && scores[count] >= score * (1 - 1e-9))
		count++;
	return count;
}

static void judge_row(const struct judge *judge, size_t index)
{
	struct diff_row *row = &judge->diff->rows[index];
	size_t allowed = count_allowed_divisions(judge, judge->row_probability);
	size_t as_much = count_scores_from(judge, judge->largest, score_row(judge, index));
	double difference = difference_of_row(judge, index);

	row->probability = (double)as_much / (double)judge->division_count;
	row->noise = judge->largest[allowed ? allowed - 1 : 0] * compute_noise(judge, index) /
		     judge->row_contrast.size;
	set_row_verdict(row, as_much <= allowed && difference * (row->after - row->before) > 0);
}

static void judge_total(const struct judge *judge)
{
	struct diff_row *total = &judge->diff->total;
	double difference = difference_of_total(judge);
	size_t as_much = count_scores_from(judge, judge->total_scores, fabs(difference));

	total->probability = (double)as_much / (double)judge->division_count;
	set_row_verdict(total,
			as_much <= count_allowed_divisions(judge, judge->total_probability) &&
				difference * (total->after - total->before) > 0);
}

/* Student's quantile (Cornish and Fisher's expansion). */
static double student_quantile(double degrees)
{
	double z = NORMAL_QUANTILE;

	return z + (pow(z, 3) + z) / (4 * degrees) +
	       (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * degrees * degrees);
}

static double compute_variance_of_side(const struct diff *diff, const double *values,
				       enum diff_side side)
{
	double mean = 0, squares = 0, count = (double)diff->side_count[side];

	for (size_t i = 0; i < diff->run_count; i++)
		mean += diff->runs[i].side == side ? values[i] / count : 0;
	for (size_t i = 0; i < diff->run_count; i++)
		squares += diff->runs[i].side == side ? pow(values[i] - mean, 2) : 0;
	return count > 1 ? squares / (count - 1) : 0;
}

static void judge_row_by_assumption(const struct diff *diff, struct diff_row *row, double factor)
{
	double seen = (double)diff->run_count - DIFF_SIDE_COUNT, degrees = ASSUMED_DEGREES + seen;
	double size = (row->before + row->after) / 2;
	double variance = (ASSUMED_DEGREES * pow(ASSUMED_NOISE * size, 2) +
			   seen / 2 *
				   (compute_variance_of_side(diff, row->values, DIFF_BEFORE) +
				    compute_variance_of_side(diff, row->values, DIFF_AFTER))) /
			  degrees;

	variance += row->is_exact ? 0 : size * diff->sample_weight;
	row->noise = factor * student_quantile(degrees) *
		     sqrt(variance * (1 / (double)diff->side_count[DIFF_BEFORE] +
				      1 / (double)diff->side_count[DIFF_AFTER]));
	row->probability = NAN;
	set_row_verdict(row, fabs(row->after - row->before) > row->noise);
}

static void judge_by_assumption(struct diff *diff)
{
	diff->is_noise_assumed = true;
	judge_row_by_assumption(diff, &diff->total, 1);
	for (size_t i = 0; i < diff->row_count; i++)
		judge_row_by_assumption(diff, &diff->rows[i], ASSUMED_ROWS_FACTOR);
}

/* ---- values ---- */

static int compare_ascending(const void *left, const void *right)
{
	return compare_descending(right, left);
}

/* The highest values count as the highest of the others. */
static void copy_plain_values(const struct judge *judge, const double *values, double *ret)
{
	size_t last = (size_t)ceil(PLAIN_SHARE * (double)judge->n) - 1;
	double sorted[DIFF_RUNS_MAX];

	memcpy(sorted, values, judge->n * sizeof(*values));
	qsort(sorted, judge->n, sizeof(*sorted), compare_ascending);
	for (size_t i = 0; i < judge->n; i++)
		ret[i] = fmin(values[i], sorted[last]);
}

static double compute_spread(const struct judge *judge, const double *values)
{
	double mean = 0, squares = 0;

	for (size_t i = 0; i < judge->n; i++)
		mean += values[i] / (double)judge->n;
	for (size_t i = 0; i < judge->n; i++)
		squares += pow(values[i] - mean, 2);
	return squares;
}

static int prepare_values(struct judge *judge)
{
	judge->plain = calloc((judge->judged + 1) * judge->n + 1, sizeof(*judge->plain));
	judge->spread = calloc(judge->judged + 1, sizeof(*judge->spread));
	if (!judge->plain || !judge->spread)
		return -ENOMEM;
	for (size_t i = 0; i <= judge->judged; i++) {
		double *plain = judge->plain + i * judge->n;

		copy_plain_values(judge,
				  i < judge->judged ? judge->diff->rows[i].values
						    : judge->diff->total.values,
				  plain);
		judge->spread[i] = compute_spread(judge, plain);
	}
	return 0;
}

/* What the total would differ by without the change that was found. */
static void set_noise_of_total(struct judge *judge)
{
	struct diff_row *total = &judge->diff->total;
	double size = judge->total_contrast.size, change = difference_of_total(judge) / size;
	double *plain = judge->plain + judge->judged * judge->n;
	size_t allowed = count_allowed_divisions(judge, judge->total_probability);

	for (size_t i = 0; i < judge->n; i++)
		plain[i] -= judge->diff->runs[i].side == DIFF_AFTER ? change : 0;
	judge->is_total_alone = true;
	score_divisions(judge);
	total->noise = judge->total_scores[allowed ? allowed - 1 : 0] / size;
	if (total->verdict == DIFF_UNCHANGED)
		total->noise = fmax(total->noise, fabs(total->after - total->before));
}

static int judge_by_divisions(struct judge *judge)
{
	size_t count = count_divisions(judge) <= DIVISIONS_LISTED_MAX
			       ? (size_t)lround(count_divisions(judge))
			       : DIVISIONS_DRAWN;
	int error = prepare_values(judge);

	judge->largest = calloc(count, sizeof(*judge->largest));
	judge->total_scores = calloc(count, sizeof(*judge->total_scores));
	if (error || !judge->largest || !judge->total_scores)
		return -ENOMEM;
	score_divisions(judge);
	judge_total(judge);
	for (size_t i = 0; i < judge->judged; i++)
		judge_row(judge, i);
	set_noise_of_total(judge);
	return 0;
}

/* ---- rows ---- */

static double sum_values(const struct diff_row *row, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += row->values[i];
	return sum;
}

static int compare_rows_by_size(const void *left, const void *right, void *runs)
{
	double a = sum_values(left, *(const size_t *)runs);
	double b = sum_values(right, *(const size_t *)runs);

	return (a < b) - (a > b);
}

/* Names that one kind of row has and nothing counted for, as a thread that never ran. */
static size_t drop_empty_rows(const struct diff *diff)
{
	size_t kept = 0;

	for (size_t i = 0; i < diff->names.count; i++) {
		if (sum_values(&diff->rows[i], diff->run_count) > 0)
			diff->rows[kept++] = diff->rows[i];
	}
	return kept;
}

/* What is judged as changed first, then the larger changes. */
static int compare_rows_by_change(const void *left, const void *right)
{
	const struct diff_row *a = left, *b = right;
	double x = fabs(a->after - a->before), y = fabs(b->after - b->before);

	if ((a->verdict != DIFF_UNCHANGED) != (b->verdict != DIFF_UNCHANGED))
		return a->verdict != DIFF_UNCHANGED ? -1 : 1;
	return (x < y) - (x > y);
}

/* The faster half of each side stands for it: what disturbs a run adds time and takes none away. */
static void set_before_and_after(const struct diff *diff, const bool *counts, struct diff_row *row)
{
	double sum[DIFF_SIDE_COUNT] = {0};
	size_t counted[DIFF_SIDE_COUNT] = {0};

	for (size_t i = 0; i < diff->run_count; i++) {
		sum[diff->runs[i].side] += counts[i] ? row->values[i] : 0;
		counted[diff->runs[i].side] += counts[i];
	}
	row->before = sum[DIFF_BEFORE] / (double)counted[DIFF_BEFORE];
	row->after = sum[DIFF_AFTER] / (double)counted[DIFF_AFTER];
}

static void set_all_before_and_after(struct diff *diff)
{
	bool counts[DIFF_RUNS_MAX];

	for (size_t i = 0; i < diff->run_count; i++) {
		const struct diff_run *run = &diff->runs[i];
		size_t faster = 0;

		for (size_t k = 0; k < diff->run_count; k++)
			faster += diff->runs[k].side == run->side &&
				  (diff->runs[k].total < run->total ||
				   (k < i && diff->runs[k].total == run->total));
		counts[i] = faster < (diff->side_count[run->side] + 1) / 2;
	}
	set_before_and_after(diff, counts, &diff->total);
	for (size_t i = 0; i < diff->row_count; i++)
		set_before_and_after(diff, counts, &diff->rows[i]);
}

static int compare_runs_by_start(const void *left, const void *right)
{
	const struct diff_run *a = left, *b = right;

	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static int make_rows(struct diff *diff)
{
	size_t n = diff->run_count, count = diff->names.count;
	double *values = calloc((count + 1) * n + 1, sizeof(*values));

	qsort(diff->runs, n, sizeof(*diff->runs), compare_runs_by_start);
	diff->row_values = values;
	diff->rows = calloc(count + 1, sizeof(*diff->rows));
	if (!values || !diff->rows)
		return -ENOMEM;
	diff->total =
		(struct diff_row){.name = "total", .values = values + count * n, .is_exact = true};
	for (size_t run = 0; run < n; run++)
		values[count * n + run] = diff->runs[run].total;
	for (size_t i = 0; i < count; i++) {
		for (size_t run = 0; run < n; run++)
			values[i * n + run] =
				i < diff->runs[run].capacity ? diff->runs[run].values[i] : 0;
		diff->rows[i] = (struct diff_row){.name = diff->names.text[i],
						  .values = values + i * n,
						  .is_exact = diff->kind >= DIFF_BY_THREAD};
	}
	diff->row_count = drop_empty_rows(diff);
	qsort_r(diff->rows, diff->row_count, sizeof(*diff->rows), compare_rows_by_size, &n);
	set_all_before_and_after(diff);
	return 0;
}

/* Did the sides take turns, roughly? */
static bool are_sides_mixed(const struct diff *diff)
{
	size_t changes = 0;

	for (size_t i = 1; i < diff->run_count; i++)
		changes += diff->runs[i].side != diff->runs[i - 1].side;
	return changes * 3 >= diff->run_count;
}

int diff_judge(struct diff *diff, struct problem *problem)
{
	struct judge judge = {.diff = diff, .n = diff->run_count};
	int error = make_rows(diff);

	diff->are_sides_apart = !are_sides_mixed(diff);
	judge.row_probability = diff->are_sides_apart ? APART_PROBABILITY : ERROR_PROBABILITY;
	judge.total_probability = diff->are_sides_apart ? APART_PROBABILITY : TOTAL_PROBABILITY;
	judge.total_contrast.drift = diff->are_sides_apart ? APART_DRIFT : DRIFT;

	judge.judged = diff->row_count < ROWS_JUDGED_MAX ? diff->row_count : ROWS_JUDGED_MAX;
	if (error == 0 && count_divisions(&judge) >= DIVISIONS_MIN)
		error = judge_by_divisions(&judge);
	else if (error == 0)
		judge_by_assumption(diff);
	if (error == 0)
		qsort(diff->rows, diff->row_count, sizeof(*diff->rows), compare_rows_by_change);
	free(judge.plain);
	free(judge.spread);
	free(judge.largest);
	free(judge.total_scores);
	return error ? problem_set(problem, error, "cannot compare the results: %s",
				   strerror(-error))
		     : 0;
}
