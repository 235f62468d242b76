/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the tool library has to say about counting, as notices of the file: each line once, since
 * the same may be said of every kernel.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "kymo/counting.h"
#include "libkymo-gpu/count_kernels.h"
#include "libkymo-gpu/file.h"

#define LINES_MAX 64u

/* Of kymo's tool library alone. */
#pragma weak kymo_counting_problem
#pragma weak kymo_counting_totals

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t told[LINES_MAX];
static unsigned told_count;

static uint64_t hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	while (*text != '\0')
		hash = (hash ^ (unsigned char)*text++) * UINT64_C(0x100000001b3);
	return hash;
}

static bool is_new(const char *text)
{
	uint64_t hash = hash_of(text);
	bool fresh = true;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < told_count && fresh; i++)
		fresh = told[i] != hash;
	fresh = fresh && told_count < LINES_MAX;
	if (fresh)
		told[told_count++] = hash;
	pthread_mutex_unlock(&lock);
	return fresh;
}

static void take(void *unused, const char *text)
{
	(void)unused;
	if (is_new(text))
		gpu_file_notice(text);
}

void counting_problems_follow(void)
{
	if (kymo_counting_problem != NULL)
		kymo_counting_problem(take, NULL);
}

void counting_problems_end(void)
{
	uint64_t totals[4] = {0};

	if (kymo_counting_totals == NULL)
		return;
	kymo_counting_totals(totals);
	gpu_file_filtered(totals[1]);
	gpu_file_lost(GPU_LOSS_READINGS, totals[3]);
}
