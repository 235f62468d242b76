/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regular expressions of users, all compiled here: regcomp(3) writes repetitions out, so that
 * ((a{1,255}){1,255}){1,255} takes all memory, and goes as deep into the stack as parentheses are
 * nested. What is larger than anybody writes is refused before. So are back-references, which
 * POSIX's extended expressions do not have: glibc takes without end to match some, in a program
 * that launches a kernel, too.
 */
#ifndef KYMO_COMMON_PATTERN_H
#define KYMO_COMMON_PATTERN_H

#include <regex.h>
#include <stddef.h>

#define PATTERN_REFUSED (-1) /* none of regcomp's */

/* A POSIX extended expression, without places of matches; `flags` REG_ICASE or 0. 0, an error of
 * regcomp(3) or PATTERN_REFUSED; then `why` is a text (NULL: not wanted), and there is nothing to
 * free. */
int pattern_compile(regex_t *ret, const char *text, int flags, char *why, size_t size);
/* The same without a text, for what runs in programs; `*ret_excess`: why it is refused, or NULL. */
int pattern_compile_silently(regex_t *ret, const char *text, int flags, const char **ret_excess);

#endif
