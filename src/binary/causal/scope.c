/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See scope.h.
 */
#include "binary/causal/scope.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/demangle.h"
#include "binary/selection/names.h"
#include "binary/selection/pattern.h"
#include "common/array.h"

struct scope_pattern_list {
	struct selection_pattern *patterns;
	bool *has_line_number; /* sources: the expression ends in a line number */
	size_t count;
	bool includes_main_program, includes_all_binaries; /* binaries */
};

struct causal_scopes {
	struct scope_pattern_list lists[CAUSAL_SCOPE_LIST_KIND_COUNT];
	enum causal_granularity granularity;
	bool excludes_internal_functions, excludes_library_code;
};

/* The next element, unquoted, malloc'ed; false: there is none, or (*ret NULL) no memory. */
static bool read_next_list_element(const char **at, char **ret)
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
static bool is_source_pattern_with_line_number(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && colon[1] && strpbrk(colon + 1, "0123456789.") && !strchr(colon + 1, '/');
}

static int scope_pattern_list_add(struct scope_pattern_list *list,
				  enum causal_scope_list_kind which, const char *text,
				  const char *source, struct problem *problem)
{
	bool sources = which == CAUSAL_SCOPE_SOURCE || which == CAUSAL_EXCLUDE_SOURCE;
	size_t length = strlen(text), count = list->count + 1;
	struct selection_pattern *patterns = reallocarray(list->patterns, count, sizeof(*patterns));
	bool *of_lines = reallocarray(list->has_line_number, count, sizeof(*of_lines));
	char *whole = malloc(length + 4);
	int error = -ENOMEM;

	if (patterns)
		list->patterns = patterns;
	if (of_lines)
		list->has_line_number = of_lines;
	if (patterns && of_lines && whole) {
		/* first as it was given: what is wrong in it is shown as the user wrote it */
		error = selection_pattern_init(&patterns[list->count], text, source, problem);
		if (!error && sources) {
			selection_pattern_deinit(&patterns[list->count]);
			snprintf(whole, length + 4, "(%s)$", text);
			error = selection_pattern_init(&patterns[list->count], whole, source,
						       problem);
		}
		of_lines[list->count] = sources && is_source_pattern_with_line_number(text);
	}
	free(whole);
	list->count += !error;
	return error;
}

static int parse_scope_pattern_list(struct scope_pattern_list *list,
				    enum causal_scope_list_kind which, const char *text,
				    const char *source, struct problem *problem)
{
	bool binaries = which == CAUSAL_SCOPE_BINARY || which == CAUSAL_EXCLUDE_BINARY;
	int error = 0;
	char *element;

	while (!error && read_next_list_element(&text, &element)) {
		if (binaries && !strcmp(element, "%MAIN%"))
			list->includes_main_program = true;
		else if (binaries && !strcmp(element, "%ALL%"))
			list->includes_all_binaries = true;
		else
			error = scope_pattern_list_add(list, which, element, source, problem);
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
	scopes->excludes_internal_functions = request->excludes_internal_functions;
	for (int i = 0; !error && i < CAUSAL_SCOPE_LIST_KIND_COUNT; i++) {
		if (request->lists[i])
			error = parse_scope_pattern_list(
				&scopes->lists[i], (enum causal_scope_list_kind)i,
				request->lists[i],
				request->sources[i] ? request->sources[i] : "scope", problem);
	}
	if (error) {
		causal_scopes_destroy(scopes);
		return error;
	}
	scopes->excludes_library_code = scopes->excludes_internal_functions &&
					!scopes->lists[CAUSAL_SCOPE_BINARY].includes_all_binaries &&
					!scopes->lists[CAUSAL_SCOPE_BINARY].count &&
					!scopes->lists[CAUSAL_SCOPE_SOURCE].count;
	*ret = scopes;
	return 0;
}

void causal_scopes_destroy(struct causal_scopes *scopes)
{
	if (!scopes)
		return;
	for (int i = 0; i < CAUSAL_SCOPE_LIST_KIND_COUNT; i++) {
		for (size_t j = 0; j < scopes->lists[i].count; j++)
			selection_pattern_deinit(&scopes->lists[i].patterns[j]);
		free(scopes->lists[i].patterns);
		free(scopes->lists[i].has_line_number);
	}
	free(scopes);
}

enum causal_granularity causal_scopes_get_granularity(const struct causal_scopes *scopes)
{
	return scopes->granularity;
}

/* ---- binaries ---- */

static bool scope_pattern_list_has_binary(const struct scope_pattern_list *list, const char *path,
					  bool is_program)
{
	if (list->includes_all_binaries || (list->includes_main_program && is_program))
		return true;
	for (size_t i = 0; i < list->count; i++) {
		if (selection_pattern_matches(&list->patterns[i], path))
			return true;
	}
	return false;
}

static bool is_kymo_library(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, "libkymo", strlen("libkymo"));
}

bool causal_binary_is_in_scope(const struct causal_scopes *scopes, const char *path,
			       bool is_program)
{
	const struct scope_pattern_list *scope = &scopes->lists[CAUSAL_SCOPE_BINARY];
	bool given = scope->includes_main_program || scope->includes_all_binaries || scope->count;

	return !is_kymo_library(path) &&
	       (given ? scope_pattern_list_has_binary(scope, path, is_program) : is_program) &&
	       !scope_pattern_list_has_binary(&scopes->lists[CAUSAL_EXCLUDE_BINARY], path,
					      is_program);
}

/* ---- functions ---- */

static bool scope_pattern_list_has_function(const struct scope_pattern_list *list,
					    const char *symbol)
{
	for (size_t i = 0; i < list->count; i++) {
		if (selection_pattern_matches_symbol(&list->patterns[i], symbol))
			return true;
	}
	return false;
}

