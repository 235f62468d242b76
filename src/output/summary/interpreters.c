/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The lock that lets one thread of Python at a time execute, in the summary: who has it, and who
 * waits for it; of all threads, and of those that have it or wait for it most.
 */
#include "output/format.h"
#include "output/interpreter_states.h"
#include "output/summary/private.h"

#include <inttypes.h>

#define THREAD_ROWS_MAX 8u

struct lock_states {
	uint64_t ns[INTERPRETER_STATE_END], whole_ns;
};

/* Without real time, threads that wait are not seen; a single thread has nobody to wait for. */
static bool is_worth_showing(const struct summary_writer *summary, uint32_t threads)
{
	return threads > 1 || (threads && summary->measure == VIEW_MEASURE_REAL_TIME);
}

static void write_row(const struct summary_writer *summary, uint64_t part, uint64_t whole,
		      const char *text)
{
	if (part)
		fprintf(summary->stream, "  %8s %9s  %s\n", quantity_from_share(part, whole).text,
			quantity_from_ns(part).text, text);
}

/* The number of threads that have any. */
static uint32_t sum_states(const struct session *session, struct lock_states *ret)
{
	uint32_t threads = 0;

	*ret = (struct lock_states){.whole_ns = 0};
	for (uint32_t i = 0; i < session->thread_count; i++) {
		const struct model_thread *thread = &session->threads[i];

		if (!interpreter_state_sum_ns(thread))
			continue;
		threads++;
		ret->whole_ns += interpreter_state_sum_ns(thread);
		for (unsigned state = INTERPRETER_STATE_FIRST; state < INTERPRETER_STATE_END;
		     state++)
			ret->ns[state] += interpreter_state_get_ns(thread, state);
	}
	return threads;
}

/* ---- threads ---- */

/* Threads that only wait for other things say nothing of the lock. */
static uint64_t get_interest_in_lock(const struct model_thread *thread)
{
	return thread->interpreter_state_ns[SPOOL_INTERPRETER_RUNS_LOCKED] +
	       thread->interpreter_state_ns[SPOOL_INTERPRETER_WAITS_LOCKED] +
	       thread->interpreter_state_ns[SPOOL_INTERPRETER_WAITS_FOR_LOCK];
}

/* The threads with the most interest, which comes first; returns how many. */
static uint32_t rank_threads(const struct session *session, uint32_t *ranked)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < session->thread_count; i++) {
		uint64_t interest = get_interest_in_lock(&session->threads[i]);
		uint32_t at = count < THREAD_ROWS_MAX ? count : THREAD_ROWS_MAX;

		if (!interest)
			continue;
		while (at && get_interest_in_lock(&session->threads[ranked[at - 1]]) < interest) {
			if (at < THREAD_ROWS_MAX)
				ranked[at] = ranked[at - 1];
			at--;
		}
		if (at < THREAD_ROWS_MAX)
			ranked[at] = i;
		count++;
	}
	return count;
}

static void write_thread(const struct summary_writer *summary, const struct model_thread *thread)
{
	uint64_t whole = interpreter_state_sum_ns(thread);
	const uint64_t *ns = thread->interpreter_state_ns;
	char name[80];

	snprintf(name, sizeof(name), "%.16s [%" PRIu32 "]", thread->name, thread->tid);
	summary_write_row(
		summary,
		(const struct summary_cell[]){
			{quantity_from_share(ns[SPOOL_INTERPRETER_RUNS_LOCKED] +
						     ns[SPOOL_INTERPRETER_WAITS_LOCKED],
					     whole)
				 .text,
			 10, 0},
			{quantity_from_share(ns[SPOOL_INTERPRETER_WAITS_FOR_LOCK], whole).text, 10,
			 0},
			{quantity_from_share(ns[SPOOL_INTERPRETER_RUNS_UNLOCKED], whole).text, 14,
			 1},
			{quantity_from_share(ns[SPOOL_INTERPRETER_WAITS_UNLOCKED] +
						     thread->interpreter_queued_ns,
					     whole)
				 .text,
			 12, 1}},
		4, name);
}

static void write_threads(const struct summary_writer *summary)
{
	static const struct summary_cell headings[] = {
		{"has it", 10, 0}, {"waits", 10, 0}, {"runs without", 14, 1}, {"otherwise", 12, 1}};
	uint32_t ranked[THREAD_ROWS_MAX], count = rank_threads(summary->session, ranked);

	if (count < 2)
		return;
	summary_write_row(summary, headings, 4, "thread");
	for (uint32_t i = 0; i < count && i < THREAD_ROWS_MAX; i++)
		write_thread(summary, &summary->session->threads[ranked[i]]);
	if (count > THREAD_ROWS_MAX)
		summary_write_line(summary, "... and %s more",
				   quantity_from_count(count - THREAD_ROWS_MAX).text);
}

void summary_write_interpreter_states(const struct summary_writer *summary)
{
	struct lock_states sums;
	uint32_t threads = sum_states(summary->session, &sums);

	if (!is_worth_showing(summary, threads))
		return;
	summary_write_heading(summary, "Threads of Python and its global lock (GIL)");
	for (unsigned state = INTERPRETER_STATE_FIRST; state < INTERPRETER_STATE_END; state++)
		write_row(summary, sums.ns[state], sums.whole_ns,
			  interpreter_state_get_text(state));
	write_threads(summary);
	if (summary->measure != VIEW_MEASURE_REAL_TIME)
		summary_write_line(summary, "of CPU time; how long threads wait for the lock is "
					    "seen with --realtime");
}
