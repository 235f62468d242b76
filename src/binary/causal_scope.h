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

enum causal_granularity { CAUSAL_FUNCTIONS, CAUSAL_LINES };

enum causal_scope {
	CAUSAL_SCOPE_BINARY,
	CAUSAL_SCOPE_SOURCE,
	CAUSAL_SCOPE_FUNCTION,
	CAUSAL_EXCLUDE_BINARY,
	CAUSAL_EXCLUDE_SOURCE,
	CAUSAL_EXCLUDE_FUNCTION,
	CAUSAL_SCOPES
};

/* Texts are needed until causal_scopes_create() returns. */
struct causal_scope_request {
	const char *lists[CAUSAL_SCOPES];   /* NULL or "": not given */
	const char *sources[CAUSAL_SCOPES]; /* where they are from ("--function-scope") */
	enum causal_granularity granularity;
	/* Excludes as well what is hardly the program's own: functions whose names begin with _ or
	 * that have ::_M in them, as the C++ library's inner ones do; and `main` where functions
	 * are the targets, because everything is in it. */
	bool exclude_defaults;
};

struct causal_scopes;

/* -EINVAL: the problem says which expression, where, and what is wrong; -ENOMEM. */
int causal_scopes_create(const struct causal_scope_request *request, struct causal_scopes **ret,
			 struct problem *problem);
void causal_scopes_destroy(struct causal_scopes *scopes);

enum causal_granularity causal_scopes_granularity(const struct causal_scopes *scopes);
bool causal_scopes_hold_binary(const struct causal_scopes *scopes, const char *path,
			       bool is_program);
/* `symbol` may be NULL: code that has no name is in where no function is asked for. */
bool causal_scopes_hold_function(const struct causal_scopes *scopes, const char *symbol);

enum causal_source_verdict {
	CAUSAL_SOURCE_OUT,
	CAUSAL_SOURCE_IN,
	CAUSAL_SOURCE_BY_LINE /* ask causal_scopes_hold_line() */
};
/* All of the file's lines; `file` may be NULL: unknown. */
enum causal_source_verdict causal_scopes_judge_file(const struct causal_scopes *scopes,
						    const char *file);
bool causal_scopes_hold_line(const struct causal_scopes *scopes, const char *file, uint32_t line);

#endif
