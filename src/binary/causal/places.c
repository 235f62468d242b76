/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See places.h: reading what the user named.
 */
#include "binary/causal/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LATENCY_PREFIX "latency:"

static int parse_named_place(struct causal_named_place *ret, const char *text, size_t length,
			     enum causal_point_kind kind, const char *name, const char *source,
			     struct problem *problem)
{
	char *place = strndup(text, length), *colon;
	unsigned long line = 0;
	char *end = NULL;

	if (!place)
		return problem_set(problem, -ENOMEM, "out of memory");
	*ret = (struct causal_named_place){.kind = kind};
	colon = strrchr(place, ':');
	if (colon > place && colon[1] >= '0' && colon[1] <= '9' && colon[-1] != ':')
		line = strtoul(colon + 1, &end, 10);
	if (!*place || strlen(name) >= sizeof(ret->name) || (end && (*end || line > INT32_MAX))) {
		free(place);
		return problem_set(problem, -EINVAL,
				   "%s: '%.200s' is neither a function, nor FILE:LINE, nor "
				   "latency:PLACE,PLACE",
				   source, name);
	}
	if (end && !line) {
		free(place);
		return problem_set(problem, -EINVAL, "%s: '%.200s': lines of a file begin with 1",
				   source, name);
	}
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	if (end) {
		*colon = '\0';
		ret->file = place;
		ret->line = (uint32_t)line;
	} else {
		ret->function = place;
	}
	return 0;
}

static int parse_and_append_named_place(struct causal_places *places, const char *text,
					size_t length, enum causal_point_kind kind,
					const char *name, const char *source,
					struct problem *problem)
{
	struct causal_named_place *larger =
		reallocarray(places->list, places->count + 1, sizeof(*larger));
	int error;

	if (!larger)
		return problem_set(problem, -ENOMEM, "out of memory");
	places->list = larger;
	error = parse_named_place(&larger[places->count], text, length, kind, name, source,
				  problem);
	places->count += !error;
	return error;
}

/* The comma between two places: not one of "f<int, int>(char, char)". */
static const char *find_latency_pair_comma(const char *text)
{
	int depth = 0;

	for (; *text; text++) {
		depth += *text == '<' || *text == '(';
		depth -= *text == '>' || *text == ')';
		if (*text == ',' && depth <= 0)
			return text;
	}
	return NULL;
}

int causal_named_places_add_from_text(struct causal_places *places, const char *text,
				      const char *source, struct problem *problem)
{
	const char *pair = text + strlen(LATENCY_PREFIX), *comma;
	int error;

	if (strncmp(text, LATENCY_PREFIX, strlen(LATENCY_PREFIX)))
		return parse_and_append_named_place(places, text, strlen(text),
						    CAUSAL_POINT_PROGRESS, text, source, problem);
	comma = find_latency_pair_comma(pair);
	if (!comma)
		return problem_set(problem, -EINVAL,
				   "%s: 'latency:' takes two places separated by a comma, the "
				   "beginning and the end: '%.200s'",
				   source, text);
	error = parse_and_append_named_place(places, pair, (size_t)(comma - pair),
					     CAUSAL_POINT_BEGIN, pair, source, problem);
	if (error)
		return error;
	return parse_and_append_named_place(places, comma + 1, strlen(comma + 1), CAUSAL_POINT_END,
					    pair, source, problem);
}

void causal_named_places_deinit(struct causal_places *places)
{
	for (size_t i = 0; i < places->count; i++) {
		free(places->list[i].function);
		free(places->list[i].file);
	}
	free(places->list);
	*places = (struct causal_places){0};
}
