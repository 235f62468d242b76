/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_scope.h.
 */
#include "binary/causal_scope.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/demangle.h"
#include "binary/selection_names.h"
#include "binary/selection_pattern.h"

struct scope_list {
	struct selection_pattern *patterns;
	bool *of_lines; /* sources: the expression ends in a line number */
	size_t count;
	bool main, all; /* binaries */
};

struct causal_scopes {
	struct scope_list lists[CAUSAL_SCOPES];
	enum causal_granularity granularity;
	bool exclude_defaults;
};

/* The next element, unquoted, malloc'ed; false: there is none, or (*ret NULL) no memory. */
static bool list_next(const char **at, char **ret)
{
	char quote = 0, *text;
	size_t length = 0;

	while (**at && strchr("\t;\n ", **at))
		(*at)++;
	*ret = NULL;
	if (!**at)
		return false;
	text = malloc(strlen(*at) + 1);
	for (; text && **at && (quote || !strchr("\t;\n", **at)); (*at)++) {
		if (quote ? **at == quote : (**at == '"' || **at == '\''))
			quote = quote ? 0 : **at;
		else
			text[length++] = **at;
	}
	if (!text)
		return false;
	text[length] = '\0';
	*ret = text;
	return true;
}

/* "file.c:12" and "file.c:1[0-9]", but not "file.c". */
static bool speaks_of_lines(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && colon[1] && strpbrk(colon + 1, "0123456789.") && !strchr(colon + 1, '/');
}

static int list_add(struct scope_list *list, enum causal_scope which, const char *text,
		    const char *source, struct problem *problem)
{
	bool sources = which == CAUSAL_SCOPE_SOURCE || which == CAUSAL_EXCLUDE_SOURCE;
	size_t length = strlen(text), count = list->count + 1;
	struct selection_pattern *patterns = reallocarray(list->patterns, count, sizeof(*patterns));
	bool *of_lines = reallocarray(list->of_lines, count, sizeof(*of_lines));
	char *whole = malloc(length + 4);
	int error = -ENOMEM;

	if (patterns)
		list->patterns = patterns;
	if (of_lines)
		list->of_lines = of_lines;
	if (patterns && of_lines && whole) {
		/* first as it was given: what is wrong in it is shown as the user wrote it */
		error = selection_pattern_init(&patterns[list->count], text, source, problem);
		if (!error && sources) {
			selection_pattern_deinit(&patterns[list->count]);
			snprintf(whole, length + 4, "(%s)$", text);
			error = selection_pattern_init(&patterns[list->count], whole, source,
						       problem);
		}
		of_lines[list->count] = sources && speaks_of_lines(text);
	}
	free(whole);
	list->count += !error;
	return error;
}

static int list_read(struct scope_list *list, enum causal_scope which, const char *text,
		     const char *source, struct problem *problem)
{
	bool binaries = which == CAUSAL_SCOPE_BINARY || which == CAUSAL_EXCLUDE_BINARY;
	int error = 0;
	char *element;

	while (!error && list_next(&text, &element)) {
		if (binaries && !strcmp(element, "%MAIN%"))
			list->main = true;
		else if (binaries && !strcmp(element, "%ALL%"))
			list->all = true;
		else
			error = list_add(list, which, element, source, problem);
		free(element);
	}
	if (!error && *text)
		error = -ENOMEM;
	if (error == -ENOMEM)
		problem_set(problem, error, "%s: out of memory", source);
	return error;
}

int causal_scopes_create(const struct causal_scope_request *request, struct causal_scopes **ret,
			 struct problem *problem)
{
	struct causal_scopes *scopes = calloc(1, sizeof(*scopes));
	int error = 0;

	if (!scopes)
		return problem_set(problem, -ENOMEM, "out of memory");
	scopes->granularity = request->granularity;
	scopes->exclude_defaults = request->exclude_defaults;
	for (int i = 0; !error && i < CAUSAL_SCOPES; i++) {
		if (request->lists[i])
			error = list_read(
				&scopes->lists[i], (enum causal_scope)i, request->lists[i],
				request->sources[i] ? request->sources[i] : "scope", problem);
	}
	if (error) {
		causal_scopes_destroy(scopes);
		return error;
	}
	*ret = scopes;
	return 0;
}

void causal_scopes_destroy(struct causal_scopes *scopes)
{
	if (!scopes)
		return;
	for (int i = 0; i < CAUSAL_SCOPES; i++) {
		for (size_t j = 0; j < scopes->lists[i].count; j++)
			selection_pattern_deinit(&scopes->lists[i].patterns[j]);
		free(scopes->lists[i].patterns);
		free(scopes->lists[i].of_lines);
	}
	free(scopes);
}

