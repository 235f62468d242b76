/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A module's code, cut wherever a line or a function begins or ends: within a stretch all addresses
 * are of the same line and the same chain of inlined calls. (Of the ends of inlined calls about one
 * in a hundred is in the midst of a line table row; what is behind it counts as inlined as well.)
 */
#ifndef KYMO_BINARY_CAUSAL_ADDRESS_RANGES_H
#define KYMO_BINARY_CAUSAL_ADDRESS_RANGES_H

#include "binary/causal/module.h"

struct causal_code_ranges {
	uint64_t
		*starts; /* link-time; each ends where the next one begins, the last one is empty */
	size_t count;
	bool debug;                              /* is there debug information? */
	struct dwarf_lookup_result_lists result; /* places[i] is of starts[i]; empty without */
};

/* -ENOMEM. */
int causal_code_ranges_build(struct causal_module *module, struct causal_code_ranges *ret);
void causal_code_ranges_deinit(struct causal_code_ranges *stretches);

#endif