/* "core::f" of "<core::f as T>", "&mut core::f": how Rust says of which type a function is. */
static const char *skip_rust_type_prefix(const char *name)
{
	static const char *const words[] = {"<", "&", "mut ", "dyn "};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strncmp(name, words[i], strlen(words[i]))) {
			name += strlen(words[i]);
			i = SIZE_MAX; /* from the first one again */
		}
	}
	return name;
}

/* Namespaces of the libraries that come with compilers: a program's instances of their templates
 * and generic functions are in its own file, but nobody changes them to make it faster. */
static bool is_standard_library_name(const char *name)
{
	static const char *const namespaces[] = {
		"std::", "__gnu_cxx::", "__cxxabiv1::", "core::", "alloc::", "hashbrown::"};

	name = skip_rust_type_prefix(name);
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
		if (!strncmp(name, namespaces[i], strlen(namespaces[i])))
			return true;
	}
	return !strncmp(name, "operator new", strlen("operator new")) ||
	       !strncmp(name, "operator delete", strlen("operator delete"));
}

static bool is_symbol_excluded_by_default(const struct causal_scopes *scopes, const char *symbol,
					  bool named)
{
	char *readable = demangle(symbol),
	     *plain = readable ? selection_copy_plain_name(readable) : NULL;
	const char *name = plain ? selection_skip_return_type(plain) : symbol;
	/* kymo_: inline functions of kymo/user.h */
	bool hardly =
		name[0] == '_' || strstr(name, "::_M") || !strncmp(name, "kymo_", 5) ||
		(scopes->granularity == CAUSAL_GRANULARITY_FUNCTIONS && !strcmp(name, "main")) ||
		(scopes->excludes_library_code && !named && plain &&
		 is_standard_library_name(name));

	free(plain);
	free(readable);
	return hardly;
}

bool causal_function_is_in_scope(const struct causal_scopes *scopes, const char *symbol)
{
	const struct scope_pattern_list *scope = &scopes->lists[CAUSAL_SCOPE_FUNCTION];

	if (!symbol)
		return !scope->count;
	return (!scope->count || scope_pattern_list_has_function(scope, symbol)) &&
	       !scope_pattern_list_has_function(&scopes->lists[CAUSAL_EXCLUDE_FUNCTION], symbol) &&
	       !(scopes->excludes_internal_functions &&
		 is_symbol_excluded_by_default(scopes, symbol, scope->count));
}

/* ---- sources ---- */

/* Sources of libraries that are installed: what a program takes from them by templates, inline
 * functions and generics is compiled into it. Of functions that are asked for by name it does not
 * matter. */
static bool is_library_source(const struct causal_scopes *scopes, const char *file)
{
	static const char *const directories[] = {"/usr/include/", "/usr/lib/", "/usr/lib64/",
						  "/usr/local/include/", "/rustc/"};

	if (!file || !scopes->excludes_library_code || scopes->lists[CAUSAL_SCOPE_FUNCTION].count)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		if (!strncmp(file, directories[i], strlen(directories[i])))
			return true;
	}
	return strstr(file, "/.cargo/registry/") || strstr(file, "/.rustup/toolchains/");
}

/* Does the list hold all lines of the file, or must each be looked at? */
static enum causal_source_scope_verdict
judge_source_file_by_list(const struct scope_pattern_list *list, const char *file)
{
	enum causal_source_scope_verdict verdict = CAUSAL_SOURCE_OUT_OF_SCOPE;

	for (size_t i = 0; file && i < list->count; i++) {
		if (list->has_line_number[i])
			verdict = CAUSAL_SOURCE_SCOPE_DEPENDS_ON_LINE;
		else if (selection_pattern_matches(&list->patterns[i], file))
			return CAUSAL_SOURCE_IN_SCOPE;
	}
	return verdict;
}

enum causal_source_scope_verdict causal_scopes_judge_source_file(const struct causal_scopes *scopes,
								 const char *file)
{
	const struct scope_pattern_list *scope = &scopes->lists[CAUSAL_SCOPE_SOURCE];
	enum causal_source_scope_verdict in = scope->count ? judge_source_file_by_list(scope, file)
							   : CAUSAL_SOURCE_IN_SCOPE,
					 out = judge_source_file_by_list(
						 &scopes->lists[CAUSAL_EXCLUDE_SOURCE], file);

	if (in == CAUSAL_SOURCE_OUT_OF_SCOPE || out == CAUSAL_SOURCE_IN_SCOPE ||
	    is_library_source(scopes, file))
		return CAUSAL_SOURCE_OUT_OF_SCOPE;
	return out == CAUSAL_SOURCE_SCOPE_DEPENDS_ON_LINE ? CAUSAL_SOURCE_SCOPE_DEPENDS_ON_LINE
							  : in;
}

static bool scope_pattern_list_has_line(const struct scope_pattern_list *list, const char *file,
					const char *place)
{
	for (size_t i = 0; i < list->count; i++) {
		if (selection_pattern_matches(&list->patterns[i],
					      list->has_line_number[i] ? place : file))
			return true;
	}
	return false;
}

bool causal_line_is_in_scope(const struct causal_scopes *scopes, const char *file, uint32_t line)
{
	const struct scope_pattern_list *scope = &scopes->lists[CAUSAL_SCOPE_SOURCE];
	char place[4096 + 16];

	if (!file)
		return !scope->count;
	snprintf(place, sizeof(place), "%.4096s:%u", file, line);
	return (!scope->count || scope_pattern_list_has_line(scope, file, place)) &&
	       !scope_pattern_list_has_line(&scopes->lists[CAUSAL_EXCLUDE_SOURCE], file, place);
}
