/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The name that was probably meant: nearest by edits (insert, delete, replace, swap neighbours).
 */
#ifndef KYMO_SETTINGS_SUGGEST_H
#define KYMO_SETTINGS_SUGGEST_H

#include <stddef.h>

struct suggestion {
	const char *wanted;
	size_t wanted_length;
	const char *best_candidate; /* NULL while no candidate is close enough */
	size_t best_candidate_length;
	unsigned best_distance;
};

/* `wanted` must outlive the search. */
void suggestion_init(struct suggestion *suggestion, const char *wanted, size_t length);
/* Candidates must outlive it as well. */
void suggestion_offer(struct suggestion *suggestion, const char *candidate, size_t length);
/* Every item of a comma-separated list. */
void suggestion_offer_list(struct suggestion *suggestion, const char *list);
/* "; did you mean 'x'?" or "" in `text`; returns `text`. */
const char *suggestion_format_hint(const struct suggestion *suggestion, const char *prefix,
				   char *text, size_t size);

#endif
