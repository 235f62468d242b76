/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regular expressions of users: POSIX extended ones, found anywhere in a name.
 */
#ifndef KYMO_BINARY_SELECTION_PATTERN_H
#define KYMO_BINARY_SELECTION_PATTERN_H

#include <regex.h>
#include <stdbool.h>

#include "common/problem.h"

struct selection_pattern {
	regex_t compiled_regex;
	bool given; /* false: an empty text, matches nothing */
};

/* `source` says where the text is from ("--function-include"). -EINVAL: the problem names the
 * position and what is wrong there; -ENOMEM. */
int selection_pattern_init(struct selection_pattern *ret, const char *text, const char *source,
			   struct problem *problem);
void selection_pattern_deinit(struct selection_pattern *pattern);
bool selection_pattern_matches(const struct selection_pattern *pattern, const char *name);
/* The name of a symbol: as it stands in the file, readable, and readable without arguments. */
bool selection_pattern_matches_symbol(const struct selection_pattern *pattern, const char *mangled);

#endif
