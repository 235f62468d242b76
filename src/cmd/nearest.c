/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Optimal string alignment distance, ignoring case and taking `-` for `_`. Names are short; longer
 * input than NEAREST_MAX is never close to one.
 */
#include "cmd/nearest.h"

#include <stdio.h>
#include <string.h>

#include "common/settings_value.h"

enum { NEAREST_MAX = 64 };

static char nearest_fold(char c)
{
	c = setting_lower(c);
	return c == '-' ? '_' : c;
}

static unsigned nearest_least(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

/* Three rows of the table are enough: a swap looks back two. */
static unsigned nearest_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned rows[3][NEAREST_MAX + 1];
	unsigned *before = rows[0], *previous = rows[1], *current = rows[2];

	for (size_t j = 0; j <= b_length; j++)
		previous[j] = (unsigned)j;
	for (size_t i = 1; i <= a_length; i++) {
		unsigned *spare = before;

		current[0] = (unsigned)i;
		for (size_t j = 1; j <= b_length; j++) {
			char x = nearest_fold(a[i - 1]), y = nearest_fold(b[j - 1]);

			current[j] = nearest_least(previous[j] + 1, current[j - 1] + 1,
						   previous[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == nearest_fold(b[j - 2]) &&
			    y == nearest_fold(a[i - 2]) && before[j - 2] + 1 < current[j])
				current[j] = before[j - 2] + 1;
		}
		before = previous;
		previous = current;
		current = spare;
	}
	return previous[b_length];
}

void nearest_init(struct nearest *nearest, const char *wanted, size_t length)
{
	*nearest = (struct nearest){.wanted = wanted, .wanted_length = length};
	/* Further away than this is not a typing error. */
	nearest->distance = 1 + (unsigned)(length < 3 ? length / 2 : 1 + length / 4);
}

void nearest_offer(struct nearest *nearest, const char *candidate, size_t length)
{
	unsigned distance;

	if (length > NEAREST_MAX || nearest->wanted_length > NEAREST_MAX)
		return;
	distance = nearest_distance(nearest->wanted, nearest->wanted_length, candidate, length);
	if (distance < nearest->distance) {
		nearest->distance = distance;
		nearest->best = candidate;
		nearest->best_length = length;
	}
}

void nearest_offer_list(struct nearest *nearest, const char *list)
{
	struct setting_slice rest = setting_slice(list), word;

	while (setting_list_next(&rest, &word))
		nearest_offer(nearest, word.text, word.length);
}

const char *nearest_hint(const struct nearest *nearest, const char *prefix, char *text, size_t size)
{
	text[0] = '\0';
	if (nearest->best)
		snprintf(text, size, "; did you mean '%s%.*s'?", prefix, (int)nearest->best_length,
			 nearest->best);
	return text;
}
