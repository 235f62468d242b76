/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Is it more than noise? What disturbs a run (other programs, a cold cache, a slower clock) adds
 * time and takes none away, so the faster half of the runs of each side stands for it. Whether two
 * sides differ is asked of all ways to divide the same runs into two sides, as if which code ran
 * were a matter of chance (Fisher's permutation test): at most 5 % of them may differ as much. With
 * few repeats this holds where the quantiles of a bootstrap are too narrow. Rows are many, so each
 * is compared with the largest difference of any row in each division (Westfall and Young, 1993):
 * 5 % is the chance that a table without a cause names any row.
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

#define ERROR_PROBABILITY    0.05
#define ROWS_JUDGED_MAX      1000
#define DIVISIONS_LISTED_MAX 5000 /* else that many are drawn */
#define DIVISIONS_DRAWN      2000
#define DIVISIONS_MIN        40 /* four runs of each side have 70 */
#define ASSUMED_NOISE        0.05
#define ASSUMED_DEGREES      4     /* as if it had been seen in five runs */
#define UNEVENNESS           0.005 /* least noise of a row, of its size */
#define ASSUMED_ROWS_FACTOR  2     /* many rows: what is rare in one is not in all */
#define NORMAL_QUANTILE      1.959964

struct judge {
	struct diff *diff;
	size_t n, judged;               /* runs; rows */
	uint8_t sides[DIFF_RUNS_MAX];   /* of the division under way */
	bool counts[DIFF_RUNS_MAX];     /* the faster half of its side */
	const double *totals;           /* by run: what is fast */
	bool is_total_alone;            /* no scores of rows are wanted */
	double *largest, *total_scores; /* by division: scores of any row, and of the total */
	size_t division_count;
};

/* ---- one division ---- */

/* Marks the faster half of each side by its total. */
static void choose_faster_runs(struct judge *judge)
{
	const double *totals = judge->totals;

	for (size_t i = 0; i < judge->n; i++) {
		size_t faster = 0, of_side = 0;

		for (size_t k = 0; k < judge->n; k++) {
			if (judge->sides[k] != judge->sides[i])
				continue;
			of_side++;
			faster += totals[k] < totals[i] || (totals[k] == totals[i] && k < i);
		}
		judge->counts[i] = faster < (of_side + 1) / 2;
	}
}

/* Means of the runs that count, and the spread of all runs around the mean of their side. */
struct row_sums {
	double mean[DIFF_SIDE_COUNT], noise;
};

static struct row_sums sum_row(const struct judge *judge, const struct diff_row *row)
{
	const double *values = row->values;
	struct row_sums sums = {0};
	double mean[DIFF_SIDE_COUNT] = {0}, squares = 0, size;
	size_t counted[DIFF_SIDE_COUNT] = {0}, all[DIFF_SIDE_COUNT] = {0};

	for (size_t i = 0; i < judge->n; i++) {
		unsigned side = judge->sides[i];

		mean[side] += values[i];
		all[side]++;
		sums.mean[side] += judge->counts[i] ? values[i] : 0;
		counted[side] += judge->counts[i];
	}
	for (unsigned side = 0; side < DIFF_SIDE_COUNT; side++) {
		mean[side] /= (double)all[side];
		sums.mean[side] /= (double)counted[side];
	}
	for (size_t i = 0; i < judge->n; i++)
		squares += pow(values[i] - mean[judge->sides[i]], 2);
	size = (mean[DIFF_BEFORE] + mean[DIFF_AFTER]) / 2;
	sums.noise = squares / fmax((double)judge->n - DIFF_SIDE_COUNT, 1);
	if (!row->is_exact)
		sums.noise += pow(UNEVENNESS * size, 2) + size * judge->diff->sample_weight;
	sums.noise =
		sqrt(sums.noise * (1 / (double)all[DIFF_BEFORE] + 1 / (double)all[DIFF_AFTER]));
	return sums;
}

static double score_row(const struct judge *judge, const struct diff_row *row)
{
	struct row_sums sums = sum_row(judge, row);

	return sums.noise > 0 ? fabs(sums.mean[DIFF_AFTER] - sums.mean[DIFF_BEFORE]) / sums.noise
			      : 0;
}

/* Of the total alone the difference itself is the score: there is nothing to compare it with, and a
 * spread would let one disturbed run hide it. */
static double score_total(const struct judge *judge)
{
	double sum[DIFF_SIDE_COUNT] = {0};
	size_t counted[DIFF_SIDE_COUNT] = {0};

	for (size_t i = 0; i < judge->n; i++) {
		sum[judge->sides[i]] += judge->counts[i] ? judge->totals[i] : 0;
		counted[judge->sides[i]] += judge->counts[i];
	}
	return fabs(sum[DIFF_AFTER] / (double)counted[DIFF_AFTER] -
		    sum[DIFF_BEFORE] / (double)counted[DIFF_BEFORE]);
}

static void score_division(struct judge *judge)
{
	double largest = 0;

	choose_faster_runs(judge);
	for (size_t i = 0; !judge->is_total_alone && i < judge->judged; i++)
		largest = fmax(largest, score_row(judge, &judge->diff->rows[i]));
	judge->largest[judge->division_count] = largest;
	judge->total_scores[judge->division_count++] = score_total(judge);
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

/* The next larger number with as many bits (Gosper, HAKMEM 175). */
static uint32_t next_with_same_bits(uint32_t bits)
{
	uint32_t lowest = bits & -bits, ripple = bits + lowest;

	return ripple | ((bits ^ ripple) >> 2) / lowest;
}

static void score_all_divisions(struct judge *judge)
{
	uint32_t bits = (UINT32_C(1) << judge->diff->side_count[DIFF_AFTER]) - 1;

	for (; bits < UINT32_C(1) << judge->n; bits = next_with_same_bits(bits)) {
		for (size_t i = 0; i < judge->n; i++)
			judge->sides[i] = bits >> i & 1;
		score_division(judge);
	}
}

static void set_sides_as_run(struct judge *judge)
{
	for (size_t i = 0; i < judge->n; i++)
		judge->sides[i] = (uint8_t)judge->diff->runs[i].side;
	choose_faster_runs(judge);
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

/* ---- verdicts ---- */

static void set_row_verdict(struct diff_row *row, bool is_change)
{
	row->verdict = !is_change                 ? DIFF_UNCHANGED
		       : row->after > row->before ? DIFF_HIGHER
						  : DIFF_LOWER;
}

static size_t count_allowed_divisions(const struct judge *judge)
{
	return (size_t)(ERROR_PROBABILITY * (double)judge->division_count);
}

/* How many of the divisions differ as much. `scores` descend. */
static size_t count_scores_from(const struct judge *judge, const double *scores, double score)
{
	size_t count = 0;

	while (count < judge->division_count && scores[count] >= score * (1 - 1e-9))
		count++;
	return count;
}

static void judge_row(const struct judge *judge, struct diff_row *row)
{
	struct row_sums sums = sum_row(judge, row);
	size_t allowed = count_allowed_divisions(judge);
	size_t as_much = count_scores_from(judge, judge->largest, score_row(judge, row));

	row->before = sums.mean[DIFF_BEFORE];
	row->after = sums.mean[DIFF_AFTER];
	row->probability = (double)as_much / (double)judge->division_count;
	row->noise = judge->largest[allowed ? allowed - 1 : 0] * sums.noise;
	set_row_verdict(row, as_much <= allowed);
}

static void judge_total(const struct judge *judge, struct diff_row *total)
{
	struct row_sums sums = sum_row(judge, total);
	size_t as_much = count_scores_from(judge, judge->total_scores, score_total(judge));

	total->before = sums.mean[DIFF_BEFORE];
	total->after = sums.mean[DIFF_AFTER];
	total->probability = (double)as_much / (double)judge->division_count;
	set_row_verdict(total, as_much <= count_allowed_divisions(judge));
}

/* Student's quantile (Cornish and Fisher's expansion). */
static double student_quantile(double degrees)
{
	double z = NORMAL_QUANTILE;

	return z + (pow(z, 3) + z) / (4 * degrees) +
	       (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * degrees * degrees);
}

static void judge_row_by_assumption(const struct judge *judge, struct diff_row *row, double factor)
{
	struct row_sums sums = sum_row(judge, row);
	double seen = (double)judge->n - DIFF_SIDE_COUNT, degrees = ASSUMED_DEGREES + seen;
	double per_run = 2 / (double)judge->n * 2; /* 1/n + 1/n */
	double assumed = pow(ASSUMED_NOISE * (sums.mean[0] + sums.mean[1]) / 2, 2);
	double variance =
		(ASSUMED_DEGREES * assumed + seen * sums.noise * sums.noise / per_run) / degrees;

	if (!row->is_exact)
		variance += (sums.mean[0] + sums.mean[1]) / 2 * judge->diff->sample_weight;
	row->before = sums.mean[DIFF_BEFORE];
	row->after = sums.mean[DIFF_AFTER];
	row->noise = factor * student_quantile(degrees) * sqrt(variance * per_run);
	row->probability = NAN;
	set_row_verdict(row, fabs(row->after - row->before) > row->noise);
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

/* What the total would differ by without the change that was found. */
static void set_noise_of_total(struct judge *judge)
{
	struct diff_row *total = &judge->diff->total;
	double change = total->after - total->before, without_change[DIFF_RUNS_MAX];
	size_t allowed = count_allowed_divisions(judge);

	for (size_t i = 0; i < judge->n; i++)
		without_change[i] =
			total->values[i] - (judge->diff->runs[i].side == DIFF_AFTER ? change : 0);
	judge->totals = without_change;
	judge->is_total_alone = true;
	score_divisions(judge);
	total->noise = judge->total_scores[allowed ? allowed - 1 : 0];
	if (total->verdict == DIFF_UNCHANGED)
		total->noise = fmax(total->noise, fabs(change));
	judge->totals = total->values;
}

static int judge_by_divisions(struct judge *judge)
{
	size_t count = count_divisions(judge) <= DIVISIONS_LISTED_MAX
			       ? (size_t)lround(count_divisions(judge))
			       : DIVISIONS_DRAWN;

	judge->largest = calloc(count, sizeof(*judge->largest));
	judge->total_scores = calloc(count, sizeof(*judge->total_scores));
	if (!judge->largest || !judge->total_scores)
		return -ENOMEM;
	score_divisions(judge);
	judge_total(judge, &judge->diff->total);
	for (size_t i = 0; i < judge->diff->row_count; i++)
		judge_row(judge, &judge->diff->rows[i]);
	set_noise_of_total(judge);
	return 0;
}

static void judge_by_assumption(struct judge *judge)
{
	judge->diff->is_noise_assumed = true;
	set_sides_as_run(judge);
	judge_row_by_assumption(judge, &judge->diff->total, 1);
	for (size_t i = 0; i < judge->diff->row_count; i++)
		judge_row_by_assumption(judge, &judge->diff->rows[i], ASSUMED_ROWS_FACTOR);
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

static int make_rows(struct diff *diff)
{
	size_t n = diff->run_count, count = diff->names.count;
	double *values = calloc((count + 1) * n + 1, sizeof(*values));

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
	return 0;
}

int diff_judge(struct diff *diff, struct problem *problem)
{
	struct judge judge = {.diff = diff, .n = diff->run_count};
	int error = make_rows(diff);

	judge.totals = diff->total.values;
	judge.judged = diff->row_count < ROWS_JUDGED_MAX ? diff->row_count : ROWS_JUDGED_MAX;
	if (error == 0 && count_divisions(&judge) >= DIVISIONS_MIN)
		error = judge_by_divisions(&judge);
	else if (error == 0)
		judge_by_assumption(&judge);
	if (error == 0)
		qsort(diff->rows, diff->row_count, sizeof(*diff->rows), compare_rows_by_change);
	free(judge.largest);
	free(judge.total_scores);
	return error ? problem_set(problem, error, "cannot compare the results: %s",
				   strerror(-error))
		     : 0;
}
