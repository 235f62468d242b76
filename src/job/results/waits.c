/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See waits.h. Events are sorted so that those that belong together are neighbours; then there are
 * two passes over them, one that aligns the clocks and one that measures. All sums are integers and
 * all orders are total, so the result depends on the events alone.
 */
#include "job/results/waits.h"

#include <errno.h>
#include <stdlib.h>

#include "job/results/clocks.h"
#include "job/results/late.h"

/* One rank waited in a call. A call may have several, of which the longest counts. */
struct wait_candidate {
	uint32_t rank, call; /* index of the rank */
	enum job_wait_state state;
	uint32_t name, cause_rank, cause_name; /* cause_rank: index */
	uint64_t wait_ns;
};

struct wait_finder {
	const struct job *job;
	struct job_waits *waits;
	struct job_clocks clocks;
	const struct job_event **events; /* those that belong together one after the other */
	struct wait_candidate *candidates;
	size_t candidate_count, candidate_capacity;
	bool measures; /* the second pass */
	int error;
};

/* ---- order ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static bool is_message(const struct job_event *event)
{
	return event->kind <= JOB_EVENT_RECEIVE;
}

static uint32_t get_sender(const struct job_event *event)
{
	return event->kind == JOB_EVENT_SEND ? event->rank : event->peer;
}

static uint32_t get_receiver(const struct job_event *event)
{
	return event->kind == JOB_EVENT_SEND ? event->peer : event->rank;
}

/* Equal: they belong together. */
static int compare_groups(const struct job_event *a, const struct job_event *b)
{
	int order = compare_numbers(is_message(a), is_message(b));

	if (!order)
		order = compare_numbers(a->context, b->context);
	if (!order && is_message(a)) {
		order = compare_numbers(get_sender(a), get_sender(b));
		if (!order)
			order = compare_numbers(get_receiver(a), get_receiver(b));
		if (!order)
			order = compare_numbers((uint32_t)a->tag, (uint32_t)b->tag);
	}
	return order ? order : compare_numbers(a->order, b->order);
}

static int compare_events(const void *left, const void *right)
{
	const struct job_event *a = *(const struct job_event *const *)left;
	const struct job_event *b = *(const struct job_event *const *)right;
	int order = compare_groups(a, b);

	if (!order)
		order = compare_numbers(a->kind, b->kind);
	return order ? order : compare_numbers(a->rank, b->rank);
}

static uint32_t get_rank_index(const struct job *job, uint32_t rank)
{
	uint32_t low = 0, high = job->rank_count;

	while (low + 1 < high) {
		uint32_t middle = low + (high - low) / 2;

		if (job->ranks[middle].rank <= rank)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* ---- one wait ---- */

/* The event's rank waited until `until` happened in another one. */
static void add_candidate(struct wait_finder *finder, const struct job_event *waiting,
			  const struct job_event *cause, enum job_wait_state state)
{
	struct wait_candidate candidate = {.rank = get_rank_index(finder->job, waiting->rank),
					   .call = waiting->call,
					   .state = state,
					   .name = waiting->name,
					   .cause_rank = get_rank_index(finder->job, cause->rank),
					   .cause_name = cause->begin_name};
	int64_t error = job_clocks_get_error(&finder->clocks, candidate.rank, candidate.cause_rank);
	int64_t begin = job_clocks_align(&finder->clocks, candidate.rank, waiting->wait_ns);
	int64_t end = job_clocks_align(&finder->clocks, candidate.rank, waiting->end_ns);
	int64_t until = job_clocks_align(&finder->clocks, candidate.cause_rank, cause->begin_ns);

	if (waiting->wait_ns >= waiting->end_ns || until <= begin)
		return;
	/* A send that had ended by then had waited for nothing. */
	if (state == JOB_WAIT_LATE_RECEIVER && until > end)
		return;
	candidate.wait_ns = (uint64_t)((until < end ? until : end) - begin);
	if (error == JOB_CLOCK_UNKNOWN || candidate.wait_ns <= (uint64_t)error) {
		finder->waits->below_clock_error++;
		return;
	}
	if (array_reserve_one_more((void **)&finder->candidates, &finder->candidate_capacity,
				   finder->candidate_count, sizeof(candidate)) < 0)
		finder->error = -ENOMEM;
	else
		finder->candidates[finder->candidate_count++] = candidate;
}

static void add_order(struct wait_finder *finder, const struct job_event *before,
		      const struct job_event *after)
{
	job_clocks_add_order(&finder->clocks, get_rank_index(finder->job, before->rank),
			     before->begin_ns, get_rank_index(finder->job, after->rank),
			     after->end_ns);
}

/* ---- messages ---- */

static void take_message(struct wait_finder *finder, const struct job_event *const *group,
			 size_t count)
{
	const struct job_event *send = group[0], *receive = group[count - 1];

	if (count != 2 || send->kind != JOB_EVENT_SEND || receive->kind != JOB_EVENT_RECEIVE) {
		finder->waits->unmatched += finder->measures ? count : 0;
		return;
	}
	if (!finder->measures) {
		add_order(finder, send, receive);
		return;
	}
	finder->waits->messages++;
	add_candidate(finder, receive, send, JOB_WAIT_LATE_SENDER);
	if (!send->is_mixed)
		add_candidate(finder, send, receive, JOB_WAIT_LATE_RECEIVER);
}

/* ---- collectives ---- */

static bool collective_is_whole(const struct job_event *const *group, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (group[i]->kind != group[0]->kind || group[i]->size != count ||
		    group[i]->peer != group[0]->peer ||
		    (i > 0 && group[i]->rank == group[i - 1]->rank))
			return false;
	}
	return true;
}

/* NULL: no rank is the root. */
static const struct job_event *find_root(const struct job_event *const *group, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (group[i]->rank == group[i]->peer)
			return group[i];
	}
	return NULL;
}

