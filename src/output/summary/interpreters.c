/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The lock that lets one thread of Python at a time execute, in the summary: who has it, and who
 * waits for it.
 */
#include "output/format.h"
#include "output/summary/private.h"

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

void summary_write_interpreter_states(const struct summary_writer *summary)
{
	static const char *const texts[SPOOL_INTERPRETER_STATE_COUNT] = {
		[SPOOL_INTERPRETER_RUNS_LOCKED] = "runs with the lock",
		[SPOOL_INTERPRETER_RUNS_UNLOCKED] = "runs without it (code of libraries)",
		[SPOOL_INTERPRETER_WAITS_FOR_LOCK] = "waits for the lock",
		[SPOOL_INTERPRETER_WAITS_UNLOCKED] = "waits for something else",
		[SPOOL_INTERPRETER_WAITS_LOCKED] = "waits for something else and keeps the lock",
	};
	const struct session *session = summary->session;
	uint64_t sums[SPOOL_INTERPRETER_STATE_COUNT] = {0}, whole = 0, queued = 0;
	uint32_t threads = 0;

	for (uint32_t i = 0; i < session->thread_count; i++) {
		uint64_t before = whole;

		for (unsigned state = SPOOL_INTERPRETER_RUNS_LOCKED;
		     state < SPOOL_INTERPRETER_STATE_COUNT; state++) {
			sums[state] += session->threads[i].interpreter_state_ns[state];
			whole += session->threads[i].interpreter_state_ns[state];
		}
		if (whole != before) {
			threads++;
			queued += session->threads[i].interpreter_queued_ns;
		}
	}
	if (!is_worth_showing(summary, threads))
		return;
	summary_write_heading(summary, "Threads of Python and its global lock (GIL)");
	for (unsigned state = SPOOL_INTERPRETER_RUNS_LOCKED; state < SPOOL_INTERPRETER_STATE_COUNT;
	     state++)
		write_row(summary, sums[state], whole + queued, texts[state]);
	write_row(summary, queued, whole + queued, "waits for a CPU");
	if (summary->measure != VIEW_MEASURE_REAL_TIME)
		summary_write_line(summary, "of CPU time; how long threads wait for the lock is "
					    "seen with --realtime");
}
