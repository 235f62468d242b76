/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See thread_sums.h.
 */
#include "output/thread_sums.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ranked_thread {
	uint64_t weight;
	uint32_t index;
};

/* What it used and waited; where only events were counted, those. */
static uint64_t get_thread_rank_weight(const struct model_thread *thread)
{
	uint64_t sum = thread->cpu_ns;

	for (int source = 0; source < SPOOL_SOURCE_COUNT; source++)
		sum += thread->weight[source];
	return sum;
}

static int compare_threads_by_weight(const void *left, const void *right)
{
	const struct ranked_thread *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static int compare_sums_by_process_and_name(const void *left, const void *right)
{
	const struct thread_sum *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void set_thread_sum_name_without_number(struct thread_sum *sum, const char *name)
{
	size_t length = strlen(name), kept = length;

	while (kept && name[kept - 1] >= '0' && name[kept - 1] <= '9')
		kept--;
	if (kept > sizeof(sum->name) - 2)
		kept = sizeof(sum->name) - 2;
	memcpy(sum->name, name, kept);
	snprintf(sum->name + kept, sizeof(sum->name) - kept, "%s", kept < length ? "*" : "");
}

static void accumulate_thread_sum(struct thread_sum *sum, const struct thread_sum *other)
{
	sum->threads += other->threads;
	sum->cpu_ns += other->cpu_ns;
	sum->covered_cpu_ns += other->covered_cpu_ns;
	sum->signals_blocked_cpu_ns += other->signals_blocked_cpu_ns;
	for (int source = 0; source < MODEL_SOURCE_COUNT; source++) {
		sum->samples[source] += other->samples[source];
		sum->weight[source] += other->weight[source];
	}
}

static struct thread_sum thread_sum_from_thread(const struct model_thread *thread)
{
	struct thread_sum sum = {.process = thread->process,
				 .threads = 1,
				 .cpu_ns = thread->cpu_ns,
				 .covered_cpu_ns = thread->covered_ns,
				 .signals_blocked_cpu_ns = thread->blocked_ns};

	set_thread_sum_name_without_number(&sum, thread->name);
	memcpy(sum.samples, thread->samples, sizeof(sum.samples));
	memcpy(sum.weight, thread->weight, sizeof(sum.weight));
	return sum;
}

/* One entry a process and name. */
static void merge_sums_by_name(struct thread_sums *sums)
{
	size_t kept = 0;

	qsort(sums->sums, sums->count, sizeof(*sums->sums), compare_sums_by_process_and_name);
	for (size_t i = 0; i < sums->count; i++) {
		if (kept &&
		    !compare_sums_by_process_and_name(&sums->sums[kept - 1], &sums->sums[i]))
			accumulate_thread_sum(&sums->sums[kept - 1], &sums->sums[i]);
		else
			sums->sums[kept++] = sums->sums[i];
	}
	sums->count = kept;
}

int thread_sums_create(const struct session *session, struct thread_sums *ret)
{
	uint32_t count = session->thread_count;
	struct ranked_thread *ranks;

	*ret = (struct thread_sums){0};
	if (count <= THREADS_LISTED_MAX)
		return 0;
	ranks = calloc(count, sizeof(*ranks));
	ret->is_thread_listed = calloc(count, sizeof(*ret->is_thread_listed));
	ret->sums = calloc(count - THREADS_LISTED_MAX, sizeof(*ret->sums));
	if (!ranks || !ret->is_thread_listed || !ret->sums) {
		free(ranks);
		thread_sums_destroy(ret);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		ranks[i] = (struct ranked_thread){get_thread_rank_weight(&session->threads[i]), i};
	qsort(ranks, count, sizeof(*ranks), compare_threads_by_weight);
	for (uint32_t i = 0; i < count; i++) {
		/* kymo's own ones say so in the list alone */
		if (i < THREADS_LISTED_MAX || session->threads[ranks[i].index].how == 3)
			ret->is_thread_listed[ranks[i].index] = true;
		else
			ret->sums[ret->count++] =
				thread_sum_from_thread(&session->threads[ranks[i].index]);
	}
	free(ranks);
	merge_sums_by_name(ret);
	return 0;
}

void thread_sums_destroy(struct thread_sums *sums)
{
	free(sums->is_thread_listed);
	free(sums->sums);
	*sums = (struct thread_sums){0};
}