/* On one clock; the lowest rank of several. NULL: `except` is alone. */
static const struct job_event *find_last(const struct wait_finder *finder,
					 const struct job_event *const *group, size_t count,
					 const struct job_event *except)
{
	const struct job_event *last = NULL;
	int64_t last_ns = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t time_ns = job_clocks_align(&finder->clocks,
						   get_rank_index(finder->job, group[i]->rank),
						   group[i]->begin_ns);

		if (group[i] != except && (!last || time_ns > last_ns)) {
			last = group[i];
			last_ns = time_ns;
		}
	}
	return last;
}

/* Of each host, the last that came and the first that left. */
static void add_orders_of_all(struct wait_finder *finder, const struct job_event *const *group,
			      size_t count)
{
	if (finder->clocks.host_count < 2)
		return;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < count; k++)
			add_order(finder, group[i], group[k]);
	}
}

static void measure_collective(struct wait_finder *finder, const struct job_event *const *group,
			       size_t count)
{
	enum job_event_kind kind = group[0]->kind;
	const struct job_event *root = find_root(group, count),
			       *last = find_last(finder, group, count,
						 kind == JOB_EVENT_ALL_TO_ONE ? root : NULL);

	for (size_t i = 0; i < count; i++) {
		if (kind == JOB_EVENT_BARRIER || kind == JOB_EVENT_ALL) {
			if (group[i] != last)
				add_candidate(finder, group[i], last,
					      kind == JOB_EVENT_BARRIER ? JOB_WAIT_AT_BARRIER
									: JOB_WAIT_AT_COLLECTIVE);
		} else if (kind == JOB_EVENT_ONE_TO_ALL && root && group[i] != root) {
			add_candidate(finder, group[i], root, JOB_WAIT_LATE_BROADCAST);
		} else if (kind == JOB_EVENT_ALL_TO_ONE && root == group[i] && last) {
			add_candidate(finder, root, last, JOB_WAIT_EARLY_REDUCE);
		}
	}
}

static void take_collective(struct wait_finder *finder, const struct job_event *const *group,
			    size_t count)
{
	enum job_event_kind kind = group[0]->kind;

	if (!collective_is_whole(group, count)) {
		finder->waits->unmatched += finder->measures ? count : 0;
		return;
	}
	if (finder->measures) {
		finder->waits->collectives++;
		measure_collective(finder, group, count);
	} else if (kind == JOB_EVENT_BARRIER || kind == JOB_EVENT_ALL) {
		add_orders_of_all(finder, group, count);
	}
}

