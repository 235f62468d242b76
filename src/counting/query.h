/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which counters the devices of this machine have, as kymo's tool library tells a tool: a child
 * process loads it, with the runtimes it finds, so that nothing of vendors' libraries comes into
 * kymo, and a crash there is a line here.
 */
#ifndef KYMO_COUNTING_QUERY_H
#define KYMO_COUNTING_QUERY_H

#include <jansson.h>

#include "settings/effective.h"

/* *ret: {"agents": [{"node", "type", "name", "product", "problem" (why there are no counters),
 * "counters": [{"name", "description", "block", "expression", "constant", "derived", "dimensions":
 * [{"name", "size"}], "kernels", "devices" (it can be counted of them)}], "early" (it is there
 * before any runtime), "refused": [{"name", "list", "fits", "why"}]}]}.
 *
 * lists: of counters that are to be counted together, COUNTER_LIST_SETTING_COUNT of them or NULL.
 * "refused" are those of the agent that cannot be, because they do not fit or for another reason.
 */
enum { COUNTER_LIST_SETTING_COUNT = 2 };
int counter_query_devices(const struct effective_settings *settings, const char *const *lists,
			  json_t **ret, struct problem *problem);

#endif
