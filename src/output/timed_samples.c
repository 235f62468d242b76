/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See timed_samples.h.
 */
#include "output/timed_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "output/thread_sums.h"

#define SPAN_NS_FIRST UINT64_C(1000000)

struct sample_collector {
	struct timed_samples *result;
	const struct session *session;
	size_t limit, capacity;
	const struct view_thread_node_row *rows; /* by thread, then node */
	size_t row_count;
	uint64_t (*seen)[MODEL_SOURCE_COUNT]; /* by row: the weight of its samples */
	bool is_source_wanted[MODEL_SOURCE_COUNT];
};

uint32_t *timed_samples_create_groups(const struct session *session)
{
	uint32_t *groups = calloc((size_t)session->thread_count + 1, sizeof(*groups));
	struct thread_sums sums;

	if (groups == NULL || thread_sums_create(session, &sums) != 0) {
		free(groups);
		return NULL;
	}
	for (uint32_t i = 0; i < session->thread_count; i++)
		groups[i] = thread_sums_is_thread_listed(&sums, i)
				    ? i
				    : session->thread_count + session->threads[i].process;
	thread_sums_destroy(&sums);
	return groups;
}

const struct model_thread *timed_samples_get_thread(const struct session *session, uint32_t group,
						    uint32_t *ret_process)
{
	if (group >= session->thread_count) {
		*ret_process = group - session->thread_count;
		return NULL;
	}
	*ret_process = session->threads[group].process;
	return &session->threads[group];
}

void timed_samples_format_group_name(char *buffer, size_t size, const struct session *session,
				     uint32_t group)
{
	uint32_t process;
	const struct model_thread *thread = timed_samples_get_thread(session, group, &process);
	const struct model_process *of = &session->processes[process];

	if (thread != NULL)
		snprintf(buffer, size, "%s %" PRIu32 " (%s %" PRIu32 ")", thread->name, thread->tid,
			 of->name, of->pid);
	else
		snprintf(buffer, size, "other threads (%s %" PRIu32 ")", of->name, of->pid);
}

static uint64_t get_time_since_start(const struct session *session, uint64_t time_ns)
{
	if (time_ns > session->end_ns)
		time_ns = session->end_ns;
	return time_ns > session->start_ns ? time_ns - session->start_ns : 0;
}

/* ---- order ---- */

static int compare_samples_by_time(const void *left, const void *right)
{
	const struct timed_sample *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return a->source < b->source ? -1 : a->source > b->source;
}

static int compare_samples_by_span(const void *left, const void *right, void *span_ns)
{
	const struct timed_sample *a = left, *b = right;
	uint64_t a_span = a->time_ns / *(uint64_t *)span_ns;
	uint64_t b_span = b->time_ns / *(uint64_t *)span_ns;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a_span != b_span)
		return a_span < b_span ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return a->source < b->source ? -1 : a->source > b->source;
}

static void merge_samples_of_span(struct timed_samples *result)
{
	size_t kept = 0;

	qsort_r(result->samples, result->count, sizeof(*result->samples), compare_samples_by_span,
		&result->span_ns);
	for (size_t i = 0; i < result->count; i++) {
		struct timed_sample *known = kept != 0 ? &result->samples[kept - 1] : NULL;
		const struct timed_sample *sample = &result->samples[i];
		if (known == NULL ||
		    compare_samples_by_span(known, sample, &result->span_ns) != 0) {
			result->samples[kept++] = *sample;
			continue;
		}
		known->weight += sample->weight;
		known->count += sample->count;
		if (sample->time_ns > known->time_ns)
			known->time_ns = sample->time_ns;
	}
	result->count = kept;
}

/* Makes room below the limit. Once one span has all of the time, what is left are the distinct
 * stacks of each thread, and the limit gives way. */
static void merge_until_there_is_room(struct sample_collector *collector)
{
	struct timed_samples *result = collector->result;
	uint64_t duration_ns = get_time_since_start(collector->session, UINT64_MAX);

	if (result->span_ns == 0)
		result->span_ns = SPAN_NS_FIRST;
	merge_samples_of_span(result);
	while (result->count > collector->limit / 2) {
		if (result->span_ns > duration_ns) {
			collector->limit *= 2;
			continue;
		}
		result->span_ns *= 2;
		merge_samples_of_span(result);
	}
}

