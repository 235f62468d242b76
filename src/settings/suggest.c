/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Optimal string alignment distance, ignoring case and taking `-` for `_`. Names are short; longer
 * input than SUGGESTION_LENGTH_MAX is never close to one.
 */
#include "settings/suggest.h"

#include <stdio.h>
#include <string.h>

#include "common/settings_value.h"

enum { SUGGESTION_LENGTH_MAX = 64 };

static char fold_case_and_dash(char c)
{
	c = setting_to_lower_case(c);
	return c == '-' ? '_' : c;
}

static unsigned get_min_of_three(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

/* Three rows of the table are enough: a swap looks back two. */
static unsigned compute_edit_distance(const char *a, size_t a_length, const char *b,
				      size_t b_length)
{
	unsigned rows[3][SUGGESTION_LENGTH_MAX + 1];
	unsigned *before = rows[0], *previous = rows[1], *current = rows[2];

	for (size_t j = 0; j <= b_length; j++)
		previous[j] = (unsigned)j;
	for (size_t i = 1; i <= a_length; i++) {
		unsigned *spare = before;

		current[0] = (unsigned)i;
		for (size_t j = 1; j <= b_length; j++) {
			char x = fold_case_and_dash(a[i - 1]), y = fold_case_and_dash(b[j - 1]);

			current[j] = get_min_of_three(previous[j] + 1, current[j - 1] + 1,
						      previous[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == fold_case_and_dash(b[j - 2]) &&
			    y == fold_case_and_dash(a[i - 2]) && before[j - 2] + 1 < current[j])
				current[j] = before[j - 2] + 1;
		}
		before = previous;
		previous = current;
		current = spare;
	}
	return previous[b_length];
}

void suggestion_init(struct suggestion *suggestion, const char *wanted, size_t length)
{
	*suggestion = (struct suggestion){.wanted = wanted, .wanted_length = length};
	/* Further away than this is not a typing error. */
	suggestion->best_distance = 1 + (unsigned)(length < 3 ? length / 2 : 1 + length / 4);
}

void suggestion_offer(struct suggestion *suggestion, const char *candidate, size_t length)
{
	unsigned distance;

	if (length > SUGGESTION_LENGTH_MAX || suggestion->wanted_length > SUGGESTION_LENGTH_MAX)
		return;
	distance = compute_edit_distance(suggestion->wanted, suggestion->wanted_length, candidate,
					 length);
	if (distance < suggestion->best_distance) {
		suggestion->best_distance = distance;
		suggestion->best_candidate = candidate;
		suggestion->best_candidate_length = length;
	}
}

void suggestion_offer_list(struct suggestion *suggestion, const char *list)
{
	struct text_slice rest = setting_slice_from_text(list), word;

	while (setting_next_list_word(&rest, &word))
		suggestion_offer(suggestion, word.text, word.length);
}

const char *suggestion_format_hint(const struct suggestion *suggestion, const char *prefix,
				   char *text, size_t size)
{
	text[0] = '\0';
	if (suggestion->best_candidate)
		snprintf(text, size, "; did you mean '%s%.*s'?", prefix,
			 (int)suggestion->best_candidate_length, suggestion->best_candidate);
	return text;
}
