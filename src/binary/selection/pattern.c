/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See pattern.h. regcomp(3) does not tell where an expression is wrong: that is behind
 * its longest beginning that is right.
 */
#include "binary/selection/pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/demangle.h"
#include "binary/selection/names.h"
#include "common/pattern.h"

enum { PATTERN_SHOWN_CHARS_MAX = 200 };

static bool is_compilable_pattern(const char *text)
{
	regex_t compiled;

	if (pattern_compile(&compiled, text, 0, NULL, 0))
		return false;
	regfree(&compiled);
	return true;
}

/* Bytes of the longest beginning that compiles. */
static size_t count_compilable_prefix_bytes(const char *text)
{
	char *beginning = strdup(text);
	size_t length = beginning ? strlen(beginning) : 0;

	while (length) {
		beginning[--length] = '\0';
		if (is_compilable_pattern(beginning))
			break;
	}
	free(beginning);
	return length;
}

int selection_pattern_init(struct selection_pattern *ret, const char *text, const char *source,
			   struct problem *problem)
{
	char why[128];
	size_t good;
	int error;

	memset(ret, 0, sizeof(*ret));
	if (!*text)
		return 0;
	error = pattern_compile(&ret->compiled_regex, text, 0, why, sizeof(why));
	if (!error) {
		ret->given = true;
		return 0;
	}
	if (error == REG_ESPACE)
		return problem_set(problem, -ENOMEM, "%s: %s", source, why);
	if (error == PATTERN_REFUSED)
		return problem_set(problem, -EINVAL, "%s: '%.*s' is refused: %s", source,
				   PATTERN_SHOWN_CHARS_MAX, text, why);
	good = count_compilable_prefix_bytes(text);
	return problem_set(problem, -EINVAL,
			   "%s: '%.*s' is not a regular expression: %s, at character %zu: '%.20s'",
			   source, PATTERN_SHOWN_CHARS_MAX, text, why, good + 1, text + good);
}

void selection_pattern_deinit(struct selection_pattern *pattern)
{
	if (pattern->given)
		regfree(&pattern->compiled_regex);
	pattern->given = false;
}

bool selection_pattern_matches(const struct selection_pattern *pattern, const char *name)
{
	return pattern->given && name && !regexec(&pattern->compiled_regex, name, 0, NULL, 0);
}

bool selection_pattern_matches_symbol(const struct selection_pattern *pattern, const char *mangled)
{
	bool matches = selection_pattern_matches(pattern, mangled);
	char *readable = matches || !pattern->given ? NULL : demangle(mangled), *plain;

	if (!readable)
		return matches;
	plain = selection_copy_plain_name(readable);
	matches = selection_pattern_matches(pattern, readable) ||
		  selection_pattern_matches(pattern, plain);
	free(plain);
	free(readable);
	return matches;
}
