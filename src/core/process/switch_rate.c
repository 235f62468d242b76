/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See switch_rate.h.
 */
#include "core/process/switch_rate.h"

#include "common/time_units.h"

/* Measured with two processes that hand each other a byte, on a virtual machine: an event whose
 * period is shorter than the tick is the next to expire, and the hardware's timer is written at
 * each change of context. */
#define SHORT_PERIOD_SWITCH_COST_NS 4600u
#define LONG_PERIOD_SWITCH_COST_NS  1000u
#define CLOSED_EVENT_SWITCH_COST_NS 250u /* with a timer, after an event that was closed */

#define DOUBTLESSLY_COSTLY_CPU_DIVISOR 4   /* where little of it was seen */
#define COSTLY_CPU_DIVISOR             20  /* one part of the CPU time in so many */
#define CHEAP_CPU_DIVISOR              100 /* less than that, or a thread would change to and fro */

/* A thread that was called calm too early has to be calm for longer before it is again. */
#define CALM_CPU_WANTED_FIRST_NS (SECOND_NS / 4)
#define CALM_CPU_WANTED_MAX_NS   (64 * SECOND_NS)

uint64_t switch_rate_choose_cost_by_period_ns(uint64_t period_ns, uint64_t tick_ns)
{
	return period_ns > 2 * tick_ns ? LONG_PERIOD_SWITCH_COST_NS : SHORT_PERIOD_SWITCH_COST_NS;
}

static enum switch_rate_verdict set_costly_and_get_verdict(struct switch_rate *rate,
							   uint64_t switches, uint64_t real_ns)
{
	rate->calm_cpu_ns = 0;
	if (rate->is_costly)
		return SWITCH_RATE_UNCHANGED;
	rate->is_costly = true;
	rate->costly_switches_per_second = real_ns ? switches * SECOND_NS / real_ns : 0;
	if (!rate->calm_cpu_wanted_ns)
		rate->calm_cpu_wanted_ns = CALM_CPU_WANTED_FIRST_NS;
	else if (rate->calm_cpu_wanted_ns < CALM_CPU_WANTED_MAX_NS)
		rate->calm_cpu_wanted_ns *= 2;
	return SWITCH_RATE_COSTLY;
}

static enum switch_rate_verdict set_cheap_if_calm_and_get_verdict(struct switch_rate *rate,
								  uint64_t cost, uint64_t cpu)
{
	rate->calm_cpu_ns = cost * CHEAP_CPU_DIVISOR < cpu ? rate->calm_cpu_ns + cpu : 0;
	if (rate->calm_cpu_ns < rate->calm_cpu_wanted_ns)
		return SWITCH_RATE_UNCHANGED;
	rate->is_costly = false;
	return SWITCH_RATE_CHEAP;
}

enum switch_rate_verdict switch_rate_judge_reading(struct switch_rate *rate,
						   const struct switch_rate_reading *look,
						   uint64_t cost_ns)
{
	uint64_t cpu = look->cpu_ns - rate->last.cpu_ns, real = look->real_ns - rate->last.real_ns;
	uint64_t switches = look->switch_count - rate->last.switch_count, cost = switches * cost_ns;
	bool is_first = !rate->has_reading, is_short = cpu < SWITCH_RATE_RELIABLE_NS;

	if (!is_first && is_short && cost * DOUBTLESSLY_COSTLY_CPU_DIVISOR < cpu)
		return SWITCH_RATE_UNCHANGED;
	rate->last = *look;
	rate->has_reading = true;
	if (is_first)
		return SWITCH_RATE_UNCHANGED;
	rate->switch_cost_ns += rate->is_costly ? switches * CLOSED_EVENT_SWITCH_COST_NS : cost;
	if (cost * COSTLY_CPU_DIVISOR >= cpu)
		return set_costly_and_get_verdict(rate, switches, real);
	return rate->is_costly ? set_cheap_if_calm_and_get_verdict(rate, cost, cpu)
			       : SWITCH_RATE_UNCHANGED;
}
