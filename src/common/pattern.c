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
#include <stdio.h>
#include <string.h>

/* Time and memory of glibc 2.36: repetitions for 2000 more take 0.6 s and 60 MB at most,
 * parentheses of depth 20000 a stack of 8 MB; alternatives take the square of their number, 5000 of
 * them 200 MB.
 */
#define GROWTH_MAX  2000u
#define DEPTH_MAX   100u
#define CHOICES_MAX 5000u

#define SIZE_LIMIT                                                                                 \
	(UINT64_C(1) << 32) /* beyond all that is allowed, and products do not overflow */

struct level {
	uint64_t before, last; /* sizes: all but the last atom; the last atom */
};

struct measure {
	struct level levels[DEPTH_MAX + 1];
	size_t depth, choices;
	bool refers_back;
};

static uint64_t limited(uint64_t size)
{
	return size < SIZE_LIMIT ? size : SIZE_LIMIT;
}

static void measure_atom(struct level *level, uint64_t size)
{
	level->before = limited(level->before + level->last);
	level->last = size;
}

/* [^]a[:alpha:]-z], from its bracket to behind it. */
static const char *bracket_end(const char *at)
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

static const char *read_count(const char *at, uint64_t *ret)
{
	for (*ret = 0; *at >= '0' && *at <= '9'; at++)
		*ret = *ret < UINT16_MAX ? *ret * 10 + (uint64_t)(*at - '0') : *ret;
	return at;
}

/* {m}, {m,}, {m,n}, {,n}; anything else is a character like others. */
static const char *measure_interval(struct level *level, const char *at)
{
	uint64_t least, most;
	const char *end = read_count(at + 1, &least);

	most = least;
	if (*end == ',') {
		const char *digits = end + 1;

		end = read_count(digits, &most);
		if (end == digits)
			most = least + 1;
	}
	if (*end != '}' || end == at + 1) {
		measure_atom(level, 1);
		return at + 1;
	}
	/* What may be left out is a choice, each time. */
	if (most < least)
		most = least;
	level->last = limited(level->last * most + (most - least));
	return end + 1;
}

static void measure_close(struct measure *measure)
{
	struct level *inner = &measure->levels[measure->depth];

	if (!measure->depth)
		return;
	measure->depth--;
	measure_atom(inner - 1, limited(inner->before + inner->last + 1));
}

/* Looks at what is at `at`; returns what is behind it. */
static const char *measure_next(struct measure *measure, const char *at)
{
	struct level *level = &measure->levels[measure->depth];

	switch (*at) {
	case '(':
		if (++measure->depth <= DEPTH_MAX)
			measure->levels[measure->depth] = (struct level){0};
		return at + 1;
	case ')':
		measure_close(measure);
		return at + 1;
	case '{':
		return measure_interval(level, at);
	case '|':
		measure->choices++;
		measure_atom(level, 0);
		return at + 1;
	case '*':
	case '+':
	case '?':
		measure->choices++;
		level->last = limited(level->last * (*at == '+' ? 2 : 1) + 1);
		return at + 1;
	case '[':
		measure_atom(level, 1);
		return bracket_end(at);
	default:
		measure->refers_back |= *at == '\\' && at[1] >= '1' && at[1] <= '9';
		measure_atom(level, 1);
		return at + (*at == '\\' && at[1] ? 2 : 1);
	}
}

/* NULL: it can be compiled. */
static const char *pattern_excess(const char *text)
{
	struct measure measure = {.depth = 0};
	const char *at = text;

	while (*at && measure.depth <= DEPTH_MAX)
		at = measure_next(&measure, at);
	if (measure.depth > DEPTH_MAX)
		return "parentheses are nested more than 100 deep";
	if (measure.refers_back)
		return "back-references (\\1) are not taken";
	if (measure.choices > CHOICES_MAX)
		return "more than 5000 alternatives and repetitions";
	while (measure.depth)
		measure_close(&measure);
	if (measure.levels[0].before + measure.levels[0].last > strlen(text) + GROWTH_MAX)
		return "its repetitions, written out, make it longer by more than 2000 characters";
	return NULL;
}

int pattern_compile(regex_t *ret, const char *text, int flags, char *why, size_t size)
{
	const char *excess = pattern_excess(text);
	int error = excess ? PATTERN_REFUSED : regcomp(ret, text, REG_EXTENDED | REG_NOSUB | flags);

	if (error && why) {
		if (excess)
			snprintf(why, size, "%s", excess);
		else
			regerror(error, ret, why, size);
	}
	return error;
}