static void visit_groups(struct wait_finder *finder, bool measures)
{
	const struct job *job = finder->job;

	finder->measures = measures;
	for (size_t begin = 0, end; begin < job->event_count; begin = end) {
		const struct job_event *first = finder->events[begin];

		for (end = begin + 1;
		     end < job->event_count && !compare_groups(first, finder->events[end]);)
			end++;
		if (is_message(first))
			take_message(finder, finder->events + begin, end - begin);
		else
			take_collective(finder, finder->events + begin, end - begin);
	}
}

/* ---- sums ---- */

static int compare_candidates_of_calls(const void *left, const void *right)
{
	const struct wait_candidate *a = left, *b = right;
	int order = compare_numbers(a->rank, b->rank);

	if (!order)
		order = compare_numbers(a->call, b->call);
	if (!order)
		order = compare_numbers(b->wait_ns, a->wait_ns);
	if (!order)
		order = compare_numbers(a->state, b->state);
	if (!order)
		order = compare_numbers(a->cause_rank, b->cause_rank);
	return order ? order : compare_numbers(a->cause_name, b->cause_name);
}

static int compare_candidates_of_rows(const void *left, const void *right)
{
	const struct wait_candidate *a = left, *b = right;
	int order = compare_numbers(a->state, b->state);

	if (!order)
		order = compare_numbers(a->name, b->name);
	if (!order)
		order = compare_numbers(a->cause_rank, b->cause_rank);
	if (!order)
		order = compare_numbers(a->cause_name, b->cause_name);
	return order ? order : compare_numbers(a->rank, b->rank);
}

static int compare_rows(const void *left, const void *right)
{
	const struct job_wait_row *a = left, *b = right;
	int order = compare_numbers(b->wait_ns, a->wait_ns);

	if (!order)
		order = compare_numbers(a->state, b->state);
	if (!order)
		order = compare_numbers(a->name, b->name);
	if (!order)
		order = compare_numbers(a->cause_rank, b->cause_rank);
	return order ? order : compare_numbers(a->cause_name, b->cause_name);
}

static void keep_longest_of_calls(struct wait_finder *finder)
{
	struct wait_candidate *all = finder->candidates;
	size_t kept = 0;

	if (finder->candidate_count)
		qsort(all, finder->candidate_count, sizeof(*all), compare_candidates_of_calls);
	for (size_t i = 0; i < finder->candidate_count; i++) {
		if (!kept || all[kept - 1].rank != all[i].rank || all[kept - 1].call != all[i].call)
			all[kept++] = all[i];
	}
	finder->candidate_count = kept;
}

static void add_to_sums(struct wait_finder *finder, const struct wait_candidate *it)
{
	struct job_waits *waits = finder->waits;

	waits->state_ns[it->state] += it->wait_ns;
	waits->state_calls[it->state]++;
	waits->rank_ns[it->rank][it->state] += it->wait_ns;
	waits->caused_ns[it->cause_rank] += it->wait_ns;
}

static void add_to_row(const struct wait_finder *finder, struct job_wait_row *row,
		       const struct wait_candidate *it)
{
	row->wait_ns += it->wait_ns;
	row->calls++;
	if (it->wait_ns > row->longest_ns) {
		row->longest_ns = it->wait_ns;
		row->longest_rank = finder->job->ranks[it->rank].rank;
	}
}

static int make_rows(struct wait_finder *finder)
{
	struct job_waits *waits = finder->waits;
	const struct wait_candidate *before = NULL;

	keep_longest_of_calls(finder);
	waits->rows = calloc(finder->candidate_count + 1, sizeof(*waits->rows));
	if (!waits->rows)
		return -ENOMEM;
	if (finder->candidate_count)
		qsort(finder->candidates, finder->candidate_count, sizeof(*finder->candidates),
		      compare_candidates_of_rows);
	for (size_t i = 0; i < finder->candidate_count; i++) {
		const struct wait_candidate *it = &finder->candidates[i];

		if (!before || before->state != it->state || before->name != it->name ||
		    before->cause_rank != it->cause_rank || before->cause_name != it->cause_name)
			waits->rows[waits->row_count++] = (struct job_wait_row){
				.state = it->state,
				.name = it->name,
				.cause_rank = finder->job->ranks[it->cause_rank].rank,
				.cause_name = it->cause_name};
		add_to_row(finder, &waits->rows[waits->row_count - 1], it);
		add_to_sums(finder, it);
		before = it;
	}
	if (waits->row_count)
		qsort(waits->rows, waits->row_count, sizeof(*waits->rows), compare_rows);
	return finder->error;
}

