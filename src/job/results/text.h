/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The text of a job inside this room: text.c has the head and the ranks, tables.c what they did.
 */
#ifndef KYMO_JOB_RESULTS_TEXT_H
#define KYMO_JOB_RESULTS_TEXT_H

#include <stdio.h>

#include "job/results/late.h"

struct job_text {
	const struct job *job;
	FILE *stream;
	uint64_t mean_wall_ns;
	unsigned top;   /* rows in tables; 0: all */
	char hole[512]; /* which ranks are not in the tables, or not with all of their data */
};

/* With a word on what is missing, so that no table is read without it. */
void job_text_write_heading(const struct job_text *text, const char *heading);
/* The path's functions, the root first, the middle left out where there are many. */
void job_text_write_path(const struct job_text *text, uint32_t path);
/* 0 or -ENOMEM. */
int job_text_write_tables(const struct job_text *text);

/* text_waits.c: 0 or -ENOMEM. */
int job_text_write_waits(const struct job_text *text);

#endif
