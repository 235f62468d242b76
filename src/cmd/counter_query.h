/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which counters the devices of this machine have, as kymo's tool library tells a tool: a child
 * process loads it, with the runtimes it finds, so that nothing of vendors' libraries comes into
 * kymo, and a crash there is a line here.
 */
#ifndef KYMO_CMD_COUNTER_QUERY_H
#define KYMO_CMD_COUNTER_QUERY_H

#include <jansson.h>

#include "cmd/resolved.h"

/* *ret: {"agents": [{"node", "type", "name", "product", "problem" (why there are no counters),
 * "counters": [{"name", "description", "block", "expression", "constant", "derived", "dimensions":
 * [{"name", "size"}]}], "refused": [{"name", "why"}]}]}.
 *
 * names, unless NULL: a list of counters that are to be counted together; "refused" are those of
 * the agent that cannot be, and is there where any is. */
int counter_query(const struct resolved *settings, const char *names, json_t **ret,
		  struct problem *problem);

#endif
