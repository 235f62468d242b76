/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The name that was probably meant: nearest by edits (insert, delete, replace, swap neighbours).
 */
#ifndef KYMO_CMD_NEAREST_H
#define KYMO_CMD_NEAREST_H

#include <stddef.h>

struct nearest {
	const char *wanted;
	size_t wanted_length;
	const char *best; /* NULL while no candidate is close enough */
	size_t best_length;
	unsigned distance;
};

/* `wanted` must outlive the search. */
void nearest_init(struct nearest *nearest, const char *wanted, size_t length);
/* Candidates must outlive it as well. */
void nearest_offer(struct nearest *nearest, const char *candidate, size_t length);
/* Every item of a comma-separated list. */
void nearest_offer_list(struct nearest *nearest, const char *list);
/* "; did you mean 'x'?" or "" in `text`; returns `text`. */
const char *nearest_hint(const struct nearest *nearest, const char *prefix, char *text,
			 size_t size);

#endif
