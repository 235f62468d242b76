/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Lists of speedups in percent: "0,10,30-50:5" is 0, 10, 30, 35, 40, 45 and 50; a range without a
 * step has one of 5.
 */
#ifndef KYMO_SETTINGS_SPEEDUPS_H
#define KYMO_SETTINGS_SPEEDUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"

enum { CAUSAL_SPEEDUPS_MAX = 101 };

struct causal_speedups {
	uint32_t permille[CAUSAL_SPEEDUPS_MAX]; /* ascending, none twice, without 0 */
	size_t count;
	bool has_baseline; /* 0 is in the list */
};

/* 0, or -EINVAL with a text that begins with `source`. An empty list is one. */
int causal_speedups_parse(const char *text, const char *source, struct causal_speedups *ret,
			  struct problem *problem);
/* Whether a word can only be (part of) such a list: `--speedups 0 10 20`. */
bool causal_speedups_is_list_item(const char *word);

#endif
