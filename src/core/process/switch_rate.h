/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How often a thread changes context for the CPU time that it uses. The kernel stops and starts a
 * thread's perf events at each change of context, so the events of a thread that changes context
 * often cost more than all else that kymo does; a timer on its CPU clock costs nothing there
 * (docs/internals/context-switches.md).
 *
 * The thread looks in its handler, for it alone knows its counts without a file of /proc. Where
 * its samples are too far apart the background thread does.
 */
#ifndef KYMO_CORE_PROCESS_SWITCH_RATE_H
#define KYMO_CORE_PROCESS_SWITCH_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Two looks are so far apart, or further. A verdict stands on LONG; before that only what is beyond
 * doubt counts, so that threads that live for a few milliseconds are judged as well. */
#define SWITCH_RATE_READING_LEAST_NS 250000u
#define SWITCH_RATE_RELIABLE_NS      4000000u

struct switch_rate_reading {
	uint64_t cpu_ns, real_ns, switch_count; /* of the thread, since it began */
};

struct switch_rate {
	struct switch_rate_reading last;
	uint64_t calm_cpu_ns;        /* CPU time since the events would last have been costly */
	uint64_t calm_cpu_wanted_ns; /* so much of it until they are cheap */
	uint64_t switch_cost_ns;     /* all that changes of context have cost */
	uint64_t costly_switches_per_second; /* changes of context, when they were found to be
						costly */
	bool has_reading;                    /* there was a look */
	bool is_costly;
};

enum switch_rate_verdict {
	SWITCH_RATE_UNCHANGED,
	SWITCH_RATE_COSTLY,
	SWITCH_RATE_CHEAP,
	SWITCH_RATE_COSTLY_TIMER_COMING /* costly, and the thread has been asked to start a timer */
};

/* With longer periods the thread has too few samples to look itself. */
#define SWITCH_RATE_IN_HANDLER_PERIOD_MAX_NS 20000000u

/* What one change of context costs a thread whose event has this period. */
uint64_t switch_rate_choose_cost_by_period_ns(uint64_t period_ns, uint64_t tick_ns);

static inline bool switch_rate_reading_is_due(const struct switch_rate *rate, uint64_t cpu_ns)
{
	return !rate->has_reading ||
	       cpu_ns >= rate->last.cpu_ns + (rate->is_costly ? SWITCH_RATE_RELIABLE_NS
							      : SWITCH_RATE_READING_LEAST_NS);
}

/* The thread has not run yet: all that its first look sees is what it did. */
static inline void switch_rate_init_at_thread_start(struct switch_rate *rate, uint64_t real_ns)
{
	rate->last.real_ns = real_ns;
	rate->has_reading = true;
}

/* Takes note of a look, and says whether the events of the thread have become costly or cheap. */
enum switch_rate_verdict switch_rate_judge_reading(struct switch_rate *rate,
						   const struct switch_rate_reading *look,
						   uint64_t cost_ns);

#endif
