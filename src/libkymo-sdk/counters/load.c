/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where definitions come from.
 */
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/state.h"

void sdk_counter_definitions(struct sdk_counter_kind *kind)
{
	(void)kind;
}

void sdk_counter_tell(const struct counter *counter, const struct expression_problem *problem)
{
	sdk_counters_say("counter %s: character %u: %s", counter->name, problem->offset + 1,
			 problem->text);
}
