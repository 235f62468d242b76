/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Two sets of runs side by side: what took how much before and after, and whether more than noise
 * explains the difference.
 *
 * Life: diff_init(), diff_add_run() for each run (its session may be closed after that),
 * diff_judge(), then the writers and conditions. Rows are matched by name: builds differ in their
 * addresses, and compilers number the parts of functions.
 */
#ifndef KYMO_OUTPUT_DIFF_DIFF_H
#define KYMO_OUTPUT_DIFF_DIFF_H

#include <stdio.h>

#include "analysis/session.h"
#include "analysis/views.h"
#include "output/format.h"
#include "output/strings.h"

#define DIFF_RUNS_MAX 256 /* of both sides */

enum diff_row_kind {
	DIFF_BY_FUNCTION,
	DIFF_BY_PATH,
	DIFF_BY_LINE,
	DIFF_BY_THREAD,
	DIFF_BY_REGION,
	DIFF_BY_KERNEL,
	DIFF_BY_RANK,
	DIFF_BY_COUNT
};

/* The words of --by, in the order of the enumeration. */
#define DIFF_ROW_KIND_WORDS "function,path,line,thread,region,kernel,rank"

enum diff_side { DIFF_BEFORE, DIFF_AFTER, DIFF_SIDE_COUNT };

enum diff_verdict {
	DIFF_UNCHANGED, /* noise explains it */
	DIFF_HIGHER,
	DIFF_LOWER,
};

struct diff_row {
	const char *name;
	const double *values; /* by run */
	double before, after; /* means of the faster half of each side's runs */
	double noise;         /* what before and after differ by in 95 of 100 cases without cause */
	double probability;   /* of such a difference without cause; of rows: of any in the table */
	enum diff_verdict verdict;
	bool is_exact; /* measured, not sampled */
};

struct diff_run {
	enum diff_side side;
	const char *name; /* as it was named */
	double *values;   /* by name, `capacity` of them */
	double total;
	uint64_t start_ns; /* CLOCK_REALTIME */
	size_t capacity;
};

struct diff {
	enum diff_row_kind kind;
	enum view_measure_kind measure;
	struct string_table names; /* with copies */
	struct diff_run runs[DIFF_RUNS_MAX];
	size_t run_count, side_count[DIFF_SIDE_COUNT];
	/* After diff_judge(): rows by the size of their change. */
	struct diff_row total, *rows;
	size_t row_count;
	double *row_values;
	double sample_weight;  /* the largest mean weight of a sample of any run */
	bool are_sides_apart;  /* the runs of one came before those of the other */
	bool is_noise_assumed; /* too few runs tell how much they differ by themselves */
};

void diff_init(struct diff *diff, enum diff_row_kind kind, enum view_measure_kind measure);
void diff_deinit(struct diff *diff);
/* A run whose rows may be none. 0 or a negative errno. `name` must outlive it. */
int diff_add_run(struct diff *diff, const struct session *session, enum diff_side side,
		 const char *name, struct problem *problem);
int diff_judge(struct diff *diff, struct problem *problem);

/* How a function is called in every build; `size` bytes at most. */
void diff_format_function_name(char *buffer, size_t size, const struct session *session,
			       uint32_t frame);

/* A number of a row with its unit. */
struct quantity_text diff_quantity(const struct diff *diff, double value);
void diff_write_text(const struct diff *diff, FILE *stream, size_t top, size_t columns);
/* For a comment on a pull request. */
void diff_write_markdown(const struct diff *diff, FILE *stream, size_t top);
int diff_write_json(const struct diff *diff, FILE *stream, struct problem *problem);
/* "path before after" a line, for difffolded.pl of FlameGraph. */
void diff_write_folded(const struct diff *diff, FILE *stream);

/* A condition such as "total>+3%": above it, and more than noise. */
struct diff_condition {
	char name[512]; /* "total", "any", or a row's */
	double limit;   /* a factor of before, or ns */
	bool is_relative, is_below;
};

/* -EINVAL with what is wrong. */
int diff_condition_parse(const char *text, struct diff_condition *ret, struct problem *problem);
/* 1: it holds, and `text` names the row. 0: it does not. -EINVAL: there is no such row. */
int diff_condition_check(const struct diff_condition *condition, const struct diff *diff,
			 char *text, size_t size, struct problem *problem);

#endif
