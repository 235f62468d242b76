/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the tool library has to say about counting, as notices of the file: each line once, since
 * the same may be said of every kernel.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/text_hash.h"
#include "kymo/counting.h"
#include "libkymo-gpu/count_kernels.h"
#include "libkymo-gpu/file.h"

#define REPORTED_TEXTS_MAX 64u

/* Only kymo's tool library has it. */
#pragma weak kymo_counting_problem
#pragma weak kymo_counting_totals

static pthread_mutex_t reported_text_hashes_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t reported_text_hashes[REPORTED_TEXTS_MAX];
static unsigned reported_text_count;

static bool add_text_hash_if_new(const char *text)
{
	uint64_t hash = text_hash_append(TEXT_HASH_OF_NOTHING, text);
	bool fresh = true;

	pthread_mutex_lock(&reported_text_hashes_lock);
	for (unsigned i = 0; i < reported_text_count && fresh; i++)
		fresh = reported_text_hashes[i] != hash;
	fresh = fresh && reported_text_count < REPORTED_TEXTS_MAX;
	if (fresh)
		reported_text_hashes[reported_text_count++] = hash;
	pthread_mutex_unlock(&reported_text_hashes_lock);
	return fresh;
}

static void write_problem_notice_once(void *unused, const char *text)
{
	(void)unused;
	if (add_text_hash_if_new(text))
		gpu_file_write_notice(text);
}

void counting_problems_register_notice_writer(void)
{
	if (kymo_counting_problem != NULL)
		kymo_counting_problem(write_problem_notice_once, NULL);
}

void counting_add_filtered_and_loss_counts_to_file(void)
{
	uint64_t totals[4] = {0};

	if (kymo_counting_totals == NULL)
		return;
	kymo_counting_totals(totals);
	gpu_file_add_filtered_kernel_count(totals[1]);
	gpu_file_add_loss_count(GPU_LOSS_READINGS, totals[3]);
}
