/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See interpreter_states.h.
 */
#include "output/interpreter_states.h"

static const struct {
	const char *text, *key;
} interpreter_states[INTERPRETER_STATE_END] = {
	[SPOOL_INTERPRETER_RUNS_LOCKED] = {"runs with the lock", "runs_with_lock_ns"},
	[SPOOL_INTERPRETER_RUNS_UNLOCKED] = {"runs without it (code of libraries)",
					     "runs_without_lock_ns"},
	[SPOOL_INTERPRETER_WAITS_FOR_LOCK] = {"waits for the lock", "waits_for_lock_ns"},
	[SPOOL_INTERPRETER_WAITS_UNLOCKED] = {"waits for something else", "waits_otherwise_ns"},
	[SPOOL_INTERPRETER_WAITS_LOCKED] = {"waits for something else and keeps the lock",
					    "waits_with_lock_ns"},
	[INTERPRETER_STATE_QUEUED] = {"waits for a CPU", "waits_for_cpu_ns"},
};

const char *interpreter_state_get_text(unsigned state)
{
	return interpreter_states[state].text;
}

const char *interpreter_state_get_key(unsigned state)
{
	return interpreter_states[state].key;
}

uint64_t interpreter_state_sum_ns(const struct model_thread *thread)
{
	uint64_t known = 0;

	for (unsigned state = INTERPRETER_STATE_FIRST; state < INTERPRETER_STATE_QUEUED; state++)
		known += thread->interpreter_state_ns[state];
	return known ? known + thread->interpreter_queued_ns : 0;
}
