/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What causal experiments may choose: scopes and excludes of binaries, source files and lines, and
 * functions.
 *
 * Each is a list of regular expressions (POSIX extended, found anywhere in the name), separated by
 * tabs, semicolons or line ends; quotes keep these. An empty list of scopes holds everything; what
 * is excluded is out whatever scope holds it. Binaries are paths; %MAIN% is the program's
 * executable, %ALL% every file. Sources are paths or path:line, and the expression ends where these
 * end. Functions are names as in the file, readable, or readable without arguments.
 */
#ifndef KYMO_BINARY_CAUSAL_SCOPE_H
#define KYMO_BINARY_CAUSAL_SCOPE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/problem.h"

enum causal_granularity { CAUSAL_GRANULARITY_FUNCTIONS, CAUSAL_GRANULARITY_LINES };

enum causal_scope_list_kind {
	CAUSAL_SCOPE_BINARY,
	CAUSAL_SCOPE_SOURCE,
	CAUSAL_SCOPE_FUNCTION,
	CAUSAL_EXCLUDE_BINARY,
	CAUSAL_EXCLUDE_SOURCE,
	CAUSAL_EXCLUDE_FUNCTION,
	CAUSAL_SCOPE_LIST_KIND_COUNT
};

/* Texts are needed until causal_scopes_create() returns. */
struct causal_scope_request {
	const char *lists[CAUSAL_SCOPE_LIST_KIND_COUNT];   /* NULL or "": not given */
	const char *sources[CAUSAL_SCOPE_LIST_KIND_COUNT]; /* where they are from
							      ("--function-scope") */
	enum causal_granularity granularity;
	/* Excludes as well what is hardly the program's own: functions whose names begin with _ or
	 * that have ::_M in them, as the C++ library's inner ones do; `main` where functions are
	 * the targets, because everything is in it; and, where neither other binaries nor sources
	 * nor this function are asked for, functions of libraries that are compiled into the
	 * program: by their namespace (std::, core::) and by their source (/usr/include). Their
	 * time is that of the program's functions that they are called by or inlined into. */
	bool excludes_internal_functions;
};

struct causal_scopes;

/* -EINVAL: the problem says which expression, where, and what is wrong; -ENOMEM. */
int causal_scopes_create(const struct causal_scope_request *request, struct causal_scopes **ret,
			 struct problem *problem);
void causal_scopes_destroy(struct causal_scopes *scopes);

enum causal_granularity causal_scopes_get_granularity(const struct causal_scopes *scopes);
bool causal_binary_is_in_scope(const struct causal_scopes *scopes, const char *path,
			       bool is_program);
/* `symbol` may be NULL: code that has no name is in where no function is asked for. */
bool causal_function_is_in_scope(const struct causal_scopes *scopes, const char *symbol);

enum causal_source_scope_verdict {
	CAUSAL_SOURCE_OUT_OF_SCOPE,
	CAUSAL_SOURCE_IN_SCOPE,
	CAUSAL_SOURCE_SCOPE_DEPENDS_ON_LINE /* ask causal_line_is_in_scope() */
};
/* All of the file's lines; `file` may be NULL: unknown. */
enum causal_source_scope_verdict causal_scopes_judge_source_file(const struct causal_scopes *scopes,
								 const char *file);
bool causal_line_is_in_scope(const struct causal_scopes *scopes, const char *file, uint32_t line);

#endif
