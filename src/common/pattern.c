/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See pattern.h. The size of an expression is that of its atoms and operators once each atom stands
 * as often as its repetition says; x+ is xx* in glibc (parse_dup_op in posix/regcomp.c). One pass
 * over the text finds it; whether the expression is right otherwise is regcomp's to say.
 */
#include "common/pattern.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Time and memory of glibc 2.36: repetitions for 2000 more take 0.6 s and 60 MB at most,
 * parentheses of depth 20000 a stack of 8 MB; alternatives take the square of their number, 5000 of
 * them 200 MB.
 */
#define CHARACTERS_ADDED_BY_EXPANSION_MAX 2000u
#define GROUP_DEPTH_MAX                   100u
#define CHOICES_AND_REPEATS_MAX           5000u

#define SIZE_SATURATED                                                                             \
	(UINT64_C(1) << 32) /* beyond all that is allowed, and products do not overflow */

struct pattern_group_size_sums {
	uint64_t size_before_last_atom,
		last_atom_size; /* sizes: all but the last atom; the last atom */
};

struct pattern_measurement {
	struct pattern_group_size_sums levels[GROUP_DEPTH_MAX + 1];
	size_t depth, choice_and_repeat_count;
	bool has_back_reference;
};

static uint64_t saturate_size(uint64_t size)
{
	return size < SIZE_SATURATED ? size : SIZE_SATURATED;
}

static void add_atom_size(struct pattern_group_size_sums *level, uint64_t size)
{
	level->size_before_last_atom =
		saturate_size(level->size_before_last_atom + level->last_atom_size);
	level->last_atom_size = size;
}

/* [^]a[:alpha:]-z], from its bracket to behind it. */
static const char *find_bracket_end(const char *at)
{
	at += at[1] == '^' ? 2 : 1;
	at += *at == ']';
	while (*at && *at != ']') {
		if (*at == '[' && at[1] && strchr(":.=", at[1])) {
			const char close[] = {at[1], ']', '\0'}, *end = strstr(at + 2, close);

			if (!end)
				return at + strlen(at);
			at = end + 1;
		}
		at++;
	}
	return at + (*at == ']');
}

static const char *read_repeat_count(const char *at, uint64_t *ret)
{
	for (*ret = 0; *at >= '0' && *at <= '9'; at++)
		*ret = *ret < UINT16_MAX ? *ret * 10 + (uint64_t)(*at - '0') : *ret;
	return at;
}

/* {m}, {m,}, {m,n}, {,n}; anything else is a character like others. */
static const char *multiply_size_by_repeat_interval(struct pattern_group_size_sums *level,
						    const char *at)
{
	uint64_t least, most;
	const char *end = read_repeat_count(at + 1, &least);

	most = least;
	if (*end == ',') {
		const char *digits = end + 1;

		end = read_repeat_count(digits, &most);
		if (end == digits)
			most = least + 1;
	}
	if (*end != '}' || end == at + 1) {
		add_atom_size(level, 1);
		return at + 1;
	}
	/* What may be left out is a choice, each time. */
	if (most < least)
		most = least;
	level->last_atom_size = saturate_size(level->last_atom_size * most + (most - least));
	return end + 1;
}

static void close_group_size(struct pattern_measurement *measure)
{
	struct pattern_group_size_sums *inner = &measure->levels[measure->depth];

	if (!measure->depth)
		return;
	measure->depth--;
	add_atom_size(inner - 1,
		      saturate_size(inner->size_before_last_atom + inner->last_atom_size + 1));
}

/* Looks at what is at `at`; returns what is behind it. */
static const char *add_size_of_next_pattern_element(struct pattern_measurement *measure,
						    const char *at)
{
	struct pattern_group_size_sums *level = &measure->levels[measure->depth];

	switch (*at) {
	case '(':
		if (++measure->depth <= GROUP_DEPTH_MAX)
			measure->levels[measure->depth] = (struct pattern_group_size_sums){0};
		return at + 1;
	case ')':
		close_group_size(measure);
		return at + 1;
	case '{':
		return multiply_size_by_repeat_interval(level, at);
	case '|':
		measure->choice_and_repeat_count++;
		add_atom_size(level, 0);
		return at + 1;
	case '*':
	case '+':
	case '?':
		measure->choice_and_repeat_count++;
		level->last_atom_size =
			saturate_size(level->last_atom_size * (*at == '+' ? 2 : 1) + 1);
		return at + 1;
	case '[':
		add_atom_size(level, 1);
		return find_bracket_end(at);
	default:
		measure->has_back_reference |= *at == '\\' && at[1] >= '1' && at[1] <= '9';
		add_atom_size(level, 1);
		return at + (*at == '\\' && at[1] ? 2 : 1);
	}
}

/* NULL: it can be compiled. */
static const char *find_exceeded_pattern_limit(const char *text)
{
	struct pattern_measurement measure = {.depth = 0};
	const char *at = text;

	while (*at && measure.depth <= GROUP_DEPTH_MAX)
		at = add_size_of_next_pattern_element(&measure, at);
	if (measure.depth > GROUP_DEPTH_MAX)
		return "parentheses are nested more than 100 deep";
	if (measure.has_back_reference)
		return "back-references (\\1) are not taken";
	if (measure.choice_and_repeat_count > CHOICES_AND_REPEATS_MAX)
		return "more than 5000 alternatives and repetitions";
	while (measure.depth)
		close_group_size(&measure);
	if (measure.levels[0].size_before_last_atom + measure.levels[0].last_atom_size >
	    strlen(text) + CHARACTERS_ADDED_BY_EXPANSION_MAX)
		return "its repetitions, written out, make it longer by more than 2000 characters";
	return NULL;
}

int pattern_compile_silently(regex_t *ret, const char *text, int flags, const char **ret_excess)
{
	*ret_excess = find_exceeded_pattern_limit(text);
	return *ret_excess ? PATTERN_REFUSED : regcomp(ret, text, REG_EXTENDED | REG_NOSUB | flags);
}