static int add_sample(struct sample_collector *collector, struct timed_sample sample)
{
	struct timed_samples *result = collector->result;

	if (result->count >= collector->limit)
		merge_until_there_is_room(collector);
	if (result->count == collector->capacity) {
		size_t capacity = collector->capacity * 2 + 1024;
		struct timed_sample *samples =
			reallocarray(result->samples, capacity, sizeof(*samples));
		if (samples == NULL)
			return -ENOMEM;
		result->samples = samples;
		collector->capacity = capacity;
	}
	result->samples[result->count++] = sample;
	return 0;
}

/* ---- collecting ---- */

static size_t find_row(const struct sample_collector *collector, uint32_t thread, uint32_t node)
{
	size_t low = 0, high = collector->row_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct view_thread_node_row *row = &collector->rows[middle];
		if (row->thread < thread || (row->thread == thread && row->node < node))
			low = middle + 1;
		else
			high = middle;
	}
	return low < collector->row_count && collector->rows[low].thread == thread &&
			       collector->rows[low].node == node
		       ? low
		       : collector->row_count;
}

static int visit_sample(const struct model_sample *sample, void *context)
{
	struct sample_collector *collector = context;
	size_t row = find_row(collector, sample->thread, sample->node);

	if (!collector->is_source_wanted[sample->source] || sample->weight == 0 ||
	    row == collector->row_count)
		return 0;
	collector->seen[row][sample->source] += sample->weight;
	return add_sample(
		collector,
		(struct timed_sample){
			.time_ns = get_time_since_start(collector->session, sample->time_ns),
			.weight = sample->weight,
			.count = !sample->blocked,
			.group = collector->result->group_of_thread[sample->thread],
			.node = sample->node,
			.source = (uint32_t)sample->source});
}

/* What no sample stands for: time between samples and the end of a thread, work of devices. */
static int add_rest_of_rows(struct sample_collector *collector)
{
	const struct session *session = collector->session;
	int error = 0;

	for (size_t i = 0; error == 0 && i < collector->row_count; i++) {
		const struct view_thread_node_row *row = &collector->rows[i];
		uint64_t end_ns = session->threads[row->thread].end_ns;
		for (uint32_t k = 0; error == 0 && k < MODEL_SOURCE_COUNT; k++) {
			if (!collector->is_source_wanted[k] ||
			    row->self_weight[k] <= collector->seen[i][k])
				continue;
			error = add_sample(
				collector,
				(struct timed_sample){
					.time_ns = get_time_since_start(session, end_ns),
					.weight = row->self_weight[k] - collector->seen[i][k],
					.count =
						k == MODEL_SOURCE_DEVICE ? row->self_samples[k] : 0,
					.group = collector->result->group_of_thread[row->thread],
					.node = row->node,
					.source = k});
		}
	}
	return error;
}

static void choose_sources(struct sample_collector *collector, enum view_measure_kind measure)
{
	for (unsigned i = 0; i < MODEL_SOURCE_COUNT; i++) {
		uint64_t one[MODEL_SOURCE_COUNT] = {0};
		one[i] = 1;
		collector->is_source_wanted[i] = view_sum_sources_of_measure(one, measure) != 0;
	}
}

int timed_samples_init(struct timed_samples *samples, struct session *session,
		       enum view_measure_kind measure, size_t limit, struct problem *problem)
{
	struct sample_collector collector = {.result = samples, .session = session, .limit = limit};

	*samples = (struct timed_samples){.group_of_thread = timed_samples_create_groups(session),
					  .group_count =
						  session->thread_count + session->process_count};
	if (samples->group_of_thread == NULL)
		return -ENOMEM;
	choose_sources(&collector, measure);
	int error = view_sum_by_thread_and_node(session, &collector.rows, &collector.row_count);
	if (error != 0)
		return error;
	collector.seen = calloc(collector.row_count + 1, sizeof(*collector.seen));
	error = collector.seen == NULL
			? -ENOMEM
			: session_visit_samples(session, visit_sample, &collector, problem);
	if (error == 0)
		error = add_rest_of_rows(&collector);
	free(collector.seen);
	if (error == 0 && samples->count != 0)
		qsort(samples->samples, samples->count, sizeof(*samples->samples),
		      compare_samples_by_time);
	return error;
}

void timed_samples_deinit(struct timed_samples *samples)
{
	free(samples->samples);
	free(samples->group_of_thread);
}
