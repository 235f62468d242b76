/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What went wrong, for a person: the text beside a negative errno. Out of process only.
 */
#ifndef KYMO_COMMON_PROBLEM_H
#define KYMO_COMMON_PROBLEM_H

#include <stdarg.h>
#include <stdio.h>

/* A message for the user: what, where, what to do. Static storage in the caller. */
struct problem {
	char text[1024];
};

/* Writes the message and returns `error`, so that a failing function ends with
 * `return problem_set(problem, -EINVAL, "…")`. `problem` may be NULL. */
__attribute__((format(printf, 3, 4))) static inline int
problem_set(struct problem *problem, int error, const char *format, ...)
{
	if (problem) {
		va_list arguments;
		va_start(arguments, format);
		vsnprintf(problem->text, sizeof(problem->text), format, arguments);
		va_end(arguments);
	}
	return error;
}

#endif