enum causal_granularity causal_scopes_granularity(const struct causal_scopes *scopes)
{
	return scopes->granularity;
}

/* ---- binaries ---- */

static bool list_has_binary(const struct scope_list *list, const char *path, bool is_program)
{
	if (list->all || (list->main && is_program))
		return true;
	for (size_t i = 0; i < list->count; i++) {
		if (selection_pattern_matches(&list->patterns[i], path))
			return true;
	}
	return false;
}

static bool is_ours(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, "libkymo", strlen("libkymo"));
}

bool causal_scopes_hold_binary(const struct causal_scopes *scopes, const char *path,
			       bool is_program)
{
	const struct scope_list *scope = &scopes->lists[CAUSAL_SCOPE_BINARY];
	bool given = scope->main || scope->all || scope->count;

	return !is_ours(path) && (given ? list_has_binary(scope, path, is_program) : is_program) &&
	       !list_has_binary(&scopes->lists[CAUSAL_EXCLUDE_BINARY], path, is_program);
}

/* ---- functions ---- */

static bool list_has_function(const struct scope_list *list, const char *symbol)
{
	for (size_t i = 0; i < list->count; i++) {
		if (selection_pattern_matches_symbol(&list->patterns[i], symbol))
			return true;
	}
	return false;
}

static bool is_hardly_own(const struct causal_scopes *scopes, const char *symbol)
{
	char *readable = demangle(symbol),
	     *plain = readable ? selection_plain_name(readable) : NULL;
	const char *name = plain ? plain : symbol;
	/* kymo_: inline functions of kymo/user.h */
	bool hardly = name[0] == '_' || strstr(name, "::_M") || !strncmp(name, "kymo_", 5) ||
		      (scopes->granularity == CAUSAL_FUNCTIONS && !strcmp(name, "main"));

	free(plain);
	free(readable);
	return hardly;
}

bool causal_scopes_hold_function(const struct causal_scopes *scopes, const char *symbol)
{
	const struct scope_list *scope = &scopes->lists[CAUSAL_SCOPE_FUNCTION];

	if (!symbol)
		return !scope->count;
	return (!scope->count || list_has_function(scope, symbol)) &&
	       !list_has_function(&scopes->lists[CAUSAL_EXCLUDE_FUNCTION], symbol) &&
	       !(scopes->exclude_defaults && is_hardly_own(scopes, symbol));
}

/* ---- sources ---- */

/* Does the list hold all lines of the file, or must each be looked at? */
static enum causal_source_verdict list_judge(const struct scope_list *list, const char *file)
{
	enum causal_source_verdict verdict = CAUSAL_SOURCE_OUT;

	for (size_t i = 0; file && i < list->count; i++) {
		if (list->of_lines[i])
			verdict = CAUSAL_SOURCE_BY_LINE;
		else if (selection_pattern_matches(&list->patterns[i], file))
			return CAUSAL_SOURCE_IN;
	}
	return verdict;
}

enum causal_source_verdict causal_scopes_judge_file(const struct causal_scopes *scopes,
						    const char *file)
{
	const struct scope_list *scope = &scopes->lists[CAUSAL_SCOPE_SOURCE];
	enum causal_source_verdict in = scope->count ? list_judge(scope, file) : CAUSAL_SOURCE_IN,
				   out = list_judge(&scopes->lists[CAUSAL_EXCLUDE_SOURCE], file);

	if (in == CAUSAL_SOURCE_OUT || out == CAUSAL_SOURCE_IN)
		return CAUSAL_SOURCE_OUT;
	return out == CAUSAL_SOURCE_BY_LINE ? CAUSAL_SOURCE_BY_LINE : in;
}

static bool list_has_line(const struct scope_list *list, const char *file, const char *place)
{
	for (size_t i = 0; i < list->count; i++) {
		if (selection_pattern_matches(&list->patterns[i], list->of_lines[i] ? place : file))
			return true;
	}
	return false;
}

bool causal_scopes_hold_line(const struct causal_scopes *scopes, const char *file, uint32_t line)
{
	const struct scope_list *scope = &scopes->lists[CAUSAL_SCOPE_SOURCE];
	char place[4096 + 16];

	if (!file)
		return !scope->count;
	snprintf(place, sizeof(place), "%.4096s:%u", file, line);
	return (!scope->count || list_has_line(scope, file, place)) &&
	       !list_has_line(&scopes->lists[CAUSAL_EXCLUDE_SOURCE], file, place);
}
