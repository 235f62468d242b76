/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Jobs of one rank, made of random numbers, and what a direct count of them gives.
 */
#ifndef KYMO_TESTS_JOB_FIXTURE_H
#define KYMO_TESTS_JOB_FIXTURE_H

#include "job/job.h"

#define FIXTURE_FUNCTIONS 12

/* Values of one rank by function; 0: the rank does not have it. */
struct fixture_values {
	uint64_t cpu[FIXTURE_FUNCTIONS];
};

struct fixture_values fixture_make_values(uint64_t seed, uint32_t rank);
/* A job of the one rank, its functions and paths added in an order of its own. */
void fixture_make_rank(struct job *job, uint64_t seed, uint32_t rank, uint32_t size);
/* The job as a part file; malloc'ed. The job is sorted by this. */
char *fixture_write_part(struct job *job, size_t *ret_size);

#endif
