/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a thread of Python does about the global lock, as outputs call it. Waiting for a CPU comes
 * behind the states that the interpreter knows.
 */
#ifndef KYMO_OUTPUT_INTERPRETER_STATES_H
#define KYMO_OUTPUT_INTERPRETER_STATES_H

#include "analysis/session.h"

#define INTERPRETER_STATE_FIRST  ((unsigned)SPOOL_INTERPRETER_RUNS_LOCKED)
#define INTERPRETER_STATE_QUEUED ((unsigned)SPOOL_INTERPRETER_STATE_COUNT)
#define INTERPRETER_STATE_END    (INTERPRETER_STATE_QUEUED + 1)

/* For people, and for programs ("runs_with_lock_ns"). */
const char *interpreter_state_get_text(unsigned state);
const char *interpreter_state_get_key(unsigned state);

static inline uint64_t interpreter_state_get_ns(const struct model_thread *thread, unsigned state)
{
	return state == INTERPRETER_STATE_QUEUED ? thread->interpreter_queued_ns
						 : thread->interpreter_state_ns[state];
}

/* The state that a sample stands for; SPOOL_INTERPRETER_STATE_NONE: its thread is none of Python's,
 * or it counts no time. */
static inline unsigned interpreter_state_of_sample(const struct model_sample *sample)
{
	if (sample->source == SPOOL_SOURCE_OVERFLOW ||
	    sample->interpreter_state == SPOOL_INTERPRETER_STATE_NONE)
		return SPOOL_INTERPRETER_STATE_NONE;
	return sample->source == SPOOL_SOURCE_RUNNABLE ? INTERPRETER_STATE_QUEUED
						       : sample->interpreter_state;
}

/* All time of a thread of Python; 0: it is none. */
uint64_t interpreter_state_sum_ns(const struct model_thread *thread);

#endif
