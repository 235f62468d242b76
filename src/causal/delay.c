/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Delays: earned, owed, paid, credited.
 */
#include "causal/causal.h"

void causal_before_wait(struct causal_wait *wait)
{
	*wait = (struct causal_wait){0};
}

void causal_after_wait(const struct causal_wait *wait, enum causal_waker waker)
{
	(void)wait;
	(void)waker;
}

void causal_pay(void)
{
}

uint64_t causal_lateness_ns(void)
{
	return 0;
}

void causal_clock_was_read(void)
{
}

void causal_mark(uint64_t hash)
{
	(void)hash;
}

bool causal_marked_since(uint64_t hash, uint64_t ticks)
{
	(void)hash;
	(void)ticks;
	return false;
}