/* ---- all of it ---- */

static void count_events(const struct job *job, struct job_waits *waits)
{
	uint64_t events = 0;

	for (uint32_t i = 0; i < job->rank_count; i++) {
		events += job->ranks[i].events;
		waits->unknown += job->ranks[i].unknown_events;
	}
	if (events > waits->unknown + job->event_count)
		waits->cut = events - waits->unknown - job->event_count;
}

static void count_hosts(const struct job_clocks *clocks, struct job_waits *waits)
{
	waits->hosts = clocks->host_count;
	for (uint32_t i = 0; i < clocks->job->rank_count; i++) {
		int64_t error = job_clocks_get_error(clocks, 0, i);

		if (error != JOB_CLOCK_UNKNOWN && (uint64_t)error > waits->clock_error_ns)
			waits->clock_error_ns = (uint64_t)error;
	}
	for (uint32_t i = 0; i < clocks->host_count; i++)
		waits->hosts_without_clock += clocks->clocks[i].error_ns == JOB_CLOCK_UNKNOWN;
}

static int find_all(struct wait_finder *finder)
{
	const struct job *job = finder->job;
	int error = job_clocks_init(&finder->clocks, job);

	finder->events = calloc((size_t)job->event_count + 1, sizeof(void *));
	finder->waits->rank_ns =
		calloc((size_t)job->rank_count + 1, sizeof(*finder->waits->rank_ns));
	finder->waits->caused_ns = calloc((size_t)job->rank_count + 1, sizeof(uint64_t));
	if (error || !finder->events || !finder->waits->rank_ns || !finder->waits->caused_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->event_count; i++)
		finder->events[i] = &job->events[i];
	qsort(finder->events, job->event_count, sizeof(void *), compare_events);
	visit_groups(finder, false);
	error = job_clocks_solve(&finder->clocks);
	if (error)
		return error;
	count_hosts(&finder->clocks, finder->waits);
	visit_groups(finder, true);
	return make_rows(finder);
}

static bool calls_were_left_out(const struct job *job)
{
	for (uint32_t i = 0; i < job->rank_count; i++) {
		if (job->ranks[i].flags & JOB_RANK_CALLS_LEFT_OUT)
			return true;
	}
	return false;
}

int job_find_waits(const struct job *job, struct job_waits *ret)
{
	struct wait_finder finder = {.job = job, .waits = ret};
	int error = 0;

	*ret = (struct job_waits){.verdict = JOB_WAITS_NO_EVENTS};
	count_events(job, ret);
	if (!job->event_count)
		return 0;
	ret->verdict = JOB_WAITS_INCOMPLETE;
	if (!job->size || job_count_missing_ranks(job) || job_count_incomplete_ranks(job) ||
	    calls_were_left_out(job))
		return 0;
	ret->verdict = JOB_WAITS_FOUND;
	error = find_all(&finder);
	job_clocks_deinit(&finder.clocks);
	free(finder.events);
	free(finder.candidates);
	if (error)
		job_waits_deinit(ret);
	return error;
}

void job_waits_deinit(struct job_waits *waits)
{
	free(waits->rows);
	free(waits->rank_ns);
	free(waits->caused_ns);
	*waits = (struct job_waits){.verdict = JOB_WAITS_NO_EVENTS};
}

const char *job_wait_state_get_key(enum job_wait_state state)
{
	static const char *const keys[] = {[JOB_WAIT_LATE_SENDER] = "late_sender",
					   [JOB_WAIT_LATE_RECEIVER] = "late_receiver",
					   [JOB_WAIT_AT_BARRIER] = "wait_at_barrier",
					   [JOB_WAIT_AT_COLLECTIVE] = "wait_at_collective",
					   [JOB_WAIT_LATE_BROADCAST] = "late_broadcast",
					   [JOB_WAIT_EARLY_REDUCE] = "early_reduce"};

	return keys[state];
}
